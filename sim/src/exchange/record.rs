//! What the exchange writes into its journal: each input that decides, and then what was sent because of it.
//!
//! Payloads, little-endian; the kind is in the journal's own header. Text is not terminated.
//!
//! | kind | payload |
//! |---|---|
//! | `Start` | fingerprint of the configuration u64, MoldUDP64 session 10 bytes |
//! | `DayRoll` | trading day u32 (yyyymmdd) |
//! | `FeedEvent` | 1: a recording begins: u8 = 1, session 10 bytes, number of its next message u64; 2: messages were lost: u8 = 2, count u64; 3: those before came together: u8 = 3 |
//! | `FeedMessage` | an ITCH message of the recording |
//! | `Timer` | u8: 1 an order expires, 2 the opening call begins, 3 the closing call begins, 4 the call ends |
//! | `ClientEvent` | session u16, u8: 1 its link is down, 2 it does not read its reports |
//! | `ClientMessage` | session u16, number u64, reason u16 (0: admitted; else why there was no room), the message |
//! | `ClientOutput` | session u16, number u64, the message |
//! | `FeedOutput` | number of the first message u64, count u32, [`Digest`] of the messages u64 |
//!
//! Market data is as long as the recording, and the inputs make it again byte by byte. So the journal has its numbers and a
//! digest, which a replay is held against, in place of the bytes.

use proto::journal::{Kind, record_length};
use proto::mold::Session;
use types::{Reason, SequenceNumber, SessionId, TradingDay};

/// One input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Input<'a> {
    /// A process started on this journal.
    Started {
        /// Of the configuration that decides.
        fingerprint: u64,
        /// What the published session is called.
        session: Session,
    },
    /// A trading day begins.
    Day(TradingDay),
    /// A recording begins with the message `next`.
    HistoryStarted { session: Session, next: SequenceNumber },
    /// Messages of the recording could not be had.
    HistoryLost { count: u64 },
    /// The next message of the recording.
    History(&'a [u8]),
    /// The messages of the recording that came together have been told.
    HistoryTold,
    /// The time has come for something.
    Timer(Timer),
    /// A session's link is down.
    SessionDown(SessionId),
    /// A session does not read its reports.
    SessionStalled(SessionId),
    /// A session's next message.
    Message {
        session: SessionId,
        sequence: SequenceNumber,
        /// Why there is no room for what it may cause; `None` when there is.
        admission: Reason,
        message: &'a [u8],
    },
}

/// What the time has come for. The numbers are in the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Timer {
    /// The first order that is good till a time expires.
    Expiry = 1,
    /// The call of the opening auction begins.
    OpeningCall = 2,
    /// The call of the closing auction begins.
    ClosingCall = 3,
    /// The call that is on ends, and orders trade.
    Uncross = 4,
}

/// What was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Output<'a> {
    /// A message to a session.
    Session {
        session: SessionId,
        sequence: SequenceNumber,
        message: &'a [u8],
    },
    /// Messages of market data.
    Feed(Published),
}

/// What one input published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Published {
    /// Number of the first message.
    pub(super) first: SequenceNumber,
    /// How many.
    pub(super) count: u32,
    /// Of all their bytes.
    pub(super) digest: Digest,
}

/// The fixed part of a payload, at most [`Head::LENGTH_MAX`] bytes; a message may follow.
#[derive(Clone, Copy)]
pub(super) struct Head {
    bytes: [u8; Self::LENGTH_MAX],
    length: usize,
}

/// A checksum of messages, one after the other: sees every bit, and where one message ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Digest(pub(super) u64);

