//! A board beside the host: registers in a BAR, orders and verdicts in rings in the host's memory.
//!
//! A slot is written, then one doorbell for all that were; a verdict is seen in memory, by its phase. No register is read or
//! written otherwise on the way of an order. After a fault nothing is taken and nothing is told, until [`Board::recover`].

#[cfg(feature = "rtl-sim")]
pub mod model;
pub mod vfio;

use crate::PreFilter;
use crate::abi::{Slot, Verdict};
use crate::driver::{Bar, Driver};
use crate::limits::{Caps, Control, Counters, Fault, SessionLimits, SymbolLimits};
use crate::registers as register;
use std::collections::BTreeMap;
use std::sync::atomic::{Ordering, fence};
use types::{InstrumentId, Price, SessionId, Side};
use zerocopy::{FromZeros, IntoBytes};

/// Memory of the host that the board reads and writes too.
pub trait DmaMem {
    /// Where the board has it.
    fn address(&self) -> u64;
    /// Bytes.
    fn length(&self) -> usize;
    /// Copies in.
    ///
    /// # Panics
    /// It reaches over the end.
    fn write(&mut self, offset: usize, bytes: &[u8]);
    /// Copies out.
    ///
    /// # Panics
    /// It reaches over the end.
    fn read(&mut self, offset: usize, bytes: &mut [u8]);
}

/// The host's end.
#[derive(Debug)]
pub struct Board<B, M> {
    driver: Driver<B>,
    /// The submission ring, and behind it the completion ring.
    memory: M,
    entries_log2: u32,
    /// Slots put in and verdicts taken out since the last reset; they turn over.
    tail: u32,
    head: u32,
    /// The numbers of the slots under way, by place.
    numbers: Box<[u32]>,
    fault: Option<Fault>,
    /// All that is in force or said, to be said again after a reset.
    symbols: BTreeMap<u32, SymbolLimits>,
    sessions: BTreeMap<u16, SessionLimits>,
    /// Where `head` was at the last heartbeat, and for how many it has stood there with orders under way.
    head_seen: u32,
    idle_beats: u32,
}

/// Fewest and most entries of a ring, as log2.
pub const ENTRIES_LOG2: core::ops::RangeInclusive<u32> = 1..=16;

/// Heartbeats without a verdict, while orders are under way, after which one is overdue.
pub const IDLE_BEATS_MAX: u32 = 3;

const SLOT: usize = size_of::<Slot>();
const VERDICT: usize = size_of::<Verdict>();

/// Bytes of memory that rings of so many entries take.
#[must_use]
pub const fn memory_bytes(entries_log2: u32) -> usize {
    (SLOT + VERDICT) << entries_log2
}

impl<B: Bar, M: DmaMem> Board<B, M> {
    /// Resets a board and takes it over; closed, without limits. The rings have `1 << entries_log2` entries in `memory`. The
    /// board closes by itself when [`health`](PreFilter::health) is not called every `heartbeat_cycles` of its clock.
    ///
    /// # Errors
    /// There is no board that can be used, or it has no rings.
    ///
    /// # Panics
    /// The memory is shorter than [`memory_bytes`], or the entries are outside [`ENTRIES_LOG2`].
    pub fn open(mut bar: B, memory: M, entries_log2: u32, heartbeat_cycles: u32) -> Result<Self, Fault> {
        assert!(ENTRIES_LOG2.contains(&entries_log2), "entries within their range");
        assert!(memory.length() >= memory_bytes(entries_log2), "room for both rings");
        bar.reset();
        let mut board = Self {
            driver: Driver::open(bar, heartbeat_cycles)?,
            memory,
            entries_log2,
            tail: 0,
            head: 0,
            numbers: vec![0; 1 << entries_log2].into(),
            fault: None,
            symbols: BTreeMap::new(),
            sessions: BTreeMap::new(),
            head_seen: 0,
            idle_beats: 0,
        };
        board.start_rings()?;
        Ok(board)
    }

    /// What is wrong with it since its last recovery.
    #[must_use]
    pub const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The board's end, to look at or to break.
    pub const fn bar(&mut self) -> &mut B {
        self.driver.bar()
    }

    /// Resets it and says all limits again, under a generation of its own; it is closed until it is enabled anew. Gives how
    /// many orders were under way: they have no verdict and never get one.
    ///
    /// # Errors
    /// It is still not well.
    pub fn recover(&mut self) -> Result<u32, Fault> {
        let lost = self.tail.wrapping_sub(self.head);
        let outcome = self.restart();
        self.fault = outcome.err();
        outcome.map(|()| lost)
    }

    fn restart(&mut self) -> Result<(), Fault> {
        self.driver.reset()?;
        self.start_rings()?;
        for (&id, &limits) in &self.symbols {
            self.driver.set_symbol(InstrumentId(id), Some(limits))?;
        }
        for (&id, &limits) in &self.sessions {
            self.driver.set_session(SessionId(id), Some(limits))?;
        }
        self.driver.commit()?;
        Ok(())
    }

