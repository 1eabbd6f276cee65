//! A venue that answers in order, late, and as it likes.

use crate::fixture::*;
use std::collections::VecDeque;
use types::{
    AccountId, CancelOrder, ClientOrderId, ExecReport, ExecType, InstrumentId, NewOrder, OrderId, OrderType, Price,
    Quantity, Reason, ReplaceOrder, Request, Side, TimeInForce,
};

/// A venue that answers in order.
#[derive(Default)]
pub(super) struct Venue {
    pub(super) requests: VecDeque<Request>,
    pub(super) reports: VecDeque<ExecReport>,
    pub(super) book: Vec<Resting>,
    /// Of the last request.
    pub(super) last: ClientOrderId,
}

pub(super) struct Resting {
    pub(super) number: ClientOrderId,
    pub(super) order: NewOrder,
    pub(super) traded: u64,
}

impl Venue {
    pub(super) fn process(&mut self, mood: u64) {
        if let Some(request) = self.requests.front() {
            assert!(request.client_order_id() > self.last, "numbers rise");
            self.last = request.client_order_id();
        }
        match self.requests.pop_front() {
            Some(Request::New(order)) => self.on_new(order, mood),
            Some(Request::Cancel(cancel)) => self.on_cancel(&cancel),
            Some(Request::Replace(replace)) => self.on_replace(&replace, mood),
            Some(Request::MassCancel(_) | Request::Status(_) | Request::MassStatus(_)) | None => {}
        }
    }

    fn on_new(&mut self, order: NewOrder, mood: u64) {
        let number = order.client_order_id;
        if mood.is_multiple_of(8) {
            return self.say(ExecType::Rejected, number, &order, Reason::BookFull);
        }
        self.say(ExecType::New, number, &order, Reason::None);
        self.book.push(Resting {
            number,
            order,
            traded: 0,
        });
        if order.order_type == OrderType::Market || order.time_in_force == TimeInForce::ImmediateOrCancel {
            self.trade(self.book.len() - 1, mood % 13);
            if self.book.last().is_some_and(|resting| resting.number == number) {
                self.book.pop();
                self.say(ExecType::Canceled, number, &order, Reason::Unfilled);
            }
        }
    }

    fn on_cancel(&mut self, cancel: &CancelOrder) {
        match self.find(cancel.orig_client_order_id) {
            Some(index) => {
                let resting = self.book.remove(index);
                self.say(
                    ExecType::Canceled,
                    cancel.client_order_id,
                    &resting.order,
                    Reason::Requested,
                );
            }
            None => self.refuse(cancel.client_order_id, cancel.instrument, cancel.side),
        }
    }

    fn on_replace(&mut self, replace: &ReplaceOrder, mood: u64) {
        match self.find(replace.orig_client_order_id) {
            Some(index) if !mood.is_multiple_of(4) => {
                let resting = &mut self.book[index];
                resting.number = replace.client_order_id;
                resting.order.price = replace.price;
                resting.order.quantity = replace.quantity;
                let order = resting.order;
                if resting.traded >= replace.quantity.0 {
                    self.book.remove(index);
                }
                self.say(ExecType::Replaced, replace.client_order_id, &order, Reason::None);
            }
            _ => self.refuse(replace.client_order_id, replace.instrument, replace.side),
        }
    }

    pub(super) fn trade(&mut self, index: usize, lots: u64) {
        let resting = &mut self.book[index];
        let open = resting.order.quantity.0 - resting.traded;
        let lots = lots.min(open);
        if lots == 0 {
            return;
        }
        resting.traded += lots;
        let (number, order) = (resting.number, resting.order);
        if lots == open {
            self.book.remove(index);
        }
        self.say(ExecType::Fill, number, &order, Reason::None);
        let report = self.reports.back_mut().unwrap();
        report.last_quantity = Quantity(lots);
        report.last_price = if order.price.is_null() {
            REFERENCE.price
        } else {
            order.price
        };
    }

    pub(super) fn restate(&mut self, index: usize, lots: u64) {
        let resting = &mut self.book[index];
        if resting.traded + lots < resting.order.quantity.0 {
            resting.order.quantity.0 -= lots;
            let (number, order) = (resting.number, resting.order);
            self.say(ExecType::Restated, number, &order, Reason::SelfMatch);
        }
    }

    pub(super) fn bust(&mut self, index: usize) {
        let resting = self.book.remove(index);
        self.say(ExecType::Canceled, resting.number, &resting.order, Reason::None);
    }

    fn find(&self, number: ClientOrderId) -> Option<usize> {
        self.book.iter().position(|resting| resting.number == number)
    }

    fn refuse(&mut self, number: ClientOrderId, instrument: InstrumentId, side: Side) {
        let order = NewOrder {
            instrument,
            side,
            ..new_order(0)
        };
        self.say(ExecType::RequestRejected, number, &order, Reason::TooLate);
    }

    fn say(&mut self, exec_type: ExecType, number: ClientOrderId, order: &NewOrder, reason: Reason) {
        self.reports.push_back(ExecReport {
            exec_type,
            order_id: OrderId(1),
            client_order_id: number,
            orig_client_order_id: ClientOrderId(0),
            exec_id: types::ExecId(0),
            instrument: order.instrument,
            account: AccountId(0),
            session: order.session,
            side: order.side,
            price: order.price,
            quantity: order.quantity,
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves: Quantity::ZERO,
            cumulative: Quantity::ZERO,
            reason,
        });
    }
}
