//! Packets: u16 big-endian length (it counts the type byte), type byte, payload.
//!
//! | type | from | payload |
//! |---|---|---|
//! | `L` | client | login: user name 6, password 10, session 10, sequence number 20 |
//! | `U` | client; server on a link | unsequenced data |
//! | `R` | client | heartbeat |
//! | `O` | client | logout |
//! | `A` | server | login accepted: session 10, sequence number 20 |
//! | `J` | server | login rejected: `A` not authorised, `S` session not available |
//! | `S` | server | sequenced data |
//! | `H` | server | heartbeat |
//! | `Z` | server | end of session |
//! | `+` | both | debug text |
//!
//! Text is padded on the right and numbers on the left, with blanks; blanks are taken off both sides on reading.

use core::fmt;
use types::SequenceNumber;

use super::SoupError;

/// Bytes before the payload: length and type.
pub const HEADER_LENGTH: usize = 3;
/// Longest payload this implementation takes or writes, bytes. The format would allow 65,534; no message that is carried
/// here comes near this, and a buffer a connection has to hold one packet.
pub const MAX_PAYLOAD_LENGTH: usize = 1_024;
/// Longest packet, bytes.
pub const MAX_PACKET_LENGTH: usize = HEADER_LENGTH + MAX_PAYLOAD_LENGTH;

/// Name of a user.
pub type UserName = Text<6>;
/// Password of a user.
pub type Password = Text<10>;
/// Name of a session. Blank in a login: the one that is running.
pub type SessionName = Text<10>;

/// One packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// Client: log me in.
    LoginRequest(Login),
    /// Client: data. Server, on a link to a venue: how much it has received.
    Unsequenced(&'a [u8]),
    /// Client: still here.
    ClientHeartbeat,
    /// Client: about to leave.
    Logout,
    /// Server: logged in.
    LoginAccepted {
        /// The session that is running.
        session: SessionName,
        /// Number of the next sequenced packet.
        next: SequenceNumber,
    },
    /// Server: not logged in, and the connection closes.
    LoginRejected(LoginRefusal),
    /// Server: data, numbered by counting.
    Sequenced(&'a [u8]),
    /// Server: still here.
    ServerHeartbeat,
    /// Server: nothing more will come in this session.
    EndOfSession,
    /// Text for people; no meaning.
    Debug(&'a [u8]),
}

/// What a client logs in with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Login {
    /// Who.
    pub user_name: UserName,
    /// The proof.
    pub password: Password,
    /// Which session; blank for the one that is running.
    pub session: SessionName,
    /// Number of the sequenced packet wanted next; 0 for whatever comes next.
    pub sequence: u64,
}

/// Why a login was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginRefusal {
    /// `A`: unknown user or wrong password.
    NotAuthorized,
    /// `S`: no such session, or not from that number.
    SessionNotAvailable,
}

/// At most `N` printable ASCII bytes, padded with blanks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize> {
    /// Padded on the right.
    bytes: [u8; N],
}

/// Takes the first packet off `bytes`: the packet and its length, or `None` when it is not complete yet.
///
/// # Errors
/// The bytes are no packet; nothing after them can be trusted.
pub fn parse(bytes: &[u8]) -> Result<Option<(Packet<'_>, usize)>, SoupError> {
    let Some((&header, rest)) = bytes.split_first_chunk::<2>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes(header));
    if length == 0 {
        return Err(SoupError::EmptyPacket);
    }
    if length > 1 + MAX_PAYLOAD_LENGTH {
        return Err(SoupError::TooLong { length });
    }
    let Some(body) = rest.get(..length) else {
        return Ok(None);
    };
    Ok(Some((parse_body(body[0], &body[1..])?, 2 + length)))
}

fn parse_body(packet_type: u8, payload: &[u8]) -> Result<Packet<'_>, SoupError> {
    // The two that carry data come first: all others are rare.
    let fixed_length = match packet_type {
        b'U' => return Ok(Packet::Unsequenced(payload)),
        b'S' => return Ok(Packet::Sequenced(payload)),
        b'+' => return Ok(Packet::Debug(payload)),
        b'R' | b'O' | b'H' | b'Z' => 0,
        b'J' => 1,
        b'A' => ACCEPTED_LENGTH,
        b'L' => LOGIN_LENGTH,
        _ => return Err(SoupError::UnknownType(packet_type)),
    };
    if payload.len() != fixed_length {
        return Err(SoupError::WrongLength {
            packet_type,
            length: 1 + payload.len(),
        });
    }
    parse_fixed(packet_type, payload).ok_or(SoupError::MalformedField { packet_type })
}

