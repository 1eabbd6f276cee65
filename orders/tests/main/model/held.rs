//! Orders whose type the venue lacks, as the client and the venue see them: one order here, children of it there.

use super::steps::Kind;
use super::*;
use orders::{HeldStep, ReplaceScreened};
use types::{Bbo, Quote};

/// What the model knows of a held order beyond the rest.
#[derive(Clone, Debug)]
pub(super) struct HeldLive {
    /// It waits for its stop price.
    pub(super) stop: bool,
    /// Its stop price was met by a book that was handed in.
    pub(super) is_met: bool,
    pub(super) slices: bool,
    pub(super) peg: bool,
    pub(super) child: Option<Child>,
    /// The last child as the feed may still show it.
    pub(super) shown: Option<(Price, u64)>,
    /// The number of the cancel of the child that a replace wants, and the number that it names the child by.
    pub(super) withdrawal: Option<(ClientOrderId, ClientOrderId)>,
}

#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) first: ClientOrderId,
    pub(super) number: ClientOrderId,
    pub(super) price: Price,
    pub(super) lots: u64,
    pub(super) traded: u64,
    pub(super) reprice: Option<(ClientOrderId, Price)>,
    /// Lots that the venue took off while a new price was on its way.
    pub(super) restated: u64,
}

/// The book that was handed in last, as pegged orders follow it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Book {
    pub(super) best: [Option<Price>; 2],
    pub(super) not_before: Timestamp,
    /// A pegged order wants its first price, or one by new terms.
    pub(super) is_hungry: bool,
}

impl Live {
    /// What it trades at by now.
    pub(super) fn as_it_is(&self) -> NewOrder {
        let order_type = match self.request.order_type {
            OrderType::Stop if self.is_triggered => OrderType::Market,
            OrderType::StopLimit if self.is_triggered => OrderType::Limit,
            order_type => order_type,
        };
        NewOrder {
            order_type,
            price: self.price,
            ..self.request
        }
    }

    pub(super) fn can_be_replaced(&self) -> bool {
        self.as_it_is().order_type != OrderType::Market && self.request.time_in_force == TimeInForce::Day
    }

    /// The request as a client would write it for such an order.
    pub(super) fn replace_in_its_terms(&self, request: ReplaceOrder) -> ReplaceOrder {
        let order_type = self.as_it_is().order_type;
        let price = if order_type == OrderType::Stop {
            Price::NULL
        } else {
            request.price
        };
        let stop_price = if order_type.is_stop() {
            request.price
        } else {
            Price::NULL
        };
        let display = match self.request.terms.display {
            Quantity::ZERO => Quantity::ZERO,
            // At times another.
            _ => Quantity(request.quantity.0.min(4 - request.quantity.0 % 2)),
        };
        ReplaceOrder {
            price,
            terms: OrderTerms {
                stop_price,
                display,
                ..OrderTerms::NONE
            },
            ..request
        }
    }

    pub(super) fn changed_by(&self, request: &ReplaceOrder) -> NewOrder {
        NewOrder {
            price: request.price,
            quantity: request.quantity,
            terms: request.terms,
            ..self.as_it_is()
        }
    }

    pub(super) fn is_raised_by(&self, request: &ReplaceOrder) -> bool {
        let waits_for_stop = self.as_it_is().order_type.is_stop();
        request.price != self.price
            || (waits_for_stop && request.terms.stop_price != self.request.terms.stop_price)
            || request.terms.display != self.request.terms.display.min(request.quantity)
            || request.quantity.0 > self.lots
    }

    pub(super) fn note_triggered(&mut self) {
        let held = self.held.as_mut().expect("others are triggered by their venue");
        assert!(held.stop && held.is_met, "by a trade at its price");
        (held.stop, self.is_triggered) = (false, true);
    }

    pub(super) fn note_replaced(&mut self) {
        if let Some(held) = &mut self.held {
            held.is_met = false;
            held.slices = !self.request.terms.display.is_zero();
            assert!(held.child.is_none(), "its child is gone before");
        }
    }

    pub(super) fn numbers_at_venue(&self) -> Vec<ClientOrderId> {
        match &self.held {
            None => vec![self.number, self.replace_number],
            Some(HeldLive { child: Some(child), .. }) => {
                let reprice = child.reprice.map(|(number, _)| number);
                [Some(child.number), reprice].into_iter().flatten().collect()
            }
            Some(HeldLive { child: None, .. }) => Vec::new(),
        }
    }
}

