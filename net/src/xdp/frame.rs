//! Ethernet, IPv4 and UDP as one header of 42 bytes, written and read by pure functions (no_std, no I/O).
//!
//! Only the plain form is spoken: Ethernet II without VLAN tag, IPv4 without options and unfragmented, UDP with a
//! checksum (but to the port of RoCEv2, which has its own). Datagrams leave with "don't fragment" and identification 0, which RFC 6864 allows for what is never
//! fragmented, so that every header bit is known to whoever writes the payload.
//!
//! | bytes | field |
//! |---|---|
//! | 0–13 | Ethernet: destination MAC, source MAC, type 0x0800 |
//! | 14–33 | IPv4 (RFC 791): version and length 0x45, TOS, total length, identification, flags and offset, TTL, protocol 17, checksum, source, destination |
//! | 34–41 | UDP (RFC 768): source port, destination port, length, checksum |
//! | 42– | payload, then padding up to Ethernet's shortest frame |

use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;
use proto::roce;

/// Bytes before the payload.
pub const HEADER_LENGTH: usize = ETHERNET_LENGTH + IPV4_LENGTH + UDP_LENGTH;

/// Bytes that IPv4 and UDP add to a payload: what counts towards an interface's MTU.
pub const OVERHEAD_IN_MTU: usize = IPV4_LENGTH + UDP_LENGTH;

/// Address of a network card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mac(pub [u8; 6]);

/// One end of a conversation, as frames have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Of its card, or of the router before it.
    pub mac: Mac,
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// UDP port.
    pub port: u16,
}

/// The header of all datagrams from one end to another, but for lengths and checksums.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    bytes: [u8; HEADER_LENGTH],
    /// Sum of the IPv4 header with total length 0.
    ip_sum: u64,
    /// Sum of UDP's pseudo header and header with both lengths 0.
    udp_sum: u64,
}

/// A datagram found in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parsed<'a> {
    /// Where it came from, and how.
    pub origin: Origin,
    /// Where it was sent.
    pub to: Endpoint,
    /// What it carries.
    pub payload: &'a [u8],
}

/// Where a datagram came from, and what its IP header says beside that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Who sent it.
    pub from: Endpoint,
    /// Type of service: code point (DSCP) and congestion bits (ECN).
    pub class: u8,
    /// IPv4 identification.
    pub identification: u16,
}

/// Why a frame is no datagram for us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reject {
    /// Another protocol, IPv4 with options, or a fragment.
    Unsupported,
    /// The frame is shorter than its headers say, or their lengths contradict each other.
    Length,
    /// The IPv4 or the UDP checksum is wrong, or UDP's is left out (but to RoCEv2's port).
    Checksum,
}

/// Which UDP checksums are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksums {
    /// Complete ones alone.
    Complete,
    /// Also one of the pseudo header alone. That is what Linux leaves for a card to complete; between the two ends of a
    /// veth there is no card, and no wire that could change a bit.
    OrPartial,
}

impl Mac {
    fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next()?.as_bytes();
            let (&[high, low], true) = (part.first_chunk()?, part.len() == 2) else {
                return None;
            };
            let digit = |letter: u8| {
                char::from(letter)
                    .to_digit(16)
                    .and_then(|digit| u8::try_from(digit).ok())
            };
            *byte = digit(high)? << 4 | digit(low)?;
        }
        parts.next().is_none().then_some(Self(bytes))
    }
}

impl Mac {
    /// Whether frames to it go to one station, and not to a group, to all or to nobody.
    pub(super) const fn is_of_one_station(self) -> bool {
        self.0[0] & 1 == 0 && !matches!(self.0, [0, 0, 0, 0, 0, 0])
    }
}

