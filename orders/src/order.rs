//! One order's record, and the table of all open ones.

use crate::exposure::Claim;
use crate::map::NIL;
use crate::report::OrderStatus;
use alloc::boxed::Box;
use alloc::vec;
use types::{
    AccountId, ClientOrderId, ExecId, ExecReport, ExecType, InstrumentId, Notional, OrderId, OrderTerms, OrderType,
    Price, Quantity, Reason, SessionId, Side, TimeInForce, Timestamp, Trigger, VenueId,
};

/// How far an order is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OrderState {
    /// It is in the gateway until own orders that it would trade with are cancelled, or a rate allows it.
    Waiting,
    /// It is in the gateway, which does for it what its venue does not; nothing of it is at the venue.
    Held,
    /// The venue has not answered yet.
    PendingNew,
    /// It works at the venue.
    Working,
    /// A replace is not answered yet.
    PendingReplace,
    /// A cancel is not answered yet, or waits to be sent.
    PendingCancel,
}

/// An open order, as admin tools and the FIX edge see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderView {
    /// The gateway's number.
    pub order_id: OrderId,
    /// The client's number.
    pub client_order_id: ClientOrderId,
    /// The client's session.
    pub session: SessionId,
    /// The account.
    pub account: AccountId,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Where it is.
    pub venue: VenueId,
    /// The venue's number; 0 until the venue answered.
    pub venue_order_id: OrderId,
    /// Buy or sell.
    pub side: Side,
    /// What it trades at.
    pub order_type: OrderType,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// Limit, 1e-9; [`Price::NULL`] when it has none.
    pub price: Price,
    /// Total, lots.
    pub quantity: Quantity,
    /// What else it asks for.
    pub terms: OrderTerms,
    /// Whether it is a stop order whose price was met.
    pub is_triggered: bool,
    /// Lots traded.
    pub cumulative: Quantity,
    /// The sum of price times lots of all trades, 1e-9.
    pub traded: Notional,
    /// How far it is.
    pub state: OrderState,
    /// Whether its venue is down, so that nobody here knows what became of it.
    pub in_doubt: bool,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
}

/// The record of an open order. Indexes are those of the tables in [`Orders`](crate::Orders).
#[derive(Clone, Copy)]
pub(crate) struct Order {
    /// The gateway's number for the order: the first it got. 0 marks a free slot.
    pub(crate) number: u64,
    /// The last number that a request of it got.
    pub(crate) last_number: u64,
    /// The number that the venue knows it by: of the order or of the last accepted replace; of a held order its child's. 0:
    /// nothing of it is at the venue.
    pub(crate) venue_number: u64,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) venue_order_id: OrderId,
    pub(crate) price: Price,
    /// The price at which it counts for exposure: the limit, or what stands in for it.
    pub(crate) weight_price: Price,
    pub(crate) quantity: Quantity,
    pub(crate) terms: OrderTerms,
    pub(crate) cumulative: Quantity,
    /// Sum of price times lots of its trades.
    pub(crate) traded: i128,
    /// Sum of weight price times lots times lot size of its trades: what they used up of limits.
    pub(crate) used: i128,
    /// What it adds to its exposures now.
    pub(crate) claim: Claim,
    /// What is reserved for it of the limit that spans shards, 1e-4.
    pub(crate) held: i64,
    pub(crate) cancel: Option<PendingCancel>,
    pub(crate) replace: Option<PendingReplace>,
    pub(crate) accepted: Timestamp,
    pub(crate) updated: Timestamp,
    /// While it waits in the gateway: until when. [`Timestamp::NONE`] once it went to its venue.
    pub(crate) waits_until: Timestamp,
    /// What it waits for is a rate.
    pub(crate) is_queued: bool,
    pub(crate) trigger: Trigger,
    pub(crate) instrument: u32,
    pub(crate) account: u32,
    pub(crate) session: u32,
    /// Its entry in the positions.
    pub(crate) position: u32,
    /// Its own-order book; [`NIL`] for an order that never rests.
    pub(crate) book: u32,
    /// It is in that book: all that may rest, stop orders once they are triggered.
    pub(crate) in_book: bool,
    /// Its place among the held orders; [`NIL`] for one that its venue has as it is.
    pub(crate) held_place: u32,
    pub(crate) lot_size: u32,
    pub(crate) instrument_id: InstrumentId,
    pub(crate) account_id: AccountId,
    pub(crate) session_id: SessionId,
    pub(crate) venue: VenueId,
    pub(crate) side: Side,
    pub(crate) order_type: OrderType,
    pub(crate) time_in_force: TimeInForce,
    /// The venue answered.
    pub(crate) acknowledged: bool,
    /// The client knows that it was accepted, because the gateway held it.
    pub(crate) told: bool,
    /// Its stop price was met: its venue says so, or it was held until then.
    pub(crate) triggered: bool,
}