impl Model {
    /// The order as this kind, and what is known of it then. Only the second venue lacks any.
    pub(super) fn special(&self, new: &NewStep, order: NewOrder) -> (NewOrder, Option<HeldLive>) {
        if new.kind == Kind::Plain || venue_of(new.session, order.instrument) == 0 || new.lots == 0 {
            return (order, None);
        }
        let price = Price(new.ticks * TICK);
        let stop_price = Price(new.stop_ticks * TICK);
        let display = Quantity(new.display.min(new.lots));
        let (order_type, price, stop_price, display) = match new.kind {
            Kind::Plain => unreachable!(),
            Kind::Stop => (OrderType::Stop, Price::NULL, stop_price, Quantity::ZERO),
            Kind::StopLimit => (OrderType::StopLimit, price, stop_price, Quantity::ZERO),
            Kind::Iceberg => (OrderType::Limit, price, Price::NULL, display),
            Kind::StopIceberg => (OrderType::StopLimit, price, stop_price, display),
            Kind::PegPrimary => (OrderType::PegPrimary, price, Price::NULL, Quantity::ZERO),
            Kind::PegMid => (OrderType::PegMid, price, Price::NULL, Quantity::ZERO),
            Kind::FreePeg => (OrderType::PegPrimary, Price::NULL, Price::NULL, Quantity::ZERO),
        };
        let order = NewOrder {
            order_type,
            price,
            time_in_force: TimeInForce::Day,
            terms: OrderTerms {
                stop_price,
                display,
                ..OrderTerms::NONE
            },
            ..order
        };
        let held = HeldLive {
            stop: order_type.is_stop(),
            is_met: false,
            slices: !display.is_zero(),
            peg: order_type.is_pegged(),
            child: None,
            shown: None,
            withdrawal: None,
        };
        (order, Some(held))
    }

    pub(super) fn is_special(&self, session: usize, order: &NewOrder) -> bool {
        let is_plain =
            matches!(order.order_type, OrderType::Market | OrderType::Limit) && order.terms.display.is_zero();
        venue_of(session, order.instrument) == 1 && !is_plain
    }

    /// A held order begins to watch. What was known of the book before is forgotten when it is the first that does.
    pub(super) fn note_begun(&mut self, index: usize) {
        let instrument = self.live[index].request.instrument;
        let watches = |live: &Live| live.held.as_ref().is_some_and(|held| held.stop || held.peg);
        let others = self.live.iter().enumerate().filter(|&(other, live)| {
            other != index && live.request.instrument == instrument && live.waits_until.is_none() && watches(live)
        });
        if others.count() == 0 && watches(&self.live[index]) {
            let place = INSTRUMENTS.iter().position(|&id| id == instrument).unwrap();
            self.books[place] = Book::default();
        }
        if self.live[index].held.as_ref().is_some_and(|held| held.peg) {
            self.note_hungry(instrument);
        }
    }

    /// A pegged order wants a price.
    pub(super) fn note_hungry(&mut self, instrument: InstrumentId) {
        let index = INSTRUMENTS.iter().position(|&id| id == instrument).unwrap();
        self.books[index].is_hungry = true;
    }

    pub(super) fn count_held(&self) -> usize {
        self.live.iter().filter(|live| live.held.is_some()).count()
    }

