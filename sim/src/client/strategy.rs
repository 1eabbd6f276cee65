//! What the client decides: which order a tick or a planned time brings, and what becomes of orders that rest.
//!
//! Not a strategy to earn by, but one that shows everything an order can meet: immediate-or-cancel orders at the touch,
//! most of which trade; day orders near the touch, some of which trade, some of which are replaced, most of which are
//! cancelled and a few of which stay; and one order that is too large on purpose. Every instrument has one side, so that
//! the client never meets itself. One seed makes all choices.

use super::config::LoadConfig;
use super::ledger::{Ledger, State};
use std::collections::VecDeque;
use types::{Bbo, InstrumentId, OrderType, Price, Quantity, Quote, Side, Symbol, TimeInForce, Timestamp};

/// What the client has to know of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traded {
    /// Its id.
    pub id: InstrumentId,
    /// Its symbol.
    pub symbol: Symbol,
    /// Smallest price step, 1e-9.
    pub tick_size: Price,
    /// Units in a lot.
    pub lot_size: u32,
    /// Price that stands in while no feed gives one, 1e-9.
    pub reference_price: Price,
}

/// A new order, but for its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Idea {
    pub(super) side: Side,
    pub(super) order_type: OrderType,
    pub(super) time_in_force: TimeInForce,
    pub(super) price: Price,
    pub(super) quantity: Quantity,
}

/// What is to be asked for an order that has rested long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Cancel,
    Replace { price: Price, quantity: Quantity },
}

/// Makes the choices.
#[derive(Debug)]
pub(super) struct Strategy {
    config: LoadConfig,
    random: Random,
    /// Orders made.
    made: u64,
    /// Orders that rest, by when their time is over. Each waits the same time, so they are in order.
    resting: VecDeque<Resting>,
}

#[derive(Clone, Copy, Debug)]
struct Resting {
    due: Timestamp,
    place: usize,
    /// Replace it once before it is cancelled.
    replace: bool,
}

/// SplitMix64: passes statistical tests, and is six lines.
#[derive(Debug)]
struct Random(u64);

impl Strategy {
    pub(super) fn new(config: &LoadConfig) -> Self {
        Self {
            random: Random(config.seed),
            made: 0,
            resting: VecDeque::with_capacity(config.orders_max),
            config: config.clone(),
        }
    }

    /// A new order in an instrument. `None` when there is no price to go by.
    pub(super) fn order(&mut self, index: usize, traded: &Traded, bbo: &Bbo) -> Option<Idea> {
        let side = side_of(index);
        // All draws are made, so that an order does not depend on how an earlier one went.
        let (kind, depth, lots) = (
            self.random.below(100),
            self.random.below(3),
            self.random.below(self.config.lots_max.0),
        );
        let (own, other) = match side {
            Side::Buy => (bbo.bid, bbo.ask),
            Side::Sell => (bbo.ask, bbo.bid),
        };
        let takes = kind < u64::from(self.config.ioc_percent) && !other.quantity.is_zero();
        let price = if takes {
            other.price
        } else {
            let steps = i64::try_from(depth).unwrap_or(0);
            near(side, own, other, traded, steps)?
        };
        self.made += 1;
        let is_oversize = self.made == OVERSIZE_AT && !self.config.oversize_lots.is_zero();
        Some(Idea {
            side,
            order_type: OrderType::Limit,
            time_in_force: if takes {
                TimeInForce::ImmediateOrCancel
            } else {
                TimeInForce::Day
            },
            price,
            quantity: if is_oversize {
                self.config.oversize_lots
            } else {
                Quantity(1 + lots)
            },
        })
    }

    /// An order that may rest was sent. A few are left alone.
    pub(super) fn on_resting(&mut self, now: Timestamp, place: usize) {
        let (stays, replace) = (self.random.below(STAYS_ONE_IN) == 0, self.random.below(2) == 0);
        if !stays && self.resting.len() < self.resting.capacity() {
            let due = now + self.config.rest;
            self.resting.push_back(Resting { due, place, replace });
        }
    }