impl FromStr for Mac {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or("a MAC address is written like 02:00:5e:10:00:01")
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl Header {
    /// Of datagrams from one end to another.
    #[must_use]
    pub fn new(from: &Endpoint, to: &Endpoint) -> Self {
        let mut bytes = [0; HEADER_LENGTH];
        bytes[0..6].copy_from_slice(&to.mac.0);
        bytes[6..12].copy_from_slice(&from.mac.0);
        bytes[12..14].copy_from_slice(&ETHERTYPE_IPV4);
        bytes[14] = VERSION_AND_LENGTH;
        bytes[20..22].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
        bytes[22] = TTL;
        bytes[23] = PROTOCOL_UDP;
        bytes[26..30].copy_from_slice(&from.address.octets());
        bytes[30..34].copy_from_slice(&to.address.octets());
        bytes[34..36].copy_from_slice(&from.port.to_be_bytes());
        bytes[36..38].copy_from_slice(&to.port.to_be_bytes());
        Self {
            bytes,
            ip_sum: sum(&bytes[14..34]),
            udp_sum: sum(&bytes[26..34]) + u64::from(PROTOCOL_UDP) + sum(&bytes[34..42]),
        }
    }

    /// The same with this type of service.
    #[must_use]
    pub fn with_class(mut self, class: u8) -> Self {
        self.bytes[15] = class;
        self.ip_sum = sum(&self.bytes[14..34]);
        self
    }

    /// Writes a whole frame and gives its length; `None` when the payload does not fit into it or into UDP's length.
    #[must_use]
    pub fn write(&self, payload: &[u8], frame: &mut [u8]) -> Option<u16> {
        let udp_length = u16::try_from(UDP_LENGTH + payload.len()).ok()?;
        let ip_length = u16::try_from(OVERHEAD_IN_MTU + payload.len()).ok()?;
        let end = HEADER_LENGTH + payload.len();
        let length = end.max(SHORTEST_FRAME);
        let frame = frame.get_mut(..length)?;
        frame[..HEADER_LENGTH].copy_from_slice(&self.bytes);
        frame[HEADER_LENGTH..end].copy_from_slice(payload);
        // The place may hold what was sent before.
        frame[end..].fill(0);
        let ip_checksum = !fold(self.ip_sum + u64::from(ip_length));
        // The length stands in the pseudo header and in the header.
        let udp_checksum = !fold(self.udp_sum + 2 * u64::from(udp_length) + sum(payload));
        frame[16..18].copy_from_slice(&ip_length.to_be_bytes());
        frame[24..26].copy_from_slice(&ip_checksum.to_be_bytes());
        frame[38..40].copy_from_slice(&udp_length.to_be_bytes());
        // 0 would say that there is none (RFC 768).
        let udp_checksum = if udp_checksum == 0 { u16::MAX } else { udp_checksum };
        frame[40..42].copy_from_slice(&udp_checksum.to_be_bytes());
        u16::try_from(length).ok()
    }
}

/// Finds the datagram in a frame.
///
/// # Errors
/// It is none of the plain form, or it is damaged.
pub fn parse(frame: &[u8], checksums: Checksums) -> Result<Parsed<'_>, Reject> {
    let Some((header, rest)) = frame.split_first_chunk::<HEADER_LENGTH>() else {
        return Err(Reject::Length);
    };
    let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let is_plain = header[12..14] == ETHERTYPE_IPV4
        && header[14] == VERSION_AND_LENGTH
        && u16_at(20) & FRAGMENT == 0
        && header[23] == PROTOCOL_UDP;
    if !is_plain {
        return Err(Reject::Unsupported);
    }
    let udp_length = u16_at(38);
    let Some(payload_length) = usize::from(udp_length).checked_sub(UDP_LENGTH) else {
        return Err(Reject::Length);
    };
    // What follows the payload is Ethernet's padding.
    if usize::from(u16_at(16)) != OVERHEAD_IN_MTU + payload_length || rest.len() < payload_length {
        return Err(Reject::Length);
    }
    let payload = &rest[..payload_length];
    let pseudo = sum(&header[26..34]) + u64::from(PROTOCOL_UDP) + u64::from(udp_length);
    let is_complete = fold(pseudo + sum(&header[34..42]) + sum(payload)) == u16::MAX;
    let is_partial = checksums == Checksums::OrPartial && u16_at(40) == fold(pseudo);
    let is_right = match u16_at(40) {
        // RoCEv2 has a check of its own, and devices leave this one out.
        0 => u16_at(36) == roce::wire::UDP_PORT,
        _ => is_complete || is_partial,
    };
    if fold(sum(&header[14..34])) != u16::MAX || !is_right {
        return Err(Reject::Checksum);
    }
    let from = endpoint(header, 6, 26, 34);
    Ok(Parsed {
        origin: Origin {
            from,
            class: header[15],
            identification: u16_at(18),
        },
        to: endpoint(header, 0, 30, 36),
        payload,
    })
}

fn endpoint(header: &[u8; HEADER_LENGTH], mac: usize, address: usize, port: usize) -> Endpoint {
    let mut bytes = [0; 6];
    bytes.copy_from_slice(&header[mac..mac + 6]);
    let [a, b, c, d] = [0, 1, 2, 3].map(|place| header[address + place]);
    Endpoint {
        mac: Mac(bytes),
        address: Ipv4Addr::new(a, b, c, d),
        port: u16::from_be_bytes([header[port], header[port + 1]]),
    }
}