    /// The feed has a new book. It is handed in when the order logic says that it wants it; it has to when a stop is met.
    pub(super) fn book(&mut self, index: usize, best: [i64; 2], last: i64, lots: u64) {
        let quote = |ticks: i64, lots| Quote {
            price: Price(ticks * TICK),
            quantity: Quantity(lots),
        };
        self.now = self.now + Duration(1);
        let book = Bbo {
            bid: quote(best[0], lots),
            ask: quote(best[1], if lots == 1 { 0 } else { lots + 3 }),
            last: Price(last * TICK),
            time: self.now,
        };
        let mut wants = None;
        for _ in 0..self.orders.watched() {
            let (watched, instrument) = self.orders.next_watched().unwrap();
            if instrument == INSTRUMENTS[index] {
                wants = Some(self.orders.would_move(self.now, watched, &book));
            }
        }
        let is_met = |live: &Live| {
            let stop = live.request.terms.stop_price;
            live.held.as_ref().is_some_and(|held| held.stop && !held.is_met)
                && live.request.instrument == INSTRUMENTS[index]
                && live.waits_until.is_none()
                && match live.request.side {
                    Side::Buy => book.last >= stop,
                    Side::Sell => book.last <= stop,
                }
        };
        assert!(wants == Some(true) || !self.live.iter().any(is_met), "a stop is missed");
        if wants != Some(true) {
            return;
        }
        self.orders.on_book(self.now, INSTRUMENTS[index], &book);
        let best = [(Side::Buy, book.bid, 0), (Side::Sell, book.ask, 1)]
            .map(|(side, quote, place)| self.best_of_others(index, side, quote, self.books[index].best[place]));
        for live in self.live.iter_mut().filter(|live| is_met(live)) {
            live.held.as_mut().unwrap().is_met = true;
        }
        let pegs = |live: &&Live| {
            live.request.instrument == INSTRUMENTS[index]
                && live.waits_until.is_none()
                && live.held.as_ref().is_some_and(|held| held.peg)
        };
        let (now, has_pegs) = (self.now, self.live.iter().any(|live| pegs(&live)));
        let known = &mut self.books[index];
        let may_follow = has_pegs && known.not_before <= now;
        if may_follow && known.best != best {
            known.not_before = now + PEG_INTERVAL;
        }
        if may_follow || known.is_hungry {
            known.best = best;
        }
        known.is_hungry = false;
    }

    /// The best price of a side that is not that of pegged orders alone.
    fn best_of_others(&self, index: usize, side: Side, quote: Quote, known: Option<Price>) -> Option<Price> {
        if quote.quantity.is_zero() {
            return None;
        }
        let mut ours = 0;
        for live in &self.live {
            let Some(held) = live.held.as_ref().filter(|held| held.peg) else {
                continue;
            };
            let is_here = (live.request.instrument, live.request.side) == (INSTRUMENTS[index], side);
            let asked = held.child.as_ref().and_then(|child| child.reprice);
            let is_shown = held.shown.is_some_and(|(price, _)| price == quote.price)
                || asked.is_some_and(|(_, price)| price == quote.price);
            if is_here && live.waits_until.is_none() && is_shown {
                ours += held.shown.unwrap().1;
            }
        }
        match (side, known) {
            _ if quote.quantity.0 > ours => Some(quote.price),
            (Side::Buy, Some(known)) => Some(known.min(quote.price)),
            (Side::Sell, Some(known)) => Some(known.max(quote.price)),
            (_, None) => None,
        }
    }

    /// Where a pegged order belongs.
    fn peg_price(&self, live: &Live) -> Option<Price> {
        let index = INSTRUMENTS
            .iter()
            .position(|&id| id == live.request.instrument)
            .unwrap();
        let [bid, ask] = self.books[index].best;
        let (low, high) = match live.request.order_type {
            OrderType::PegMid => {
                let sum = bid?.0 + ask?.0;
                let low = sum / 2 / TICK * TICK;
                (low, if sum / 2 == low { low } else { low + TICK })
            }
            _ if live.request.side == Side::Buy => (bid?.0, bid?.0),
            _ => (ask?.0, ask?.0),
        };
        let price = match live.request.side {
            Side::Buy if live.price.is_null() => low,
            Side::Buy => low.min(live.price.0),
            Side::Sell if live.price.is_null() => high,
            Side::Sell => high.max(live.price.0),
        };
        Some(Price(price))
    }

    /// Goes through the held orders that have something to do, as a shard does.
    pub(super) fn do_what_is_due(&mut self, room: [bool; 2]) {
        self.is_busy = false;
        let mut next = self.orders.first_due();
        while let Some(due) = next {
            next = self.orders.due_after(due);
            let has_room = match self.orders.next_step(due) {
                HeldStep::Nothing | HeldStep::Wait => false,
                HeldStep::End => true,
                HeldStep::Send(venue) | HeldStep::Cancel(venue) => room[usize::from(venue.0)],
            };
            if !has_room {
                continue;
            }
            self.is_busy = true;
            let mut outputs = Outputs::default();
            let sent = self.orders.take_step(self.now, due, &mut outputs);
            self.see_why(&outputs);
            self.take_all(outputs);
            if let Some(sent) = sent {
                let index = self.index_of(sent.order_id);
                assert_eq!(usize::from(sent.venue.0), self.live[index].venue);
                self.note_sent(index, &sent.request);
            }
        }
    }

