//! The invariant CRC that ends a packet: zlib's CRC-32, least byte first, over eight bytes of ones, the IP and UDP headers
//! and the packet, with ones in place of what the network may change (InfiniBand Architecture, annex A17.9).
//!
//! An IPv4 identification that is not known: a plain socket hides it. It cannot be left out, but the CRC is linear. The
//! difference between the CRC that came and the one for identification 0 is what the 16 unknown bits contribute behind
//! all that follows them. Wound back over that, it is the bits themselves, and more than 16 bits of it mean damage: of
//! random damage one part in 65,536 passes, where the exact check lets one in 2^32 pass.

use super::crc::{self, FORWARD};
use super::wire::Bth;
use core::net::{IpAddr, SocketAddr};

/// Bytes that a packet's check takes.
pub const ICRC_LENGTH: usize = 4;

/// Where packets come from and go to: what their check covers beside themselves.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The register behind ones, IP header and UDP header, with zeros for lengths and identification: the CRC is linear, so
    /// that they are added to it.
    register: u32,
    is_v6: bool,
}

/// The identification in an IPv4 header. IPv6 has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identification {
    /// As the header has it.
    Known(u16),
    /// Hidden by the socket.
    Hidden,
}

impl Path {
    /// From one address and port to another; both of one family. IPv4 packets are not to be fragmented.
    ///
    /// # Panics
    /// One address is IPv4 and the other IPv6.
    #[must_use]
    pub fn new(source: SocketAddr, destination: SocketAddr) -> Self {
        let mut pseudo = [0xff; PSEUDO_MAX];
        let (is_v6, udp) = match (source.ip(), destination.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let header = &mut pseudo[ONES..ONES + V4_LENGTH];
                // Version and length, type of service, lengths, identification, flags, TTL, protocol, checksum.
                header[..12].copy_from_slice(&[0x45, 0xff, 0, 0, 0, 0, DO_NOT_FRAGMENT, 0, 0xff, UDP, 0xff, 0xff]);
                header[12..16].copy_from_slice(&from.octets());
                header[16..20].copy_from_slice(&to.octets());
                (false, ONES + V4_LENGTH)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let header = &mut pseudo[ONES..ONES + V6_LENGTH];
                // Version, traffic class and flow label; length; next header; hop limit.
                header[..8].copy_from_slice(&[0x6f, 0xff, 0xff, 0xff, 0, 0, UDP, 0xff]);
                header[8..24].copy_from_slice(&from.octets());
                header[24..40].copy_from_slice(&to.octets());
                (true, ONES + V6_LENGTH)
            }
            _ => panic!("a path from {source} to {destination}"),
        };
        pseudo[udp..udp + 2].copy_from_slice(&source.port().to_be_bytes());
        pseudo[udp + 2..udp + 4].copy_from_slice(&destination.port().to_be_bytes());
        pseudo[udp + 4..udp + 6].fill(0);
        Self {
            register: crc::update(u32::MAX, &pseudo[..udp + UDP_LENGTH]),
            is_v6,
        }
    }

    /// Appends its check to a packet of `length` bytes and gives the length of both. The IPv4 identification is 0.
    ///
    /// # Panics
    /// There is no room in `out`, or the packet is shorter than its first header.
    pub fn seal(&self, out: &mut [u8], length: usize) -> usize {
        let icrc = self.icrc(&out[..length], 0);
        out[length..length + ICRC_LENGTH].copy_from_slice(&icrc.to_le_bytes());
        length + ICRC_LENGTH
    }

    /// As [`seal`](Self::seal), as a device does it that gives its IPv4 packets identifications.
    #[cfg(test)]
    pub(super) fn seal_with(&self, out: &mut [u8], packet: &[u8], identification: u16) -> usize {
        out[..packet.len()].copy_from_slice(packet);
        let end = packet.len() + ICRC_LENGTH;
        out[packet.len()..end].copy_from_slice(&self.icrc(packet, identification).to_le_bytes());
        end
    }

    /// The packet in a UDP payload whose check is right.
    #[must_use]
    pub fn open<'a>(&self, payload: &'a [u8], identification: Identification) -> Option<&'a [u8]> {
        let (packet, icrc) = payload.split_last_chunk()?;
        if packet.len() < size_of::<Bth>() || payload.len() > PAYLOAD_MAX {
            return None;
        }
        let icrc = u32::from_le_bytes(*icrc);
        let is_right = match identification {
            Identification::Known(id) => icrc == self.icrc(packet, id),
            Identification::Hidden => {
                let difference = icrc ^ self.icrc(packet, 0);
                // Our own carriers send 0.
                difference == 0
                    || (!self.is_v6 && contributes_16_bits(difference, BEHIND_IDENTIFICATION + packet.len()))
            }
        };
        is_right.then_some(packet)
    }

    /// The check of a packet.
    fn icrc(&self, packet: &[u8], identification: u16) -> u32 {
        let length = packet.len() + ICRC_LENGTH + UDP_LENGTH;
        let udp = add(&UDP_LENGTH_AT, low_16(length));
        let mut register = self.register ^ udp;
        register ^= if self.is_v6 {
            add(&V6_LENGTH_AT, low_16(length))
        } else {
            let total = add(&V4_LENGTH_AT, low_16(length + V4_LENGTH));
            total ^ add(&V4_IDENTIFICATION_AT, identification.to_be_bytes())
        };
        let (bth, rest) = packet.split_at(size_of::<Bth>());
        let mut masked = [0; size_of::<Bth>()];
        masked.copy_from_slice(bth);
        masked[CONGESTION_OFFSET] = 0xff;
        !crc::update(crc::update(register, &masked), rest)
    }
}