/// A packet whose length is right for its type.
fn parse_fixed(packet_type: u8, payload: &[u8]) -> Option<Packet<'static>> {
    Some(match packet_type {
        b'R' => Packet::ClientHeartbeat,
        b'O' => Packet::Logout,
        b'H' => Packet::ServerHeartbeat,
        b'Z' => Packet::EndOfSession,
        b'J' => Packet::LoginRejected(LoginRefusal::from_byte(payload[0])?),
        b'A' => Packet::LoginAccepted {
            session: Text::new(&payload[..10])?,
            next: SequenceNumber(parse_number(&payload[10..])?),
        },
        _ => Packet::LoginRequest(Login {
            user_name: Text::new(&payload[..6])?,
            password: Text::new(&payload[6..16])?,
            session: Text::new(&payload[16..26])?,
            sequence: parse_number(&payload[26..])?,
        }),
    })
}

/// A number between blanks. `None` for anything else, or when it does not fit 64 bits.
fn parse_number(field: &[u8]) -> Option<u64> {
    let digits = trim(field);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

fn trim(mut field: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = field {
        field = rest;
    }
    field
}

/// Writes a login; returns its length. All writers panic when `out` is shorter than the packet.
pub fn write_login_request(login: &Login, out: &mut [u8]) -> usize {
    let mut payload = [b' '; LOGIN_LENGTH];
    payload[..6].copy_from_slice(&login.user_name.bytes);
    payload[6..16].copy_from_slice(&login.password.bytes);
    payload[16..26].copy_from_slice(&login.session.bytes);
    write_number(login.sequence, &mut payload[26..]);
    write_packet(b'L', &payload, out)
}

/// Writes the acceptance of a login; returns its length.
pub fn write_login_accepted(session: SessionName, next: SequenceNumber, out: &mut [u8]) -> usize {
    let mut payload = [b' '; ACCEPTED_LENGTH];
    payload[..10].copy_from_slice(&session.bytes);
    write_number(next.0, &mut payload[10..]);
    write_packet(b'A', &payload, out)
}

/// Writes the refusal of a login; returns its length.
pub fn write_login_rejected(refusal: LoginRefusal, out: &mut [u8]) -> usize {
    write_packet(b'J', &[refusal.to_byte()], out)
}

/// Writes sequenced data, at most [`MAX_PAYLOAD_LENGTH`]; returns the packet's length.
pub fn write_sequenced(payload: &[u8], out: &mut [u8]) -> usize {
    write_packet(b'S', payload, out)
}

/// Writes unsequenced data, at most [`MAX_PAYLOAD_LENGTH`]; returns the packet's length.
pub fn write_unsequenced(payload: &[u8], out: &mut [u8]) -> usize {
    write_packet(b'U', payload, out)
}

/// Writes debug text, at most [`MAX_PAYLOAD_LENGTH`]; returns the packet's length.
pub fn write_debug(text: &[u8], out: &mut [u8]) -> usize {
    write_packet(b'+', text, out)
}

/// Writes a client's heartbeat; returns its length.
pub fn write_client_heartbeat(out: &mut [u8]) -> usize {
    write_packet(b'R', &[], out)
}

/// Writes a server's heartbeat; returns its length.
pub fn write_server_heartbeat(out: &mut [u8]) -> usize {
    write_packet(b'H', &[], out)
}

/// Writes a logout; returns its length.
pub fn write_logout(out: &mut [u8]) -> usize {
    write_packet(b'O', &[], out)
}

/// Writes the end of the session; returns its length.
pub fn write_end_of_session(out: &mut [u8]) -> usize {
    write_packet(b'Z', &[], out)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the payload is at most MAX_PAYLOAD_LENGTH"
)]
fn write_packet(packet_type: u8, payload: &[u8], out: &mut [u8]) -> usize {
    assert!(payload.len() <= MAX_PAYLOAD_LENGTH, "payload too long for a packet");
    let length = HEADER_LENGTH + payload.len();
    let out = &mut out[..length];
    out[..2].copy_from_slice(&(1 + payload.len() as u16).to_be_bytes());
    out[2] = packet_type;
    out[HEADER_LENGTH..].copy_from_slice(payload);
    length
}

