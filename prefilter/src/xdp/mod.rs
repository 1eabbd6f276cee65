//! The backend in the kernel: `bpf/prefilter.c` at the receive hook of an interface, before the socket of a session.
//!
//! It judges orders in datagrams of LTP that carry a session's source address, source port and tag. All of them go on to
//! the socket; the verdict on each is in a ring before that ([`Xdp::record`]), with the bytes that it was given on, so that
//! who takes the order from the socket can tell that it is the one that was judged. A number that was judged is not
//! judged again. What belongs to no session is dropped and counted.
//!
//! Limits are two tables, one in force. A commit makes the other one the one in force, as one; then the same is said to
//! the first.

mod layout;
mod object;
#[cfg(test)]
mod tests;

pub use layout::{Flow, Record};
pub use net::bpf::Hook;

use crate::PreFilter;
use crate::abi::{Slot, Verdict};
use crate::limits::{Caps, Control, Counters, Fault, SessionLimits, Staged, SymbolLimits};
use core::fmt;
use layout::{ControlValue, CountersValue, Entry, Key, TouchValue, Trial};
use net::bpf::{Attached, Map, MapKind, Program, Ring, interface_index, ktime_ns};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd;
use types::{InstrumentId, Price, SessionId, Side};
use zerocopy::{FromZeros, IntoBytes};

/// The program with its maps, and where it is attached.
pub struct Xdp {
    filter: Program,
    trial: Program,
    attached: Option<(Attached, u32)>,
    maps: Maps,
    ring: Ring,
    caps: Caps,
    /// Numbers that are remembered as judged, of each flow.
    window: u32,
    /// Flows that there may be.
    flows: u32,
    /// Said since the last commit.
    staged: Vec<Staged>,
    generation: u32,
    control: Control,
    heartbeat_ns: u64,
    /// By [`ktime_ns`]: when the program closes by itself.
    closes_at: u64,
    has_trial_flow: bool,
}

struct Maps {
    /// Limits, twice.
    banks: [Map; 2],
    /// The kernel's numbers of those.
    ids: [u32; 2],
    /// Which of them is in force.
    bank: usize,
    table: Map,
    due: Map,
    touch: Map,
    control: Map,
    counters: Map,
    seen: Map,
    flows: Map,
}

/// What the program needs to be built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Tables for so many instruments and sessions.
    pub caps: Caps,
    /// Sessions that come by datagrams, at most.
    pub flows: u16,
    /// Messages of a flow that may be under way at once; a power of two. As many numbers are known as judged.
    pub window: u32,
    /// Bytes of verdicts that may wait to be read; a power of two, whole pages. When they do, orders are dropped.
    pub ring_bytes: u32,
    /// Without [`PreFilter::health`] for so long it closes; nanoseconds.
    pub heartbeat_ns: u64,
}

/// What the program counted beside verdicts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unjudged {
    /// Dropped: our port, and no session's source or tag.
    pub strangers: u64,
    /// Passed on: the number had its verdict.
    pub repeats: u64,
    /// Dropped: no room for the verdict.
    pub lost: u64,
}

/// Made by clang from `bpf/prefilter.c`.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/prefilter.o"));