impl<'a> Input<'a> {
    /// Kind, fixed part and message of its record.
    pub(super) fn encode(&self) -> (Kind, Head, &'a [u8]) {
        let head = Head::new();
        match *self {
            Self::Started { fingerprint, session } => {
                (Kind::Start, head.with(&fingerprint.to_le_bytes()).with(&session.0), &[])
            }
            Self::Day(day) => (Kind::DayRoll, head.with(&day.0.to_le_bytes()), &[]),
            Self::HistoryStarted { session, next } => (
                Kind::FeedEvent,
                head.with(&[STARTED]).with(&session.0).with(&next.0.to_le_bytes()),
                &[],
            ),
            Self::HistoryLost { count } => (Kind::FeedEvent, head.with(&[LOST]).with(&count.to_le_bytes()), &[]),
            Self::History(message) => (Kind::FeedMessage, head, message),
            Self::HistoryTold => (Kind::FeedEvent, head.with(&[TOLD]), &[]),
            Self::Timer(timer) => (Kind::Timer, head.with(&[timer as u8]), &[]),
            Self::SessionDown(session) => (
                Kind::ClientEvent,
                head.with(&session.0.to_le_bytes()).with(&[DOWN]),
                &[],
            ),
            Self::SessionStalled(session) => (
                Kind::ClientEvent,
                head.with(&session.0.to_le_bytes()).with(&[STALLED]),
                &[],
            ),
            Self::Message {
                session,
                sequence,
                admission,
                message,
            } => {
                let head = head.with(&session.0.to_le_bytes()).with(&sequence.0.to_le_bytes());
                (
                    Kind::ClientMessage,
                    head.with(&(admission as u16).to_le_bytes()),
                    message,
                )
            }
        }
    }

    /// Reads a record; `None` when its payload is not one of its kind.
    pub(super) fn decode(kind: Kind, payload: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        let input = match kind {
            Kind::Start => Self::Started {
                fingerprint: fields.u64()?,
                session: Session(fields.take()?),
            },
            Kind::DayRoll => Self::Day(TradingDay(u32::from_le_bytes(fields.take()?))),
            Kind::FeedEvent => match fields.take()? {
                [STARTED] => Self::HistoryStarted {
                    session: Session(fields.take()?),
                    next: SequenceNumber(fields.u64()?),
                },
                [LOST] => Self::HistoryLost { count: fields.u64()? },
                [TOLD] => Self::HistoryTold,
                _ => return None,
            },
            Kind::Timer => {
                let [number] = fields.take()?;
                Self::Timer(Timer::from_u8(number)?)
            }
            Kind::FeedMessage => return Some(Self::History(payload)),
            Kind::ClientEvent => {
                let session = fields.session()?;
                match fields.take()? {
                    [DOWN] => Self::SessionDown(session),
                    [STALLED] => Self::SessionStalled(session),
                    _ => return None,
                }
            }
            Kind::ClientMessage => {
                let (session, sequence) = (fields.session()?, SequenceNumber(fields.u64()?));
                let admission = Reason::from_u16(u16::from_le_bytes(fields.take()?))?;
                return Some(Self::Message {
                    session,
                    sequence,
                    admission,
                    message: fields.0,
                });
            }
            _ => return None,
        };
        fields.0.is_empty().then_some(input)
    }
}

impl<'a> Output<'a> {
    /// Bytes of its record, header included.
    pub(super) fn record_length(&self) -> u64 {
        let (_, head, message) = self.encode();
        record_length(head.as_bytes().len() + message.len()) as u64
    }

    /// Kind, fixed part and message of its record.
    pub(super) fn encode(&self) -> (Kind, Head, &'a [u8]) {
        let head = Head::new();
        match *self {
            Self::Session {
                session,
                sequence,
                message,
            } => {
                let head = head.with(&session.0.to_le_bytes()).with(&sequence.0.to_le_bytes());
                (Kind::ClientOutput, head, message)
            }
            Self::Feed(Published { first, count, digest }) => {
                let head = head.with(&first.0.to_le_bytes()).with(&count.to_le_bytes());
                (Kind::FeedOutput, head.with(&digest.0.to_le_bytes()), &[])
            }
        }
    }