/// Right-aligned in a field that is blank so far.
#[allow(clippy::cast_possible_truncation, reason = "a digit")]
fn write_number(mut number: u64, field: &mut [u8]) {
    for byte in field.iter_mut().rev() {
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return;
        }
    }
}

impl Packet<'_> {
    /// The type byte.
    #[must_use]
    pub const fn packet_type(&self) -> u8 {
        match self {
            Self::LoginRequest(_) => b'L',
            Self::Unsequenced(_) => b'U',
            Self::ClientHeartbeat => b'R',
            Self::Logout => b'O',
            Self::LoginAccepted { .. } => b'A',
            Self::LoginRejected(_) => b'J',
            Self::Sequenced(_) => b'S',
            Self::ServerHeartbeat => b'H',
            Self::EndOfSession => b'Z',
            Self::Debug(_) => b'+',
        }
    }
}

impl Login {
    /// The number to go on from when `next` is the next that the server would send: what the client wants, or `next`
    /// when it wants whatever comes. `None` when it wants what does not exist yet.
    #[must_use]
    pub const fn resume_from(&self, next: SequenceNumber) -> Option<SequenceNumber> {
        match self.sequence {
            0 => Some(next),
            wanted if wanted <= next.0 => Some(SequenceNumber(wanted)),
            _ => None,
        }
    }
}

impl LoginRefusal {
    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'A' => Some(Self::NotAuthorized),
            b'S' => Some(Self::SessionNotAvailable),
            _ => None,
        }
    }

    const fn to_byte(self) -> u8 {
        match self {
            Self::NotAuthorized => b'A',
            Self::SessionNotAvailable => b'S',
        }
    }
}

impl<const N: usize> Text<N> {
    /// Nothing but blanks.
    pub const BLANK: Self = Self { bytes: [b' '; N] };

    /// Text without the blanks around it. `None` when it is longer than `N` or not printable ASCII.
    #[must_use]
    pub fn new(text: &[u8]) -> Option<Self> {
        let text = trim(text);
        if text.len() > N || !text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
            return None;
        }
        let mut bytes = [b' '; N];
        bytes[..text.len()].copy_from_slice(text);
        Some(Self { bytes })
    }

    /// The text, without padding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        trim(&self.bytes)
    }

    /// The text, without padding.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Login {
    /// Everything but the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user_name", &self.user_name)
            .field("session", &self.session)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