    fn index_of(&self, order_id: OrderId) -> usize {
        self.live.iter().position(|live| live.order_id == order_id).unwrap()
    }

    /// What a held order's step told its client: that it was triggered, or that it ends.
    fn see_why(&mut self, outputs: &Outputs) {
        for report in &outputs.reports {
            let exec = &report.exec;
            let index = self.index_of(exec.order_id);
            let live = &self.live[index];
            let met = NewOrder {
                order_type: match live.request.order_type {
                    OrderType::Stop => OrderType::Market,
                    _ => OrderType::Limit,
                },
                ..live.as_it_is()
            };
            let (mode, session) = (self.modes[live.session], live.session);
            let meets = self.own_in_reach(session, &met).next().is_some();
            let is_full = self.count_waiting() >= WAITING as usize;
            match (exec.exec_type, exec.reason) {
                (ExecType::Triggered, Reason::Held) if meets => {
                    assert!(mode == SelfMatch::CancelOldest && !is_full);
                    self.want_own_cancels(session, &met);
                    self.live[index].waits_until = Some(self.now + OWN_CANCEL_WAIT);
                    self.live[index].waits_since = self.orders.counters().waited;
                }
                (ExecType::Triggered, Reason::Held) => {}
                (ExecType::Canceled, Reason::VenueDown) => assert!(!self.is_up[live.venue]),
                (ExecType::Canceled, Reason::SelfMatch) => {
                    assert!(meets && mode != SelfMatch::CancelOldest);
                    if mode == SelfMatch::CancelBoth {
                        self.want_own_cancels(session, &met);
                    }
                }
                (ExecType::Canceled, Reason::TooManyWaiting) => {
                    assert!(meets && is_full && mode == SelfMatch::CancelOldest);
                }
                _ => panic!("{exec:?}"),
            }
            let held = self.live[index].held.as_ref().unwrap();
            assert!(held.stop && held.is_met && held.child.is_none());
        }
    }

    /// An order that waited for own ones and is held goes on.
    pub(super) fn begin_held(&mut self, index: usize, waiting: Waiting) {
        let mut outputs = Outputs::default();
        let sent = self.orders.send_waiting(self.now, waiting, &mut outputs);
        self.live[index].waits_until = None;
        let tells = usize::from(!self.live[index].is_triggered);
        assert_eq!(outputs.reports.len(), tells);
        self.take_all(outputs);
        match sent {
            Some(sent) => self.note_sent(index, &Request::New(sent.request)),
            None => assert!(self.peg_price(&self.live[index]).is_none()),
        }
    }

    /// A request about a held order left: was it right?
    fn note_sent(&mut self, index: usize, request: &Request) {
        let price = match &self.live[index].held {
            Some(held) if held.peg => self.peg_price(&self.live[index]),
            _ => Some(self.live[index].price),
        };
        let live = &mut self.live[index];
        assert_eq!((live.cancel, live.waits_until), (Cancel::None, None));
        assert!(self.is_up[live.venue] || matches!(request, Request::Cancel(_)));
        let held = live.held.as_mut().unwrap();
        match request {
            Request::New(new) => {
                assert!(held.child.is_none() && !held.stop && live.replace.is_none());
                let left = live.lots - live.traded;
                let lots = if held.slices {
                    left.min(live.request.terms.display.0)
                } else {
                    left
                };
                assert_eq!((Some(new.price), new.quantity), (price, Quantity(lots)));
                assert_eq!((new.side, new.account), (live.request.side, live.request.account));
                assert_eq!(new.order_type == OrderType::Market, new.price.is_null());
                assert_eq!(new.terms, OrderTerms::NONE);
                held.shown = Some((new.price, lots));
                held.child = Some(Child {
                    first: new.client_order_id,
                    number: new.client_order_id,
                    price: new.price,
                    lots,
                    traded: 0,
                    reprice: None,
                    restated: 0,
                });
                if !held.slices && !held.peg {
                    live.number = new.client_order_id;
                    live.held = None;
                }
            }
            Request::Replace(replace) => {
                assert!(held.peg && live.replace.is_none());
                let child = held.child.as_mut().unwrap();
                assert!(child.reprice.is_none() && child.price != replace.price);
                assert_eq!((Some(replace.price), replace.quantity.0), (price, child.lots));
                assert_eq!(replace.orig_client_order_id, child.number);
                child.reprice = Some((replace.client_order_id, replace.price));
            }
            Request::Cancel(cancel) => {
                assert!(live.replace.is_some() && held.withdrawal.is_none());
                let child = held.child.as_ref().unwrap();
                let newest = child.reprice.map_or(child.number, |(number, _)| number);
                assert_eq!(cancel.orig_client_order_id, newest);
                held.withdrawal = Some((cancel.client_order_id, newest));
            }
            _ => panic!("{request:?}"),
        }
        self.venues[self.live[index].venue].requests.push_back(*request);
    }