impl Xdp {
    /// Loads the program; it is closed, and at no interface yet.
    ///
    /// # Errors
    /// The kernel refuses: privileges, memory, or what it lacks.
    pub fn new(settings: &Settings) -> io::Result<Self> {
        let Settings {
            caps, flows, window, ..
        } = *settings;
        let flows = u32::from(flows);
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        if !window.is_power_of_two() {
            return Err(invalid("the window is no power of two"));
        }
        let seen = (flows + 1)
            .checked_mul(window)
            .ok_or_else(|| invalid("too many flows"))?;
        let entries = caps
            .symbols
            .checked_add(caps.sessions)
            .and_then(|sum| sum.checked_add(1));
        let entries = entries.ok_or_else(|| invalid("tables too large"))?;
        let bank = || Map::new(MapKind::Array, 4, size(size_of::<Entry>()), entries);
        let array = |value: usize, entries: u32| Map::new(MapKind::Array, 4, size(value), entries.max(1));
        let banks = [bank()?, bank()?];
        let table = Map::of_map(&banks[1])?;
        let mut ids = [0; 2];
        for (id, bank) in ids.iter_mut().zip(&banks).rev() {
            table.set_map(bank)?;
            *id = in_force(&table)?;
        }
        let maps = Maps {
            banks,
            ids,
            bank: 0,
            table,
            due: array(8, caps.sessions)?,
            touch: array(size_of::<TouchValue>(), caps.symbols)?,
            control: array(size_of::<ControlValue>(), 1)?,
            counters: array(size_of::<CountersValue>(), 1)?,
            seen: array(8, seen)?,
            flows: Map::new(MapKind::Hash, 4, size(size_of::<layout::FlowValue>()), flows + 1)?,
        };
        let ring = Ring::new(settings.ring_bytes)?;
        for instrument in 0..caps.symbols {
            maps.touch.set(&instrument.to_ne_bytes(), TouchValue::NONE.as_bytes())?;
        }
        let load = |section| -> io::Result<Program> {
            let code = object::program(OBJECT, section, |name| {
                maps.named(name).or_else(|| (name == "ring").then(|| ring.as_raw_fd()))
            })?;
            Program::load(&code)
        };
        let mut xdp = Self {
            filter: load("filter")?,
            trial: load("trial")?,
            attached: None,
            maps,
            ring,
            caps,
            window,
            flows,
            staged: Vec::with_capacity((caps.symbols + caps.sessions) as usize),
            generation: 0,
            control: Control::default(),
            heartbeat_ns: settings.heartbeat_ns,
            closes_at: 0,
            has_trial_flow: false,
        };
        for bank in 0..2 {
            xdp.put_head(bank)?;
        }
        Ok(xdp)
    }

    /// Bytes that its tables and its ring take in the kernel.
    #[must_use]
    pub const fn memory_bytes(settings: &Settings) -> usize {
        let (symbols, sessions) = (settings.caps.symbols as usize, settings.caps.sessions as usize);
        let banks = 2 * (1 + symbols + sessions) * size_of::<Entry>();
        let seen = (settings.flows as usize + 1) * settings.window as usize * 8;
        banks + symbols * size_of::<TouchValue>() + sessions * 8 + seen + settings.ring_bytes as usize
    }

