//! A recount of everything that is kept incrementally, from the open orders alone.

use crate::exposure::{AccountExposure, Exposure, shared_units};
use crate::map::NIL;
use crate::order::Order;
use crate::stake::{SessionStake, Stake};
use crate::state::Orders;
use crate::together::Together;
use alloc::vec;
use types::{AccountId, ClientOrderId, InstrumentId, OrderId, Side, VenueId};

/// What a recount found to differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuditError {
    /// The order's claim on exposure is not what its state says.
    Claim(OrderId),
    /// The order holds another part of its account's shared limit than it needs.
    Held(OrderId),
    /// The order is not found by its client's number, or its pending replace is not.
    ClientId(OrderId),
    /// An account's exposure in some instrument is not the sum of its orders there.
    Position(AccountId),
    /// An account's exposure is not the sum of its orders.
    Account(AccountId),
    /// What is open and traded in an instrument is not the sum of its orders and positions.
    Instrument(InstrumentId),
    /// A position takes another part of its account's limits than its value, or an account another than its positions do.
    Stake(AccountId),
    /// A session has another number of orders than its list.
    SessionOrders(u32),
    /// A session holds another part of its limits than its orders do.
    SessionStake(u32),
    /// A venue has another number of waiting cancels than its queue.
    WaitingCancels(VenueId),
    /// Another number of orders waits, or is cancelled while it waits, than is listed.
    WaitingOrders,
    /// A venue has another number of open orders than is counted.
    VenueOrders(VenueId),
    /// The order is held and not known so, or its child has more open than the order has.
    HeldOrder(OrderId),
    /// Another number of orders is held, due or watching than is counted.
    HeldOrders,
    /// Orders that rest to be crossed are not all listed, or not in their order.
    RestingOrders,
    /// More client numbers are known than orders and replaces have.
    ClientIds,
}

impl Orders {
    /// Counts again what the tables keep: exposure by account and instrument, open orders, held limits, lists and indexes.
    /// Allocates, and takes time in proportion to the tables: for tests and for an operator who asks.
    ///
    /// # Errors
    /// The first difference.
    pub fn audit(&self) -> Result<(), AuditError> {
        let mut positions = vec![Exposure::default(); self.positions.entries().len()];
        let mut accounts = vec![AccountExposure::default(); self.accounts.len()];
        let mut sessions = vec![(0, 0); self.sessions.len()];
        let mut together = vec![Together::default(); self.instruments.len()];
        let mut waiting = vec![0; self.venues.len()];
        let mut at_venues = vec![0; self.venues.len()];
        let (mut waiting_orders, mut queued, mut ending) = (0, 0, 0);
        let mut client_ids = 0;
        for (slot, order) in self.table.open() {
            self.audit_order(slot, order)?;
            let position = &mut positions[order.position as usize];
            position.open_orders += 1;
            position.change(order.side, Default::default(), order.claim());
            let account = &mut accounts[order.account as usize];
            account.open_orders += 1;
            account.held += order.held;
            account.change(order.side, Default::default(), order.claim());
            let here = &mut together[order.instrument as usize];
            here.open_orders += 1;
            here.held += i128::from(order.held);
            here.change(order.side, Default::default(), order.claim());
            let (orders, held) = &mut sessions[order.session as usize];
            *orders += 1;
            *held += order.held;
            at_venues[usize::from(order.venue.0)] += 1;
            let cancel_waits = u32::from(order.cancel.is_some_and(|cancel| cancel.number == 0));
            waiting_orders += u32::from(order.waits() && !order.is_queued);
            queued += u32::from(order.is_queued);
            if order.venue_number == 0 {
                ending += cancel_waits;
            } else {
                waiting[usize::from(order.venue.0)] += cancel_waits;
            }
            let by_client = order
                .cancel
                .is_some_and(|cancel| cancel.client_order_id != ClientOrderId(0));
            client_ids += 1 + usize::from(order.replace.is_some()) + usize::from(by_client);
        }
        let mut stakes = vec![Stake::NONE; self.accounts.len()];
        for (kept, counted) in self.positions.entries().iter().zip(positions) {
            let account = &self.accounts[kept.account as usize];
            let stake = if account.valued { kept.value() } else { Stake::NONE };
            stakes[kept.account as usize] += stake;
            let here = &mut together[kept.instrument as usize];
            here.trade(Side::Buy, kept.bought);
            here.trade(Side::Sell, kept.sold);
            let counted = Exposure {
                open_orders: counted.open_orders,
                open_buy: counted.open_buy,
                open_sell: counted.open_sell,
                open_buy_notional: counted.open_buy_notional,
                open_sell_notional: counted.open_sell_notional,
                stake,
                ..*kept
            };
            if *kept != counted {
                return Err(AuditError::Position(account.id));
            }
        }
        for ((account, mut counted), stake) in self.accounts.iter().zip(accounts).zip(stakes) {
            if account.exposure.stake != stake || account.unsettled != Stake::NONE {
                return Err(AuditError::Stake(account.id));
            }
            counted.stake = stake;
            counted.used = account.exposure.used;
            if account.exposure != counted {
                return Err(AuditError::Account(account.id));
            }
        }
        for (instrument, counted) in self.instruments.iter().zip(together) {
            let used = instrument.together.used;
            if instrument.together != (Together { used, ..counted }) {
                return Err(AuditError::Instrument(instrument.id));
            }
        }
        for ((index, session), (counted, held)) in (0..).zip(&self.sessions).zip(sessions) {
            let listed = core::iter::successors(session.orders.first(), |&slot| self.session_links.after(slot));
            if session.orders.length() != counted || listed.count() != counted as usize {
                return Err(AuditError::SessionOrders(index));
            }
            if session.exposure.held != held || session.unsettled != SessionStake::default() {
                return Err(AuditError::SessionStake(index));
            }
        }
        for ((index, venue), (waiting, open)) in (0..).zip(&self.venues).zip(waiting.into_iter().zip(at_venues)) {
            if venue.cancels.length() != waiting {
                return Err(AuditError::WaitingCancels(VenueId(index)));
            }
            if venue.open_orders != open {
                return Err(AuditError::VenueOrders(VenueId(index)));
            }
        }
        let listed: u32 = self.sessions.iter().map(|session| session.queued.length()).sum();
        if (listed, self.queue.length) != (queued, queued) {
            return Err(AuditError::WaitingOrders);
        }
        if (self.waiting.length(), self.ending.length()) != (waiting_orders, ending) {
            return Err(AuditError::WaitingOrders);
        }
        self.audit_held()?;
        if self.by_client_id.length() == client_ids + self.done.length() {
            Ok(())
        } else {
            Err(AuditError::ClientIds)
        }
    }