/// A cancel that the venue has not answered.
#[derive(Clone, Copy)]
pub(crate) struct PendingCancel {
    /// Its number; 0 while it waits to be sent.
    pub(crate) number: u64,
    /// The number it names the order by.
    pub(crate) aimed_at: u64,
    /// The client's number; 0 when the gateway cancels by itself.
    pub(crate) client_order_id: ClientOrderId,
    /// Why.
    pub(crate) cause: Reason,
    /// Why the gateway cancels when the venue refuses it, where the client asked for it; [`Reason::None`]: it does not.
    pub(crate) otherwise: Reason,
}

impl PendingCancel {
    /// The gateway's own, to be sent.
    pub(crate) const fn own(cause: Reason) -> Self {
        Self {
            number: 0,
            aimed_at: 0,
            client_order_id: ClientOrderId(0),
            cause,
            otherwise: Reason::None,
        }
    }

    /// A client's, to be sent.
    pub(crate) const fn of_client(client_order_id: ClientOrderId, otherwise: Reason) -> Self {
        Self {
            client_order_id,
            otherwise,
            ..Self::own(Reason::Requested)
        }
    }
}

/// A replace that the venue has not answered.
#[derive(Clone, Copy)]
pub(crate) struct PendingReplace {
    /// Its number.
    pub(crate) number: u64,
    /// The client's number.
    pub(crate) client_order_id: ClientOrderId,
    /// New limit.
    pub(crate) price: Price,
    /// New total.
    pub(crate) quantity: Quantity,
    /// New terms.
    pub(crate) terms: OrderTerms,
    /// The price at which it would count for exposure.
    pub(crate) weight_price: Price,
}

/// The open orders by slot. A freed slot is the next to be used.
pub(crate) struct OrderTable {
    orders: Box<[Order]>,
    free: Box<[u32]>,
    free_count: usize,
}

impl OrderTable {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            orders: vec![Order::VACANT; capacity as usize].into_boxed_slice(),
            free: (0..capacity).rev().collect(),
            free_count: capacity as usize,
        }
    }

    #[inline]
    pub(crate) const fn has_room(&self) -> bool {
        self.free_count > 0
    }

    /// A free slot; [`has_room`](Self::has_room) was seen before.
    #[inline]
    pub(crate) const fn take(&mut self) -> u32 {
        self.free_count -= 1;
        self.free[self.free_count]
    }

    /// Gives `slot` back.
    pub(crate) const fn free(&mut self, slot: u32) {
        self.orders[slot as usize].number = 0;
        self.orders[slot as usize].last_number = 0;
        self.free[self.free_count] = slot;
        self.free_count += 1;
    }

    #[inline]
    pub(crate) const fn order(&self, slot: u32) -> &Order {
        &self.orders[slot as usize]
    }

    #[inline]
    pub(crate) const fn order_mut(&mut self, slot: u32) -> &mut Order {
        &mut self.orders[slot as usize]
    }

    /// The open orders and their slots, by slot.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u32, &Order)> {
        (0..).zip(&self.orders).filter(|(_, order)| order.is_open())
    }

    /// Slots; all are below it.
    #[allow(clippy::cast_possible_truncation, reason = "it was made of a u32")]
    pub(crate) const fn capacity(&self) -> u32 {
        self.orders.len() as u32
    }

    pub(crate) const fn length(&self) -> usize {
        self.orders.len() - self.free_count
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.orders) + size_of_val(&*self.free)
    }
}

impl Order {
    /// A free slot.
    pub(crate) const VACANT: Self = Self {
        number: 0,
        last_number: 0,
        venue_number: 0,
        client_order_id: ClientOrderId(0),
        venue_order_id: OrderId(0),
        price: Price::NULL,
        weight_price: Price::NULL,
        quantity: Quantity::ZERO,
        terms: OrderTerms::NONE,
        cumulative: Quantity::ZERO,
        traded: 0,
        used: 0,
        claim: Claim {
            quantity: 0,
            notional: 0,
        },
        held: 0,
        cancel: None,
        replace: None,
        accepted: Timestamp::NONE,
        updated: Timestamp::NONE,
        waits_until: Timestamp::NONE,
        is_queued: false,
        trigger: Trigger::NONE,
        instrument: NIL,
        account: NIL,
        session: NIL,
        position: NIL,
        book: NIL,
        in_book: false,
        held_place: NIL,
        lot_size: 1,
        instrument_id: InstrumentId(0),
        account_id: AccountId(0),
        session_id: SessionId(0),
        venue: VenueId(0),
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Day,
        acknowledged: false,
        told: false,
        triggered: false,
    };

    /// Where it counts: the indexes of its account, its session and its instrument.
    #[inline]
    pub(crate) const fn places(&self) -> [u32; 3] {
        [self.account, self.session, self.instrument]
    }

