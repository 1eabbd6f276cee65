//! Requests under way at a queue pair that tells of few of them: one in [`SIGNAL_EVERY`], and those that the owner wants to
//! hear of. One that is told of has ended, and with it those before it.

/// Names of requests and receives: what kind it is, and which.
pub(super) const RECEIVE: u64 = 1 << 63;
/// The owner wants to hear of it.
const OWNERS: u64 = 1 << 62;
const NUMBER: u64 = OWNERS - 1;
/// One request in so many is signalled, fewer where the queue is short.
const SIGNAL_EVERY: u64 = 16;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Requests {
    /// So many have place.
    capacity: usize,
    /// Posted and ended, since the queue pair was made.
    posted: u64,
    ended: u64,
    /// What the owner calls them.
    ids: Box<[u64]>,
}

/// How a request is posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Name {
    pub(super) wr_id: u64,
    pub(super) is_signaled: bool,
}

impl Requests {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            posted: 0,
            ended: 0,
            ids: vec![0; capacity.next_power_of_two()].into(),
        }
    }

    /// Bytes that it allocates.
    pub(super) const fn memory(capacity: usize) -> usize {
        capacity.next_power_of_two() * size_of::<u64>()
    }

    /// How many more have place.
    pub(super) fn room(&self) -> usize {
        let under_way = usize::try_from(self.posted - self.ended).unwrap_or(usize::MAX);
        self.capacity.saturating_sub(under_way)
    }

    /// What the next is to be posted as.
    pub(super) fn name(&self, is_owners: bool) -> Name {
        let every = SIGNAL_EVERY.min(self.capacity as u64 / 2).max(1);
        let flag = if is_owners { OWNERS } else { 0 };
        Name {
            wr_id: self.posted | flag,
            is_signaled: is_owners || self.posted % every == every - 1,
        }
    }

    /// It was posted; the owner calls it so.
    pub(super) fn on_posted(&mut self, id: u64) {
        self.ids[place(self.posted, self.ids.len())] = id;
        self.posted += 1;
    }

    /// One has ended. Gives what the owner calls it, where it wants to hear of it or nobody had asked for it.
    pub(super) fn on_ended(&mut self, wr_id: u64, is_good: bool) -> Option<u64> {
        let number = wr_id & NUMBER;
        self.ended = self.ended.max(number + 1);
        let is_owners = wr_id & OWNERS != 0 || !is_good;
        is_owners.then(|| self.ids[place(number, self.ids.len())])
    }

    /// The queue pair is gone, and all with it.
    pub(super) const fn clear(&mut self) {
        (self.posted, self.ended) = (0, 0);
    }
}

/// Where the name of a request is kept in a ring of a power of two.
#[allow(clippy::cast_possible_truncation, reason = "below the ring's size")]
const fn place(number: u64, capacity: usize) -> usize {
    (number & (capacity as u64 - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A queue pair: it ends requests in order, and tells of those that are signalled.
    struct Pair {
        requests: Requests,
        under_way: VecDeque<(Name, u64)>,
        /// What the owner was to hear, and heard.
        wanted: Vec<u64>,
        heard: Vec<u64>,
    }

    impl Pair {
        fn post(&mut self, id: u64, is_owners: bool) {
            if self.requests.room() == 0 {
                return;
            }
            let name = self.requests.name(is_owners);
            self.requests.on_posted(id);
            self.under_way.push_back((name, id));
            if is_owners {
                self.wanted.push(id);
            }
        }

        fn end(&mut self, count: usize) {
            for _ in 0..count.min(self.under_way.len()) {
                let (name, _) = self.under_way.pop_front().unwrap();
                if name.is_signaled {
                    self.heard.extend(self.requests.on_ended(name.wr_id, true));
                }
            }
        }
    }

    proptest! {
        /// Whatever is asked for and ends: the owner hears of its own once and in order, no more are posted than have
        /// place, and once all have ended at most those are unknown of that nobody was to tell.
        #[test]
        fn none_is_lost_or_told_twice_and_room_comes_back(
            capacity in 2_usize..100,
            steps in proptest::collection::vec((any::<bool>(), any::<bool>(), 0_usize..40), 1..300),
        ) {
            let mut pair = Pair {
                requests: Requests::new(capacity),
                under_way: VecDeque::new(),
                wanted: Vec::new(),
                heard: Vec::new(),
            };
            for (id, (posts, is_owners, count)) in (1_000..).zip(steps) {
                if posts {
                    pair.post(id, is_owners);
                } else {
                    pair.end(count);
                }
                prop_assert!(pair.under_way.len() <= capacity);
                prop_assert!(pair.requests.room() <= capacity - pair.under_way.len());
            }
            pair.end(usize::MAX);
            prop_assert_eq!(&pair.heard, &pair.wanted);
            let unknown = capacity - pair.requests.room();
            prop_assert!(unknown < 16 && unknown <= capacity / 2, "{} of {}", unknown, capacity);
        }
    }

    #[test]
    fn a_request_that_failed_is_told_of_though_nobody_asked() {
        let mut requests = Requests::new(64);
        let name = requests.name(false);
        requests.on_posted(7);
        assert!(!name.is_signaled);
        assert_eq!(requests.on_ended(name.wr_id, false), Some(7));
        assert_eq!(requests.room(), 64);
        requests.clear();
        assert_eq!(requests.name(true).wr_id & RECEIVE, 0);
    }
}