    /// A client's replace of a held order was accepted.
    pub(super) fn replace_held(&mut self, pick: usize, screened: ReplaceScreened) {
        let is_here = self.live[pick].is_here();
        let mut outputs = Outputs::default();
        self.orders.replace_held(self.now, screened, &mut outputs);
        assert_eq!(
            outputs.reports.len(),
            usize::from(is_here),
            "made at once, or when the child is gone"
        );
        self.take_all(outputs);
    }

    /// What a report of the venue means for the child that it is about.
    pub(super) fn follow_child(&mut self, report: &ExecReport) {
        let number = report.client_order_id;
        let is_about = |live: &&mut Live| {
            let held = live.held.as_ref();
            held.and_then(|held| held.child.as_ref()).is_some_and(|child| {
                number >= child.first
                    && (child.number == number
                        || child.reprice.is_some_and(|(asked, _)| asked == number)
                        || held.unwrap().withdrawal.is_some_and(|(asked, _)| asked == number))
            })
        };
        let Some(live) = self.live.iter_mut().find(is_about) else {
            return;
        };
        let held = live.held.as_mut().unwrap();
        let child = held.child.as_mut().unwrap();
        let mut is_gone = false;
        match report.exec_type {
            ExecType::Fill => {
                child.traded += report.last_quantity.0;
                is_gone = child.traded == child.lots;
            }
            ExecType::Replaced => {
                let (_, price) = child.reprice.take().unwrap();
                (child.number, child.price, child.restated) = (number, price, 0);
                held.shown = Some((price, child.lots));
            }
            ExecType::RequestRejected if child.reprice.is_some_and(|(asked, _)| asked == number) => {
                child.reprice = None;
                child.lots -= std::mem::take(&mut child.restated);
                held.shown = held.shown.map(|(price, _)| (price, child.lots));
                is_gone = child.traded == child.lots;
            }
            ExecType::RequestRejected => held.withdrawal = None,
            ExecType::Restated if child.reprice.is_some() => child.restated = child.lots - report.quantity.0,
            ExecType::Restated => {
                child.lots = report.quantity.0;
                held.shown = held.shown.map(|(price, _)| (price, report.quantity.0));
            }
            ExecType::Canceled => is_gone = true,
            _ => {}
        }
        if is_gone {
            (held.child, held.withdrawal) = (None, None);
        }
    }

    /// Once nothing is on its way any more, every held order that could have a child has one; but for pegged ones that want
    /// a book.
    pub(super) fn see_that_none_is_stuck(&self) {
        for live in &self.live {
            let Some(held) = &live.held else { continue };
            let is_free = self.is_up[live.venue] && !self.has_no_slot_above(live.venue, 0);
            let index = INSTRUMENTS
                .iter()
                .position(|&id| id == live.request.instrument)
                .unwrap();
            let has_price = !held.peg || (self.peg_price(live).is_some() && !self.books[index].is_hungry);
            let may_go = (!held.stop || held.is_met) && has_price && is_free && live.waits_until.is_none();
            assert!(held.child.is_some() || !may_go, "{live:?}");
            assert!(live.replace.is_none(), "{live:?}");
        }
    }
}

/// The highest price that the collar of an instrument lets pass.
pub(super) fn collar_above(instrument: InstrumentId, reference: i64) -> i128 {
    let width = if instrument == ALPHA {
        (reference / 5).min(30 * TICK)
    } else {
        0
    };
    i128::from(reference + width)
}

/// Whether the limit of a stop limit order is too far from its stop price.
pub(super) fn is_outside_collar(order: &NewOrder) -> bool {
    let distance = order.price.0.abs_diff(order.terms.stop_price.0);
    distance > order.terms.stop_price.0.unsigned_abs() / 5 || distance > 30 * TICK.unsigned_abs()
}
