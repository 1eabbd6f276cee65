//! ClOrdIDs of one FIX session and day: text to the rising number that the order logic knows it by, and back.

use std::hash::{BuildHasher, RandomState};
use types::ClientOrderId;

/// A bounded table. Nothing is ever taken out during a day: a ClOrdID must not come twice.
#[derive(Debug)]
pub(crate) struct ClOrdIds {
    /// By number, less one.
    texts: Box<[Text]>,
    count: usize,
    /// Open addressing with linear probing, at most half full. Ids that differ in their last byte only have their places
    /// in one group: most clients count, so most ids find their place in the cache.
    index: Box<[Slot]>,
    /// Of the hash: drawn at random, so that a client cannot choose ids that collide. Nothing that is decided depends on
    /// them.
    keys: [u64; 2],
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

/// Most ids that a table holds: what its index can count.
pub(crate) const CL_ORD_IDS_MAX: usize = 1 << 30;

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

/// A place of the index.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Of the id's hash, so that the texts of others need not be looked at.
    tag: u32,
    /// 0: empty.
    number: u32,
}

/// Places of ids that differ in their last byte only; the ten digits have one each.
const GROUP: usize = 16;

impl ClOrdIds {
    /// A table of `capacity` ids.
    ///
    /// # Panics
    /// When the capacity does not fit the index: [`CL_ORD_IDS_MAX`].
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(
            capacity <= CL_ORD_IDS_MAX,
            "{capacity} ClOrdIDs are more than a table holds"
        );
        let mut index = vec![Slot::EMPTY; Self::index_length(capacity)].into_boxed_slice();
        // Written, not only reserved: else an order would wait for the kernel wherever it is the first to touch a page.
        std::hint::black_box(&mut index).fill(Slot::EMPTY);
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
            index,
            keys: random_keys(),
        }
    }

    /// Bytes that a table of this capacity takes.
    pub(crate) const fn memory_bytes(capacity: usize) -> usize {
        capacity * size_of::<Text>() + Self::index_length(capacity) * size_of::<Slot>()
    }

    const fn index_length(capacity: usize) -> usize {
        (capacity * 2).next_power_of_two()
    }

    /// Gives a new id its number.
    pub(crate) fn insert(&mut self, text: &[u8], kind: Kind) -> Result<ClientOrderId, Refused> {
        if text.is_empty() || text.len() > MAX_LENGTH {
            return Err(Refused::Length);
        }
        let Err((slot, tag)) = self.probe(text) else {
            return Err(Refused::Duplicate);
        };
        let Some(place) = self.texts.get_mut(self.count) else {
            return Err(Refused::Full);
        };
        place.kind = kind;
        place.length = u8::try_from(text.len()).expect("it was compared with MAX_LENGTH");
        place.bytes[..text.len()].copy_from_slice(text);
        self.count += 1;
        let number = u32::try_from(self.count).expect("the capacity is bounded");
        self.index[slot] = Slot { tag, number };
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
        self.index.fill(Slot::EMPTY);
    }

    /// The number of a text, or the free slot where it belongs and its tag.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a hash is cut into the bits that are needed"
    )]
    fn probe(&self, text: &[u8]) -> Result<ClientOrderId, (usize, u32)> {
        let mask = self.index.len() - 1;
        let (&last, group) = text.split_last().unwrap_or((&0, b""));
        let hash = hash(self.keys, group);
        let tag = ((hash >> 32) as u32).wrapping_add(u32::from(last));
        let mut slot = (hash as usize & !(GROUP - 1) | usize::from(last) & (GROUP - 1)) & mask;
        loop {
            let found = self.index[slot];
            if found.number == 0 {
                return Err((slot, tag));
            }
            let number = ClientOrderId(u64::from(found.number));
            if found.tag == tag && self.text(number) == text {
                return Ok(number);
            }
            slot = (slot + 1) & mask;
        }
    }
}

impl Slot {
    const EMPTY: Self = Self { tag: 0, number: 0 };
}

/// Two numbers that nobody outside can know.
fn random_keys() -> [u64; 2] {
    // The standard library's source of keys; what it hashes does not matter.
    let source = RandomState::new();
    [source.hash_one(0), source.hash_one(1)]
}

/// A keyed hash by multiplication and folding: ClOrdIDs are short, and SipHash would cost as much as the rest of the look-up.
fn hash([first, second]: [u64; 2], text: &[u8]) -> u64 {
    let (words, tail) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    let start = first ^ text.len() as u64;
    let mixed = words.iter().chain([&last]).fold(start, |state, &word| {
        fold_multiply(state ^ u64::from_le_bytes(word), second | 1)
    });
    fold_multiply(mixed, first | 1)
}

/// Both halves of the product, so that every bit of the operands reaches the low bits of the result.
#[allow(clippy::cast_possible_truncation, reason = "the halves are taken apart")]
const fn fold_multiply(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
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
    fn ids_of_one_group_and_of_many_are_all_found_and_come_once() {
        let mut ids = ClOrdIds::new(2_000);
        let texts = (0..1_750_u32)
            .map(|n| format!("C{n}").into_bytes())
            .chain((1..=250).map(|last| vec![b'X', last]));
        let texts = texts.collect::<Vec<_>>();
        for (place, text) in (1..).zip(&texts) {
            assert_eq!(ids.insert(text, Kind::Order), Ok(ClientOrderId(place)));
        }
        for (place, text) in (1..).zip(&texts) {
            assert_eq!(ids.find(text), Some(ClientOrderId(place)));
            assert_eq!(ids.insert(text, Kind::Order), Err(Refused::Duplicate));
        }
        assert_eq!(ids.find(b""), None);
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
