//! MoldUDP64: numbered messages over UDP, with retransmission on request.
//!
//! A packet is a header of 20 bytes (session of 10 ASCII characters, sequence number of the first message, count of
//! messages; big-endian) and then each message behind its length as u16. A count of 0 is a heartbeat and 0xFFFF the end of
//! the session: both carry the number that comes next and use none up. A request is the same header (session, first
//! wanted, how many) sent to the publisher, which answers by unicast with ordinary packets.
//!
//! [`Publisher`] and [`Receiver`] are the two ends without sockets.

mod publisher;
mod receiver;

pub use publisher::{Publisher, PublisherConfig, PublisherCounters};
pub use receiver::{Event, Join, Receiver, ReceiverConfig, ReceiverCounters};

use core::fmt;
use zerocopy::byteorder::big_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes before the first message.
pub const HEADER_LENGTH: usize = size_of::<Header>();
/// Bytes before each message.
pub const BLOCK_HEADER_LENGTH: usize = 2;
/// Longest packet that fits in an Ethernet frame of 1,500 bytes without being split, bytes.
pub const MAX_PACKET_LENGTH: usize = 1472;
/// Highest sequence number. A `types::Trigger` has 56 bits for it; a packet that claims more is corrupt.
pub const MAX_SEQUENCE: u64 = (1 << 56) - 1;

const HEARTBEAT: u16 = 0;
const END_OF_SESSION: u16 = 0xFFFF;

/// Name of a session: ASCII, padded with blanks. A publisher that starts numbering anew takes a new name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Session(pub [u8; 10]);

/// What every packet starts with, and all there is of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Whose numbers these are.
    pub session: Session,
    /// Number of the first message; in a heartbeat and at the end, of the one that would come next.
    pub sequence: U64,
    /// Messages in the packet; 0 heartbeat, 0xFFFF end of session. In a request, messages wanted.
    pub count: U16,
}

const _: () = assert!(size_of::<Header>() == 20);

/// What a packet says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// Nothing new; the next message will have the packet's number.
    Heartbeat,
    /// No message comes after those before the packet's number.
    EndOfSession,
    /// Messages, the first with the packet's number.
    Messages(Messages<'a>),
}

/// One packet, checked: every message lies within it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Whose numbers these are.
    pub session: Session,
    /// Number of the first message, or of the one that would come next. 1 is the first of a session.
    pub sequence: u64,
    /// What it says.
    pub content: Content<'a>,
}

/// The messages of a packet, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Messages<'a> {
    blocks: &'a [u8],
    count: u16,
}

/// A request to send messages again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Whose numbers these are.
    pub session: Session,
    /// Number of the first message wanted.
    pub sequence: u64,
    /// How many are wanted; a publisher answers with as many as fit in a packet.
    pub count: u16,
}

/// Why bytes are no packet or no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoldError {
    /// Shorter than a header, or a message reaches beyond the end.
    Truncated,
    /// More bytes than the count of messages accounts for.
    TrailingBytes,
    /// No sequence number is 0 or above [`MAX_SEQUENCE`].
    InvalidSequence,
}

/// Puts messages into one packet.
pub struct PacketWriter<'a> {
    buffer: &'a mut [u8],
    length: usize,
    count: u16,
}

impl Session {
    /// The name `prefix` (its last 6 digits) and `number` (its last 4), all as digits: for a publisher that starts anew
    /// often, such as a replay that loops.
    #[must_use]
    pub const fn numbered(prefix: u64, number: u64) -> Self {
        let mut name = [b'0'; 10];
        let mut rest = (prefix % 1_000_000) * 10_000 + number % 10_000;
        let mut i = name.len();
        while i > 0 {
            i -= 1;
            name[i] = b"0123456789"[(rest % 10) as usize];
            rest /= 10;
        }
        Self(name)
    }
}

