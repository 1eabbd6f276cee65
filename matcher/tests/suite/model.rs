//! A second matcher, as plain as it gets: one list of live orders, searched from front to end for whatever is asked.
//! It shares no code with the first.

use matcher::{
    Auction, AuctionFill, BookIndex, Capacity, NewOrder, OwnerId, PegRules, Priority, Rejected, Replace, Report,
    RestingOrder, SelfMatch, Sweep, Trade,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use types::{OrderId, OrderTerms, OrderType, Price, Quantity, Reason, Side, TimeInForce, Timestamp};

pub(crate) struct Model {
    pub(crate) live: Vec<Live>,
    books: Vec<Book>,
    capacity: Capacity,
    self_match: SelfMatch,
    /// Rises with every order that takes a place.
    clock: u64,
    pub(crate) reports: Vec<Report>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    /// As it was entered, with the lots that are open.
    pub(crate) order: NewOrder,
    terms: OrderTerms,
    pub(crate) at: At,
    shown: u64,
    /// When it took its place in its queue.
    since: u64,
    /// When it came in, or in again.
    entered: u64,
}

/// Where an order waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum At {
    Book(Price),
    Stop(Price),
    Opening,
    Closing,
    Pegless,
    Market,
}

#[derive(Clone)]
struct Book {
    last: Option<Price>,
    traded: Option<(Price, Price)>,
    call: Option<Auction>,
    rules: PegRules,
}

/// An order at work.
struct Work {
    order: NewOrder,
    limit: Option<Price>,
    leaves: u64,
    trades: u32,
}

impl Model {
    pub(crate) fn new(capacity: Capacity, self_match: SelfMatch) -> Self {
        let book = Book {
            last: None,
            traded: None,
            call: None,
            rules: PegRules::ANY,
        };
        Self {
            live: Vec::new(),
            books: vec![book; capacity.books],
            capacity,
            self_match,
            clock: 0,
            reports: Vec::new(),
        }
    }

    pub(crate) fn set_peg_rules(&mut self, book: BookIndex, rules: PegRules) {
        self.book(book).rules = rules;
    }

    pub(crate) fn add(&mut self, order: &NewOrder, terms: &OrderTerms) {
        if let Some(reason) = self.refusal(order, terms) {
            return self.reject(order.id, reason);
        }
        self.reports.push(Report::Accepted { id: order.id });
        self.enter(*order, *terms, u32::MAX);
        self.follow(order.book);
    }

    pub(crate) fn add_without_trading(&mut self, order: &NewOrder) {
        if order.order_type != OrderType::Limit {
            return self.reject(order.id, Reason::UnsupportedOrder);
        }
        if let Some(reason) = self.form_refusal(order).or_else(|| self.id_refusal(order.id)) {
            return self.reject(order.id, reason);
        }
        if self.live.len() == self.capacity.orders || !self.level_fits(order, At::Book(order.price)) {
            return self.reject(order.id, Reason::BookFull);
        }
        self.reports.push(Report::Accepted { id: order.id });
        let day = NewOrder {
            time_in_force: TimeInForce::Day,
            ..*order
        };
        self.rest(day, OrderTerms::NONE, order.price);
    }

    pub(crate) fn cancel(&mut self, id: OrderId, reason: Reason) {
        match self.find(id) {
            None => self.reject(id, Reason::UnknownOrder),
            Some(place) => {
                let book = self.live[place].order.book;
                self.remove(place, reason);
                self.follow(book);
            }
        }
    }

    pub(crate) fn remove_part(&mut self, id: OrderId, reason: Reason) {
        match self.find(id) {
            None => self.reject(id, Reason::UnknownOrder),
            Some(place) => self.remove(place, reason),
        }
    }

    pub(crate) fn reduce(&mut self, id: OrderId, quantity: Quantity) {
        let Some(place) = self.find(id) else {
            return self.reject(id, Reason::UnknownOrder);
        };
        if quantity.0 == 0 {
            return self.reject(id, Reason::InvalidQuantity);
        }
        let live = &mut self.live[place];
        if quantity >= live.order.quantity {
            return self.remove(place, Reason::Requested);
        }
        live.order.quantity -= quantity;
        live.shown = live.shown.min(live.order.quantity.0);
        let leaves = live.order.quantity;
        self.reports.push(Report::Reduced { id, quantity, leaves });
    }

