//! What the first account takes of its limits that span shards, counted from the orders that live and all that traded.

use super::{INSTRUMENTS, Live, Model, lot_size};
use crate::fixture::*;
use orders::{Mark, Reference, SessionStake, Stake};
use types::{AccountId, InstrumentId, Price, Side, Timestamp};

/// What the account traded in an instrument this day, and what its position is valued at.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Traded {
    pub(super) bought: i128,
    pub(super) sold: i128,
    /// Price times lots times lot size.
    pub(super) cost: i128,
    pub(super) brought: i128,
    pub(super) mark: i128,
}

impl Traded {
    pub(super) fn trade(&mut self, instrument: InstrumentId, side: Side, price: Price, lots: u64) {
        let (price, lots) = (i128::from(price.0), i128::from(lots));
        let notional = price * lots * lot_size(instrument);
        match side {
            Side::Buy => (self.bought, self.cost) = (self.bought + lots, self.cost + notional),
            Side::Sell => (self.sold, self.brought) = (self.sold + lots, self.brought + notional),
        }
        self.mark = price;
    }
}

impl Model {
    /// What an account takes of limits that span shards. Only SHARED has one on the value of positions.
    pub(super) fn counted_stake(&self, account: AccountId, reserved: i64) -> Stake {
        let up = |notional: i128| i64::try_from((notional + 99_999).div_euclid(100_000)).unwrap();
        let down = |notional: i128| i64::try_from(notional.div_euclid(100_000)).unwrap();
        let of_account = self.live.iter().filter(|live| live.request.account == account);
        let mut stake = Stake {
            notional: reserved,
            orders: i64::try_from(of_account.clone().count()).unwrap(),
            ..Stake::NONE
        };
        for instrument in INSTRUMENTS.into_iter().filter(|_| account == SHARED) {
            let traded = self.values.get(&instrument).copied().unwrap_or_default();
            let unit = traded.mark * lot_size(instrument);
            let open = |side| {
                let here = of_account.clone().filter(|live| {
                    let request = &live.request;
                    (request.instrument, request.side) == (instrument, side)
                });
                here.map(|live| i128::from(live.worst().0)).sum::<i128>()
            };
            let held = traded.bought - traded.sold;
            let (long, short) = (held + open(Side::Buy), open(Side::Sell) - held);
            stake.gross += up(long.max(short).max(0) * unit);
            stake.long += up(long * unit);
            stake.short += up(short * unit);
            stake.profit += down(traded.brought - traded.cost + held * unit);
        }
        stake
    }

    pub(super) fn settle_sessions(&mut self, settled: &[SessionStake; 4]) {
        for (staked, settled) in self.staked_sessions.iter_mut().zip(settled) {
            staked.notional += settled.notional;
            staked.orders += settled.orders;
        }
    }

    /// What sessions take is what accounts do.
    pub(super) fn compare_sessions(&self) {
        for (place, staked) in self.staked_sessions.iter().enumerate() {
            let open = self.live.iter().filter(|live| live.session == place).count();
            assert_eq!(usize::try_from(staked.orders), Ok(open));
        }
        let of_sessions = self.staked_sessions.iter().map(|staked| staked.notional);
        assert_eq!(of_sessions.sum::<i64>(), self.reserved.iter().sum());
    }

    /// All positions are looked at while the feed has this price of the instrument, and of no other. Only SHARED's can want it.
    pub(super) fn mark_all(&mut self, instrument: InstrumentId, ticks: i64, is_fresh: bool) {
        let reference = Reference {
            price: Price(ticks * TICK),
            time: if is_fresh { self.now } else { Timestamp(1) },
            ..REFERENCE
        };
        let market = |of| if of == instrument { reference } else { Reference::NONE };
        let places = 0..self.orders.positions();
        let due: Vec<Mark> = places
            .filter_map(|place| self.orders.mark_due(self.now, place, market))
            .collect();
        let traded = self.values.entry(instrument).or_default();
        let is_open = |live: &Live| (live.request.account, live.request.instrument) == (SHARED, instrument);
        let has_value = traded.bought != traded.sold || self.live.iter().any(is_open);
        let mark = Mark {
            account: SHARED,
            instrument,
            price: reference.price,
        };
        let moves = has_value && is_fresh && traded.mark != i128::from(reference.price.0);
        assert_eq!(due, if moves { vec![mark] } else { vec![] });
        if moves {
            traded.mark = i128::from(reference.price.0);
            let mut outputs = Outputs::default();
            self.orders.mark(&mark, &mut outputs);
            self.take_all(outputs);
        }
    }

    /// The account had an order checked in an instrument.
    pub(super) fn mark(&mut self, order: &types::NewOrder) {
        if order.account == SHARED {
            self.values.entry(order.instrument).or_default().mark = i128::from(REFERENCE.price.0);
        }
    }
}
