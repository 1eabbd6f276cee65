//! A second matcher, as plain as it gets: one list of live orders, searched from front to end for whatever is asked.
//! It shares no code with the first.

mod auctions;
mod following;
mod form;

use matcher::{
    Auction, BookIndex, Capacity, NewOrder, OwnerId, PegRules, Priority, Rejected, Replace, Report, RestingOrder,
    SelfMatch, Sweep, Trade,
};
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

    fn cancel_rest(&mut self, order: &NewOrder, quantity: u64, reason: Reason) {
        self.reports.push(Report::Canceled {
            id: order.id,
            owner: order.owner,
            quantity: Quantity(quantity),
            reason,
        });
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
