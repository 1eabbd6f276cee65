//! A backend that is asked: each new order is given to it, and its verdict waited for.

use super::FilterView;
use super::guard::Guard;
use crate::config::Config;
use crate::filter;
use crate::instruments::Instruments;
use crate::places::InstrumentPlace;
use orders::{LimitScope, Orders};
use prefilter::{Control, Fault, PreFilter, Reasons, SessionLimits, Slot, Verdict};
use proto::native::{self, MAX_MESSAGE_LENGTH};
use types::{
    ClientOrderId, InstrumentId, NewOrder, OrderTerms, OrderType, Quantity, Reason, Request, TimeInForce, Timestamp,
};

#[derive(Debug)]
pub(crate) struct Aside<P> {
    filter: P,
    guard: Guard,
    /// The limits that verdicts must name.
    generation: u32,
    /// The number of the next order.
    next: u32,
}

/// The model of the board, 64 bits wide.
///
/// # Errors
/// It does not do as it is told, or the config has more than it holds.
#[cfg(feature = "rtl-sim")]
pub(super) fn rtl(
    config: &Config,
    instruments: &Instruments,
    orders: &Orders,
) -> Result<Aside<prefilter::rtl::Rtl>, net::SetupError> {
    let start = || {
        let model = prefilter::rtl::Rtl::new(prefilter::rtl::Width::Bits64, 0)?;
        Aside::new(model, config, instruments, orders)
    };
    start().map_err(|fault| {
        net::SetupError::new(
            "starting the pre-filter's RTL",
            std::io::Error::other(fault),
            "configure fewer instruments and sessions, or backend = \"software\"",
        )
    })
}

impl<P: PreFilter> Aside<P> {
    /// Open, with the limits that `orders` has.
    pub(super) fn new(filter: P, config: &Config, instruments: &Instruments, orders: &Orders) -> Result<Self, Fault> {
        let mut aside = Self {
            filter,
            guard: Guard::new(config.prefilter.on_fault),
            generation: 0,
            next: 0,
        };
        for session in &config.sessions {
            // Rates are counted behind it, where a refused order takes nothing.
            aside.filter.set_session(session.id, Some(SessionLimits::UNLIMITED))?;
        }
        aside.stage(instruments, orders)?;
        aside.filter.set_control(Control {
            enable: true,
            kill: false,
        })?;
        Ok(aside)
    }

    pub(super) fn load(&mut self, instruments: &Instruments, orders: &Orders) {
        if self.guard.fault().is_none()
            && let Err(fault) = self.stage(instruments, orders)
        {
            self.fail(fault);
        }
    }

    pub(super) fn judge(&mut self, now: Timestamp, place: InstrumentPlace, order: &NewOrder) -> Result<(), Reason> {
        if self.guard.fault().is_some() {
            return self.guard.unjudged();
        }
        match self.verdict(now, place, order) {
            Ok(reasons) => match reasons.first() {
                Reason::None => Ok(()),
                reason => Err(reason),
            },
            Err(fault) => {
                self.fail(fault);
                self.guard.unjudged()
            }
        }
    }

    pub(super) fn beat(&mut self) {
        if self.guard.fault().is_none()
            && let Err(fault) = self.filter.health()
        {
            self.fail(fault);
        }
    }

    pub(super) fn view(&mut self, backend: &'static str) -> FilterView {
        FilterView {
            backend,
            generation: self.generation,
            counters: self.filter.counters(),
            fault: self.guard.fault(),
            fallback: self.guard.fallback(),
        }
    }

    /// Nothing is asked of it any more, and it passes nothing if it still hears.
    fn fail(&mut self, fault: Fault) {
        self.guard.fail(fault);
        let _: Result<(), Fault> = self.filter.set_control(Control::default());
    }

    fn stage(&mut self, instruments: &Instruments, orders: &Orders) -> Result<(), Fault> {
        for scope in (0..orders.limit_scopes()).filter_map(|place| orders.limit_scope(place)) {
            if let LimitScope::Instrument(id) = scope {
                let place = InstrumentId(instruments.place(id).0);
                self.filter.set_symbol(place, filter::limits(orders, id))?;
            }
        }
        self.generation = self.filter.commit()?;
        Ok(())
    }