    pub(crate) fn replace(&mut self, replace: &Replace, terms: &OrderTerms) {
        let terms = OrderTerms {
            min_quantity: Quantity(0),
            ..*terms
        };
        let Some(place) = self.find(replace.id) else {
            return self.reject(replace.id, Reason::UnknownOrder);
        };
        let old = self.live[place];
        let new = NewOrder {
            id: replace.new_id,
            price: replace.price,
            quantity: replace.leaves,
            ..old.order
        };
        if let Some(reason) = self.replace_refusal(&old, &new, &terms) {
            return self.reject(replace.id, reason);
        }
        let same = |terms: &OrderTerms| (terms.display, terms.stop_price, terms.peg_offset);
        let kept_priority = replace.priority == Priority::KeptWhenReduced
            && replace.price == old.order.price
            && replace.leaves < old.order.quantity
            && same(&terms) == same(&old.terms);
        self.reports.push(Report::Replaced {
            old_id: replace.id,
            id: replace.new_id,
            kept_priority,
            price: replace.price,
            leaves: replace.leaves,
        });
        if kept_priority {
            let live = &mut self.live[place];
            live.order = new;
            live.shown = live.shown.min(new.quantity.0);
            live.terms = terms;
        } else {
            self.drop(place);
            self.enter(new, terms, u32::MAX);
        }
        self.follow(old.order.book);
    }

    pub(crate) fn cancel_where(&mut self, book: BookIndex, reason: Reason, owner: OwnerId) {
        let mut ids: Vec<_> = self.live.iter().filter(|live| live.order.book == book).collect();
        ids.sort_by_key(|live| {
            (
                kind(live.at),
                live.order.side as u8,
                rank(live.order.side, live.at),
                live.since,
            )
        });
        let ids: Vec<_> = ids
            .iter()
            .filter(|live| live.order.owner == owner)
            .map(|live| live.order.id)
            .collect();
        for id in ids {
            self.remove(self.find(id).unwrap(), reason);
        }
        self.follow(book);
    }

    pub(crate) fn sweep(&mut self, sweep: &Sweep, reached: OwnerId) -> Quantity {
        let mut work = Work {
            order: NewOrder {
                id: sweep.taker,
                book: sweep.book,
                owner: sweep.owner,
                side: sweep.side,
                order_type: OrderType::Limit,
                time_in_force: TimeInForce::Day,
                price: sweep.limit,
                quantity: sweep.quantity,
            },
            limit: Some(sweep.limit),
            leaves: sweep.quantity.0,
            trades: u32::MAX,
        };
        // What has been passed by is not looked at again, unless it came to the end of its queue since.
        let mut passed = None;
        while work.leaves > 0 {
            let next = self.side(sweep.book, sweep.side.opposite()).into_iter().find(|maker| {
                let place = (rank(maker.order.side, maker.at), maker.since);
                passed.is_none_or(|passed| place > passed)
            });
            let Some(maker) = next.filter(|maker| reaches(&work, maker)) else {
                break;
            };
            if sweep.before == Some(maker.order.id) {
                break;
            }
            if maker.order.owner == reached {
                self.fill(&mut work, &maker);
                self.note(sweep.book, price_of(&maker), price_of(&maker));
                if work.leaves == 0 {
                    break;
                }
            }
            passed = Some((rank(maker.order.side, maker.at), maker.since));
        }
        Quantity(work.leaves)
    }

    pub(crate) fn settle(&mut self, book: BookIndex, printed: Option<Price>) {
        if let Some(price) = printed {
            self.note(book, price, price);
        }
        self.follow(book);
    }

    pub(crate) fn expire(&mut self, now: Timestamp) {
        loop {
            let expired = self
                .live
                .iter()
                .filter(|live| live.terms.expires.0 > 0 && live.terms.expires <= now)
                .min_by_key(|live| (live.terms.expires, live.order.id));
            let Some(live) = expired.copied() else { return };
            self.remove(self.find(live.order.id).unwrap(), Reason::Expired);
            self.follow(live.order.book);
        }
    }

    pub(crate) fn call_auction(&mut self, book: BookIndex, auction: Auction) {
        self.book(book).call = Some(auction);
        for side in [Side::Buy, Side::Sell] {
            while let Some(first) = self.first(book, side, waiting_for(auction)) {
                self.drop(self.find(first.order.id).unwrap());
                self.enter(first.order, first.terms, u32::MAX);
            }
        }
    }

