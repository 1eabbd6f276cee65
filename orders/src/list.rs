//! Doubly linked lists of order slots. The links live in one array by slot, so a list is two numbers and moving an order
//! allocates nothing. A slot is in at most one list of an array.

use crate::map::NIL;
use alloc::boxed::Box;
use alloc::vec;

/// The links of all slots for one kind of list.
pub(crate) struct Links {
    links: Box<[Link]>,
}

/// One list: first in, first out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    length: u32,
}

#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
        length: 0,
    };

    /// The slot that is longest in the list.
    pub(crate) const fn first(&self) -> Option<u32> {
        if self.head == NIL { None } else { Some(self.head) }
    }

    /// The slot that came last, or stands last.
    pub(crate) const fn last(&self) -> Option<u32> {
        if self.tail == NIL { None } else { Some(self.tail) }
    }

    /// Slots in the list.
    pub(crate) const fn length(&self) -> u32 {
        self.length
    }
}

impl Links {
    /// Links for slots below `capacity`.
    pub(crate) fn new(capacity: usize) -> Self {
        let unlinked = Link {
            previous: NIL,
            next: NIL,
        };
        Self {
            links: vec![unlinked; capacity].into_boxed_slice(),
        }
    }

    /// Puts `slot`, which is in no list, at the end of `list`.
    #[inline]
    pub(crate) fn push_back(&mut self, list: &mut List, slot: u32) {
        self.links[slot as usize] = Link {
            previous: list.tail,
            next: NIL,
        };
        match list.tail {
            NIL => list.head = slot,
            tail => self.links[tail as usize].next = slot,
        }
        list.tail = slot;
        list.length += 1;
    }

    /// Puts `slot`, which is in no list, behind `before` in `list`, or at the front of it.
    pub(crate) fn insert_behind(&mut self, list: &mut List, before: Option<u32>, slot: u32) {
        let previous = before.unwrap_or(NIL);
        let next = match before {
            None => list.head,
            Some(before) => self.links[before as usize].next,
        };
        self.links[slot as usize] = Link { previous, next };
        match previous {
            NIL => list.head = slot,
            previous => self.links[previous as usize].next = slot,
        }
        match next {
            NIL => list.tail = slot,
            next => self.links[next as usize].previous = slot,
        }
        list.length += 1;
    }

    /// Takes `slot` out of `list`, which it is in.
    #[inline]
    pub(crate) fn remove(&mut self, list: &mut List, slot: u32) {
        let Link { previous, next } = self.links[slot as usize];
        match previous {
            NIL => list.head = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NIL => list.tail = previous,
            next => self.links[next as usize].previous = previous,
        }
        list.length -= 1;
    }

    /// The slot behind `slot` in its list.
    pub(crate) fn after(&self, slot: u32) -> Option<u32> {
        match self.links[slot as usize].next {
            NIL => None,
            next => Some(next),
        }
    }

    /// The slot before `slot` in its list.
    pub(crate) fn before(&self, slot: u32) -> Option<u32> {
        match self.links[slot as usize].previous {
            NIL => None,
            previous => Some(previous),
        }
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.links)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn slots(links: &Links, list: &List) -> Vec<u32> {
        core::iter::successors(list.first(), |&slot| links.after(slot)).collect()
    }

    #[test]
    fn slots_leave_from_any_place_and_the_order_stays() {
        let mut links = Links::new(5);
        let mut list = List::EMPTY;
        for slot in [3, 0, 4, 1, 2] {
            links.push_back(&mut list, slot);
        }
        for (slot, left) in [
            (4, &[3, 0, 1, 2][..]),
            (3, &[0, 1, 2]),
            (2, &[0, 1]),
            (1, &[0]),
            (0, &[]),
        ] {
            links.remove(&mut list, slot);
            assert_eq!(slots(&links, &list), left);
            assert_eq!(list.length() as usize, left.len());
        }
        links.push_back(&mut list, 1);
        assert_eq!(slots(&links, &list), [1]);
    }
}