/// Payload of `L`.
const LOGIN_LENGTH: usize = 46;
/// Payload of `A`.
const ACCEPTED_LENGTH: usize = 30;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn login() -> Login {
        Login {
            user_name: Text::new(b"trader").unwrap(),
            password: Text::new(b"secret").unwrap(),
            session: Text::new(b"").unwrap(),
            sequence: 1,
        }
    }

    #[test]
    fn a_login_is_the_47_bytes_of_the_specification_and_its_length() {
        let mut out = [0; 64];
        let length = write_login_request(&login(), &mut out);
        assert_eq!(
            &out[..length],
            b"\x00\x2fLtradersecret                                 1".as_slice()
        );
    }

    #[test]
    fn an_acceptance_is_31_bytes_and_its_length() {
        let mut out = [0; 64];
        let length = write_login_accepted(Text::new(b"20260701").unwrap(), SequenceNumber(u64::MAX), &mut out);
        assert_eq!(&out[..length], b"\x00\x1fA20260701  18446744073709551615".as_slice());
    }

    #[test]
    fn blanks_on_either_side_of_a_field_do_not_count() {
        let bytes = b"\x00\x2fL bob  pass                           42        ";
        let Ok(Some((Packet::LoginRequest(login), 49))) = parse(bytes) else {
            panic!("{:?}", parse(bytes));
        };
        assert_eq!(login.user_name.as_bytes(), b"bob");
        assert_eq!(login.password.as_bytes(), b"pass");
        assert_eq!(login.session, Text::BLANK);
        assert_eq!(login.sequence, 42);
    }

    #[test]
    fn a_number_that_is_none_is_malformed() {
        for number in [
            "                    ",
            "                  -1",
            "                 1 2",
            "18446744073709551616",
        ] {
            let mut bytes = Vec::from(*b"\x00\x1fA20260701  ");
            bytes.extend_from_slice(number.as_bytes());
            let error = Err(SoupError::MalformedField { packet_type: b'A' });
            assert_eq!(parse(&bytes), error, "{number}");
        }
    }

    #[test]
    fn bytes_that_are_no_packet_are_errors() {
        let too_long = SoupError::TooLong { length: 0xffff };
        assert_eq!(parse(b"\x00\x00"), Err(SoupError::EmptyPacket));
        assert_eq!(parse(b"\xff\xff"), Err(too_long));
        assert_eq!(parse(b"\x00\x01?"), Err(SoupError::UnknownType(b'?')));
        for (bytes, packet_type, length) in [
            (b"\x00\x02Hx".as_slice(), b'H', 2),
            (b"\x00\x01J", b'J', 1),
            (b"\x00\x03Lab", b'L', 3),
        ] {
            assert_eq!(parse(bytes), Err(SoupError::WrongLength { packet_type, length }));
        }
        let refusal = SoupError::MalformedField { packet_type: b'J' };
        assert_eq!(parse(b"\x00\x02JX"), Err(refusal));
    }

    #[test]
    fn a_password_is_not_printed() {
        let text = std::format!("{:?}", login());
        assert!(text.contains("trader") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn a_client_resumes_where_it_asks_to_and_not_in_the_future() {
        for (sequence, next, from) in [(0, 7, Some(7)), (1, 7, Some(1)), (7, 7, Some(7)), (8, 7, None)] {
            let login = Login { sequence, ..login() };
            assert_eq!(login.resume_from(SequenceNumber(next)), from.map(SequenceNumber));
        }
    }

    fn text<const N: usize>() -> impl Strategy<Value = Text<N>> {
        proptest::collection::vec(b' '..=b'~', 0..=N).prop_map(|text| Text::new(&text).unwrap())
    }

    fn write(packet: &Packet<'_>, out: &mut [u8]) -> usize {
        match packet {
            Packet::LoginRequest(login) => write_login_request(login, out),
            Packet::Unsequenced(payload) => write_unsequenced(payload, out),
            Packet::ClientHeartbeat => write_client_heartbeat(out),
            Packet::Logout => write_logout(out),
            Packet::LoginAccepted { session, next } => write_login_accepted(*session, *next, out),
            Packet::LoginRejected(refusal) => write_login_rejected(*refusal, out),
            Packet::Sequenced(payload) => write_sequenced(payload, out),
            Packet::ServerHeartbeat => write_server_heartbeat(out),
            Packet::EndOfSession => write_end_of_session(out),
            Packet::Debug(text) => write_debug(text, out),
        }
    }

    proptest! {
        #[test]
        fn every_packet_comes_back_whole_and_no_part_of_it_does(
            user_name in text(), password in text(), session in text(), sequence: u64,
            payload in proptest::collection::vec(any::<u8>(), 0..=MAX_PAYLOAD_LENGTH),
        ) {
            let packets = [
                Packet::LoginRequest(Login { user_name, password, session, sequence }),
                Packet::Unsequenced(&payload),
                Packet::ClientHeartbeat,
                Packet::Logout,
                Packet::LoginAccepted { session, next: SequenceNumber(sequence) },
                Packet::LoginRejected(LoginRefusal::NotAuthorized),
                Packet::LoginRejected(LoginRefusal::SessionNotAvailable),
                Packet::Sequenced(&payload),
                Packet::ServerHeartbeat,
                Packet::EndOfSession,
                Packet::Debug(&payload),
            ];
            for packet in packets {
                let mut out = [0; MAX_PACKET_LENGTH];
                let length = write(&packet, &mut out);
                prop_assert_eq!(out[2], packet.packet_type());
                prop_assert_eq!(parse(&out[..length]), Ok(Some((packet, length))));
                for part in 0..length {
                    prop_assert_eq!(parse(&out[..part]), Ok(None));
                }
            }
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), length in 0_u8..80) {
            let _ = parse(&bytes);
            // Again with a length that fits, so that the types are reached.
            if let [high, low, ..] = bytes.as_mut_slice() {
                (*high, *low) = (0, length);
                let _ = parse(&bytes);
            }
        }
    }
}
