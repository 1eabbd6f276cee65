//! What may happen, and how often.

use orders::{SelfMatch, Stop};
use proptest::prelude::*;

/// What may happen. Numbers are reduced to what there is.
#[derive(Clone, Debug)]
pub(super) enum Step {
    New(NewStep),
    Cancel {
        pick: usize,
        reuse: bool,
        /// The link has no room for it now.
        held: bool,
    },
    Replace {
        pick: usize,
        ticks: i64,
        lots: u64,
    },
    MassCancel {
        session: usize,
        instrument: Option<usize>,
    },
    /// The venue takes its next request.
    Process {
        venue: usize,
        mood: u64,
    },
    /// The venue trades one of its orders.
    Trade {
        venue: usize,
        pick: usize,
        lots: u64,
    },
    /// The venue cancels one of its orders by itself.
    Bust {
        venue: usize,
        pick: usize,
    },
    /// The venue takes lots off one of its orders, as it does when it would trade with another of its owner.
    Restate {
        venue: usize,
        pick: usize,
        lots: u64,
    },
    /// The venue's next report arrives.
    Deliver {
        venue: usize,
    },
    /// One waiting cancel is sent.
    Poll {
        venue: usize,
    },
    /// One order that was cancelled while it waited is told of.
    End,
    /// Orders that wait are looked at; these links have room.
    Look {
        room: [bool; 2],
    },
    /// Held orders that have something to do do it; these links have room.
    Due {
        room: [bool; 2],
    },
    /// The feed's book of an instrument changes.
    Book {
        instrument: usize,
        bid: i64,
        spread: i64,
        last: i64,
        lots: u64,
    },
    /// All positions are looked at for a new price: of this instrument the feed has one, fresh or not.
    Mark {
        instrument: usize,
        ticks: i64,
        is_fresh: bool,
    },
    /// Time passes.
    Later {
        ms: u64,
    },
    SessionLost {
        session: usize,
    },
    Kill {
        scope: usize,
        stop: Stop,
    },
    Venue {
        venue: usize,
        is_up: bool,
    },
    /// The venue permits another number of open orders.
    Slots {
        venue: usize,
        slots: u32,
    },
    DayRoll,
}

#[derive(Clone, Debug)]
pub(super) struct NewStep {
    pub(super) session: usize,
    pub(super) account: usize,
    pub(super) instrument: usize,
    pub(super) buy: bool,
    pub(super) market: bool,
    pub(super) immediate: bool,
    pub(super) ticks: i64,
    pub(super) lots: u64,
    pub(super) reuse: bool,
    pub(super) kind: Kind,
    pub(super) stop_ticks: i64,
    pub(super) display: u64,
}

/// Which type the client asks for, at the venue that lacks them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    Plain,
    Stop,
    StopLimit,
    Iceberg,
    /// An iceberg once it is triggered.
    StopIceberg,
    PegPrimary,
    PegMid,
    /// Without a limit.
    FreePeg,
}

pub(super) fn new_step() -> impl Strategy<Value = Step> {
    let flags = (
        any::<bool>(),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.03),
    );
    let special = (kind(), 95..105i64, 1..6u64);
    (0..4usize, 0..3usize, 0..2usize, flags, 95..105i64, 0..25u64, special).prop_map(
        |(session, account, instrument, (buy, market, immediate, reuse), ticks, lots, (kind, stop_ticks, display))| {
            Step::New(NewStep {
                session,
                account,
                instrument,
                buy,
                market,
                immediate,
                // Most cluster around the reference; a few reach the collar.
                ticks: if lots == 3 { 100 + (ticks - 100) * 5 } else { ticks },
                lots: if lots == 24 { 60 } else { lots },
                reuse,
                kind,
                stop_ticks,
                display,
            })
        },
    )
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let venue = || 0..2usize;
    prop_oneof![
        24 => new_step(),
        6 => (any::<usize>(), prop::bool::weighted(0.05), prop::bool::weighted(0.2))
            .prop_map(|(pick, reuse, held)| Step::Cancel { pick, reuse, held }),
        8 => (any::<usize>(), 95..105i64, 0..25u64)
            .prop_map(|(pick, ticks, lots)| Step::Replace { pick, ticks, lots }),
        1 => (0..4usize, prop::option::of(0..2usize))
            .prop_map(|(session, instrument)| Step::MassCancel { session, instrument }),
        24 => (venue(), any::<u64>()).prop_map(|(venue, mood)| Step::Process { venue, mood }),
        10 => (venue(), any::<usize>(), 1..15u64)
            .prop_map(|(venue, pick, lots)| Step::Trade { venue, pick, lots }),
        1 => (venue(), any::<usize>()).prop_map(|(venue, pick)| Step::Bust { venue, pick }),
        2 => (venue(), any::<usize>(), 1..8u64).prop_map(|(venue, pick, lots)| Step::Restate { venue, pick, lots }),
        30 => venue().prop_map(|venue| Step::Deliver { venue }),
        4 => venue().prop_map(|venue| Step::Poll { venue }),
        4 => Just(Step::End),
        8 => any::<[bool; 2]>().prop_map(|room| Step::Look { room }),
        14 => any::<[bool; 2]>().prop_map(|room| Step::Due { room }),
        8 => (0..2usize, 94..104i64, 1..4i64, 94..106i64, 0..14u64)
            .prop_map(|(instrument, bid, spread, last, lots)| Step::Book { instrument, bid, spread, last, lots }),
        6 => (0..2usize, 94..106i64, prop::bool::weighted(0.9))
            .prop_map(|(instrument, ticks, is_fresh)| Step::Mark { instrument, ticks, is_fresh }),
        4 => (0..60u64).prop_map(|ms| Step::Later { ms }),
        1 => (0..4usize).prop_map(|session| Step::SessionLost { session }),
        2 => (0..8usize, stop()).prop_map(|(scope, stop)| Step::Kill { scope, stop }),
        2 => (venue(), prop::bool::weighted(0.7)).prop_map(|(venue, is_up)| Step::Venue { venue, is_up }),
        2 => (venue(), 0..12u32).prop_map(|(venue, slots)| Step::Slots { venue, slots }),
        1 => prop::bool::weighted(0.1).prop_map(|roll| if roll { Step::DayRoll } else { Step::Deliver { venue: 0 } }),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Plain,
        Kind::Plain,
        Kind::Stop,
        Kind::StopLimit,
        Kind::Iceberg,
        Kind::Iceberg,
        Kind::StopIceberg,
        Kind::PegPrimary,
        Kind::PegMid,
        Kind::FreePeg,
    ])
}

pub(super) fn mode() -> impl Strategy<Value = SelfMatch> {
    prop::sample::select(vec![
        SelfMatch::CancelNewest,
        SelfMatch::CancelOldest,
        SelfMatch::CancelBoth,
        SelfMatch::Decrement,
    ])
}

fn stop() -> impl Strategy<Value = Stop> {
    prop_oneof![6 => Just(Stop::Off), 2 => Just(Stop::ReduceOnly), 2 => Just(Stop::All)]
}
