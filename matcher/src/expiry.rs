//! Orders that are good till a time: a binary heap of their terms, the next to expire on top.
//!
//! Each of them knows its place in the heap, so an order that ends otherwise leaves it at once. Times are equal now and then;
//! then the lower order id goes first, so that equal histories give equal reports.

use crate::matcher::Matcher;
use crate::pool::NONE;
use crate::report::Sink;
use types::{Reason, Timestamp};

impl Matcher {
    /// Cancels the first order whose time has come. Whether there was one; then there may be more.
    pub fn expire(&mut self, now: Timestamp, sink: &mut impl Sink) -> bool {
        let Some(&terms) = self.expiries.first() else {
            return false;
        };
        if self.terms[terms].asked.expires > now {
            return false;
        }
        let slot = self.terms[terms].slot;
        let book = self.levels[self.orders[slot].level].book();
        self.cancel_slot(slot, Reason::Expired, sink);
        self.end_of_event(book, sink);
        true
    }

    /// When the next order expires; `None` when none does.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.expiries.first().map(|&terms| self.terms[terms].asked.expires)
    }

    /// Takes terms into the heap, which has room for all terms there are.
    pub(crate) fn push_expiry(&mut self, terms: u32) {
        let place = self.expiries.len();
        self.expiries.push(terms);
        self.set_expiry(place, terms);
        self.rise(place);
    }

    /// Takes terms out of the heap.
    pub(crate) fn remove_expiry(&mut self, terms: u32) {
        let place = self.terms[terms].expiry as usize;
        self.expiries.swap_remove(place);
        self.terms[terms].expiry = NONE;
        if let Some(&moved) = self.expiries.get(place) {
            self.set_expiry(place, moved);
            self.rise(place);
            self.sink(self.terms[moved].expiry as usize);
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.is_earlier(place, parent) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let mut first = place;
            for child in [left, right] {
                if child < self.expiries.len() && self.is_earlier(child, first) {
                    first = child;
                }
            }
            if first == place {
                return;
            }
            self.swap(place, first);
            place = first;
        }
    }

    fn is_earlier(&self, one: usize, other: usize) -> bool {
        let key = |place: usize| {
            let terms = &self.terms[self.expiries[place]];
            (terms.asked.expires, self.orders[terms.slot].id)
        };
        key(one) < key(other)
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.expiries.swap(one, other);
        self.set_expiry(one, self.expiries[one]);
        self.set_expiry(other, self.expiries[other]);
    }

    #[allow(clippy::cast_possible_truncation, reason = "at most MAX_SPECIAL")]
    fn set_expiry(&mut self, place: usize, terms: u32) {
        self.terms[terms].expiry = place as u32;
    }
}