    /// Puts the program at an interface of this thread's network namespace, as long as this lives.
    ///
    /// # Errors
    /// There is no such interface, its driver has no such hook, or somebody else's program is there.
    pub fn attach(&mut self, interface: &str, hook: Hook) -> io::Result<()> {
        if self.has_trial_flow {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "trials were run on it"));
        }
        let index = interface_index(interface)?;
        self.attached = Some((self.filter.attach(index, hook)?, index));
        Ok(())
    }

    /// From now on orders that come to `local` are judged, of this flow; whatever else comes there is dropped, but for the
    /// handshake. `None`: nobody is there. `place` is below the number of flows, one for each port.
    ///
    /// # Errors
    /// The kernel refuses.
    ///
    /// # Panics
    /// `place` is not below it.
    pub fn set_flow(&mut self, place: u16, local: SocketAddrV4, flow: Option<&Flow>) -> io::Result<()> {
        assert!(u32::from(place) < self.flows, "a flow is below the number of flows");
        let value = layout::FlowValue::of(local, flow, u32::from(place) * self.window, self.window - 1);
        self.maps.flows.set(Key::of(local.port()).as_bytes(), value.as_bytes())
    }

    /// The next verdict of the program, in the order in which it gave them.
    pub fn record(&mut self) -> Option<Record> {
        let mut record = Record::new_zeroed();
        let length = self.ring.read(record.as_mut_bytes())?;
        debug_assert_eq!(length, size_of::<Record>(), "the program writes whole records");
        Some(record)
    }

    /// The place of the flow of a record, as [`set_flow`](Self::set_flow) was told.
    #[must_use]
    pub const fn place(&self, record: &Record) -> usize {
        (record.flow.get() / self.window) as usize
    }

    /// What was counted beside verdicts.
    pub fn unjudged(&mut self) -> Unjudged {
        let counters = self.read_counters();
        Unjudged {
            strangers: counters.strangers.get(),
            repeats: counters.repeats.get(),
            lost: counters.lost.get(),
        }
    }

    /// Nanoseconds that a verdict on this order takes, on average of so many, whose verdicts must have room in the ring.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn time(&mut self, slot: &Slot, repeat: u32) -> io::Result<u32> {
        self.with_trial_flow()?;
        let frame = Trial::of(slot, true);
        Ok(self
            .trial
            .try_on(frame.as_bytes(), Trial::METADATA, repeat)?
            .nanoseconds)
    }

    fn with_trial_flow(&mut self) -> io::Result<()> {
        if self.has_trial_flow {
            return Ok(());
        }
        if self.attached.is_some() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is at an interface"));
        }
        let value = layout::FlowValue::of_trial(self.flows * self.window, self.window - 1);
        self.maps.flows.set(Key::of(0).as_bytes(), value.as_bytes())?;
        self.has_trial_flow = true;
        Ok(())
    }

    fn read_counters(&self) -> CountersValue {
        let mut counters = CountersValue::new_zeroed();
        // The entry is always there.
        let _: io::Result<()> = self.maps.counters.value(&FIRST, counters.as_mut_bytes());
        counters
    }

    fn put_head(&mut self, bank: usize) -> io::Result<()> {
        let head = Entry::head(self.generation, self.caps);
        self.maps.banks[bank].set(&FIRST, head.as_bytes())
    }

    fn put(&self, bank: usize, change: Staged) -> io::Result<()> {
        let (key, entry) = match change {
            Staged::Symbol(id, limits) => (1 + self.caps.sessions + id.0, Entry::symbol(limits)),
            Staged::Session(id, limits) => (1 + u32::from(id.0), Entry::session(limits)),
        };
        self.maps.banks[bank].set(&key.to_ne_bytes(), entry.as_bytes())
    }

    fn put_control(&mut self) -> io::Result<()> {
        self.closes_at = ktime_ns() + self.heartbeat_ns;
        let value = ControlValue::of(self.control, self.closes_at);
        self.maps.control.set(&FIRST, value.as_bytes())
    }

    fn stage(&mut self, change: Staged) -> Result<(), Fault> {
        if self.staged.len() == self.staged.capacity() {
            return Err(Fault::StageFull);
        }
        self.staged.push(change);
        Ok(())
    }

    fn swap(&mut self) -> io::Result<()> {
        let (old, new) = (self.maps.bank, 1 - self.maps.bank);
        for &change in &self.staged {
            self.put(new, change)?;
        }
        self.put_head(new)?;
        self.maps.table.set_map(&self.maps.banks[new])?;
        self.maps.bank = new;
        // No program looks into the old one any more.
        for &change in &self.staged {
            self.put(old, change)?;
        }
        self.staged.clear();
        Ok(())
    }

    /// The generation that programs find.
    fn found_generation(&self) -> Option<u32> {
        let bank = &self.maps.banks[self.maps.bank];
        let mut head = Entry::new_zeroed();
        bank.value(&FIRST, head.as_mut_bytes()).ok()?;
        let is_ours = in_force(&self.maps.table).ok()? == self.maps.ids[self.maps.bank];
        is_ours.then(|| head.generation())
    }

    fn confirm(&mut self) -> Result<u32, Fault> {
        let committed = self.generation;
        match self.found_generation() {
            Some(found) if found == committed => Ok(committed),
            found => {
                let found = found.unwrap_or(u32::MAX);
                Err(self.close(Fault::WrongGeneration { committed, found }))
            }
        }
    }

    /// Closes it as far as the kernel still listens.
    fn close(&mut self, fault: Fault) -> Fault {
        self.control.enable = false;
        let value = ControlValue::of(self.control, 0);
        let _: io::Result<()> = self.maps.control.set(&FIRST, value.as_bytes());
        fault
    }

    fn check_attached(&self) -> Result<(), Fault> {
        match &self.attached {
            Some((link, index)) if link.interface().ok() != Some(*index) => Err(Fault::Detached),
            _ => Ok(()),
        }
    }
}