    /// What is to be asked now of an order that has rested long enough.
    pub(super) fn change(&mut self, now: Timestamp, ledger: &Ledger, traded: &[Traded]) -> Option<(usize, Change)> {
        for _ in 0..CHANGES_LOOKED_AT {
            let resting = *self.resting.front().filter(|resting| resting.due <= now)?;
            self.resting.pop_front();
            let order = ledger.order(resting.place);
            let waits = order.state == State::Unanswered || order.pending.is_some();
            if waits || (order.state == State::Open && resting.replace) {
                // To look at it again after as long again: for an answer, or to cancel what is now replaced.
                let due = now + self.config.rest;
                let replace = resting.replace && waits;
                self.resting.push_back(Resting {
                    due,
                    replace,
                    ..resting
                });
            }
            if waits || order.state != State::Open {
                continue;
            }
            if resting.replace {
                let step = match order.side {
                    Side::Buy => -traded[order.instrument].tick_size.0,
                    Side::Sell => traded[order.instrument].tick_size.0,
                };
                let price = Price(order.price.0.saturating_add(step));
                let quantity = Quantity(order.quantity.0 + 1);
                return Some((resting.place, Change::Replace { price, quantity }));
            }
            return Some((resting.place, Change::Cancel));
        }
        None
    }

    /// What is open is to be cancelled now, also what was to be left alone.
    pub(super) fn wind_down(&mut self, now: Timestamp, ledger: &Ledger) {
        let open = |&place: &usize| matches!(ledger.order(place).state, State::Unanswered | State::Open);
        self.resting.clear();
        self.resting
            .extend((0..ledger.sent()).filter(open).map(|place| Resting {
                due: now,
                place,
                replace: false,
            }));
    }

    /// Orders that are still to be changed.
    pub(super) fn resting(&self) -> usize {
        self.resting.len()
    }
}

/// The side of an instrument, by its place in the client's list.
const fn side_of(index: usize) -> Side {
    if index.is_multiple_of(2) { Side::Buy } else { Side::Sell }
}

/// A price that does not trade at once: `steps` ticks behind the best of the own side, or one more behind the other
/// side's where the own is empty, or behind the reference price where both are. `None` when none is above zero.
fn near(side: Side, own: Quote, other: Quote, traded: &Traded, steps: i64) -> Option<Price> {
    let (base, steps) = if !own.quantity.is_zero() {
        (own.price, steps)
    } else if !other.quantity.is_zero() {
        (other.price, steps + 1)
    } else {
        (traded.reference_price, steps + 1)
    };
    let away = traded.tick_size.0.checked_mul(steps)?;
    let price = match side {
        Side::Buy => base.0.checked_sub(away)?,
        Side::Sell => base.0.checked_add(away)?,
    };
    (price > 0).then_some(Price(price))
}

impl Random {
    /// A number below `bound`, which is above 0. Its bias is that of a 64-bit remainder, far below what anyone sees.
    const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Which order is too large on purpose: not the first, so that a session that works is seen to refuse one order.
const OVERSIZE_AT: u64 = 10;

/// One resting order in so many is left in the market.
const STAYS_ONE_IN: u64 = 50;

/// Orders looked at in one turn for one that can be changed.
const CHANGES_LOOKED_AT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use types::{AccountId, ClientOrderId, Duration, ExecId, ExecReport, ExecType, OrderId, Reason, SessionId};

    fn config() -> LoadConfig {
        LoadConfig {
            symbols: Vec::new(),
            seed: 7,
            orders_max: 1_000,
            every_ticks: 1,
            interval: Duration(0),
            ioc_percent: 60,
            lots_max: Quantity(10),
            rest: Duration::from_millis(20),
            oversize_lots: Quantity(1_000_000),
        }
    }

    fn traded() -> Traded {
        Traded {
            id: InstrumentId(1),
            symbol: Symbol::new(b"ALFA").unwrap(),
            tick_size: Price(10_000_000),
            lot_size: 1,
            reference_price: Price(100_000_000_000),
        }
    }

    fn quote(price: i64, quantity: u64) -> Quote {
        Quote {
            price: Price(price),
            quantity: Quantity(quantity),
        }
    }

    const BID: i64 = 99_990_000_000;
    const ASK: i64 = 100_010_000_000;

    fn bbo() -> Bbo {
        Bbo {
            bid: quote(BID, 500),
            ask: quote(ASK, 500),
            ..Bbo::default()
        }
    }

    fn orders(seed: u64) -> Vec<Idea> {
        let mut strategy = Strategy::new(&LoadConfig { seed, ..config() });
        (0..1_000)
            .map(|at| strategy.order(at % 2, &traded(), &bbo()).unwrap())
            .collect()
    }

    #[test]
    fn one_seed_makes_one_sequence_of_orders() {
        assert_eq!(orders(7), orders(7));
        assert_ne!(orders(7), orders(8));
    }

