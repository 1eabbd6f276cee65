//! ClOrdIDs of one FIX session and day: text to the rising number that the order logic knows it by, and back.

use std::hash::{BuildHasher, RandomState};
use types::ClientOrderId;

/// A bounded table. Nothing is ever taken out during a day: a ClOrdID must not come twice.
#[derive(Debug)]
pub(crate) struct ClOrdIds {
    /// By number, less one.
    texts: Box<[Text]>,
    count: usize,
    /// Open addressing with linear probing; 0 is empty, else the number. At most half full.
    index: Box<[u32]>,
    /// Keyed at random, so that a client cannot choose ids that collide. Nothing that is decided depends on it.
    hasher: RandomState,
}

/// Why a ClOrdID got no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// It was used before.
    Duplicate,
    /// The session has used all that `cl_ord_ids` allows a day.
    Full,
    /// Empty, or longer than [`MAX_LENGTH`].
    Length,
}

/// Longest ClOrdID, bytes: room for a UUID in text.
pub(crate) const MAX_LENGTH: usize = 38;

/// What a ClOrdID was given to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A new order.
    Order,
    /// A cancel.
    Cancel,
    /// A replace.
    Replace,
}

#[derive(Clone, Copy, Debug)]
struct Text {
    kind: Kind,
    length: u8,
    bytes: [u8; MAX_LENGTH],
}

impl ClOrdIds {
    /// A table of `capacity` ids.
    ///
    /// # Panics
    /// When the capacity does not fit the index: 2^30.
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity <= 1 << 30, "{capacity} ClOrdIDs are more than a table holds");
        Self {
            texts: vec![
                Text {
                    kind: Kind::Order,
                    length: 0,
                    bytes: [0; MAX_LENGTH]
                };
                capacity
            ]
            .into_boxed_slice(),
            count: 0,
            index: vec![0; Self::index_length(capacity)].into_boxed_slice(),
            hasher: RandomState::new(),
        }
    }

    /// Bytes that a table of this capacity takes.
    pub(crate) const fn memory_bytes(capacity: usize) -> usize {
        capacity * size_of::<Text>() + Self::index_length(capacity) * size_of::<u32>()
    }

    const fn index_length(capacity: usize) -> usize {
        (capacity * 2).next_power_of_two()
    }

    /// Gives a new id its number.
    pub(crate) fn insert(&mut self, text: &[u8], kind: Kind) -> Result<ClientOrderId, Refused> {
        if text.is_empty() || text.len() > MAX_LENGTH {
            return Err(Refused::Length);
        }
        let Err(slot) = self.probe(text) else {
            return Err(Refused::Duplicate);
        };
        let Some(place) = self.texts.get_mut(self.count) else {
            return Err(Refused::Full);
        };
        place.kind = kind;
        place.length = u8::try_from(text.len()).expect("it was compared with MAX_LENGTH");
        place.bytes[..text.len()].copy_from_slice(text);
        self.count += 1;
        self.index[slot] = u32::try_from(self.count).expect("the capacity is bounded");
        Ok(ClientOrderId(self.count as u64))
    }

    /// The number of an id seen before.
    pub(crate) fn find(&self, text: &[u8]) -> Option<ClientOrderId> {
        self.probe(text).ok()
    }

    /// The text of a number; empty for one that was never given.
    pub(crate) fn text(&self, number: ClientOrderId) -> &[u8] {
        self.get(number)
            .map_or(b"", |text| &text.bytes[..usize::from(text.length)])
    }

    /// What a number was given to.
    pub(crate) fn kind(&self, number: ClientOrderId) -> Option<Kind> {
        self.get(number).map(|text| text.kind)
    }

    fn get(&self, number: ClientOrderId) -> Option<&Text> {
        let place = usize::try_from(number.0).ok()?.checked_sub(1)?;
        self.texts[..self.count].get(place)
    }

    /// A new day: all ids may come again.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.index.fill(0);
    }

    /// The number of a text, or the free slot where it belongs.
    fn probe(&self, text: &[u8]) -> Result<ClientOrderId, usize> {
        let mask = self.index.len() - 1;
        #[allow(clippy::cast_possible_truncation, reason = "the mask takes the low bits anyway")]
        let mut slot = self.hasher.hash_one(text) as usize & mask;
        loop {
            let number = self.index[slot];
            if number == 0 {
                return Err(slot);
            }
            let number = ClientOrderId(u64::from(number));
            if self.text(number) == text {
                return Ok(number);
            }
            slot = (slot + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_texts_come_back() {
        let mut ids = ClOrdIds::new(3);
        assert_eq!(ids.insert(b"A", Kind::Order), Ok(ClientOrderId(1)));
        assert_eq!(ids.insert(b"order-2", Kind::Order), Ok(ClientOrderId(2)));
        assert_eq!(ids.insert(b"A", Kind::Order), Err(Refused::Duplicate));
        assert_eq!(ids.text(ClientOrderId(2)), b"order-2");
        assert_eq!(ids.find(b"order-2"), Some(ClientOrderId(2)));
        assert_eq!(ids.find(b"B"), None);
        assert_eq!(ids.text(ClientOrderId(0)), b"");
        assert_eq!(ids.text(ClientOrderId(9)), b"");
    }

    #[test]
    fn a_full_table_and_a_wrong_length_are_refused() {
        let mut ids = ClOrdIds::new(1);
        assert_eq!(ids.insert(b"", Kind::Order), Err(Refused::Length));
        assert_eq!(ids.insert(&[b'x'; MAX_LENGTH + 1], Kind::Order), Err(Refused::Length));
        assert_eq!(ids.insert(&[b'x'; MAX_LENGTH], Kind::Order), Ok(ClientOrderId(1)));
        assert_eq!(ids.insert(b"y", Kind::Order), Err(Refused::Full));
        ids.clear();
        assert_eq!(ids.insert(b"y", Kind::Order), Ok(ClientOrderId(1)));
        assert_eq!(ids.find(&[b'x'; MAX_LENGTH]), None);
    }
}