impl PreFilter for Xdp {
    fn caps(&self) -> Caps {
        self.caps
    }

    fn set_control(&mut self, control: Control) -> Result<(), Fault> {
        self.check_attached()?;
        if control.enable {
            self.confirm()?;
        }
        self.control = control;
        self.put_control().map_err(|_| self.close(Fault::Kernel))
    }

    fn set_symbol(&mut self, instrument: InstrumentId, limits: Option<SymbolLimits>) -> Result<(), Fault> {
        self.caps.check_symbol(instrument, limits)?;
        self.stage(Staged::Symbol(instrument, limits))
    }

    fn set_session(&mut self, session: SessionId, limits: Option<SessionLimits>) -> Result<(), Fault> {
        self.caps.check_session(session, limits)?;
        self.stage(Staged::Session(session, limits))
    }

    fn set_touch(&mut self, instrument: InstrumentId, side: Side, price: Price) -> Result<(), Fault> {
        self.caps.check_symbol(instrument, None)?;
        let key = instrument.0.to_ne_bytes();
        let mut value = TouchValue::NONE;
        let set = self.maps.touch.value(&key, value.as_mut_bytes()).and_then(|()| {
            value.set(side, price);
            self.maps.touch.set(&key, value.as_bytes())
        });
        set.map_err(|_| Fault::Kernel)
    }

    fn commit(&mut self) -> Result<u32, Fault> {
        self.generation = self.generation.wrapping_add(1);
        if self.swap().is_err() {
            return Err(self.close(Fault::Kernel));
        }
        self.confirm()
    }

    /// Orders in trials, which no interface sees; none while the program is at an interface.
    fn submit(&mut self, slots: &[Slot]) -> usize {
        if self.with_trial_flow().is_err() {
            return 0;
        }
        let ran = slots.iter().take_while(|slot| {
            let frame = Trial::of(slot, false);
            self.trial.try_on(frame.as_bytes(), Trial::METADATA, 1).is_ok()
        });
        ran.count()
    }

    fn poll(&mut self, verdicts: &mut [Verdict]) -> usize {
        let mut count = 0;
        for place in verdicts {
            let Some(record) = self.record() else { break };
            *place = record.verdict;
            count += 1;
        }
        count
    }

    fn counters(&mut self) -> Counters {
        let counters = self.read_counters();
        Counters {
            received: counters.received.get(),
            passed: counters.passed.get(),
            refused: counters.refused.get(),
            reasons: counters.reasons.map(|count| count.get()),
        }
    }

    fn health(&mut self) -> Result<(), Fault> {
        if let Err(fault) = self.check_attached() {
            return Err(self.close(fault));
        }
        self.confirm()?;
        if !self.control.enable {
            return Ok(());
        }
        if ktime_ns() >= self.closes_at {
            return Err(self.close(Fault::HeartbeatLost));
        }
        self.put_control().map_err(|_| self.close(Fault::Kernel))
    }
}

impl Maps {
    fn named(&self, name: &str) -> Option<i32> {
        let map = match name {
            "table" => &self.table,
            "due" => &self.due,
            "touch" => &self.touch,
            "control" => &self.control,
            "counters" => &self.counters,
            "seen" => &self.seen,
            "flows" => &self.flows,
            _ => return None,
        };
        Some(map.as_raw_fd())
    }
}

impl fmt::Debug for Xdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xdp")
            .field("attached", &self.attached)
            .field("generation", &self.generation)
            .field("control", &self.control)
            .finish_non_exhaustive()
    }
}

/// The key of the only entry.
const FIRST: [u8; 4] = [0; 4];

/// The kernel's number of the map in force.
fn in_force(table: &Map) -> io::Result<u32> {
    let mut id = [0; 4];
    table.value(&FIRST, &mut id)?;
    Ok(u32::from_ne_bytes(id))
}

fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("an entry is a few bytes")
}
