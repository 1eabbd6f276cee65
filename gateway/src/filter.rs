//! The pre-filter in front of the order logic: in software, one for each shard.
//!
//! It holds what a board would hold too: which instruments and sessions there are, and the most lots of one order. It may
//! only refuse; all that it looks at is checked again behind it. Replaces and cancels go past it: whether a replace takes
//! risk away is known only to whoever knows the order.

use crate::config::Config;
use crate::instruments::Instruments;
use crate::outside::{Fallback, FilterView};
use crate::places::InstrumentPlace;
use orders::{Limit, LimitScope, LimitValue, Orders};
use prefilter::{Caps, Control, Counters, Kind, Order, PreFilter, SessionLimits, Software, SymbolLimits};
use types::{InstrumentId, NewOrder, Price, Reason, Timestamp};

/// It knows instruments by their places, so that its table is no larger than their number wants.
#[derive(Debug)]
pub(crate) struct Filter(Software);

impl Filter {
    /// Open, with the limits that `orders` has.
    pub(crate) fn new(config: &Config, instruments: &Instruments, orders: &Orders) -> Self {
        let mut software = Software::new(caps(config));
        for session in &config.sessions {
            // Rates are counted behind it, where a refused order takes nothing.
            software
                .set_session(session.id, Some(SessionLimits::UNLIMITED))
                .expect("the table has all sessions of the config");
        }
        let open = Control {
            enable: true,
            kill: false,
        };
        software.set_control(open).expect("software obeys");
        let mut filter = Self(software);
        filter.load(instruments, orders);
        filter
    }

    /// Takes over the limits of all instruments of the shard, as one.
    pub(crate) fn load(&mut self, instruments: &Instruments, orders: &Orders) {
        for scope in (0..orders.limit_scopes()).filter_map(|place| orders.limit_scope(place)) {
            if let LimitScope::Instrument(id) = scope {
                self.stage(instruments, orders, id);
            }
        }
        self.0.commit().expect("software obeys");
    }

    /// Takes over a limit that was changed.
    pub(crate) fn follow(&mut self, instruments: &Instruments, orders: &Orders, scope: LimitScope) {
        match scope {
            LimitScope::Class(_) => self.load(instruments, orders),
            LimitScope::Instrument(id) => {
                self.stage(instruments, orders, id);
                self.0.commit().expect("software obeys");
            }
            LimitScope::Firm | LimitScope::Account(_) | LimitScope::Session(_) | LimitScope::Trade(..) => {}
        }
    }

    fn stage(&mut self, instruments: &Instruments, orders: &Orders, id: InstrumentId) {
        self.0
            .set_symbol(InstrumentId(instruments.place(id).0), limits(orders, id))
            .expect("the table has all instruments of the config");
    }

    /// Judges a new order of whatever protocol.
    ///
    /// # Errors
    /// Why it is refused.
    #[inline]
    pub(crate) fn judge(&mut self, now: Timestamp, place: InstrumentPlace, order: &NewOrder) -> Result<(), Reason> {
        let judgement = self.0.judge(
            now,
            &Order {
                kind: Kind::Order,
                instrument: place.0,
                quantity: order.quantity.0.try_into().unwrap_or(u32::MAX),
                price: order.price,
                session: order.session.0,
                side: order.side,
                // Left to the venue, which knows its book.
                post_only: false,
            },
        );
        match judgement.reasons.first() {
            Reason::None => Ok(()),
            reason => Err(reason),
        }
    }

    pub(crate) const fn counters(&self) -> &Counters {
        self.0.counted()
    }

    /// How it stands. It has no faults.
    pub(crate) fn view(&self) -> FilterView {
        FilterView {
            backend: "software",
            generation: self.0.generation(),
            counters: *self.0.counted(),
            fault: None,
            fallback: Fallback::default(),
        }
    }
}

/// Bytes of a shard's filter.
pub(crate) fn memory_bytes(config: &Config) -> usize {
    Software::memory_bytes(caps(config))
}

/// `None`, and so nothing passes, for an instrument without a limit.
pub(crate) fn limits(orders: &Orders, id: InstrumentId) -> Option<SymbolLimits> {
    let LimitValue::Count(max_quantity) = orders.limit(LimitScope::Instrument(id), Limit::MaxQuantity)? else {
        return None;
    };
    Some(SymbolLimits {
        max_quantity: max_quantity.try_into().unwrap_or(u32::MAX),
        // The collar moves with the market, and is measured behind it.
        lowest: Price::NULL,
        highest: Price(i64::MAX),
        route: 0,
    })
}

fn caps(config: &Config) -> Caps {
    let sessions = config.sessions.iter().map(|session| u32::from(session.id.0) + 1);
    Caps {
        symbols: u32::try_from(config.instruments.len()).expect("instruments are bounded by MAX_INSTRUMENTS"),
        sessions: sessions.max().unwrap_or(0),
    }
}