    /// Reads a record; `None` when its payload is not one of its kind.
    pub(super) fn decode(kind: Kind, payload: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        match kind {
            Kind::ClientOutput => Some(Self::Session {
                session: fields.session()?,
                sequence: SequenceNumber(fields.u64()?),
                message: fields.0,
            }),
            Kind::FeedOutput => {
                let first = SequenceNumber(fields.u64()?);
                let count = u32::from_le_bytes(fields.take()?);
                let digest = Digest(fields.u64()?);
                fields
                    .0
                    .is_empty()
                    .then_some(Self::Feed(Published { first, count, digest }))
            }
            _ => None,
        }
    }
}

impl Timer {
    const fn from_u8(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Expiry,
            2 => Self::OpeningCall,
            3 => Self::ClosingCall,
            4 => Self::Uncross,
            _ => return None,
        })
    }
}

impl Head {
    const LENGTH_MAX: usize = 20;

    const fn new() -> Self {
        Self {
            bytes: [0; Self::LENGTH_MAX],
            length: 0,
        }
    }

    fn with(mut self, field: &[u8]) -> Self {
        self.bytes[self.length..self.length + field.len()].copy_from_slice(field);
        self.length += field.len();
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Digest {
    pub(super) const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    /// Takes one message.
    pub(super) fn take(&mut self, message: &[u8]) {
        let (words, rest) = message.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last));
        self.mix(message.len() as u64);
    }

    /// Takes one number.
    pub(super) fn mix(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

/// What is left of a payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn session(&mut self) -> Option<SessionId> {
        self.take().map(u16::from_le_bytes).map(SessionId)
    }
}

const STARTED: u8 = 1;
const LOST: u8 = 2;
const TOLD: u8 = 3;
const DOWN: u8 = 1;
const STALLED: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_record_comes_back_from_its_bytes() {
        let (session, sequence) = (SessionId(300), SequenceNumber(1 << 40));
        let inputs = [
            Input::Started {
                fingerprint: u64::MAX - 1,
                session: Session(*b"TICKGATE01"),
            },
            Input::Day(TradingDay(20_250_303)),
            Input::HistoryStarted {
                session: Session(*b"HISTORY  7"),
                next: sequence,
            },
            Input::HistoryLost { count: 77 },
            Input::History(b"an ITCH message"),
            Input::HistoryTold,
            Input::Timer(Timer::Expiry),
            Input::Timer(Timer::OpeningCall),
            Input::Timer(Timer::ClosingCall),
            Input::Timer(Timer::Uncross),
            Input::SessionDown(session),
            Input::SessionStalled(session),
            Input::Message {
                session,
                sequence,
                admission: Reason::VenueFull,
                message: b"a request",
            },
        ];
        for input in inputs {
            let (kind, head, message) = input.encode();
            let payload = [head.as_bytes(), message].concat();
            assert!(!kind.is_output());
            assert_eq!(Input::decode(kind, &payload), Some(input));
        }
        let published = Published {
            first: sequence,
            count: 3,
            digest: Digest(9),
        };
        for output in [
            Output::Session {
                session,
                sequence,
                message: b"a report",
            },
            Output::Feed(published),
        ] {
            let (kind, head, message) = output.encode();
            let payload = [head.as_bytes(), message].concat();
            assert!(kind.is_output());
            assert_eq!(Output::decode(kind, &payload), Some(output));
        }
    }

    proptest! {
        #[test]
        fn no_payload_makes_it_panic(kind in prop::sample::select(Kind::ALL), payload: Vec<u8>) {
            let _ = Input::decode(kind, &payload);
            let _ = Output::decode(kind, &payload);
        }

        #[test]
        fn a_digest_sees_every_bit_and_every_boundary(message in prop::collection::vec(any::<u8>(), 1..60), at: usize) {
            let digest = |messages: &[&[u8]]| {
                let mut digest = Digest::EMPTY;
                messages.iter().for_each(|message| digest.take(message));
                digest
            };
            let mut other = message.clone();
            other[at / 8 % message.len()] ^= 1 << (at % 8);
            prop_assert_ne!(digest(&[&message]), digest(&[&other]));
            let (front, back) = message.split_at(at % message.len());
            prop_assert_ne!(digest(&[&message]), digest(&[front, back]));
        }
    }
}
