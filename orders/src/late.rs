//! Trades of orders that the roll of the day ended here while they were at their venue.
//!
//! A roll sends the venue nothing. What a venue traded before it heard of the new day, or while the gateway was away, comes
//! after the roll, and it happened: the client hears of it, and it counts in the day in which it is heard of, as the day that it
//! was in is closed.

use crate::counters::Anomaly;
use crate::done::{DoneOrder, End};
use crate::exposure::shared_units;
use crate::map::NIL;
use crate::order::Order;
use crate::report::{OrderStatus, Sink};
use crate::state::Orders;
use alloc::boxed::Box;
use alloc::vec;
use types::{ExecReport, ExecType, OrderId, Quantity, Reason, VenueId};

/// By slot, the order that the last roll ended in it; a number tells whose a report is.
pub(crate) struct LateOrders(Box<[DoneOrder]>);

impl LateOrders {
    /// For so many slots.
    pub(crate) fn new(slots: u32) -> Self {
        Self(vec![DoneOrder::VACANT; slots as usize].into_boxed_slice())
    }

    /// Forgets those of the roll before.
    pub(crate) fn clear(&mut self) {
        self.0.fill(DoneOrder::VACANT);
    }

    /// Keeps an order as it is when the roll ends it: with a replace that may still be accepted.
    pub(crate) fn keep(&mut self, slot: u32, order: &Order, reason: Reason) {
        let end = End {
            status: OrderStatus::Expired,
            reason,
        };
        self.0[slot as usize] = DoneOrder { order: *order, end };
    }

    fn orders(&self) -> impl Iterator<Item = &Order> {
        self.0.iter().map(|late| &late.order).filter(|order| order.is_open())
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.0)
    }
}

impl Orders {
    /// Opens positions for what may still trade: there is room for them now, as there was in the day before.
    pub(crate) fn open_late_positions(&mut self) {
        for order in self.late.orders() {
            if self.positions.find(order.account, order.instrument) == NIL {
                self.positions.open(order.account, order.instrument, order.lot_size);
            }
        }
    }

    /// Takes in a trade whose order is over here: when the roll of the day ended it, it counts and its client hears of it.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_late_trade<S: Sink>(
        &mut self,
        venue: VenueId,
        report: &ExecReport,
        sink: &mut S,
    ) -> Result<OrderId, Anomaly> {
        let number = report.client_order_id.0;
        let slot = self.numbers.slot(number).ok_or(Anomaly::UnknownOrder)?;
        let DoneOrder { order, end } = self.late.0[slot as usize];
        if !order.has_number(number) {
            return Err(Anomaly::TradeAfterEnd);
        }
        if order.venue != venue {
            return Err(Anomaly::WrongVenue);
        }
        if order.instrument_id != report.instrument || order.side != report.side || report.last_price.is_null() {
            return Err(Anomaly::WrongTerms);
        }
        let (lots, price) = (report.last_quantity, report.last_price);
        if lots.is_zero() || lots.0 > order.claim().quantity {
            return Err(Anomaly::Overfill);
        }
        self.counters.late_trades += 1;
        let exec_id = self.next_exec_id();
        let order = &mut self.late.0[slot as usize].order;
        order.cumulative += lots;
        order.traded += i128::from(price.0) * i128::from(lots.0);
        // A replace that the venue accepted before may have made it more.
        order.quantity = order.quantity.max(order.cumulative);
        let status = if order.leaves().is_zero() {
            OrderStatus::Filled
        } else {
            end.status
        };
        let exec = ExecReport {
            last_price: price,
            last_quantity: lots,
            leaves: Quantity::ZERO,
            ..order.report(ExecType::Fill, exec_id, end.reason)
        };
        let order = *order;
        let position = self.positions.find(order.account, order.instrument);
        let exposure = self.positions.entry_mut(position);
        exposure.trade(order.side, lots, price);
        exposure.mark = price;
        let instrument = &mut self.instruments[order.instrument as usize];
        instrument.together.trade(order.side, lots);
        let account = &mut self.accounts[order.account as usize];
        account.restake(exposure);
        let used = shared_units(lots.notional(order.weight_price, order.lot_size).0).unwrap_or(i64::MAX / 2);
        self.release(order.places(), 0, 0, used);
        sink.report(&self.sent(exec, order.traded, status));
        self.settle(order.places(), sink);
        Ok(OrderId(order.number))
    }
}