    pub(crate) fn uncross(&mut self, book: BookIndex, reference: Price) {
        if self.book(book).call.is_none() {
            return;
        }
        if let Some((price, quantity)) = self.indicative(book, reference) {
            self.reports.push(Report::Uncrossed { book, price, quantity });
            for side in [Side::Buy, Side::Sell] {
                self.fill_side(book, side, price, quantity.0);
            }
            self.note(book, price, price);
        }
        for side in [Side::Buy, Side::Sell] {
            while let Some(first) = self.first(book, side, At::Market) {
                self.remove(self.find(first.order.id).unwrap(), Reason::Unfilled);
            }
            for live in self.side(book, side) {
                if matches!(
                    live.order.time_in_force,
                    TimeInForce::AtTheOpening | TimeInForce::AtTheClose
                ) {
                    self.remove(self.find(live.order.id).unwrap(), Reason::Unfilled);
                }
            }
        }
        self.book(book).call = None;
        self.follow(book);
    }

    /// Tries every price that could be it.
    pub(crate) fn indicative(&self, book: BookIndex, reference: Price) -> Option<(Price, Quantity)> {
        let in_auction = |side: Side, price: Price| -> u64 {
            let takes_part = |live: &&Live| {
                live.order.book == book
                    && live.order.side == side
                    && match live.at {
                        At::Market => true,
                        At::Book(limit) if side == Side::Buy => limit >= price,
                        At::Book(limit) => limit <= price,
                        _ => false,
                    }
            };
            self.live
                .iter()
                .filter(takes_part)
                .map(|live| live.order.quantity.0)
                .sum()
        };
        let limits = self
            .live
            .iter()
            .filter(|live| live.order.book == book)
            .filter_map(|live| match live.at {
                At::Book(price) => Some(price),
                _ => None,
            });
        let prices = limits.chain((!reference.is_null()).then_some(reference));
        let result = |price: Price| {
            let (buys, sells) = (in_auction(Side::Buy, price), in_auction(Side::Sell, price));
            let distance = if reference.is_null() {
                0
            } else {
                price.0.abs_diff(reference.0)
            };
            (buys.min(sells), Reverse(buys.abs_diff(sells)), Reverse(distance), price)
        };
        let (lots, _, _, price) = prices.map(result).max()?;
        (lots > 0).then_some((price, Quantity(lots)))
    }

    /// The orders of one side of the book in priority.
    pub(crate) fn side(&self, book: BookIndex, side: Side) -> Vec<Live> {
        let in_book =
            |live: &&Live| live.order.book == book && live.order.side == side && matches!(live.at, At::Book(_));
        let mut orders: Vec<_> = self.live.iter().filter(in_book).copied().collect();
        orders.sort_by_key(|live| (rank(side, live.at), live.since));
        orders
    }

    pub(crate) fn special_count(&self) -> usize {
        self.live
            .iter()
            .filter(|live| is_special(&live.order, &live.terms))
            .count()
    }

    fn enter(&mut self, order: NewOrder, terms: OrderTerms, trades: u32) {
        let call = self.book(order.book).call;
        let auction = match order.time_in_force {
            TimeInForce::AtTheOpening => Some(Auction::Opening),
            TimeInForce::AtTheClose => Some(Auction::Closing),
            _ => None,
        };
        if let Some(auction) = auction
            && call != Some(auction)
        {
            return self.hold(order, terms, waiting_for(auction));
        }
        match order.order_type {
            OrderType::Stop | OrderType::StopLimit => self.enter_stop(order, terms, trades),
            OrderType::PegPrimary | OrderType::PegMid => {
                self.enter_peg(order, terms);
            }
            OrderType::Market | OrderType::Limit if call.is_some() => {
                if is_immediate(&order) || terms.min_quantity.0 > 0 {
                    self.cancel_rest(&order, order.quantity.0, Reason::Unfilled);
                } else if order.order_type == OrderType::Market {
                    self.hold(order, terms, At::Market);
                } else {
                    self.rest(order, terms, order.price);
                }
            }
            OrderType::Market | OrderType::Limit => self.trade_and_rest(order, terms, trades),
        }
    }

    fn trade_and_rest(&mut self, order: NewOrder, terms: OrderTerms, trades: u32) {
        let is_market = order.order_type == OrderType::Market;
        let mut work = Work {
            order,
            limit: (!is_market).then_some(order.price),
            leaves: order.quantity.0,
            trades,
        };
        let minimum = match order.time_in_force {
            TimeInForce::FillOrKill => order.quantity.0,
            _ => terms.min_quantity.0,
        };
        if self.reachable(&work) < minimum {
            return self.cancel_rest(&order, order.quantity.0, Reason::Unfilled);
        }
        let stopped = self.trade(&mut work);
        if work.leaves == 0 {
            return;
        }
        match stopped {
            None if !is_market && !is_immediate(&order) => {
                let left = NewOrder {
                    quantity: Quantity(work.leaves),
                    ..order
                };
                self.rest(left, terms, order.price);
            }
            _ => self.cancel_rest(&order, work.leaves, stopped.unwrap_or(Reason::Unfilled)),
        }
    }

