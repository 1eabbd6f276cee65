//! A device as the links of one thread share it: it is open once, and has one completion queue, which is polled once a turn for
//! all of them. Each link has a seat there, and finds in it what ended at its own queue pair.

use super::config::DeviceName;
use crate::verbs::{CompletionQueue, Device, WORK_COMPLETIONS, WorkCompletion};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use types::Timestamp;

thread_local! {
    /// Devices that links of this thread have open.
    static SHARED: RefCell<Vec<Weak<SharedDevice>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
struct SharedDevice {
    name: DeviceName,
    queue: Arc<CompletionQueue>,
    device: Arc<Device>,
    /// Most entries of its queue, and how many it has.
    entries_max: usize,
    entries: Cell<usize>,
    completions: RefCell<[WorkCompletion; WORK_COMPLETIONS]>,
    seats: RefCell<Seats<WorkCompletion>>,
    /// One of the links has seen that it is.
    is_gone: Cell<bool>,
}

/// A link's place at a device. Dropped, it lets go of the device.
#[derive(Debug)]
pub(super) struct Seat {
    shared: Rc<SharedDevice>,
    index: usize,
}

/// Who waits for what ends.
#[derive(Debug)]
struct Seats<T> {
    places: Vec<Option<Place<T>>>,
    /// The turn in which the queue was last found empty.
    empty_at: Timestamp,
}

#[derive(Debug)]
struct Place<T> {
    /// `None`: nobody's queue pair.
    qpn: Option<u32>,
    ended: VecDeque<T>,
    /// As many can be posted, and end.
    entries: usize,
}

impl Seat {
    /// A seat for as many requests and receives at the device of this name.
    ///
    /// # Errors
    /// There is no such device, or it has no queue for as many.
    pub(super) fn take(name: DeviceName, entries: usize) -> io::Result<Self> {
        SHARED.with_borrow_mut(|known| {
            known.retain(|shared| shared.strong_count() > 0);
            let open = known.iter().filter_map(Weak::upgrade);
            for shared in open.filter(|shared| shared.name == name && !shared.is_gone.get()) {
                // One whose queue cannot grow so far is not shared by this link.
                if let Ok(seat) = Self::at(shared, entries) {
                    return Ok(seat);
                }
            }
            let device = Arc::new(Device::open(name.as_str())?);
            let entries_max = device.limits()?.completions;
            if entries > entries_max {
                return Err(too_many(entries, entries_max));
            }
            let queue = CompletionQueue::new(&device, entries)?;
            let shared = Rc::new(SharedDevice {
                name,
                queue: Arc::new(queue),
                device,
                entries_max,
                entries: Cell::new(entries),
                completions: RefCell::new([WorkCompletion::NONE; WORK_COMPLETIONS]),
                seats: RefCell::new(Seats::new()),
                is_gone: Cell::new(false),
            });
            known.push(Rc::downgrade(&shared));
            Self::at(shared, entries)
        })
    }

    fn at(shared: Rc<SharedDevice>, entries: usize) -> io::Result<Self> {
        let mut seats = shared.seats.borrow_mut();
        let wanted = seats.entries() + entries;
        if wanted > shared.entries_max {
            return Err(too_many(wanted, shared.entries_max));
        }
        if wanted > shared.entries.get() {
            shared.queue.resize(wanted)?;
            shared.entries.set(wanted);
        }
        let index = seats.take(entries);
        drop(seats);
        Ok(Self { shared, index })
    }

    /// Bytes that one allocates.
    pub(super) const fn memory(entries: usize) -> usize {
        entries * size_of::<WorkCompletion>()
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.shared.device
    }

    pub(super) fn queue(&self) -> &Arc<CompletionQueue> {
        &self.shared.queue
    }

    /// The link's queue pair from now on.
    pub(super) fn attach(&self, qpn: u32) {
        self.shared.seats.borrow_mut().attach(self.index, qpn);
    }

    /// The queue pair is gone: what it left is nobody's.
    pub(super) fn detach(&self) {
        self.shared.seats.borrow_mut().detach(self.index);
        // Before another gets its number.
        while self.shared.fill().is_ok_and(|count| count > 0) {}
    }

    /// Takes in what has ended, unless that was done in this turn.
    pub(super) fn poll(&self, now: Timestamp) -> io::Result<()> {
        if self.shared.seats.borrow().empty_at == now {
            return Ok(());
        }
        if self.shared.fill()? < WORK_COMPLETIONS {
            self.shared.seats.borrow_mut().empty_at = now;
        }
        Ok(())
    }

    /// Whether some of the link's own have ended and were not looked at.
    pub(super) fn has_more(&self) -> bool {
        self.shared.seats.borrow().waiting(self.index) > 0
    }

    /// The next of them.
    pub(super) fn next(&self) -> Option<WorkCompletion> {
        self.shared.seats.borrow_mut().next(self.index)
    }

    /// Whether somebody has seen that the device is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.shared.is_gone.get()
    }

    /// It is gone, for all that share it.
    pub(super) fn set_gone(&self) {
        self.shared.is_gone.set(true);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.detach();
        self.shared.seats.borrow_mut().leave(self.index);
    }
}

