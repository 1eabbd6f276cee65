//! The first stage: own orders in the way, and orders that wait for them to go.

use super::*;

impl Model {
    /// What the first stage has to do with, of the open orders.
    pub(super) fn own_in_reach(&self, session: usize, order: &NewOrder) -> impl Iterator<Item = usize> {
        // What its venue decrements it with, or what is at another venue, is nothing to do with.
        let (is_decremented, venue, account) = (
            self.modes[session] == SelfMatch::Decrement,
            venue_of(session, order.instrument),
            order.account,
        );
        let is_left = move |live: &Live| is_decremented && (live.venue != venue || live.request.account == account);
        let price = Some(order.price).filter(|price| !price.is_null());
        // What a stop meets is seen when it is triggered.
        let is_stop = order.order_type.is_stop();
        let (owner, side, instrument) = (OWNERS[session], order.side, order.instrument);
        let live = self.live.iter().enumerate();
        live.filter(move |(_, live)| !is_left(live) && !is_stop && live.crosses(owner, side, instrument, price))
            .map(|(index, _)| index)
    }

    pub(super) fn want_own_cancels(&mut self, session: usize, order: &NewOrder) {
        for index in self.own_in_reach(session, order).collect::<Vec<_>>() {
            if self.live[index].cancel == Cancel::None {
                self.live[index].cancel = Cancel::Waiting;
            }
        }
    }

    pub(super) fn count_waiting(&self) -> usize {
        self.live.iter().filter(|live| live.waits_until.is_some()).count()
    }

    /// The rules of waiting once more.
    pub(super) fn waiting_verdict(&self, index: usize) -> WaitingVerdict {
        let order = &self.live[index];
        let is_late = self.now >= order.waits_until.unwrap();
        let late = |reason| {
            if is_late {
                WaitingVerdict::Refuse(reason)
            } else {
                WaitingVerdict::Wait
            }
        };
        if order.cancel != Cancel::None {
            return WaitingVerdict::Wait;
        }
        if !self.is_up[order.venue] {
            return WaitingVerdict::Refuse(Reason::VenueDown);
        }
        let taker = order.as_it_is();
        let own = || self.own_in_reach(order.session, &taker).map(|own| &self.live[own]);
        // On one link the cancel is ahead, unless it may miss.
        let is_ahead = |own: &Live| {
            own.venue == order.venue
                && own.replace.is_none()
                && matches!(own.cancel, Cancel::Asked { number, aimed_at, .. } if number.0 != 0 && own.numbers_at_venue().first() == Some(&aimed_at))
        };
        if own().any(|own| own.cancel == Cancel::None) {
            WaitingVerdict::Refuse(Reason::OwnOrderRemains)
        } else if own().any(|own| !is_ahead(own)) {
            late(Reason::OwnOrderRemains)
        } else if self.has_no_slot_above(order.venue, 0) {
            late(Reason::NoVenueSlot)
        } else {
            let venue = VenueId(u8::try_from(order.venue).unwrap());
            WaitingVerdict::Send { venue, is_late }
        }
    }

    /// Goes through the orders that wait, as a shard does.
    pub(super) fn look(&mut self, room: [bool; 2]) {
        let mut waiting: Vec<(OrderId, Waiting)> = Vec::new();
        let mut next = self.orders.first_waiting();
        let mut waits: Vec<_> = self.live.iter().filter(|live| live.waits_until.is_some()).collect();
        waits.sort_by_key(|live| live.waits_since);
        let order_ids: Vec<_> = waits.iter().map(|live| live.order_id).collect();
        for order_id in order_ids {
            let found = next.expect("oldest first");
            next = self.orders.waiting_after(found);
            waiting.push((order_id, found));
        }
        assert_eq!(next, None);
        for (order_id, waiting) in waiting {
            let index = self.live.iter().position(|live| live.order_id == order_id).unwrap();
            let verdict = self.orders.waiting_verdict(self.now, waiting);
            assert_eq!(verdict, self.waiting_verdict(index), "{:?}", self.live[index]);
            let refusal = match verdict {
                WaitingVerdict::Wait => continue,
                WaitingVerdict::Refuse(reason) => reason,
                WaitingVerdict::Send { venue, .. } if room[usize::from(venue.0)] => {
                    if self.live[index].held.is_some() {
                        self.begin_held(index, waiting);
                        continue;
                    }
                    let sent = self
                        .orders
                        .send_waiting(self.now, waiting, &mut Outputs::default())
                        .unwrap();
                    let live = &mut self.live[index];
                    (live.waits_until, live.number) = (None, sent.request.client_order_id);
                    let expected = NewOrder {
                        client_order_id: live.number,
                        session: sent.request.session,
                        ..live.request
                    };
                    assert_eq!((sent.venue, sent.request, sent.order_id), (venue, expected, order_id));
                    self.venues[usize::from(venue.0)]
                        .requests
                        .push_back(Request::New(sent.request));
                    continue;
                }
                WaitingVerdict::Send { is_late: false, .. } => continue,
                WaitingVerdict::Send { is_late: true, .. } => Reason::VenueFull,
            };
            let is_triggered = self.live[index].is_triggered;
            let mut outputs = Outputs::default();
            self.orders.refuse_waiting(waiting, refusal, &mut outputs);
            let told = outputs.reports[0].exec;
            let exec_type = match is_triggered {
                true => ExecType::Canceled,
                false => ExecType::Rejected,
            };
            assert_eq!((told.exec_type, told.reason), (exec_type, refusal));
            self.take_all(outputs);
        }
    }

    pub(super) fn end_next(&mut self) {
        let is_ending = self
            .live
            .iter()
            .any(|live| live.is_here() && live.cancel != Cancel::None);
        assert_eq!(self.orders.is_ending(), is_ending);
        if is_ending {
            let mut outputs = Outputs::default();
            self.orders.end_next(&mut outputs);
            let told = outputs.reports[0].exec;
            assert_eq!((outputs.reports.len(), told.exec_type), (1, ExecType::Canceled));
            self.take_all(outputs);
        }
    }

    /// No two open orders of one owner are in books at prices at which they would trade, at whatever venue.
    pub(super) fn see_that_no_own_orders_cross(&self) {
        let in_book = |live: &Live| {
            let resting = self.venues[live.venue].book.iter();
            resting
                .filter(|resting| live.numbers_at_venue().contains(&resting.number))
                .map(|resting| (live.session, live.venue, resting.order))
                .next()
        };
        let resting: Vec<_> = self.live.iter().filter_map(in_book).collect();
        for (session, venue, buy) in resting.iter().filter(|(.., order)| order.side == Side::Buy) {
            for (other, other_venue, sell) in resting.iter().filter(|(.., order)| order.side == Side::Sell) {
                let trades =
                    OWNERS[*session] == OWNERS[*other] && buy.instrument == sell.instrument && buy.price >= sell.price;
                let is_left_to_venue = [*session, *other].map(|session| self.modes[session] == SelfMatch::Decrement);
                let is_harmless = venue != other_venue || buy.account == sell.account;
                assert!(
                    !trades || (is_left_to_venue != [false; 2] && is_harmless),
                    "{buy:?} {sell:?}"
                );
            }
        }
    }
}
