//! What the naive matcher refuses.

use super::{At, Live, Model, is_immediate, is_special};
use matcher::NewOrder;
use std::collections::BTreeSet;
use types::{OrderId, OrderTerms, OrderType, Reason, TimeInForce};

impl Model {
    pub(super) fn refusal(&mut self, order: &NewOrder, terms: &OrderTerms) -> Option<Reason> {
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

    pub(super) fn replace_refusal(&mut self, old: &Live, new: &NewOrder, terms: &OrderTerms) -> Option<Reason> {
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

    pub(super) fn form_refusal(&self, order: &NewOrder) -> Option<Reason> {
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

    pub(super) fn id_refusal(&self, id: OrderId) -> Option<Reason> {
        self.find(id).map(|_| Reason::DuplicateClientOrderId)
    }

    pub(super) fn post_only_refusal(&mut self, order: &NewOrder, terms: &OrderTerms) -> Option<Reason> {
        if !terms.post_only || self.book(order.book).call.is_some() {
            return None;
        }
        let price = match order.order_type {
            OrderType::PegMid | OrderType::PegPrimary => self.peg_price(order, terms)?,
            _ => order.price,
        };
        self.would_meet(order, price).then_some(Reason::PostOnly)
    }

    pub(super) fn finds_level(&self, order: &NewOrder, terms: &OrderTerms) -> bool {
        match (order.order_type, order.time_in_force) {
            (OrderType::Stop | OrderType::StopLimit, _) => self.level_fits(order, At::Stop(terms.stop_price)),
            (OrderType::Limit, TimeInForce::AtTheOpening | TimeInForce::AtTheClose) => {
                self.levels() < self.capacity.levels
            }
            (OrderType::Limit, _) => self.level_fits(order, At::Book(order.price)),
            _ => self.levels() < self.capacity.levels,
        }
    }

    pub(super) fn level_fits(&self, order: &NewOrder, at: At) -> bool {
        let is_there = |live: &Live| live.order.book == order.book && live.order.side == order.side && live.at == at;
        self.levels() < self.capacity.levels || self.live.iter().any(is_there)
    }

    pub(super) fn levels(&self) -> usize {
        let levels: BTreeSet<_> = self
            .live
            .iter()
            .map(|live| (live.order.book, live.order.side as u8, live.at))
            .collect();
        levels.len()
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