impl<'a> Packet<'a> {
    /// Makes a packet of a datagram.
    ///
    /// # Errors
    /// Anything but a whole packet.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, MoldError> {
        let (header, blocks) = Header::ref_from_prefix(datagram).map_err(|_| MoldError::Truncated)?;
        let sequence = header.sequence.get();
        let count = match header.count.get() {
            HEARTBEAT | END_OF_SESSION => 0,
            count => count,
        };
        if sequence == 0 || sequence > MAX_SEQUENCE - u64::from(count) {
            return Err(MoldError::InvalidSequence);
        }
        let mut rest = blocks;
        for _ in 0..count {
            (_, rest) = split_block(rest).ok_or(MoldError::Truncated)?;
        }
        if !rest.is_empty() {
            return Err(MoldError::TrailingBytes);
        }
        let content = match header.count.get() {
            HEARTBEAT => Content::Heartbeat,
            END_OF_SESSION => Content::EndOfSession,
            count => Content::Messages(Messages { blocks, count }),
        };
        Ok(Self {
            session: header.session,
            sequence,
            content,
        })
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (message, rest) = split_block(self.blocks)?;
        self.blocks = rest;
        self.count = self.count.saturating_sub(1);
        Some(message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.count), Some(usize::from(self.count)))
    }
}

impl ExactSizeIterator for Messages<'_> {}

/// The first message and what follows it; `None` when it is not whole.
fn split_block(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<BLOCK_HEADER_LENGTH>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

impl Request {
    /// Makes a request of a datagram.
    ///
    /// # Errors
    /// Anything but exactly a header with a valid number.
    pub fn parse(datagram: &[u8]) -> Result<Self, MoldError> {
        let (header, rest) = Header::ref_from_prefix(datagram).map_err(|_| MoldError::Truncated)?;
        if !rest.is_empty() {
            return Err(MoldError::TrailingBytes);
        }
        match header.sequence.get() {
            sequence @ 1..=MAX_SEQUENCE => Ok(Self {
                session: header.session,
                sequence,
                count: header.count.get(),
            }),
            _ => Err(MoldError::InvalidSequence),
        }
    }

    /// The request's bytes.
    #[must_use]
    pub const fn header(&self) -> Header {
        Header::new(self.session, self.sequence, self.count)
    }
}

impl Header {
    /// A heartbeat: the next message will have number `next`.
    #[must_use]
    pub const fn heartbeat(session: Session, next: u64) -> Self {
        Self::new(session, next, HEARTBEAT)
    }

    /// The end of a session whose next message would have had number `next`.
    #[must_use]
    pub const fn end_of_session(session: Session, next: u64) -> Self {
        Self::new(session, next, END_OF_SESSION)
    }

    const fn new(session: Session, sequence: u64, count: u16) -> Self {
        Self {
            session,
            sequence: U64::new(sequence),
            count: U16::new(count),
        }
    }
}

impl<'a> PacketWriter<'a> {
    /// Starts a packet in `buffer`, which must have room for a header.
    #[must_use]
    pub fn new(buffer: &'a mut [u8]) -> Self {
        assert!(buffer.len() >= HEADER_LENGTH, "no room for a MoldUDP64 header");
        Self {
            buffer,
            length: HEADER_LENGTH,
            count: 0,
        }
    }

    /// Adds a message; `false` when it does not fit any more.
    #[must_use]
    pub fn push(&mut self, message: &[u8]) -> bool {
        let Ok(length) = u16::try_from(message.len()) else {
            return false;
        };
        let end = self.length + BLOCK_HEADER_LENGTH + message.len();
        // One less than 0xFFFF, which would mean the end of the session.
        if self.count == END_OF_SESSION - 1 {
            return false;
        }
        let Some(block) = self.buffer.get_mut(self.length..end) else {
            return false;
        };
        block[..BLOCK_HEADER_LENGTH].copy_from_slice(&length.to_be_bytes());
        block[BLOCK_HEADER_LENGTH..].copy_from_slice(message);
        self.length = end;
        self.count += 1;
        true
    }

    /// Messages so far.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// Writes the header and gives the packet's length. `sequence` is that of the first message.
    #[must_use]
    pub fn finish(self, session: Session, sequence: u64) -> usize {
        let header = Header::new(session, sequence, self.count);
        self.buffer[..HEADER_LENGTH].copy_from_slice(header.as_bytes());
        self.length
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.trim_ascii_end().escape_ascii())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for MoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "truncated MoldUDP64 packet",
            Self::TrailingBytes => "MoldUDP64 packet is longer than its messages",
            Self::InvalidSequence => "sequence number of a MoldUDP64 packet is not valid",
        })
    }
}