    /// Whether this number was given to this order, see `number.rs`.
    #[inline]
    pub(crate) const fn has_number(&self, number: u64) -> bool {
        self.number <= number && number <= self.last_number
    }

    /// Whether it waits until own orders are cancelled.
    #[inline]
    pub(crate) const fn waits(&self) -> bool {
        self.waits_until.0 != Timestamp::NONE.0
    }

    /// Lots still open.
    #[inline]
    pub(crate) const fn leaves(&self) -> Quantity {
        self.quantity.saturating_sub(self.cumulative)
    }

    /// The worst that may still happen: all that is open trades, and while a replace is pending it may be accepted before
    /// or after the venue traded what the old terms allow.
    pub(crate) fn claim(&self) -> Claim {
        let leaves = self.leaves();
        let weight = leaves.notional(self.weight_price, self.lot_size).0;
        let Some(replace) = self.replace else {
            return Claim {
                quantity: leaves.0,
                notional: weight,
            };
        };
        let new_leaves = replace.quantity.saturating_sub(self.cumulative);
        let added = replace.quantity.saturating_sub(self.quantity);
        let accepted_first = new_leaves.notional(replace.weight_price, self.lot_size).0;
        let traded_first = weight + added.notional(replace.weight_price, self.lot_size).0;
        Claim {
            quantity: leaves.0.max(new_leaves.0),
            notional: accepted_first.max(traded_first),
        }
    }

    /// The price that counts in the own-order book: the more aggressive of its limit and a pending one.
    pub(crate) fn own_price(&self) -> Price {
        let price = own_price(self.side, self.price);
        let Some(replace) = self.replace else { return price };
        let replaced = own_price(self.side, replace.price);
        match self.side {
            Side::Buy => price.max(replaced),
            Side::Sell => price.min(replaced),
        }
    }

    /// How it stands while it lives.
    #[inline]
    pub(crate) const fn status(&self) -> OrderStatus {
        if self.cancel.is_some() {
            OrderStatus::PendingCancel
        } else if self.replace.is_some() {
            OrderStatus::PendingReplace
        } else if self.cumulative.is_zero() {
            if self.acknowledged || self.told {
                OrderStatus::New
            } else {
                OrderStatus::PendingNew
            }
        } else if self.leaves().is_zero() {
            OrderStatus::Filled
        } else {
            OrderStatus::PartiallyFilled
        }
    }

    pub(crate) const fn state(&self) -> OrderState {
        if self.cancel.is_some() {
            OrderState::PendingCancel
        } else if self.replace.is_some() {
            OrderState::PendingReplace
        } else if self.waits() {
            OrderState::Waiting
        } else if self.venue_number == 0 {
            OrderState::Held
        } else if self.acknowledged {
            OrderState::Working
        } else {
            OrderState::PendingNew
        }
    }

    /// A report about the order as it is, without an answer to a request in it.
    pub(crate) const fn report(&self, exec_type: ExecType, exec_id: ExecId, reason: Reason) -> ExecReport {
        let over = matches!(exec_type, ExecType::Canceled | ExecType::Rejected | ExecType::Expired);
        ExecReport {
            exec_type,
            order_id: OrderId(self.number),
            client_order_id: self.client_order_id,
            orig_client_order_id: ClientOrderId(0),
            exec_id,
            instrument: self.instrument_id,
            account: self.account_id,
            session: self.session_id,
            side: self.side,
            price: self.price,
            quantity: self.quantity,
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves: if over { Quantity::ZERO } else { self.leaves() },
            cumulative: self.cumulative,
            reason,
        }
    }

    /// Whether the slot it is in is taken.
    pub(crate) const fn is_open(&self) -> bool {
        self.number != 0
    }

    pub(crate) const fn view(&self, in_doubt: bool) -> OrderView {
        OrderView {
            order_id: OrderId(self.number),
            client_order_id: self.client_order_id,
            session: self.session_id,
            account: self.account_id,
            instrument: self.instrument_id,
            venue: self.venue,
            venue_order_id: self.venue_order_id,
            side: self.side,
            order_type: self.order_type,
            time_in_force: self.time_in_force,
            price: self.price,
            quantity: self.quantity,
            terms: self.terms,
            is_triggered: self.triggered,
            cumulative: self.cumulative,
            traded: Notional(self.traded),
            state: self.state(),
            in_doubt,
            accepted: self.accepted,
            updated: self.updated,
        }
    }
}

/// The price at which a resting order counts in the own-order book: its limit; without one, as a pegged order may be, any.
pub(crate) const fn own_price(side: Side, limit: Price) -> Price {
    match side {
        Side::Buy if limit.is_null() => Price(i64::MAX),
        _ => limit,
    }
}