    /// Lots that the order would trade, by a walk through the queue that pretends.
    fn reachable(&self, work: &Work) -> u64 {
        let (mut shown, mut hidden) = (0, 0);
        let mut level = None;
        for maker in self.side(work.order.book, work.order.side.opposite()) {
            if !reaches(work, &maker) {
                break;
            }
            if level != Some(maker.at) {
                level = Some(maker.at);
                shown += std::mem::take(&mut hidden);
            }
            if self.is_own(work, &maker) {
                match self.self_match {
                    SelfMatch::CancelOldest => continue,
                    _ => return shown,
                }
            }
            shown += maker.shown;
            hidden += maker.order.quantity.0 - maker.shown;
        }
        shown + hidden
    }

    /// Trades until nothing is reached or left. A reason when the order must not go on.
    fn trade(&mut self, work: &mut Work) -> Option<Reason> {
        let mut prices = Vec::new();
        let mut stopped = None;
        while work.leaves > 0 {
            let best = self.side(work.order.book, work.order.side.opposite()).first().copied();
            let Some(maker) = best.filter(|maker| reaches(work, maker)) else {
                break;
            };
            if self.is_own(work, &maker) {
                stopped = self.meet_own(work, &maker);
            } else if work.trades == 0 {
                stopped = Some(Reason::Unfilled);
            } else {
                prices.push(price_of(&maker));
                self.fill(work, &maker);
            }
            if stopped.is_some() {
                break;
            }
        }
        if let (Some(&first), Some(&last)) = (prices.first(), prices.last()) {
            self.note(work.order.book, first, last);
        }
        stopped
    }

    fn is_own(&self, work: &Work, maker: &Live) -> bool {
        self.self_match != SelfMatch::Allow && work.order.owner.0 != 0 && work.order.owner == maker.order.owner
    }

    fn meet_own(&mut self, work: &mut Work, maker: &Live) -> Option<Reason> {
        let place = self.find(maker.order.id).unwrap();
        match self.self_match {
            SelfMatch::Allow => unreachable!(),
            SelfMatch::CancelNewest => Some(Reason::SelfMatch),
            SelfMatch::CancelOldest => {
                self.remove(place, Reason::SelfMatch);
                None
            }
            SelfMatch::CancelBoth => {
                self.remove(place, Reason::SelfMatch);
                Some(Reason::SelfMatch)
            }
            SelfMatch::Decrement => {
                let lots = work.leaves.min(maker.shown);
                work.leaves -= lots;
                self.tell_decrement(&maker.order, maker.order.quantity.0 - lots, lots);
                self.tell_decrement(&work.order, work.leaves, lots);
                self.take(place, lots);
                None
            }
        }
    }

    fn tell_decrement(&mut self, order: &NewOrder, leaves: u64, lots: u64) {
        if leaves == 0 {
            return self.cancel_rest(order, lots, Reason::SelfMatch);
        }
        self.reports.push(Report::Reduced {
            id: order.id,
            quantity: Quantity(lots),
            leaves: Quantity(leaves),
        });
    }

    fn fill(&mut self, work: &mut Work, maker: &Live) {
        let quantity = work.leaves.min(maker.shown);
        work.leaves -= quantity;
        work.trades -= 1;
        self.reports.push(Report::Trade(Trade {
            book: work.order.book,
            taker: work.order.id,
            taker_owner: work.order.owner,
            taker_side: work.order.side,
            taker_leaves: Quantity(work.leaves),
            maker: maker.order.id,
            maker_owner: maker.order.owner,
            maker_leaves: Quantity(maker.order.quantity.0 - quantity),
            price: price_of(maker),
            quantity: Quantity(quantity),
        }));
        self.take(self.find(maker.order.id).unwrap(), quantity);
    }

    /// Takes lots that an order shows. It is gone, or shows more and goes to the end.
    fn take(&mut self, place: usize, lots: u64) {
        let live = &mut self.live[place];
        live.order.quantity.0 -= lots;
        live.shown -= lots;
        if live.order.quantity.0 == 0 {
            self.drop(place);
        } else if live.shown == 0 {
            self.clock += 1;
            live.shown = live.order.quantity.0.min(live.terms.display.0);
            live.since = self.clock;
            let resting = resting(live);
            self.reports.push(Report::Replenished(resting));
        }
    }

