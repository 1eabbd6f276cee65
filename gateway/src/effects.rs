//! The seam between what a shard decides and the world it decides for.

use crate::crossing::Lane;
use crate::instruments::Instruments;
use crate::places::InstrumentPlace;
use latency::Tap;
use orders::{AccountPlace, Need, Orders, Places, SessionPlace, SessionStake, SharedScope, Stake, TooFast};
use proto::fix::{CloseReason, Recall};
use types::{
    Bbo, ClientOrderId, ExecReport, InstrumentId, NewOrder, OrderId, Reason, Request, SequenceNumber, SessionId,
    ShardId, Timestamp, VenueId,
};

/// All that a shard asks of the world, and all that it does to it.
///
/// Alive (`Live`) each answer and each numbered output is written into the journal. In a replay
/// (`Replay`) answers are read from the journal, and outputs are compared with it, byte for byte. The
/// shard cannot tell which one it runs on.
pub trait Effects {
    /// The order at hand has passed a tap.
    fn stamp(&mut self, tap: Tap);

    /// Asks the backend of the pre-filter beside the shard's own, where there is one.
    ///
    /// # Errors
    /// Why it refuses the order.
    fn prefilter(&mut self, now: Timestamp, place: InstrumentPlace, order: &NewOrder) -> Result<(), Reason>;

    /// The limits that such a backend holds too have changed.
    fn prefilter_limits(&mut self, instruments: &Instruments, orders: &Orders);

    /// A newer best bid and offer than `known`, if there is one.
    fn reference(&mut self, place: InstrumentPlace, instrument: InstrumentId, known: &Bbo) -> Option<Bbo>;

    /// Reserves room for all that a request may cause: a place at its destination, in the journal, and for the reports to
    /// its client. Asked before the order logic changes anything; afterwards nothing fails for want of room. What is set
    /// aside for cancels is not given to orders.
    ///
    /// # Errors
    /// The reason that the client is told.
    fn reserve_room(&mut self, session: SessionId, destination: Destination, purpose: Purpose) -> Result<(), Reason>;

    /// Reserves room for so many messages to a client, or to the shard that has it.
    ///
    /// # Errors
    /// [`Reason::ReportRingFull`]; [`Reason::JournalFull`].
    fn reserve_reports(&mut self, session: SessionId, shard: Option<ShardId>, count: usize) -> Result<(), Reason>;

    /// Takes one order of the rates that span shards, the firm's, its account's and its session's.
    ///
    /// # Errors
    /// Those that do not allow it; then it is taken of none.
    fn take_rates(&mut self, now: Timestamp, places: Places) -> Result<(), TooFast>;

    /// Gives back what was taken of rates for an order that is not to count.
    fn give_back_rates(&mut self, places: Places);

    /// Reserves what an order needs of the other limits that span shards, its account's, its session's and the firm's.
    ///
    /// # Errors
    /// The reason of the limit that has not so much left.
    fn reserve_shared(&mut self, places: Places, need: &Need) -> Result<(), Reason>;

    /// What an account takes of those limits has changed.
    fn settle_shared(&mut self, account: AccountPlace, change: &Stake);

    /// What a session takes of them has changed.
    fn settle_session(&mut self, session: SessionPlace, change: &SessionStake);

    /// What accounts take on this shard counts for the firm too from now on; so much is taken already.
    fn count_firm(&mut self, taken: &Stake);

    /// The limits of a scope that span shards are these from now on.
    fn limit_shared(&mut self, now: Timestamp, limits: &SharedScope);

    /// Whether a cancel that waits to be sent finds room on the venue link now.
    fn room_for_cancel(&mut self, venue: VenueId) -> bool;

    /// Whether an order that waits in the gateway finds room on its venue's link now. What is set aside for cancels is not
    /// given to it.
    fn room_for_order(&mut self, venue: VenueId) -> bool;

    /// Whether the journal has room for what the end of an order in the gateway causes.
    fn room_for_end(&mut self) -> bool;

    /// Whether something that this shard tells another by itself finds room in its ring now.
    fn room_for_notice(&mut self, shard: ShardId) -> bool;

    /// A message to a client. A native one may be away: its messages are kept and sent when it logs on and asks. Its
    /// connection counts them; a FIX message says its `sequence`.
    fn to_client(&mut self, session: SessionId, sequence: Option<SequenceNumber>, message: &[u8]);

    /// A FIX message that has its number and cannot be sent yet.
    fn hold(&mut self, session: SessionId, sequence: SequenceNumber, message: &[u8]);

    /// With the input at hand the numbers of a FIX session started at 1 again.
    fn renumbered(&mut self, session: SessionId);

    /// A FIX session needs messages that it no longer holds. They come as inputs.
    fn recall(&mut self, session: SessionId, recall: &Recall);

    /// A numbered message to a venue.
    fn to_venue(&mut self, venue: VenueId, message: &[u8]);

    /// A numbered message to another shard.
    fn to_shard(&mut self, shard: ShardId, lane: Lane, message: &[u8]);

    /// The session's connection is to be closed once what was sent has left. `text` is what the client said or was told.
    fn close(&mut self, session: SessionId, reason: CloseReason, text: &[u8]);

    /// Whether what became of an order is recorded.
    fn is_recording(&self) -> bool;

    /// What became of a new order, for recordings. `number` is the client's own, 0 when it is none.
    fn order_taken(&mut self, order: &NewOrder, number: ClientOrderId, order_id: OrderId, verdict: Reason);

    /// An order that was kept went to its venue under this number, for recordings. `held_since`: when a held one last changed
    /// before; a book that moves it may be older.
    fn kept_order_sent(&mut self, order_id: OrderId, number: ClientOrderId, held_since: Option<Timestamp>);

    /// A report went to its client, for recordings.
    fn reported(&mut self, report: &ExecReport);
}

/// What room is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A cancel or mass cancel.
    Cancel,
    /// Anything else.
    Order,
}

/// Where a request goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// Out on this shard's link to a venue.
    Venue(VenueId),
    /// To the shard that owns the instrument.
    Shard(ShardId),
}

impl Purpose {
    /// Of a request.
    pub(crate) const fn of(request: &Request) -> Self {
        match request {
            Request::Cancel(_) | Request::MassCancel(_) => Self::Cancel,
            Request::New(_) | Request::Replace(_) | Request::Status(_) | Request::MassStatus(_) => Self::Order,
        }
    }
}