impl SharedDevice {
    /// Takes some of what has ended out of the queue, and gives how many.
    fn fill(&self) -> io::Result<usize> {
        let mut completions = self.completions.borrow_mut();
        let count = self.queue.poll(&mut completions)?;
        let mut seats = self.seats.borrow_mut();
        for completion in &completions[..count] {
            seats.deliver(completion.qpn(), *completion);
        }
        Ok(count)
    }
}

impl<T> Seats<T> {
    const fn new() -> Self {
        Self {
            places: Vec::new(),
            empty_at: Timestamp::NONE,
        }
    }

    /// As many as can end at all of them.
    fn entries(&self) -> usize {
        self.places.iter().flatten().map(|place| place.entries).sum()
    }

    fn take(&mut self, entries: usize) -> usize {
        let place = Some(Place {
            qpn: None,
            ended: VecDeque::with_capacity(entries),
            entries,
        });
        match self.places.iter().position(Option::is_none) {
            Some(index) => {
                self.places[index] = place;
                index
            }
            None => {
                self.places.push(place);
                self.places.len() - 1
            }
        }
    }

    fn leave(&mut self, index: usize) {
        self.places[index] = None;
    }

    fn attach(&mut self, index: usize, qpn: u32) {
        if let Some(place) = &mut self.places[index] {
            place.qpn = Some(qpn);
        }
    }

    fn detach(&mut self, index: usize) {
        if let Some(place) = &mut self.places[index] {
            place.qpn = None;
            place.ended.clear();
        }
    }

    /// Puts it where its queue pair's link finds it. One of a queue pair that is gone is dropped.
    fn deliver(&mut self, qpn: u32, completion: T) {
        let mut places = self.places.iter_mut().flatten();
        if let Some(place) = places.find(|place| place.qpn == Some(qpn)) {
            debug_assert!(place.ended.len() < place.entries, "as many as can be posted");
            place.ended.push_back(completion);
        }
    }

    fn waiting(&self, index: usize) -> usize {
        self.places[index].as_ref().map_or(0, |place| place.ended.len())
    }

    fn next(&mut self, index: usize) -> Option<T> {
        self.places[index].as_mut()?.ended.pop_front()
    }
}

/// How many links of this thread share each completion queue of a device.
#[cfg(test)]
pub(super) fn seats_at(name: DeviceName) -> Vec<usize> {
    SHARED.with_borrow(|known| {
        let shared = known
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|shared| shared.name == name);
        shared
            .map(|shared| shared.seats.borrow().places.iter().flatten().count())
            .collect()
    })
}

fn too_many(wanted: usize, most: usize) -> io::Error {
    let what = format!("its completion queues have {most} entries at most, and {wanted} are wanted");
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Clone, Debug)]
    enum Step {
        Take,
        Leave(usize),
        Attach(usize),
        Detach(usize),
        End(usize),
        EndOfThePast,
        Next(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let which = 0_usize..4;
        prop_oneof![
            Just(Step::Take),
            which.clone().prop_map(Step::Leave),
            which.clone().prop_map(Step::Attach),
            which.clone().prop_map(Step::Detach),
            which.clone().prop_map(Step::End),
            which.clone().prop_map(Step::End),
            Just(Step::EndOfThePast),
            which.prop_map(Step::Next),
        ]
    }

    proptest! {
        /// Each link finds what ended at its own queue pair, all of it, in order, and nothing of others or of the past.
        #[test]
        fn every_link_finds_its_own_and_nobody_elses(steps in proptest::collection::vec(step(), 1..200)) {
            const ENTRIES: usize = 8;
            let mut seats = Seats::new();
            // What each that has a seat should find, by its place: its queue pair, and what ended.
            let mut known: HashMap<usize, (Option<u32>, VecDeque<u64>)> = HashMap::new();
            let (mut qpn, mut number) = (0, 0);
            let mut past = Vec::new();
            for step in steps {
                match step {
                    Step::Take if known.len() < 4 => {
                        let index = seats.take(ENTRIES);
                        prop_assert!(known.insert(index, (None, VecDeque::new())).is_none());
                    }
                    Step::Leave(index) if known.contains_key(&index) => {
                        past.extend(known.remove(&index).unwrap().0);
                        seats.leave(index);
                    }
                    Step::Attach(index) if known.get(&index).is_some_and(|link| link.0.is_none()) => {
                        qpn += 1;
                        known.get_mut(&index).unwrap().0 = Some(qpn);
                        seats.attach(index, qpn);
                    }
                    Step::Detach(index) if known.contains_key(&index) => {
                        let link = known.get_mut(&index).unwrap();
                        past.extend(link.0.take());
                        link.1.clear();
                        seats.detach(index);
                    }
                    Step::End(index) => {
                        if let Some((Some(qpn), ended)) = known.get_mut(&index)
                            && ended.len() < ENTRIES
                        {
                            number += 1;
                            ended.push_back(number);
                            seats.deliver(*qpn, number);
                        }
                    }
                    Step::EndOfThePast => past.iter().for_each(|&qpn| seats.deliver(qpn, u64::MAX)),
                    Step::Next(index) if known.contains_key(&index) => {
                        prop_assert_eq!(seats.next(index), known.get_mut(&index).unwrap().1.pop_front());
                    }
                    _ => {}
                }
                prop_assert_eq!(seats.entries(), known.len() * ENTRIES);
                for (&index, (_, ended)) in &known {
                    prop_assert_eq!(seats.waiting(index), ended.len());
                }
            }
        }
    }
}