    fn enter_stop(&mut self, order: NewOrder, terms: OrderTerms, trades: u32) {
        let book = self.book(order.book);
        let is_passed = book.call.is_none()
            && book.last.is_some_and(|last| match order.side {
                Side::Buy => last >= terms.stop_price,
                Side::Sell => last <= terms.stop_price,
            });
        if is_passed {
            self.enter_triggered(order, terms, trades.min(matcher::MAX_TRIGGERED_TRADES));
        } else {
            self.hold(order, terms, At::Stop(terms.stop_price));
        }
    }

    fn enter_triggered(&mut self, order: NewOrder, terms: OrderTerms, trades: u32) {
        self.reports.push(Report::Triggered { id: order.id });
        let order_type = match order.order_type {
            OrderType::Stop => OrderType::Market,
            _ => OrderType::Limit,
        };
        let order = NewOrder { order_type, ..order };
        let terms = OrderTerms {
            stop_price: Price::NULL,
            ..terms
        };
        self.enter(order, terms, trades);
    }

    /// Stops and pegged orders, until none has anything to do.
    fn follow(&mut self, book: BookIndex) {
        if self.book(book).call.is_some() {
            return;
        }
        let mut repricings = 0;
        loop {
            if let Some(stop) = self.first_triggered(book) {
                self.drop(self.find(stop.order.id).unwrap());
                self.enter_triggered(stop.order, stop.terms, matcher::MAX_TRIGGERED_TRADES);
            } else if repricings < matcher::MAX_REPRICINGS && self.reprice(book) {
                repricings += 1;
            } else {
                break;
            }
        }
        self.book(book).traded = None;
    }

    fn first_triggered(&mut self, book: BookIndex) -> Option<Live> {
        let (low, high) = self.book(book).traded?;
        let is_triggered = |live: &&Live| match live.at {
            At::Stop(stop) if live.order.side == Side::Buy => stop <= high,
            At::Stop(stop) => stop >= low,
            _ => false,
        };
        let triggered = self
            .live
            .iter()
            .filter(|live| live.order.book == book)
            .filter(is_triggered);
        triggered
            .min_by_key(|live| (live.order.side as u8, rank(live.order.side, live.at), live.since))
            .copied()
    }

    fn reprice(&mut self, book: BookIndex) -> bool {
        let mut pegs: Vec<_> = self
            .live
            .iter()
            .filter(|live| live.order.book == book && is_pegged(live))
            .collect();
        pegs.sort_by_key(|live| live.entered);
        let pegs: Vec<_> = pegs.iter().map(|live| live.order.id).collect();
        let mut has_moved = false;
        for id in pegs {
            let place = self.find(id).unwrap();
            let live = self.live[place];
            let target = self.peg_place(&live.order, &live.terms).map_or(At::Pegless, At::Book);
            if target == live.at {
                continue;
            }
            has_moved = true;
            self.drop(place);
            if live.at != At::Pegless {
                self.reports.push(Report::Withdrawn { id });
            }
            if self.enter_peg(live.order, live.terms) {
                break;
            }
        }
        has_moved
    }

    /// Whether it met an order.
    fn enter_peg(&mut self, order: NewOrder, terms: OrderTerms) -> bool {
        let Some(price) = self.peg_place(&order, &terms) else {
            self.hold(order, terms, At::Pegless);
            return false;
        };
        let mut work = Work {
            order,
            limit: Some(price),
            leaves: order.quantity.0,
            trades: matcher::MAX_TRIGGERED_TRADES,
        };
        let meets = self.meets(&work);
        let stopped = self.trade(&mut work);
        if let (Some(reason), 1..) = (stopped, work.leaves) {
            self.cancel_rest(&order, work.leaves, reason);
        } else if work.leaves > 0 {
            let left = NewOrder {
                quantity: Quantity(work.leaves),
                ..order
            };
            self.rest(left, terms, price);
        }
        meets
    }

    fn meets(&self, work: &Work) -> bool {
        self.side(work.order.book, work.order.side.opposite())
            .first()
            .is_some_and(|maker| reaches(work, maker))
    }

    fn peg_place(&mut self, order: &NewOrder, terms: &OrderTerms) -> Option<Price> {
        if self.book(order.book).call.is_some() {
            return None;
        }
        let price = self.peg_price(order, terms)?;
        (!terms.post_only || !self.would_meet(order, price)).then_some(price)
    }

    fn would_meet(&self, order: &NewOrder, price: Price) -> bool {
        self.meets(&Work {
            order: *order,
            limit: Some(price),
            leaves: 1,
            trades: 1,
        })
    }