/// What two bytes at a place in the headers add to the register behind them.
fn add(place: &[[u32; 256]; 2], [high, low]: [u8; 2]) -> u32 {
    place[0][usize::from(high)] ^ place[1][usize::from(low)]
}

/// Whether a difference of CRCs is what two bytes contribute that `behind` others follow.
fn contributes_16_bits(difference: u32, behind: usize) -> bool {
    let mut register = difference;
    for _ in 0..behind + 2 {
        let [.., top] = register.to_le_bytes();
        let index = INVERSE[usize::from(top)];
        register = (register ^ FORWARD[usize::from(index)]) << 8 | u32::from(index);
    }
    register >> 16 == 0
}

/// As a length stands in a header.
#[allow(clippy::cast_possible_truncation, reason = "no UDP payload is longer")]
const fn low_16(length: usize) -> [u8; 2] {
    (length as u16).to_be_bytes()
}

/// Which byte left a register that has this byte at its top: the top bytes of `FORWARD` are all different.
const INVERSE: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0u8;
    loop {
        table[(FORWARD[byte as usize] >> 24) as usize] = byte;
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    table
};

/// Two bytes of the headers with so many behind the second, up to the end of the UDP header.
const fn at(behind: usize) -> [[u32; 256]; 2] {
    [crc::contributions(behind + 1), crc::contributions(behind)]
}

static UDP_LENGTH_AT: [[u32; 256]; 2] = at(UDP_LENGTH - 6);
static V4_LENGTH_AT: [[u32; 256]; 2] = at(V4_LENGTH - 4 + UDP_LENGTH);
static V4_IDENTIFICATION_AT: [[u32; 256]; 2] = at(BEHIND_IDENTIFICATION);
static V6_LENGTH_AT: [[u32; 256]; 2] = at(V6_LENGTH - 6 + UDP_LENGTH);

/// In place of the local route header that InfiniBand has there.
const ONES: usize = 8;
const V4_LENGTH: usize = 20;
const V6_LENGTH: usize = 40;
const UDP_LENGTH: usize = 8;
/// All that comes before a packet.
const PSEUDO_MAX: usize = ONES + V6_LENGTH + UDP_LENGTH;
/// Where the first header has the bits that the network may change.
const CONGESTION_OFFSET: usize = 4;
/// Bytes of the IPv4 and UDP headers behind the identification.
const BEHIND_IDENTIFICATION: usize = V4_LENGTH - 6 + UDP_LENGTH;
/// The longest UDP payload.
const PAYLOAD_MAX: usize = 65_507;
const DO_NOT_FRAGMENT: u8 = 0x40;
const UDP: u8 = 17;
