//! Where things are in a link's arena, and which messages of the peer are in its ring.
//!
//! ```text
//! arena   ring that the peer writes | word that it writes | receives for words | slots to be sent | the same, brought back | our word
//! slot    number that the sender wants next, 8 | message
//! word    number that the sender wants next, 8 | a number that changes with each word, 8
//! ```
//!
//! By RDMA WRITE a message goes into the slot of its number, by SEND into the place of the receive that it uses up: one of
//! the ring, or one of those that are there so that words find one too.

/// Places in the memory of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arena {
    slots: usize,
    slot: usize,
}

/// Messages of the peer that have come and wait for the owner.
#[derive(Debug)]
pub(super) struct Incoming {
    places: Box<[Place]>,
    /// The next to be handed out.
    pub(super) next: u64,
    /// The next to come.
    pub(super) arrived: u64,
}

/// Where a message lies.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Place {
    /// Of its slot, in the arena.
    pub(super) offset: usize,
    /// Bytes of the message.
    pub(super) length: usize,
    /// The receive that it used up.
    pub(super) receive: u64,
}

/// Bytes before a message in its slot.
pub(super) const PREFIX: usize = 8;
/// Bytes of a word.
pub(super) const WORD: usize = 16;
/// Receives beside those for messages: a word comes each time the receiver has handed out a quarter of a window, and now
/// and then. One that finds none comes later.
pub(super) const CONTROL_RECEIVES: usize = 8;
/// Most messages that are brought back from the owner's journal ahead of what the peer has taken: a power of two.
pub(super) const RECALLED_MAX: usize = 64;

impl Arena {
    /// `slots` is a power of two.
    pub(super) const fn new(slots: usize, max_message: usize) -> Self {
        Self {
            slots,
            slot: (PREFIX + max_message).next_multiple_of(8),
        }
    }

    /// Bytes of all of it.
    pub(super) const fn length(&self) -> usize {
        let all = 2 * self.slots + CONTROL_RECEIVES + RECALLED_MAX;
        all * self.slot + 2 * WORD
    }

    /// Bytes that the peer may write: its ring and its word.
    pub(super) const fn reached(&self) -> usize {
        self.slots * self.slot + WORD
    }

    /// Bytes of a slot.
    pub(super) const fn slot_length(&self) -> usize {
        self.slot
    }

    /// Where the peer writes a message.
    pub(super) const fn slot(&self, number: u64) -> usize {
        place(number, self.slots) * self.slot
    }

    /// Where in a peer's ring a message goes, and where behind it our word.
    pub(super) const fn in_ring_of(&self, peer_slots: usize, number: u64) -> u64 {
        (place(number, peer_slots) * self.slot) as u64
    }

    pub(super) const fn word_in_ring_of(&self, peer_slots: usize) -> u64 {
        (peer_slots * self.slot) as u64
    }

    /// Where the peer writes its word.
    pub(super) const fn word(&self) -> usize {
        self.slots * self.slot
    }

    /// Where a receive puts what is sent to it.
    pub(super) const fn receive(&self, id: u64) -> usize {
        let id = small(id);
        if id < self.slots {
            id * self.slot
        } else {
            self.reached() + (id - self.slots) * self.slot
        }
    }

    /// Where a message of our own stands that is to be sent.
    pub(super) const fn outgoing(&self, number: u64) -> usize {
        self.reached() + (CONTROL_RECEIVES + place(number, self.slots)) * self.slot
    }

    /// The same of one that was brought back.
    pub(super) const fn recalled(&self, number: u64) -> usize {
        self.outgoing(0) + (self.slots + place(number, RECALLED_MAX)) * self.slot
    }

    /// Where our own word stands.
    pub(super) const fn outgoing_word(&self) -> usize {
        self.outgoing(0) + (self.slots + RECALLED_MAX) * self.slot
    }
}

impl Incoming {
    pub(super) fn new(slots: usize, next: u64) -> Self {
        Self {
            places: vec![Place::default(); slots].into(),
            next,
            arrived: next,
        }
    }

    /// Bytes that it allocates.
    pub(super) const fn memory(slots: usize) -> usize {
        slots * size_of::<Place>()
    }

    /// What came and was not handed out is forgotten: it comes again.
    pub(super) const fn restart(&mut self) {
        self.arrived = self.next;
    }

    /// Takes up the next message. `false`: the peer sends more than its ring holds.
    pub(super) fn push(&mut self, message: Place) -> bool {
        let has_room = self.arrived - self.next < self.places.len() as u64;
        if has_room {
            self.places[place(self.arrived, self.places.len())] = message;
            self.arrived += 1;
        }
        has_room
    }

    /// The next message to be handed out, with its number.
    pub(super) fn pop(&mut self) -> Option<(u64, Place)> {
        let number = self.next;
        (number < self.arrived).then(|| {
            self.next += 1;
            (number, self.places[place(number, self.places.len())])
        })
    }
}

/// Where a number lives in a ring of `capacity`, a power of two.
pub(super) const fn place(number: u64, capacity: usize) -> usize {
    small(number & (capacity as u64 - 1))
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "below the size of a ring, which is a usize"
)]
const fn small(number: u64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_places_of_an_arena_share_a_byte() {
        let (slots, longest) = (4, 13);
        let arena = Arena::new(slots, longest);
        let mut taken = vec![false; arena.length()];
        let mut take = |offset: usize, length: usize| {
            for byte in &mut taken[offset..offset + length] {
                assert!(!std::mem::replace(byte, true), "{offset}");
            }
        };
        let receives = (slots + CONTROL_RECEIVES) as u64;
        for id in 0..receives {
            take(arena.receive(id), arena.slot_length());
        }
        take(arena.word(), WORD);
        for number in 0..slots as u64 {
            assert_eq!(
                arena.slot(number + 8),
                arena.receive(number),
                "the ring is the first receives"
            );
            take(arena.outgoing(number), arena.slot_length());
        }
        for number in 0..RECALLED_MAX as u64 {
            take(arena.recalled(number), arena.slot_length());
        }
        take(arena.outgoing_word(), WORD);
        assert!(taken.into_iter().all(|byte| byte));
    }

    #[test]
    fn a_peer_cannot_fill_more_than_its_ring() {
        let mut incoming = Incoming::new(2, 7);
        assert!(incoming.push(Place::default()) && incoming.push(Place::default()));
        assert!(!incoming.push(Place::default()));
        assert_eq!(incoming.pop().map(|(number, _)| number), Some(7));
        assert!(incoming.push(Place::default()));
        incoming.restart();
        assert!(incoming.pop().is_none());
    }
}