    fn peg_price(&mut self, order: &NewOrder, terms: &OrderTerms) -> Option<Price> {
        let best = |side: Side| {
            let side = self.side(order.book, side);
            side.iter()
                .find(|live| !is_pegged(live))
                .map(|live| i128::from(price_of(live).0))
        };
        // Twice the price, so that a middle is a number.
        let mut doubled = match order.order_type {
            OrderType::PegMid => best(Side::Buy)? + best(Side::Sell)?,
            _ => 2 * best(order.side)?,
        };
        doubled += 2 * i128::from(terms.peg_offset.0);
        let rules = self.book(order.book).rules;
        let step = 2 * i128::from(rules.tick.0);
        let over = doubled.rem_euclid(step);
        if over > 0 {
            doubled += if order.side == Side::Buy { -over } else { step - over };
        }
        let mut price = doubled / 2;
        if order.price != Price::NULL {
            let limit = i128::from(order.price.0);
            price = if order.side == Side::Buy {
                price.min(limit)
            } else {
                price.max(limit)
            };
        }
        let is_allowed = price >= i128::from(rules.lowest.0) && price <= i128::from(rules.highest.0);
        is_allowed.then(|| Price(i64::try_from(price).unwrap()))
    }

    fn fill_side(&mut self, book: BookIndex, side: Side, price: Price, mut lots: u64) {
        while lots > 0 {
            let first = self
                .first(book, side, At::Market)
                .or_else(|| self.side(book, side).first().copied());
            let first = first.unwrap();
            let place = self.find(first.order.id).unwrap();
            let quantity = first.order.quantity.0.min(lots);
            lots -= quantity;
            let shown = if first.at == At::Market { 0 } else { first.shown };
            self.reports.push(Report::AuctionFill(AuctionFill {
                book,
                id: first.order.id,
                owner: first.order.owner,
                side,
                price,
                quantity: Quantity(quantity),
                from_shown: Quantity(quantity.min(shown)),
                leaves: Quantity(first.order.quantity.0 - quantity),
            }));
            let from_hidden = quantity.saturating_sub(first.shown);
            self.live[place].order.quantity.0 -= from_hidden;
            self.take(place, quantity - from_hidden);
        }
    }

    /// The first order that waits there.
    fn first(&self, book: BookIndex, side: Side, at: At) -> Option<Live> {
        let waits = |live: &&Live| live.order.book == book && live.order.side == side && live.at == at;
        self.live.iter().filter(waits).min_by_key(|live| live.since).copied()
    }

    fn rest(&mut self, order: NewOrder, terms: OrderTerms, price: Price) {
        match self.place(order, terms, At::Book(price)) {
            true => {
                let place = self.find(order.id).unwrap();
                let resting = resting(&self.live[place]);
                self.reports.push(Report::Rested(resting));
            }
            false => self.cancel_rest(&order, order.quantity.0, Reason::BookFull),
        }
    }

    fn hold(&mut self, order: NewOrder, terms: OrderTerms, at: At) {
        match self.place(order, terms, at) {
            true => self.reports.push(Report::Held {
                id: order.id,
                leaves: order.quantity,
            }),
            false => self.cancel_rest(&order, order.quantity.0, Reason::BookFull),
        }
    }

    /// Whether there was room.
    fn place(&mut self, order: NewOrder, terms: OrderTerms, at: At) -> bool {
        let no_terms = is_special(&order, &terms) && self.special_count() == self.capacity.special;
        if self.live.len() == self.capacity.orders || no_terms || !self.level_fits(&order, at) {
            return false;
        }
        self.clock += 1;
        let shown = match (at, terms.display.0) {
            (At::Book(_), 1..) => order.quantity.0.min(terms.display.0),
            _ => order.quantity.0,
        };
        self.live.push(Live {
            order,
            terms,
            at,
            shown,
            since: self.clock,
            entered: self.clock,
        });
        true
    }

    fn remove(&mut self, place: usize, reason: Reason) {
        let Live { order, .. } = self.live[place];
        self.drop(place);
        self.cancel_rest(&order, order.quantity.0, reason);
    }

    fn drop(&mut self, place: usize) {
        let book = self.live.remove(place).order.book;
        self.forget_trades(book);
    }

    fn note(&mut self, book: BookIndex, first: Price, last: Price) {
        let touched = self.book(book);
        touched.last = Some(last);
        let (low, high) = touched.traded.unwrap_or((first, first));
        touched.traded = Some((low.min(first).min(last), high.max(first).max(last)));
        self.forget_trades(book);
    }

    /// Trades matter only to those who wait when they happen.
    fn forget_trades(&mut self, book: BookIndex) {
        let waits = |live: &Live| live.order.book == book && (is_pegged(live) || matches!(live.at, At::Stop(_)));
        if !self.live.iter().any(waits) {
            self.book(book).traded = None;
        }
    }