/// The sum of RFC 1071 before it is folded: of big-endian words of 16 bits, an odd last byte padded with 0. Words of 32
/// bits give the same once folded. 64 bits hold the sum of any frame.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let word = |bytes: &[u8; 4]| u64::from(u32::from_be_bytes(*bytes));
    words.iter().map(word).sum::<u64>() + word(&last)
}

/// Adds the carries in until 16 bits are left.
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    (sum & 0xffff) as u16
}

const ETHERNET_LENGTH: usize = 14;
const IPV4_LENGTH: usize = 20;
const UDP_LENGTH: usize = 8;
/// Ethernet's shortest frame without its check sequence. Cards pad what is shorter, but not every one does so for frames
/// that it reads in place.
const SHORTEST_FRAME: usize = 60;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// IPv4, five words of header: no options.
const VERSION_AND_LENGTH: u8 = 0x45;
const DONT_FRAGMENT: u16 = 0x4000;
/// "More fragments" and the offset: any of them set is a part of a datagram.
const FRAGMENT: u16 = 0x3fff;
/// What Linux sends.
const TTL: u8 = 64;
const PROTOCOL_UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Frames made by Scapy 2.6.1: `Ether(dst="02:00:5e:10:00:02", src="02:00:5e:10:00:01") / IP(src="10.77.0.1",
    /// dst="10.77.0.2", id=0, flags="DF") / UDP(sport=40001, dport=7201) / payload`.
    const KNOWN: [(&[u8], &str); 3] = [
        (
            b"order",
            "02005e10000202005e10000108004500002100004000401126300a4d00010a4d00029c411c21000decfc6f72646572",
        ),
        (
            b"",
            "02005e10000202005e10000108004500001c00004000401126350a4d00010a4d00029c411c21000832df",
        ),
        (
            &[0x5a; 20],
            "02005e10000202005e1000010800450000300000400040112621\
             0a4d00010a4d00029c411c21001cab2f5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
        ),
    ];

    fn near() -> Endpoint {
        Endpoint {
            mac: Mac([0x02, 0x00, 0x5e, 0x10, 0x00, 0x01]),
            address: Ipv4Addr::new(10, 77, 0, 1),
            port: 40_001,
        }
    }

    fn far() -> Endpoint {
        Endpoint {
            mac: Mac([0x02, 0x00, 0x5e, 0x10, 0x00, 0x02]),
            address: Ipv4Addr::new(10, 77, 0, 2),
            port: 7_201,
        }
    }

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digits = hexadecimal.as_bytes().chunks(2);
        digits
            .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    fn written(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0xaa; 1_600];
        let length = Header::new(&near(), &far()).write(payload, &mut frame).unwrap();
        frame.truncate(usize::from(length));
        frame
    }

    #[test]
    fn frames_are_those_of_another_implementation_and_padding() {
        for (payload, hexadecimal) in KNOWN {
            let mut expected = bytes(hexadecimal);
            assert_eq!(parse(&expected, Checksums::Complete).unwrap().payload, payload);
            expected.resize(expected.len().max(SHORTEST_FRAME), 0);
            assert_eq!(written(payload), expected);
        }
    }

    #[test]
    fn what_is_not_plain_udp_is_not_supported() {
        let refused = |change: fn(&mut [u8])| {
            let mut frame = written(b"order");
            change(&mut frame);
            assert_eq!(parse(&frame, Checksums::Complete), Err(Reject::Unsupported));
        };
        refused(|frame| frame[12..14].copy_from_slice(&[0x86, 0xdd])); // IPv6
        refused(|frame| frame[12..14].copy_from_slice(&[0x81, 0x00])); // VLAN
        refused(|frame| frame[14] = 0x46); // options
        refused(|frame| frame[20] |= 0x20); // more fragments
        refused(|frame| frame[21] = 1); // a later fragment
        refused(|frame| frame[23] = 6); // TCP
    }

    #[test]
    fn lengths_that_contradict_each_other_are_refused() {
        let refused = |change: fn(&mut Vec<u8>)| {
            let mut frame = written(&[7; 64]);
            change(&mut frame);
            assert_eq!(parse(&frame, Checksums::Complete), Err(Reject::Length));
        };
        refused(|frame| frame.truncate(41));
        refused(|frame| frame.truncate(105));
        refused(|frame| frame[17] += 1);
        refused(|frame| frame[39] -= 1);
        refused(|frame| frame[38..40].copy_from_slice(&[0, 7]));
    }

    #[test]
    fn a_datagram_without_checksum_is_refused() {
        let mut frame = written(b"order");
        frame[40..42].fill(0);
        assert_eq!(parse(&frame, Checksums::Complete), Err(Reject::Checksum));
        assert_eq!(parse(&frame, Checksums::OrPartial), Err(Reject::Checksum));
    }

    #[test]
    fn to_the_port_of_rocev2_a_datagram_may_come_without_checksum() {
        let to = Endpoint {
            port: roce::wire::UDP_PORT,
            ..far()
        };
        let mut frame = vec![0; 100];
        let length = Header::new(&near(), &to).write(b"packet", &mut frame).unwrap();
        frame.truncate(usize::from(length));
        frame[40..42].fill(0);
        assert_eq!(parse(&frame, Checksums::Complete).unwrap().payload, b"packet");
        frame[40] = 1;
        assert_eq!(parse(&frame, Checksums::Complete), Err(Reject::Checksum));
    }

    #[test]
    fn class_and_identification_are_told() {
        let mut frame = vec![0; 100];
        let header = Header::new(&near(), &far()).with_class(0x69);
        let length = header.write(b"order", &mut frame).unwrap();
        frame.truncate(usize::from(length));
        let origin = |frame: &[u8]| parse(frame, Checksums::Complete).map(|parsed| parsed.origin);
        let expected = Origin {
            from: near(),
            class: 0x69,
            identification: 0,
        };
        assert_eq!(origin(&frame), Ok(expected));
        // Another identification, and the checksum that goes with it.
        frame[18..20].copy_from_slice(&[0, 2]);
        let checksum = u16::from_be_bytes([frame[24], frame[25]]) - 2;
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        let expected = Origin {
            identification: 2,
            ..expected
        };
        assert_eq!(origin(&frame), Ok(expected));
    }

    #[test]
    fn a_checksum_left_to_the_card_is_taken_where_there_is_none() {
        let mut frame = written(b"order");
        // Addresses, protocol and length of the known frame of this payload, summed by hand.
        let partial = 0x0a4d + 0x0001 + 0x0a4d + 0x0002 + 17 + 13_u16;
        frame[40..42].copy_from_slice(&partial.to_be_bytes());
        assert_eq!(parse(&frame, Checksums::Complete), Err(Reject::Checksum));
        assert_eq!(parse(&frame, Checksums::OrPartial).unwrap().payload, b"order");
    }

    #[test]
    fn a_payload_that_does_not_fit_is_not_written() {
        let header = Header::new(&near(), &far());
        assert_eq!(header.write(&[0; 65_508], &mut vec![0; 70_000]), None);
        assert_eq!(header.write(&[0; 59], &mut [0; 100]), None);
        assert_eq!(header.write(b"", &mut [0; 59]), None);
    }

    #[test]
    fn a_mac_is_six_bytes_in_hexadecimal() {
        let mac: Mac = "02:00:5e:10:00:01".parse().unwrap();
        assert_eq!((mac, mac.to_string().as_str()), (near().mac, "02:00:5e:10:00:01"));
        for text in [
            "",
            "02:00:5e:10:00",
            "02:00:5e:10:00:01:02",
            "02:00:5e:10:00:0g",
            "2:0:5e:10:0:1",
            "+2:00:5e:10:00:01",
        ] {
            assert!(text.parse::<Mac>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(payload in proptest::collection::vec(any::<u8>(), 0..1_472)) {
            let frame = written(&payload);
            let origin = Origin { from: near(), class: 0, identification: 0 };
            let expected = Parsed { origin, to: far(), payload: &payload };
            prop_assert_eq!(parse(&frame, Checksums::Complete), Ok(expected));
            prop_assert_eq!(parse(&frame, Checksums::OrPartial), Ok(expected));
        }

        /// RFC 1071's sum sees any single bit. The MACs and the padding are Ethernet's, whose own check the card makes.
        #[test]
        fn a_flipped_bit_is_seen(payload in proptest::collection::vec(any::<u8>(), 0..200), place in 0_usize..1_000, bit in 0..8) {
            let mut frame = written(&payload);
            let end = HEADER_LENGTH + payload.len();
            frame[14 + place % (end - 14)] ^= 1_u8 << bit;
            prop_assert!(parse(&frame, Checksums::Complete).is_err());
        }

        #[test]
        fn no_bytes_cause_a_panic(mut frame in proptest::collection::vec(any::<u8>(), 0..200), is_plain in any::<bool>()) {
            if is_plain && frame.len() >= 24 {
                frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
                frame[20..24].copy_from_slice(&[0x40, 0x00, 0x40, 17]);
            }
            let _ = parse(&frame, Checksums::OrPartial);
        }
    }
}