    fn audit_held(&self) -> Result<(), AuditError> {
        let is_held = |order: &Order| order.held_place != NIL;
        let (mut due, mut watching) = (0, 0);
        for (place, held) in self.held.open() {
            let order = self.table.order(held.slot);
            let is_at_venue = order.venue_number != 0;
            let fits = !is_at_venue || held.child.leaves() <= order.leaves();
            if order.held_place != place || !fits || (is_at_venue && held.child.leaves().is_zero()) {
                return Err(AuditError::HeldOrder(OrderId(order.number)));
            }
            due += u32::from(held.is_due);
            watching += u32::from(held.is_watching);
        }
        if !self.rests_are_listed() {
            return Err(AuditError::RestingOrders);
        }
        let watches = self.held.watches.iter();
        let listed: u32 = watches.clone().map(|watch| watch.orders.length()).sum();
        let watched = watches.filter(|watch| watch.orders.length() > 0).count();
        let counted = self.table.open().filter(|(_, order)| is_held(order)).count();
        if (counted, listed, watched, self.held.due.length())
            == (self.held.length(), watching, self.held.watched.length() as usize, due)
        {
            Ok(())
        } else {
            Err(AuditError::HeldOrders)
        }
    }

    fn audit_order(&self, slot: u32, order: &Order) -> Result<(), AuditError> {
        let order_id = OrderId(order.number);
        if order.claim != order.claim() {
            return Err(AuditError::Claim(order_id));
        }
        let need = shared_units(order.used + order.claim.notional).unwrap_or(i64::MAX);
        // A pending replace may have needed more before something traded.
        if order.held < need || (order.replace.is_none() && order.held != need) {
            return Err(AuditError::Held(order_id));
        }
        let is_known = |id: ClientOrderId| self.by_client_id.find(id.0, order.session) == slot;
        let replace_is_known = order.replace.is_none_or(|replace| is_known(replace.client_order_id));
        if is_known(order.client_order_id) && replace_is_known {
            Ok(())
        } else {
            Err(AuditError::ClientId(order_id))
        }
    }
}