    fn cancel_rest(&mut self, order: &NewOrder, quantity: u64, reason: Reason) {
        self.reports.push(Report::Canceled {
            id: order.id,
            owner: order.owner,
            quantity: Quantity(quantity),
            reason,
        });
    }

    fn refusal(&mut self, order: &NewOrder, terms: &OrderTerms) -> Option<Reason> {
        if let Some(reason) = self.form_refusal(order).or_else(|| terms_refusal(order, terms)) {
            return Some(reason);
        }
        if let Some(reason) = self
            .id_refusal(order.id)
            .or_else(|| self.post_only_refusal(order, terms))
        {
            return Some(reason);
        }
        let in_call = self.book(order.book).call.is_some();
        let is_for_auction = matches!(order.time_in_force, TimeInForce::AtTheOpening | TimeInForce::AtTheClose);
        let waits = match order.order_type {
            OrderType::Stop | OrderType::StopLimit => true,
            OrderType::Market => !is_immediate(order) && (in_call || is_for_auction),
            _ => !is_immediate(order),
        };
        let no_terms = is_special(order, terms) && self.special_count() == self.capacity.special;
        let is_full = self.live.len() == self.capacity.orders || no_terms || !self.finds_level(order, terms);
        (waits && is_full).then_some(Reason::BookFull)
    }

    fn replace_refusal(&mut self, old: &Live, new: &NewOrder, terms: &OrderTerms) -> Option<Reason> {
        if new.quantity.0 == 0 || new.quantity.0 > matcher::MAX_QUANTITY {
            return Some(Reason::InvalidQuantity);
        }
        if let Some(reason) = terms_refusal(new, terms) {
            return Some(reason);
        }
        if new.id != old.order.id
            && let Some(reason) = self.id_refusal(new.id)
        {
            return Some(reason);
        }
        if let Some(reason) = self.post_only_refusal(new, terms) {
            return Some(reason);
        }
        let is_full = self.special_count() == self.capacity.special;
        let no_terms = is_full && is_special(new, terms) && !is_special(&old.order, &old.terms);
        let level = |live: &Live| (live.order.book, live.order.side as u8, live.at);
        let alone = self.live.iter().filter(|live| level(live) == level(old)).count() == 1;
        (no_terms || !alone && !self.finds_level(new, terms)).then_some(Reason::BookFull)
    }

    fn form_refusal(&self, order: &NewOrder) -> Option<Reason> {
        if order.book.0 as usize >= self.capacity.books {
            Some(Reason::UnknownInstrument)
        } else if order.quantity.0 == 0 || order.quantity.0 > matcher::MAX_QUANTITY {
            Some(Reason::InvalidQuantity)
        } else if order.order_type == OrderType::Limit && order.price.is_null() {
            Some(Reason::InvalidPrice)
        } else {
            None
        }
    }

    fn id_refusal(&self, id: OrderId) -> Option<Reason> {
        self.find(id).map(|_| Reason::DuplicateClientOrderId)
    }

    fn post_only_refusal(&mut self, order: &NewOrder, terms: &OrderTerms) -> Option<Reason> {
        if !terms.post_only || self.book(order.book).call.is_some() {
            return None;
        }
        let price = match order.order_type {
            OrderType::PegMid | OrderType::PegPrimary => self.peg_price(order, terms)?,
            _ => order.price,
        };
        self.would_meet(order, price).then_some(Reason::PostOnly)
    }

    fn finds_level(&self, order: &NewOrder, terms: &OrderTerms) -> bool {
        match (order.order_type, order.time_in_force) {
            (OrderType::Stop | OrderType::StopLimit, _) => self.level_fits(order, At::Stop(terms.stop_price)),
            (OrderType::Limit, TimeInForce::AtTheOpening | TimeInForce::AtTheClose) => {
                self.levels() < self.capacity.levels
            }
            (OrderType::Limit, _) => self.level_fits(order, At::Book(order.price)),
            _ => self.levels() < self.capacity.levels,
        }
    }

    fn level_fits(&self, order: &NewOrder, at: At) -> bool {
        let is_there = |live: &Live| live.order.book == order.book && live.order.side == order.side && live.at == at;
        self.levels() < self.capacity.levels || self.live.iter().any(is_there)
    }

    fn levels(&self) -> usize {
        let levels: BTreeSet<_> = self
            .live
            .iter()
            .map(|live| (live.order.book, live.order.side as u8, live.at))
            .collect();
        levels.len()
    }

    pub(crate) fn resting(&self, live: &Live) -> RestingOrder {
        resting(live)
    }

    fn book(&mut self, book: BookIndex) -> &mut Book {
        &mut self.books[book.0 as usize]
    }

