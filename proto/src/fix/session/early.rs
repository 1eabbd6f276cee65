//! Messages that came before ones that are missing: they wait here, in bounded memory, and are handled in order.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Whole messages by sequence number. There are few of them and seldom any, so they are searched one by one, and those
/// that stay are moved together when one leaves.
#[derive(Debug)]
pub(super) struct Early {
    /// In the order in which they came. Never more than it was made for.
    entries: Vec<Entry>,
    bytes: Box<[u8]>,
    /// Bytes in use, all at the start.
    used: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: u64,
    start: usize,
    length: usize,
}

impl Early {
    /// Room for so many bytes of messages, allocated here.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            entries: Vec::with_capacity(bytes / SHORTEST_MESSAGE),
            bytes: vec![0; bytes].into_boxed_slice(),
            used: 0,
        }
    }

    /// Keeps a message. Says whether it is kept: the first with its number is, as long as there is room.
    pub(super) fn put(&mut self, sequence: u64, message: &[u8]) -> bool {
        let room = self.bytes.get_mut(self.used..self.used + message.len());
        let is_new = self.entries.iter().all(|entry| entry.sequence != sequence);
        let (Some(room), true) = (room, is_new && self.entries.len() < self.entries.capacity()) else {
            return !is_new;
        };
        room.copy_from_slice(message);
        self.entries.push(Entry {
            sequence,
            start: self.used,
            length: message.len(),
        });
        self.used += message.len();
        true
    }

    /// Whether the message with this number is here.
    pub(super) fn has(&self, sequence: u64) -> bool {
        self.entries.iter().any(|entry| entry.sequence == sequence)
    }

    /// Takes a message out and writes it into `buffer`. Gives its length.
    pub(super) fn take(&mut self, sequence: u64, buffer: &mut [u8]) -> Option<usize> {
        let index = self.entries.iter().position(|entry| entry.sequence == sequence)?;
        let Entry { start, length, .. } = self.entries[index];
        buffer
            .get_mut(..length)?
            .copy_from_slice(&self.bytes[start..start + length]);
        self.remove(index);
        Some(length)
    }

    /// Forgets what has a number below this one.
    pub(super) fn forget_below(&mut self, sequence: u64) {
        while let Some(index) = self.entries.iter().position(|entry| entry.sequence < sequence) {
            self.remove(index);
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.used = 0;
    }

    /// Bytes allocated.
    pub(super) const fn allocated(&self) -> usize {
        self.bytes.len() + self.entries.capacity() * size_of::<Entry>()
    }

    fn remove(&mut self, index: usize) {
        let Entry { start, length, .. } = self.entries.remove(index);
        self.bytes.copy_within(start + length..self.used, start);
        self.used -= length;
        // The later ones stand behind it.
        for entry in &mut self.entries[index..] {
            entry.start -= length;
        }
    }
}

/// No message with its header is shorter, bytes.
const SHORTEST_MESSAGE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let mut early = Early::new(128);
        assert!(early.put(5, &[b'a'; 70]));
        assert!(!early.put(6, &[b'b'; 70]));
        // A second one with the same number is no loss.
        assert!(early.put(5, &[b'c'; 1]));
        let mut buffer = [0; 128];
        assert_eq!(early.take(5, &mut buffer), Some(70));
        assert_eq!(buffer[..70], [b'a'; 70]);
        assert!(early.put(6, &[b'b'; 70]));
        assert_eq!(Early::new(0).take(1, &mut buffer), None);
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in(steps in proptest::collection::vec((1_u64..12, 1_usize..200, any::<bool>()), 0..60)) {
            let mut early = Early::new(1_024);
            let mut model = alloc::collections::BTreeMap::new();
            for (sequence, length, put) in steps {
                let message = vec![u8::try_from(length).unwrap(); length];
                if put {
                    let room = model.values().map(Vec::len).sum::<usize>() + length <= 1_024;
                    prop_assert_eq!(early.put(sequence, &message), room || model.contains_key(&sequence));
                    if room {
                        model.entry(sequence).or_insert(message);
                    }
                } else if length > 150 {
                    early.forget_below(sequence);
                    model.retain(|&number, _| number >= sequence);
                } else {
                    let mut buffer = [0; 256];
                    let taken = early.take(sequence, &mut buffer).map(|length| buffer[..length].to_vec());
                    prop_assert_eq!(taken, model.remove(&sequence));
                }
                for sequence in 1..12 {
                    prop_assert_eq!(early.has(sequence), model.contains_key(&sequence));
                }
            }
        }
    }
}