    fn start_rings(&mut self) -> Result<(), Fault> {
        let word = self.bar().read(register::CAPS);
        if word & register::CAPS_RINGS == 0 {
            return Err(Fault::WrongCaps(word));
        }
        // A phase of 0 everywhere: the first round is written with 1.
        let completions = SLOT << self.entries_log2;
        for place in 0..1 << self.entries_log2 {
            self.memory.write(completions + place * VERDICT, &[0; VERDICT]);
        }
        (self.tail, self.head, self.head_seen, self.idle_beats) = (0, 0, 0, 0);
        let submission = self.memory.address();
        let completion = submission + completions as u64;
        let log2 = self.entries_log2;
        let bar = self.driver.bar();
        write_wide(bar, register::SUBMISSION_LOW, register::SUBMISSION_HIGH, submission);
        write_wide(bar, register::COMPLETION_LOW, register::COMPLETION_HIGH, completion);
        bar.write(register::RING_CONTROL, register::RING_ON | log2);
        Ok(())
    }

    fn place(&self, count: u32) -> usize {
        (count & ((1 << self.entries_log2) - 1)) as usize
    }

    /// The phase that the next verdict has.
    fn phase(&self) -> u8 {
        u8::from(self.head >> self.entries_log2 & 1 == 0)
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.fault = Some(fault);
        self.driver.close(fault)
    }

    fn guard<R>(&mut self, act: impl FnOnce(&mut Driver<B>) -> Result<R, Fault>) -> Result<R, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let outcome = act(&mut self.driver);
        if let Err(fault) = outcome
            && fault.is_of_the_backend()
        {
            self.fail(fault);
        }
        outcome
    }
}

impl<B: Bar, M: DmaMem> PreFilter for Board<B, M> {
    fn caps(&self) -> Caps {
        self.driver.caps()
    }

    fn set_control(&mut self, control: Control) -> Result<(), Fault> {
        self.guard(|driver| driver.set_control(control))
    }

    fn set_symbol(&mut self, instrument: InstrumentId, limits: Option<SymbolLimits>) -> Result<(), Fault> {
        self.guard(|driver| driver.set_symbol(instrument, limits))?;
        match limits {
            Some(limits) => self.symbols.insert(instrument.0, limits),
            None => self.symbols.remove(&instrument.0),
        };
        Ok(())
    }

    fn set_session(&mut self, session: SessionId, limits: Option<SessionLimits>) -> Result<(), Fault> {
        self.guard(|driver| driver.set_session(session, limits))?;
        match limits {
            Some(limits) => self.sessions.insert(session.0, limits),
            None => self.sessions.remove(&session.0),
        };
        Ok(())
    }

    fn set_touch(&mut self, instrument: InstrumentId, side: Side, price: Price) -> Result<(), Fault> {
        self.guard(|driver| driver.set_touch(instrument, side, price))
    }

    fn commit(&mut self) -> Result<u32, Fault> {
        self.guard(Driver::commit)
    }

    fn submit(&mut self, slots: &[Slot]) -> usize {
        let room = (1 << self.entries_log2) - self.tail.wrapping_sub(self.head) as usize;
        let count = slots.len().min(room);
        if count == 0 || self.fault.is_some() {
            return 0;
        }
        for slot in &slots[..count] {
            let place = self.place(self.tail);
            self.memory.write(place * SLOT, slot.as_bytes());
            self.numbers[place] = slot.sequence.get();
            self.tail = self.tail.wrapping_add(1);
        }
        // The board must not see the doorbell before the slots.
        fence(Ordering::Release);
        let tail = self.tail;
        self.bar().write(register::SUBMISSION_TAIL, tail);
        count
    }

    fn poll(&mut self, verdicts: &mut [Verdict]) -> usize {
        let completions = SLOT << self.entries_log2;
        let mut count = 0;
        while count < verdicts.len() && self.head != self.tail && self.fault.is_none() {
            let place = self.place(self.head);
            let offset = completions + place * VERDICT;
            let mut phase = [0];
            self.memory.read(offset + VERDICT - 1, &mut phase);
            if phase[0] != self.phase() {
                break;
            }
            // What stands before the phase was written before it.
            fence(Ordering::Acquire);
            let mut verdict = Verdict::new_zeroed();
            self.memory.read(offset, verdict.as_mut_bytes());
            let (expected, found) = (self.numbers[place], verdict.sequence.get());
            if found != expected {
                self.fail(Fault::SequenceGap { expected, found });
                break;
            }
            self.head = self.head.wrapping_add(1);
            verdicts[count] = verdict;
            count += 1;
        }
        count
    }

    fn counters(&mut self) -> Counters {
        self.driver.counters()
    }

    fn health(&mut self) -> Result<(), Fault> {
        self.guard(Driver::health)?;
        let stands = self.head != self.tail && self.head == self.head_seen;
        self.idle_beats = if stands { self.idle_beats + 1 } else { 0 };
        self.head_seen = self.head;
        if self.idle_beats >= IDLE_BEATS_MAX {
            let sequence = self.numbers[self.place(self.head)];
            return Err(self.fail(Fault::Overdue { sequence }));
        }
        Ok(())
    }
}

#[allow(clippy::cast_possible_truncation, reason = "takes both halves")]
fn write_wide(bar: &mut impl Bar, low: u32, high: u32, value: u64) {
    bar.write(low, value as u32);
    bar.write(high, (value >> 32) as u32);
}
