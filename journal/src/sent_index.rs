//! Where in the journal the numbered messages of a stream stand.

use types::SequenceNumber;

/// The places of some of a stream's messages: every message at first, every second once there is no room, and so on. So it
/// stays as small as it is, and a search from the place before a number reads a bounded part of the journal too much.
#[derive(Debug)]
pub struct SentIndex {
    /// Numbers and positions, both rising.
    places: Vec<(SequenceNumber, u64)>,
    /// Numbers from one place to the next, at least.
    stride: u64,
    /// The highest number so far.
    last: SequenceNumber,
}

/// Places that are remembered.
const PLACES: usize = 64;

impl Default for SentIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl SentIndex {
    /// Bytes that one takes.
    pub const MEMORY_BYTES: usize = PLACES * size_of::<(SequenceNumber, u64)>();

    /// Of a stream that has sent nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            places: Vec::with_capacity(PLACES),
            stride: 1,
            last: SequenceNumber(0),
        }
    }

    /// Numbers start at 1 again, and nothing that counts stands before `position`.
    pub fn restart(&mut self, position: u64) {
        self.places.clear();
        self.places.push((SequenceNumber(1), position));
        self.stride = 1;
        self.last = SequenceNumber(0);
    }

    /// A message with this number stands at `position`. Only the first with a number counts.
    pub fn note(&mut self, sequence: SequenceNumber, position: u64) {
        if sequence <= self.last {
            return;
        }
        self.last = sequence;
        let due = self.places.last().map_or(0, |&(last, _)| last.0 + self.stride);
        if sequence.0 < due {
            return;
        }
        if self.places.len() == PLACES {
            let mut index = 0;
            self.places.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
        self.places.push((sequence, position));
    }

    /// A place that the first message with this number does not stand before: its number and position. `None` when nothing
    /// was sent.
    #[must_use]
    pub fn before(&self, sequence: SequenceNumber) -> Option<(SequenceNumber, u64)> {
        let behind = self.places.partition_point(|&(place, _)| place <= sequence);
        self.places.get(behind.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_never_behind_what_is_looked_for_and_never_far_before_it() {
        let mut index = SentIndex::new();
        for count in 1..=10_000_u64 {
            index.note(SequenceNumber(count), count * 100);
            if count % 97 == 0 {
                index.note(SequenceNumber(count / 2), count * 100 + 50);
            }
            assert!(index.places.capacity() == PLACES && index.stride <= (count / 16).max(1));
        }
        for number in 1..=10_000 {
            let (first, place) = index.before(SequenceNumber(number)).unwrap();
            assert_eq!(first.0 * 100, place);
            assert!(
                place <= number * 100 && number * 100 - place <= 100 * 2 * index.stride,
                "{number}"
            );
        }
    }

    #[test]
    fn a_restart_forgets_what_was_before() {
        let mut index = SentIndex::new();
        assert_eq!(index.before(SequenceNumber(1)), None);
        (1..=100).for_each(|number| index.note(SequenceNumber(number), number));
        index.restart(1_000);
        index.note(SequenceNumber(2), 1_002);
        assert_eq!(index.before(SequenceNumber(1)), Some((SequenceNumber(1), 1_000)));
        assert_eq!(index.before(SequenceNumber(50)), Some((SequenceNumber(2), 1_002)));
    }
}