    fn verdict(&mut self, now: Timestamp, place: InstrumentPlace, order: &NewOrder) -> Result<Reasons, Fault> {
        let sequence = self.next;
        let mut slot = slot(now, place, order);
        slot.sequence = sequence.into();
        if self.filter.submit(&[slot]) != 1 {
            return Err(Fault::Overdue { sequence });
        }
        self.next = self.next.wrapping_add(1);
        let mut verdict = [Verdict::default()];
        let mut polls = 0..prefilter::conformance::POLLS_MAX;
        if !polls.any(|_| self.filter.poll(&mut verdict) == 1) {
            return Err(Fault::Overdue { sequence });
        }
        let [verdict] = verdict;
        let found = verdict.sequence.get();
        if found != sequence {
            return Err(Fault::SequenceGap {
                expected: sequence,
                found,
            });
        }
        if verdict.generation.get() != self.generation {
            return Err(Fault::WrongGeneration {
                committed: self.generation,
                found: verdict.generation.get(),
            });
        }
        Ok(Reasons(verdict.reasons.get()))
    }
}

/// What a filter looks at of an order of whatever protocol, as a plain native one.
fn slot(now: Timestamp, place: InstrumentPlace, order: &NewOrder) -> Slot {
    let is_market = order.price.is_null();
    let plain = NewOrder {
        client_order_id: ClientOrderId(order.client_order_id.0.max(1)),
        instrument: InstrumentId(place.0),
        order_type: if is_market { OrderType::Market } else { OrderType::Limit },
        time_in_force: TimeInForce::Day,
        quantity: Quantity(order.quantity.0.clamp(1, u64::from(u32::MAX) - 1)),
        terms: OrderTerms::NONE,
        ..*order
    };
    let mut bytes = [0; MAX_MESSAGE_LENGTH];
    let length = native::encode_request(&Request::New(plain), &mut bytes);
    Slot::of(&bytes[..length], now.0, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OnFault;
    use orders::LimitScope;
    use prefilter::{Caps, Counters, SessionLimits, Software, SymbolLimits};
    use std::path::Path;
    use types::{AccountId, Price, SessionId, Side, Trigger};

    /// What goes wrong with the board.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Wrong {
        Nothing,
        TakesNothing,
        SaysNothing,
        SaysAnother,
        OldLimits,
        Unhealthy(Fault),
        NoCommit,
    }

    /// A board that is sound but for that.
    struct Board {
        inner: Software,
        wrong: Wrong,
        is_enabled: bool,
    }

    impl PreFilter for Board {
        fn caps(&self) -> Caps {
            self.inner.caps()
        }
        fn set_control(&mut self, control: Control) -> Result<(), Fault> {
            self.is_enabled = control.enable;
            self.inner.set_control(control)
        }
        fn set_symbol(&mut self, instrument: InstrumentId, limits: Option<SymbolLimits>) -> Result<(), Fault> {
            self.inner.set_symbol(instrument, limits)
        }
        fn set_session(&mut self, session: SessionId, limits: Option<SessionLimits>) -> Result<(), Fault> {
            self.inner.set_session(session, limits)
        }
        fn set_touch(&mut self, instrument: InstrumentId, side: Side, price: Price) -> Result<(), Fault> {
            self.inner.set_touch(instrument, side, price)
        }
        fn commit(&mut self) -> Result<u32, Fault> {
            match self.wrong {
                Wrong::NoCommit => Err(Fault::WrongGeneration { committed: 2, found: 1 }),
                _ => self.inner.commit(),
            }
        }
        fn submit(&mut self, slots: &[Slot]) -> usize {
            match self.wrong {
                Wrong::TakesNothing => 0,
                _ => self.inner.submit(slots),
            }
        }
        fn poll(&mut self, verdicts: &mut [Verdict]) -> usize {
            let count = self.inner.poll(verdicts);
            match self.wrong {
                Wrong::SaysNothing => return 0,
                Wrong::SaysAnother => verdicts[0].sequence = 77.into(),
                Wrong::OldLimits => verdicts[0].generation = 0.into(),
                _ => {}
            }
            count
        }
        fn counters(&mut self) -> Counters {
            self.inner.counters()
        }
        fn health(&mut self) -> Result<(), Fault> {
            match self.wrong {
                Wrong::Unhealthy(fault) => Err(fault),
                _ => Ok(()),
            }
        }
    }

    struct World {
        aside: Aside<Board>,
        instruments: Instruments,
        orders: Orders,
    }

    impl World {
        fn new(on_fault: OnFault) -> Self {
            let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/gateway.toml"));
            let mut config = Config::load(path).expect("the example");
            config.prefilter.on_fault = on_fault;
            let (instruments, orders) = (
                Instruments::new(&config.instruments),
                Orders::new(&config.orders[0]).expect("the example"),
            );
            let board = Board {
                inner: Software::new(Caps {
                    symbols: 128,
                    sessions: 128,
                }),
                wrong: Wrong::Nothing,
                is_enabled: false,
            };
            let aside = Aside::new(board, &config, &instruments, &orders).expect("sound");
            Self {
                aside,
                instruments,
                orders,
            }
        }

        fn judge(&mut self, lots: u64) -> Result<(), Reason> {
            let scopes = (0..self.orders.limit_scopes()).filter_map(|place| self.orders.limit_scope(place));
            let mut ids = scopes.filter_map(|scope| match scope {
                LimitScope::Instrument(id) => Some(id),
                _ => None,
            });
            let id = ids.next().expect("an instrument");
            let order = NewOrder {
                client_order_id: ClientOrderId(1),
                instrument: id,
                account: AccountId(1),
                session: SessionId(2),
                side: Side::Buy,
                order_type: OrderType::Limit,
                time_in_force: TimeInForce::ImmediateOrCancel,
                price: Price(1_000_000_000),
                quantity: Quantity(lots),
                trigger: Trigger(0),
                terms: OrderTerms::NONE,
            };
            self.aside.judge(Timestamp(1), self.instruments.place(id), &order)
        }
    }

    #[test]
    fn a_sound_board_passes_and_refuses_by_the_limits_of_the_config() {
        let mut world = World::new(OnFault::Reject);
        assert_eq!(world.judge(1_000), Ok(()));
        assert_eq!(world.judge(1_001), Err(Reason::MaxQuantity));
        world.aside.beat();
        let view = world.aside.view("rtl");
        assert_eq!(
            (view.counters.received, view.counters.refused, view.fault),
            (2, 1, None)
        );
        assert_eq!(view.fallback, crate::outside::Fallback::default());
    }

    /// Every fault closes it, and then the operator's choice holds, also when the board is well again.
    #[test]
    fn after_a_fault_the_operators_choice_holds() {
        let faults = [
            Wrong::TakesNothing,
            Wrong::SaysNothing,
            Wrong::SaysAnother,
            Wrong::OldLimits,
            Wrong::Unhealthy(Fault::Reset),
            Wrong::Unhealthy(Fault::HeartbeatLost),
            Wrong::Unhealthy(Fault::NotAPreFilter(u32::MAX)),
            Wrong::NoCommit,
        ];
        for wrong in faults {
            for (on_fault, then) in [(OnFault::Reject, Err(Reason::Killed)), (OnFault::Software, Ok(()))] {
                let mut world = World::new(on_fault);
                assert_eq!(world.judge(1), Ok(()));
                world.aside.filter.wrong = wrong;
                world.aside.beat();
                world.aside.load(&world.instruments, &world.orders);
                assert_eq!(world.judge(1), then, "{wrong:?}");
                let view = world.aside.view("rtl");
                assert!(view.fault.is_some(), "{wrong:?}");
                assert!(!world.aside.filter.is_enabled, "{wrong:?}");
                world.aside.filter.wrong = Wrong::Nothing;
                world.aside.beat();
                assert_eq!(world.judge(1_001), then, "{wrong:?}");
                let fallback = world.aside.view("rtl").fallback;
                let counted = match on_fault {
                    OnFault::Reject => (2, 0, 0),
                    OnFault::Software => (0, 2, 0),
                };
                assert_eq!(
                    (fallback.refused, fallback.to_software, fallback.unjudged),
                    counted,
                    "{wrong:?}"
                );
            }
        }
    }
}