    #[test]
    fn takers_stand_at_the_touch_and_others_never_cross_it() {
        for order in orders(7) {
            match (order.time_in_force, order.side) {
                (TimeInForce::ImmediateOrCancel, Side::Buy) => assert_eq!(order.price.0, ASK),
                (TimeInForce::ImmediateOrCancel, Side::Sell) => assert_eq!(order.price.0, BID),
                (_, Side::Buy) => assert!(order.price.0 <= BID),
                (_, Side::Sell) => assert!(order.price.0 >= ASK),
            }
            assert!(order.price.is_multiple_of(traded().tick_size));
        }
        let takers = orders(7)
            .iter()
            .filter(|order| order.time_in_force == TimeInForce::ImmediateOrCancel)
            .count();
        assert!((550..650).contains(&takers), "{takers}");
    }

    #[test]
    fn exactly_one_order_is_too_large() {
        let large: Vec<usize> = orders(7)
            .iter()
            .enumerate()
            .filter(|(_, order)| order.quantity > Quantity(10))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(large, [9]);
    }

    #[test]
    fn an_empty_side_is_made_good_by_the_other_or_the_reference() {
        let mut strategy = Strategy::new(&LoadConfig {
            ioc_percent: 100,
            ..config()
        });
        let only = |bid, ask| Bbo {
            bid,
            ask,
            ..Bbo::default()
        };
        let order = strategy
            .order(0, &traded(), &only(quote(BID, 1), Quote::default()))
            .unwrap();
        assert_eq!(order.time_in_force, TimeInForce::Day, "there is nothing to take");
        assert!(order.price.0 <= BID);
        let mut strategy = Strategy::new(&LoadConfig {
            ioc_percent: 0,
            ..config()
        });
        let order = strategy
            .order(0, &traded(), &only(Quote::default(), quote(ASK, 1)))
            .unwrap();
        assert!(order.price.0 < ASK);
        let order = strategy.order(0, &traded(), &Bbo::default()).unwrap();
        assert!(order.price < traded().reference_price);
        let nowhere = Traded {
            reference_price: Price(0),
            ..traded()
        };
        assert_eq!(strategy.order(0, &nowhere, &Bbo::default()), None);
    }

    fn answer(ledger: &mut Ledger, exec_type: ExecType, number: ClientOrderId, quantity: Quantity, price: Price) {
        ledger.on_report(&ExecReport {
            exec_type,
            order_id: OrderId(1),
            client_order_id: number,
            orig_client_order_id: ClientOrderId(0),
            exec_id: ExecId(1),
            instrument: InstrumentId(1),
            account: AccountId(1),
            session: SessionId(1),
            side: Side::Buy,
            price,
            quantity,
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves: quantity,
            cumulative: Quantity::ZERO,
            reason: Reason::None,
        });
    }

    #[test]
    fn a_resting_order_is_replaced_at_most_once_and_then_cancelled() {
        let (mut replaced, mut cancelled, mut left) = (0, 0, 0);
        let mut strategy = Strategy::new(&config());
        for _ in 0..400 {
            let mut ledger = Ledger::new(1, ClientOrderId(1));
            let (place, number) = ledger.add(0, Side::Buy, Price(BID), Quantity(5));
            let mut now = Timestamp(1_000);
            strategy.on_resting(now, place);
            // Not answered yet: nothing can be asked.
            now = now + Duration::from_millis(20);
            assert_eq!(strategy.change(now, &ledger, &[traded()]), None);
            answer(&mut ledger, ExecType::New, number, Quantity(5), Price(BID));
            let mut replaces = 0;
            while strategy.resting() > 0 {
                now = now + Duration::from_millis(20);
                match strategy.change(now, &ledger, &[traded()]) {
                    Some((_, Change::Replace { price, quantity })) => {
                        assert!(price.0 < BID && quantity == Quantity(6));
                        let number = ledger.request(place).unwrap();
                        answer(&mut ledger, ExecType::Replaced, number, quantity, price);
                        replaces += 1;
                    }
                    Some((_, Change::Cancel)) => {
                        let number = ledger.request(place).unwrap();
                        answer(&mut ledger, ExecType::Canceled, number, Quantity::ZERO, Price(BID));
                    }
                    None => panic!("it waits for nothing"),
                }
            }
            assert!(replaces <= 1);
            replaced += replaces;
            cancelled += ledger.accounting().canceled;
            left += ledger.accounting().open;
        }
        assert!(
            replaced > 100 && cancelled > 300 && (1..40).contains(&left),
            "{replaced} {cancelled} {left}"
        );
    }
}
