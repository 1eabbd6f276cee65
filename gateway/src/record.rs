//! What a shard writes into its journal: its inputs, the answers the world gave while an input was handled, and the
//! numbered messages it sent.
//!
//! Records of one input stand together: the input, then answers and outputs in the order in which the shard asked for and
//! made them. So a replay needs no table: it runs the input through the same code and reads the tape along.
//!
//! Payloads are little-endian. `docs/journal.md` has them as tables.

mod control;

use crate::config::Structure;
use crate::config_limits;
pub use crate::config_limits::decode as decode_limits;
use crate::control::Order;
use crate::crossing::Lane;
use crate::door::Binding;
use orders::{LimitScope, Mark, TooFast};
use proto::journal::Kind;
use types::{
    AccountId, Bbo, InstrumentId, Price, Quantity, Quote, Reason, SequenceNumber, SessionId, ShardId, Timestamp,
    TradingDay, VenueId,
};

/// Version of the payloads' layouts. It rises with every change of one; a replay refuses other versions.
pub const RECORD_VERSION: u16 = 6;

/// A record, decoded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Record<'a> {
    /// A process started on this journal. What its config has that decides, but for the limits.
    Started { structure: &'a [u8; Structure::LENGTH] },
    /// Limits of a scope that its config has changed since the last start.
    ConfigLimits {
        scope: LimitScope,
        /// For [`decode_limits`].
        changes: &'a [u8],
    },
    /// An instance of a template is a client's for the day.
    SessionBound(Binding),
    /// A session's hours: those of the session day that began then, or none.
    SessionHours {
        session: SessionId,
        since: Option<Timestamp>,
    },
    /// A client logged on.
    SessionUp { session: SessionId },
    /// A client's connection ended.
    SessionDown { session: SessionId },
    /// A FIX message passed that was longer than any that is read; `head` has its first fields.
    ClientTooLong {
        session: SessionId,
        /// Of the whole message, bytes.
        length: u32,
        head: &'a [u8],
    },
    /// See [`Kind::ClientMessage`].
    ClientMessage { session: SessionId, message: &'a [u8] },
    /// See [`Kind::ClientRecall`]. Nothing was found when the message is empty.
    Recalled {
        session: SessionId,
        /// Of the recall that asked for it.
        id: u64,
        sequence: SequenceNumber,
        message: &'a [u8],
    },
    /// See [`Kind::Timer`].
    SessionTimer { session: SessionId },
    /// The link to a venue came up.
    VenueUp { venue: VenueId },
    /// The link to a venue went down.
    VenueDown { venue: VenueId },
    /// A venue permits so many open orders from now on.
    VenueSlots { venue: VenueId, slots: u32 },
    /// There is room again for what waits for it.
    RoomAgain,
    /// See [`Kind::VenueMessage`].
    VenueMessage {
        venue: VenueId,
        sequence: SequenceNumber,
        message: &'a [u8],
    },
    /// See [`Kind::ShardMessage`].
    ShardMessage {
        shard: ShardId,
        lane: Lane,
        sequence: SequenceNumber,
        message: &'a [u8],
    },
    /// See [`Kind::DayRoll`].
    DayRolled { day: TradingDay },
    /// See [`Kind::Control`].
    Controlled(Order),
    /// See [`Kind::ReferencePrice`]. Most questions have no record for an answer, so this one says which it answers.
    Reference {
        /// The number of the question, from 1 with each input.
        asked: u32,
        instrument: InstrumentId,
        bbo: Bbo,
    },
    /// See [`Kind::BookMove`].
    BookMoved { instrument: InstrumentId, bbo: Bbo },
    /// See [`Kind::Mark`].
    Marked(Mark),
    /// See [`Kind::Refusal`].
    Refused {
        /// As above.
        asked: u32,
        reason: Reason,
    },
    /// See [`Kind::TooFast`].
    TooFast {
        /// As above.
        asked: u32,
        too_fast: TooFast,
    },
    /// See [`Kind::ClientOutput`].
    ClientOutput { session: SessionId, message: &'a [u8] },
    /// See [`Kind::ClientHeld`].
    ClientHeld { session: SessionId, message: &'a [u8] },
    /// See [`Kind::VenueOutput`].
    VenueOutput {
        venue: VenueId,
        sequence: SequenceNumber,
        message: &'a [u8],
    },
    /// See [`Kind::ShardOutput`].
    ShardOutput {
        shard: ShardId,
        lane: Lane,
        sequence: SequenceNumber,
        message: &'a [u8],
    },
}

/// A payload that its kind does not allow, or a kind that nobody knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownRecord {
    /// The kind in the record's header.
    pub kind: u16,
}

/// A payload's fixed part. Few bytes, so that an append copies little more than the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    bytes: [u8; Self::MAX_LENGTH],
    length: usize,
}

impl<'a> Record<'a> {
    /// Reads a record.
    ///
    /// # Errors
    /// When the kind is unknown or the payload is not one of its kind.
    pub fn decode(kind: u16, payload: &'a [u8]) -> Result<Self, UnknownRecord> {
        Self::try_decode(kind, payload).ok_or(UnknownRecord { kind })
    }

    fn try_decode(kind: u16, payload: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        Some(match Kind::from_u16(kind)? {
            Kind::Start => Self::Started {
                structure: fields.0.try_into().ok()?,
            },
            Kind::ClientEvent => match (fields.session()?, fields.u8()?) {
                (session, UP) => Self::SessionUp { session },
                (session, DOWN) => Self::SessionDown { session },
                (session, HOURS) => Self::SessionHours {
                    session,
                    since: fields.some_time()?,
                },
                (session, TOO_LONG) => Self::ClientTooLong {
                    session,
                    length: fields.u32()?,
                    head: fields.0,
                },
                (session, BOUND) => Self::SessionBound(Binding::new(session, fields.take()?, fields.0)?),
                _ => return None,
            },
            Kind::ClientMessage => Self::ClientMessage {
                session: fields.session()?,
                message: fields.0,
            },
            Kind::ClientRecall => Self::Recalled {
                session: fields.session()?,
                id: fields.u64()?,
                sequence: SequenceNumber(fields.u64()?),
                message: fields.0,
            },
            Kind::Timer => match fields.session()? {
                NO_SESSION => Self::RoomAgain,
                session => Self::SessionTimer { session },
            },
            Kind::VenueEvent => match (VenueId(fields.u8()?), fields.u8()?) {
                (venue, UP) => Self::VenueUp { venue },
                (venue, DOWN) => Self::VenueDown { venue },
                (venue, SLOTS) => Self::VenueSlots {
                    venue,
                    slots: fields.u32()?,
                },
                _ => return None,
            },
            Kind::VenueMessage => {
                let (venue, sequence) = (VenueId(fields.u8()?), SequenceNumber(fields.u64()?));
                Self::VenueMessage {
                    venue,
                    sequence,
                    message: fields.0,
                }
            }
            Kind::ShardMessage => {
                let (shard, lane) = (ShardId(fields.u8()?), Lane::from_u8(fields.u8()?)?);
                Self::ShardMessage {
                    shard,
                    lane,
                    sequence: SequenceNumber(fields.u64()?),
                    message: fields.0,
                }
            }
            Kind::DayRoll => Self::DayRolled {
                day: TradingDay(fields.u32()?),
            },
            Kind::Control => Self::Controlled(control::decode(&mut fields)?),
            Kind::ConfigLimits => {
                let (scope, changes) = (control::scope(&mut fields)?, fields.0);
                config_limits::decode(changes)?;
                Self::ConfigLimits { scope, changes }
            }
            Kind::ReferencePrice => Self::Reference {
                asked: fields.u32()?,
                instrument: InstrumentId(fields.u32()?),
                bbo: fields.bbo()?,
            },
            Kind::BookMove => Self::BookMoved {
                instrument: InstrumentId(fields.u32()?),
                bbo: fields.bbo()?,
            },
            Kind::Mark => Self::Marked(Mark {
                account: AccountId(fields.u32()?),
                instrument: InstrumentId(fields.u32()?),
                price: fields.price()?,
            }),
            Kind::Refusal => Self::Refused {
                asked: fields.u32()?,
                reason: Reason::from_u16(fields.u16()?)?,
            },
            Kind::TooFast => Self::TooFast {
                asked: fields.u32()?,
                too_fast: TooFast {
                    firm: fields.some_time()?,
                    account: fields.some_time()?,
                    session: fields.some_time()?,
                },
            },
            Kind::ClientOutput => Self::ClientOutput {
                session: fields.session()?,
                message: fields.0,
            },
            Kind::ClientHeld => Self::ClientHeld {
                session: fields.session()?,
                message: fields.0,
            },
            Kind::VenueOutput => {
                let (venue, sequence) = (VenueId(fields.u8()?), SequenceNumber(fields.u64()?));
                Self::VenueOutput {
                    venue,
                    sequence,
                    message: fields.0,
                }
            }
            Kind::ShardOutput => {
                let (shard, lane) = (ShardId(fields.u8()?), Lane::from_u8(fields.u8()?)?);
                Self::ShardOutput {
                    shard,
                    lane,
                    sequence: SequenceNumber(fields.u64()?),
                    message: fields.0,
                }
            }
            Kind::FeedMessage | Kind::FeedEvent | Kind::FeedOutput => return None,
        })
    }

    /// The record's kind, the fixed part of its payload, and the message after it.
    // Whoever appends knows which record it is: inlined, little more is left of it than the bytes.
    #[inline(always)]
    pub(crate) fn encode(&self) -> (Kind, Head, &[u8]) {
        let head = Head::new();
        match *self {
            Self::Started { structure } => (Kind::Start, head, structure),
            Self::ConfigLimits { scope, changes } => (Kind::ConfigLimits, control::put_scope(scope, head), changes),
            Self::SessionBound(ref binding) => (
                Kind::ClientEvent,
                head.u16(binding.session.0).u8(BOUND).put(binding.begin_string),
                binding.comp_id.as_bytes(),
            ),
            Self::SessionHours { session, since } => {
                (Kind::ClientEvent, head.u16(session.0).u8(HOURS).some_time(since), &[])
            }
            Self::SessionUp { session } => (Kind::ClientEvent, head.u16(session.0).u8(UP), &[]),
            Self::SessionDown { session } => (Kind::ClientEvent, head.u16(session.0).u8(DOWN), &[]),
            Self::ClientTooLong {
                session,
                length,
                head: of,
            } => (Kind::ClientEvent, head.u16(session.0).u8(TOO_LONG).u32(length), of),
            Self::ClientMessage { session, message } => (Kind::ClientMessage, head.u16(session.0), message),
            Self::Recalled {
                session,
                id,
                sequence,
                message,
            } => (Kind::ClientRecall, head.u16(session.0).u64(id).u64(sequence.0), message),
            Self::SessionTimer { session } => (Kind::Timer, head.u16(session.0), &[]),
            Self::RoomAgain => (Kind::Timer, head.u16(NO_SESSION.0), &[]),
            Self::VenueUp { venue } => (Kind::VenueEvent, head.u8(venue.0).u8(UP), &[]),
            Self::VenueDown { venue } => (Kind::VenueEvent, head.u8(venue.0).u8(DOWN), &[]),
            Self::VenueSlots { venue, slots } => (Kind::VenueEvent, head.u8(venue.0).u8(SLOTS).u32(slots), &[]),
            Self::VenueMessage {
                venue,
                sequence,
                message,
            } => (Kind::VenueMessage, head.u8(venue.0).u64(sequence.0), message),
            Self::ShardMessage {
                shard,
                lane,
                sequence,
                message,
            } => (
                Kind::ShardMessage,
                head.u8(shard.0).u8(lane as u8).u64(sequence.0),
                message,
            ),
            Self::DayRolled { day } => (Kind::DayRoll, head.u32(day.0), &[]),
            Self::Controlled(ref order) => (Kind::Control, control::encode(order, head), &[]),
            Self::Reference { asked, instrument, bbo } => {
                (Kind::ReferencePrice, head.u32(asked).u32(instrument.0).bbo(&bbo), &[])
            }
            Self::BookMoved { instrument, bbo } => (Kind::BookMove, head.u32(instrument.0).bbo(&bbo), &[]),
            Self::Marked(Mark {
                account,
                instrument,
                price,
            }) => (
                Kind::Mark,
                head.u32(account.0).u32(instrument.0).put(price.0.to_le_bytes()),
                &[],
            ),
            Self::Refused { asked, reason } => (Kind::Refusal, head.u32(asked).u16(reason as u16), &[]),
            Self::TooFast {
                asked,
                too_fast: TooFast { firm, account, session },
            } => (
                Kind::TooFast,
                head.u32(asked).some_time(firm).some_time(account).some_time(session),
                &[],
            ),
            Self::ClientOutput { session, message } => (Kind::ClientOutput, head.u16(session.0), message),
            Self::ClientHeld { session, message } => (Kind::ClientHeld, head.u16(session.0), message),
            Self::VenueOutput {
                venue,
                sequence,
                message,
            } => (Kind::VenueOutput, head.u8(venue.0).u64(sequence.0), message),
            Self::ShardOutput {
                shard,
                lane,
                sequence,
                message,
            } => (
                Kind::ShardOutput,
                head.u8(shard.0).u8(lane as u8).u64(sequence.0),
                message,
            ),
        }
    }
}

impl Head {
    /// Longest fixed part: a question's number, instrument and best bid and offer.
    const MAX_LENGTH: usize = 4 + 4 + 6 * 8;

    const fn new() -> Self {
        Self {
            bytes: [0; Self::MAX_LENGTH],
            length: 0,
        }
    }

    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    #[inline(always)]
    fn put<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.bytes[self.length..self.length + N].copy_from_slice(&bytes);
        self.length += N;
        self
    }

    fn u8(self, value: u8) -> Self {
        self.put(value.to_le_bytes())
    }

    fn u16(self, value: u16) -> Self {
        self.put(value.to_le_bytes())
    }

    fn u32(self, value: u32) -> Self {
        self.put(value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.put(value.to_le_bytes())
    }

    fn some_time(self, time: Option<Timestamp>) -> Self {
        self.u64(time.unwrap_or(Timestamp::NONE).0)
    }

    fn quote(self, quote: Quote) -> Self {
        self.put(quote.price.0.to_le_bytes()).u64(quote.quantity.0)
    }

    fn bbo(self, bbo: &Bbo) -> Self {
        self.quote(bbo.bid)
            .quote(bbo.ask)
            .put(bbo.last.0.to_le_bytes())
            .u64(bbo.time.0)
    }
}

/// In a timer's record: it is no session's.
const NO_SESSION: SessionId = SessionId(0);

/// In an event: what a connection or link became.
const UP: u8 = 1;
const DOWN: u8 = 0;
const SLOTS: u8 = 2;
const BOUND: u8 = 2;
const HOURS: u8 = 3;
const TOO_LONG: u8 = 4;

/// What is left of a payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn some_time(&mut self) -> Option<Option<Timestamp>> {
        let time = Timestamp(self.u64()?);
        Some((time != Timestamp::NONE).then_some(time))
    }

    fn session(&mut self) -> Option<SessionId> {
        self.u16().map(SessionId)
    }

    fn price(&mut self) -> Option<Price> {
        self.take().map(|bytes| Price(i64::from_le_bytes(bytes)))
    }

    fn quote(&mut self) -> Option<Quote> {
        Some(Quote {
            price: self.price()?,
            quantity: Quantity(self.u64()?),
        })
    }

    fn bbo(&mut self) -> Option<Bbo> {
        Some(Bbo {
            bid: self.quote()?,
            ask: self.quote()?,
            last: self.price()?,
            time: Timestamp(self.u64()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Action;
    use orders::{KillScope, Limit, LimitValue, Party, Traded};
    use proptest::prelude::*;
    use types::{LimitClass, Notional};

    const fn controlled(number: u64, action: Action) -> Record<'static> {
        Record::Controlled(Order {
            number,
            operator: 1_000,
            action,
        })
    }

    const fn set_limit(scope: LimitScope, value: LimitValue) -> Record<'static> {
        let limit = Limit::MaxQuantity;
        controlled(5, Action::SetLimit { scope, limit, value })
    }

    fn samples<'a>(message: &'a [u8], changes: &'a [u8]) -> Vec<Record<'a>> {
        let quote = Quote {
            price: Price(-5),
            quantity: Quantity(7),
        };
        let bbo = Bbo {
            bid: quote,
            ask: quote,
            last: Price(3),
            time: Timestamp(9),
        };
        let (session, venue, shard, sequence) = (SessionId(3), VenueId(2), ShardId(1), SequenceNumber(u64::MAX));
        vec![
            Record::Started {
                structure: &[1; Structure::LENGTH],
            },
            Record::ConfigLimits {
                scope: LimitScope::Account(AccountId(1)),
                changes,
            },
            Record::SessionBound(Binding::new(session, *b"FIX.4.2\0", b"DESK7").expect("a CompID")),
            Record::SessionHours {
                session,
                since: Some(Timestamp(5)),
            },
            Record::SessionHours { session, since: None },
            Record::SessionUp { session },
            Record::SessionDown { session },
            Record::ClientTooLong {
                session,
                length: 5_000,
                head: message,
            },
            Record::ClientMessage { session, message },
            Record::SessionTimer { session },
            Record::RoomAgain,
            Record::VenueUp { venue },
            Record::VenueDown { venue },
            Record::VenueSlots { venue, slots: 40_000 },
            Record::VenueMessage {
                venue,
                sequence,
                message,
            },
            Record::ShardMessage {
                shard,
                lane: Lane::Reports,
                sequence,
                message,
            },
            Record::DayRolled {
                day: TradingDay(20_261_129),
            },
            controlled(3, Action::Kill(KillScope::Firm)),
            controlled(9, Action::LetReduce(KillScope::Firm)),
            controlled(u64::MAX, Action::Revive(KillScope::Account(AccountId(u32::MAX)))),
            controlled(4, Action::Cancel(KillScope::Session(session))),
            controlled(6, Action::Disable(session)),
            controlled(7, Action::Enable(session)),
            controlled(8, Action::Roll(TradingDay(20_261_201))),
            set_limit(LimitScope::Firm, LimitValue::None),
            set_limit(LimitScope::Class(LimitClass(u8::MAX)), LimitValue::Amount(Notional(-1))),
            set_limit(LimitScope::Instrument(InstrumentId(u32::MAX)), LimitValue::OfClass),
            set_limit(LimitScope::Account(AccountId(1)), LimitValue::Count(u64::MAX)),
            set_limit(LimitScope::Session(session), LimitValue::Switch(true)),
            set_limit(
                LimitScope::Trade(Party::Account(AccountId(u32::MAX)), Traded::Class(LimitClass(63))),
                LimitValue::Switch(true),
            ),
            set_limit(
                LimitScope::Trade(Party::Session(session), Traded::Class(LimitClass(0))),
                LimitValue::Switch(false),
            ),
            set_limit(
                LimitScope::Trade(Party::Session(session), Traded::Instrument(InstrumentId(u32::MAX))),
                LimitValue::Switch(false),
            ),
            Record::ConfigLimits {
                scope: LimitScope::Trade(Party::Account(AccountId(1)), Traded::Instrument(InstrumentId(2))),
                changes,
            },
            Record::Reference {
                asked: 7,
                instrument: InstrumentId(8),
                bbo,
            },
            Record::BookMoved {
                instrument: InstrumentId(8),
                bbo,
            },
            Record::Marked(Mark {
                account: AccountId(4),
                instrument: InstrumentId(8),
                price: Price(5),
            }),
            Record::Refused {
                asked: u32::MAX,
                reason: Reason::VenueFull,
            },
            Record::TooFast {
                asked: 4,
                too_fast: TooFast {
                    firm: None,
                    account: Some(Timestamp(u64::MAX)),
                    session: Some(Timestamp(1)),
                },
            },
            Record::ClientOutput { session, message },
            Record::ClientHeld { session, message },
            Record::Recalled {
                session,
                id: 4,
                sequence,
                message,
            },
            Record::VenueOutput {
                venue,
                sequence,
                message,
            },
            Record::ShardOutput {
                shard,
                lane: Lane::Reports,
                sequence,
                message,
            },
        ]
    }

    #[test]
    fn every_record_comes_back_as_it_was() {
        let changes = config_limits::encode(&[
            (Limit::MaxQuantity, LimitValue::Count(7)),
            (Limit::MaxLoss, LimitValue::Amount(Notional(-1))),
        ]);
        for record in samples(b"abc", &changes) {
            let (kind, head, message) = record.encode();
            let payload = [head.as_slice(), message].concat();
            assert_eq!(Record::decode(kind as u16, &payload), Ok(record));
        }
    }

    proptest! {
        #[test]
        fn no_payload_panics(kind in prop::sample::select(Kind::ALL), payload in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Record::decode(kind as u16, &payload);
        }
    }
}