impl core::error::Error for MoldError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// A packet that Nasdaq sent, taken from a capture of its multicast.
    const PACKET: &[u8] =
        b"000010059B\0\0\0\0\0\xe1\x2f\x71\0\x01\0\x1fE\x09\x29\0\x02\x1f\x1a\xce\xd8\xf0\x61\0\0\0\0\x01\x66\x92\x9a\0\0\0\x19\0\0\0\0\0\x03\xe6\x3b";
    const SESSION: Session = Session(*b"000010059B");

    #[test]
    fn a_packet_of_the_exchange_is_read_and_written_alike() {
        let packet = Packet::parse(PACKET).expect("packet");
        assert_eq!((packet.session, packet.sequence), (SESSION, 0xe1_2f71));
        let Content::Messages(messages) = packet.content else {
            panic!("no messages");
        };
        let messages: Vec<&[u8]> = messages.collect();
        assert_eq!((messages.len(), messages[0].len(), messages[0][0]), (1, 31, b'E'));

        let mut buffer = [0; 100];
        let mut writer = PacketWriter::new(&mut buffer);
        assert!(writer.push(messages[0]));
        let length = writer.finish(packet.session, packet.sequence);
        assert_eq!(&buffer[..length], PACKET);
    }

    #[test]
    fn heartbeat_and_end_of_session_use_no_number() {
        let heartbeat = Header::heartbeat(SESSION, 8);
        let end = Header::end_of_session(SESSION, 9);
        let parse = |header| Packet::parse(header).map(|packet| (packet.sequence, packet.content));
        assert_eq!(parse(heartbeat.as_bytes()), Ok((8, Content::Heartbeat)));
        assert_eq!(parse(end.as_bytes()), Ok((9, Content::EndOfSession)));
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        for length in 0..PACKET.len() {
            assert_eq!(Packet::parse(&PACKET[..length]), Err(MoldError::Truncated), "{length}");
        }
        let mut longer = PACKET.to_vec();
        longer.push(0);
        assert_eq!(Packet::parse(&longer), Err(MoldError::TrailingBytes));
        assert_eq!(Request::parse(PACKET), Err(MoldError::TrailingBytes));
    }

    #[test]
    fn a_number_out_of_range_is_refused() {
        let parse = |sequence| Packet::parse(Header::heartbeat(SESSION, sequence).as_bytes()).err();
        assert_eq!(parse(0), Some(MoldError::InvalidSequence));
        assert_eq!(parse(MAX_SEQUENCE + 1), Some(MoldError::InvalidSequence));
        assert_eq!(parse(MAX_SEQUENCE), None);
    }

    #[test]
    fn a_request_comes_back_from_its_bytes() {
        let request = Request {
            session: SESSION,
            sequence: 17,
            count: 300,
        };
        assert_eq!(Request::parse(request.header().as_bytes()), Ok(request));
    }

    #[test]
    fn a_message_that_does_not_fit_is_not_added() {
        let mut buffer = [0; HEADER_LENGTH + 2 * BLOCK_HEADER_LENGTH + 5];
        let mut writer = PacketWriter::new(&mut buffer);
        assert!(writer.push(b"abc"));
        assert!(!writer.push(b"def"));
        assert!(writer.push(b"de"));
        assert!(!writer.push(b""));
        assert_eq!(writer.count(), 2);
    }

    #[test]
    fn numbered_sessions_are_digits() {
        assert_eq!(Session::numbered(1_700_123_456, 7), Session(*b"1234560007"));
        assert_eq!(Session::numbered(0, 10_001), Session(*b"0000000001"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(Packet { content: Content::Messages(messages), .. }) = Packet::parse(&bytes) {
                prop_assert_eq!(messages.len(), messages.count());
            }
            let _ = Request::parse(&bytes);
        }
    }
}