    fn find(&self, id: OrderId) -> Option<usize> {
        self.live.iter().position(|live| live.order.id == id)
    }

    fn reject(&mut self, id: OrderId, reason: Reason) {
        self.reports.push(Report::Rejected(Rejected { id, reason }));
    }
}

/// What does not go together.
fn terms_refusal(order: &NewOrder, terms: &OrderTerms) -> Option<Reason> {
    use OrderType::{Limit, PegMid, PegPrimary, Stop, StopLimit};
    use TimeInForce::{AtTheClose, AtTheOpening, FillOrKill, GoodTillDate};
    let (kind, time) = (order.order_type, order.time_in_force);
    let for_auction = matches!(time, AtTheOpening | AtTheClose);
    let rests = matches!(kind, Limit | StopLimit | PegPrimary | PegMid) && !is_immediate(order);
    let pegged = matches!(kind, PegPrimary | PegMid);
    let stop = matches!(kind, Stop | StopLimit);
    let (display, min) = (terms.display.0, terms.min_quantity.0);
    let rules = [
        (
            Reason::InvalidPrice,
            matches!(kind, Limit | StopLimit) && order.price.is_null(),
        ),
        (Reason::InvalidStopPrice, stop && terms.stop_price.is_null()),
        (Reason::InvalidStopPrice, !stop && !terms.stop_price.is_null()),
        (Reason::InvalidPegOffset, !pegged && terms.peg_offset.0 != 0),
        (Reason::UnsupportedOrder, pegged && is_immediate(order)),
        (
            Reason::UnsupportedOrder,
            (pegged || stop) && (for_auction || time == FillOrKill),
        ),
        (Reason::InvalidDisplay, display > 0 && (!rests || for_auction)),
        (
            Reason::InvalidDisplay,
            display > 0 && display * matcher::MAX_SLICES < order.quantity.0,
        ),
        (Reason::InvalidMinQuantity, min > order.quantity.0),
        (Reason::InvalidMinQuantity, min > 0 && (pegged || stop || for_auction)),
        (Reason::InvalidExpiry, (time == GoodTillDate) != (terms.expires.0 > 0)),
        (
            Reason::UnsupportedOrder,
            terms.post_only && (!rests || for_auction || stop || min > 0),
        ),
    ];
    rules
        .iter()
        .find(|(_, is_broken)| *is_broken)
        .map(|&(reason, _)| reason)
}

fn is_special(order: &NewOrder, terms: &OrderTerms) -> bool {
    let time = order.time_in_force;
    order.order_type != OrderType::Limit
        || terms.display.0 > 0
        || matches!(
            time,
            TimeInForce::GoodTillDate | TimeInForce::AtTheOpening | TimeInForce::AtTheClose
        )
}

fn is_immediate(order: &NewOrder) -> bool {
    matches!(
        order.time_in_force,
        TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill
    )
}

fn is_pegged(live: &Live) -> bool {
    matches!(live.order.order_type, OrderType::PegPrimary | OrderType::PegMid)
}

fn waiting_for(auction: Auction) -> At {
    match auction {
        Auction::Opening => At::Opening,
        Auction::Closing => At::Closing,
    }
}

/// The book, then stops, then the others.
fn kind(at: At) -> u8 {
    match at {
        At::Book(_) => 0,
        At::Stop(_) => 1,
        _ => 2,
    }
}

/// Less is sooner.
fn rank(side: Side, at: At) -> i128 {
    let (price, is_rising) = match at {
        At::Book(price) => (price.0, side == Side::Sell),
        At::Stop(price) => (price.0, side == Side::Buy),
        At::Market => (0, true),
        At::Pegless => (1, true),
        At::Closing => (2, true),
        At::Opening => (3, true),
    };
    if is_rising {
        i128::from(price)
    } else {
        -i128::from(price)
    }
}

fn price_of(live: &Live) -> Price {
    match live.at {
        At::Book(price) => price,
        _ => live.order.price,
    }
}

fn resting(live: &Live) -> RestingOrder {
    let is_in_book = matches!(live.at, At::Book(_));
    RestingOrder {
        id: live.order.id,
        owner: live.order.owner,
        book: live.order.book,
        side: live.order.side,
        price: price_of(live),
        leaves: live.order.quantity,
        shown: Quantity(if is_in_book { live.shown } else { 0 }),
    }
}

fn reaches(work: &Work, maker: &Live) -> bool {
    let price = price_of(maker);
    work.limit.is_none_or(|limit| match work.order.side {
        Side::Buy => price <= limit,
        Side::Sell => price >= limit,
    })
}
