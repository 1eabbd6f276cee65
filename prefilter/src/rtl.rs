//! The RTL as a backend: the verilated model, clocked from here, orders going in and out by its streams.

use crate::PreFilter;
use crate::abi::{MESSAGE_LENGTH, POST_ONLY, Slot, Verdict};
use crate::driver::{Bar, Driver};
use crate::limits::{Caps, Control, Counters, Fault, SessionLimits, SymbolLimits};
use core::ffi::c_void;
use std::collections::VecDeque;
use types::{InstrumentId, Price, SessionId, Side};
use zerocopy::FromBytes;

/// How wide the streams of the model are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// Eight bytes a beat.
    Bits64,
    /// 64 bytes a beat.
    Bits512,
}

/// The model with its host side.
#[derive(Debug)]
pub struct Rtl {
    driver: Driver<Simulation>,
}

/// The model and the ends of its streams.
#[derive(Debug)]
pub struct Simulation {
    model: *mut c_void,
    width: Width,
    /// Stalls and gaps at random when it is not 0.
    random: u64,
    cycle: u64,
    waiting: VecDeque<Wire>,
    /// Bytes of the first of those that have gone in.
    sent: usize,
    /// Gone in, and not yet out again.
    passing: VecDeque<Wire>,
    verdicts: VecDeque<Verdict>,
    /// By side: frames that have their verdict and must come out, in order. Index 1: those that were refused.
    judged: [VecDeque<Wire>; 2],
    /// What has come of a frame on either side.
    coming: [Vec<u8>; 2],
    /// By side: frames that came out, perhaps before their verdict was taken, and when they began to.
    came: [VecDeque<(Vec<u8>, u64)>; 2],
    first_out: [u64; 2],
    timing: Timing,
    read_data: u32,
}

/// What was seen of the model's clock, and of frames that came out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timing {
    /// Most clocks from a frame's first beat to its verdict.
    pub verdict_max: u64,
    /// Most clocks from a frame's first beat in to its first beat out.
    pub first_out_max: u64,
    /// Fewest clocks between the first beats of two frames.
    pub interval_min: u64,
    /// Frames that came out on either side.
    pub frames_out: u64,
    /// Frames that came out where or as they should not.
    pub wrong_frames: u64,
    /// Frames that came out without a verdict, or have one and did not come out.
    pub frames_left: u64,
    began_last: u64,
}

#[derive(Clone, Debug)]
struct Wire {
    bytes: Vec<u8>,
    now: u64,
    post_only: bool,
    sequence: u32,
    began: u64,
}

/// Frames that wait to go in, at most.
const WAITING_MAX: usize = 64;
/// Clocks that a poll without a verdict takes, at most.
const POLL_CLOCKS: u32 = 64;
/// Longest frame that is made of a slot whose length is beyond its message, bytes.
const FRAME_MAX: usize = 256;
/// The board's patience with its host, clocks.
pub const HEARTBEAT_CYCLES: u32 = 1 << 31;

#[derive(Clone, Copy)]
#[repr(C)]
struct Inputs {
    now: u64,
    s_keep: u64,
    s_data: [u8; 64],
    write_data: u32,
    write_address: u16,
    read_address: u16,
    reset: u8,
    write: u8,
    s_valid: u8,
    s_last: u8,
    s_user: u8,
    m_ready: u8,
    r_ready: u8,
    v_ready: u8,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Outputs {
    keep: [u64; 2],
    data: [[u8; 64]; 2],
    v_data: [u8; 16],
    read_data: u32,
    s_ready: u8,
    m_valid: u8,
    m_last: u8,
    r_valid: u8,
    r_last: u8,
    v_valid: u8,
    reserved: [u8; 2],
}

const _: () = assert!(size_of::<Inputs>() == 96);
const _: () = assert!(size_of::<Outputs>() == 176);

unsafe extern "C" {
    fn prefilter64_new() -> *mut c_void;
    fn prefilter64_free(model: *mut c_void);
    fn prefilter64_clock(model: *mut c_void, inputs: *const Inputs, outputs: *mut Outputs);
    fn prefilter512_new() -> *mut c_void;
    fn prefilter512_free(model: *mut c_void);
    fn prefilter512_clock(model: *mut c_void, inputs: *const Inputs, outputs: *mut Outputs);
}

impl Rtl {
    /// A model after its reset. With a seed other than 0 both ends of every stream stall at random.
    ///
    /// # Errors
    /// The model does not answer as a board does.
    pub fn new(width: Width, seed: u64) -> Result<Self, Fault> {
        Self::with_heartbeat(width, seed, HEARTBEAT_CYCLES)
    }

    /// The same, of another patience.
    ///
    /// # Errors
    /// The model does not answer as a board does.
    pub fn with_heartbeat(width: Width, seed: u64, heartbeat_cycles: u32) -> Result<Self, Fault> {
        let mut simulation = Simulation::new(width, seed);
        simulation.reset();
        let driver = Driver::open(simulation, heartbeat_cycles)?;
        Ok(Self { driver })
    }

    /// The model, to look at or to break.
    pub const fn simulation(&mut self) -> &mut Simulation {
        self.driver.bar()
    }
}

impl PreFilter for Rtl {
    fn caps(&self) -> Caps {
        self.driver.caps()
    }

    fn set_control(&mut self, control: Control) -> Result<(), Fault> {
        self.driver.set_control(control)
    }

    fn set_symbol(&mut self, instrument: InstrumentId, limits: Option<SymbolLimits>) -> Result<(), Fault> {
        self.driver.set_symbol(instrument, limits)
    }

    fn set_session(&mut self, session: SessionId, limits: Option<SessionLimits>) -> Result<(), Fault> {
        self.driver.set_session(session, limits)
    }

    fn set_touch(&mut self, instrument: InstrumentId, side: Side, price: Price) -> Result<(), Fault> {
        self.driver.set_touch(instrument, side, price)
    }

    fn commit(&mut self) -> Result<u32, Fault> {
        self.driver.commit()
    }

    fn submit(&mut self, slots: &[Slot]) -> usize {
        self.driver.bar().submit(slots)
    }

    fn poll(&mut self, verdicts: &mut [Verdict]) -> usize {
        self.driver.bar().poll(verdicts)
    }

    fn counters(&mut self) -> Counters {
        self.driver.counters()
    }

    fn health(&mut self) -> Result<(), Fault> {
        self.driver.health()
    }
}

impl Bar for Simulation {
    fn read(&mut self, offset: u32) -> u32 {
        self.clock(|inputs| inputs.read_address = address(offset));
        // What is read appears with the clock after the next.
        self.clock(|_| {});
        self.clock(|_| {});
        self.read_data
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.clock(|inputs| {
            inputs.write = 1;
            inputs.write_address = address(offset);
            inputs.write_data = value;
        });
    }

    fn reset(&mut self) {
        Self::reset(self);
    }
}

impl Simulation {
    fn new(width: Width, seed: u64) -> Self {
        // SAFETY: makes a model; nothing is asked of the caller.
        let model = unsafe {
            match width {
                Width::Bits64 => prefilter64_new(),
                Width::Bits512 => prefilter512_new(),
            }
        };
        Self {
            model,
            width,
            random: seed,
            cycle: 0,
            waiting: VecDeque::new(),
            sent: 0,
            passing: VecDeque::new(),
            verdicts: VecDeque::new(),
            judged: [VecDeque::new(), VecDeque::new()],
            coming: [Vec::new(), Vec::new()],
            came: [VecDeque::new(), VecDeque::new()],
            first_out: [0; 2],
            timing: Timing {
                interval_min: u64::MAX,
                ..Timing::default()
            },
            read_data: 0,
        }
    }

    /// Pulls the reset line.
    pub fn reset(&mut self) {
        for _ in 0..4 {
            self.clock(|inputs| inputs.reset = 1);
        }
    }

    /// Lets so many clocks pass.
    pub fn run(&mut self, clocks: u64) {
        for _ in 0..clocks {
            self.clock(|_| {});
        }
    }

    /// What was seen so far.
    #[must_use]
    pub fn timing(&self) -> Timing {
        let left =
            self.judged.iter().map(VecDeque::len).sum::<usize>() + self.came.iter().map(VecDeque::len).sum::<usize>();
        Timing {
            frames_left: left as u64,
            ..self.timing
        }
    }

    fn submit(&mut self, slots: &[Slot]) -> usize {
        let count = slots.len().min(WAITING_MAX - self.waiting.len());
        self.waiting.extend(slots[..count].iter().map(Wire::of));
        count
    }

    fn poll(&mut self, verdicts: &mut [Verdict]) -> usize {
        for _ in 0..POLL_CLOCKS {
            if !self.verdicts.is_empty() {
                break;
            }
            self.clock(|_| {});
        }
        let count = verdicts.len().min(self.verdicts.len());
        for (place, verdict) in verdicts.iter_mut().zip(self.verdicts.drain(..count)) {
            *place = verdict;
        }
        count
    }

    /// One clock: the streams go on, and the registers do what is set.
    fn clock(&mut self, set: impl FnOnce(&mut Inputs)) {
        let width = self.width.bytes();
        let mut inputs = Inputs {
            now: 0,
            s_keep: 0,
            s_data: [0; 64],
            write_data: 0,
            write_address: 0,
            read_address: 0,
            reset: 0,
            write: 0,
            s_valid: 0,
            s_last: 0,
            s_user: 0,
            m_ready: u8::from(!self.stalls()),
            r_ready: u8::from(!self.stalls()),
            v_ready: u8::from(!self.stalls()),
        };
        set(&mut inputs);
        let gap = self.stalls() || inputs.reset == 1;
        let mut beat = 0;
        if let Some(frame) = self.waiting.front().filter(|_| !gap) {
            let rest = &frame.bytes[self.sent..];
            beat = rest.len().min(width);
            inputs.s_data[..beat].copy_from_slice(&rest[..beat]);
            inputs.s_keep = if beat == 64 { u64::MAX } else { (1 << beat) - 1 };
            inputs.s_valid = 1;
            inputs.s_last = u8::from(beat == rest.len());
            inputs.s_user = u8::from(frame.post_only);
            inputs.now = frame.now;
        }
        let outputs = self.eval(&inputs);
        self.read_data = outputs.read_data;
        if inputs.reset == 0 {
            if inputs.s_valid & outputs.s_ready == 1 {
                self.beat_taken(beat, inputs.s_last == 1);
            }
            if inputs.v_ready & outputs.v_valid == 1 {
                self.verdict_came(&outputs);
            }
            for (side, valid, ready, last) in [
                (0, outputs.m_valid, inputs.m_ready, outputs.m_last),
                (1, outputs.r_valid, inputs.r_ready, outputs.r_last),
            ] {
                if valid & ready == 1 {
                    self.beat_came(side, &outputs, last == 1);
                }
            }
        }
        self.cycle += 1;
    }

    fn beat_taken(&mut self, length: usize, is_last: bool) {
        if self.sent == 0
            && let Some(frame) = self.waiting.front_mut()
        {
            frame.began = self.cycle;
            let interval = self.cycle - self.timing.began_last;
            self.timing.interval_min = self.timing.interval_min.min(interval.max(1));
            self.timing.began_last = self.cycle;
        }
        self.sent += length;
        if is_last {
            self.sent = 0;
            self.passing.extend(self.waiting.pop_front());
        }
    }

    fn verdict_came(&mut self, outputs: &Outputs) {
        let mut verdict = Verdict::read_from_bytes(&outputs.v_data).expect("16 bytes");
        // The model numbers frames as they come; the caller by his own numbers.
        if let Some(frame) = self.passing.pop_front() {
            verdict.sequence = frame.sequence.into();
            self.timing.verdict_max = self.timing.verdict_max.max(self.cycle - frame.began);
            self.judged[usize::from(verdict.reasons.get() != 0)].push_back(frame);
            self.compare();
        }
        self.verdicts.push_back(verdict);
    }

    fn beat_came(&mut self, side: usize, outputs: &Outputs, is_last: bool) {
        let coming = &mut self.coming[side];
        if coming.is_empty() {
            self.first_out[side] = self.cycle;
        }
        let kept = outputs.keep[side].count_ones() as usize;
        coming.extend_from_slice(&outputs.data[side][..kept]);
        if !is_last {
            return;
        }
        let bytes = std::mem::take(coming);
        self.timing.frames_out += 1;
        self.came[side].push_back((bytes, self.first_out[side]));
        self.compare();
    }

    /// Frames that came out with those that had to.
    fn compare(&mut self) {
        for (judged, came) in self.judged.iter_mut().zip(&mut self.came) {
            while !judged.is_empty() && !came.is_empty() {
                let (Some(frame), Some((bytes, first_out))) = (judged.pop_front(), came.pop_front()) else {
                    return;
                };
                let kept = frame.bytes.len().min(MESSAGE_LENGTH);
                self.timing.wrong_frames += u64::from(bytes != frame.bytes[..kept]);
                self.timing.first_out_max = self.timing.first_out_max.max(first_out - frame.began);
            }
        }
    }

    fn eval(&mut self, inputs: &Inputs) -> Outputs {
        let mut outputs = Outputs {
            keep: [0; 2],
            data: [[0; 64]; 2],
            v_data: [0; 16],
            read_data: 0,
            s_ready: 0,
            m_valid: 0,
            m_last: 0,
            r_valid: 0,
            r_last: 0,
            v_valid: 0,
            reserved: [0; 2],
        };
        // SAFETY: the model is of this width and lives until the drop; the structs are laid out as the shim's.
        unsafe {
            match self.width {
                Width::Bits64 => prefilter64_clock(self.model, inputs, &raw mut outputs),
                Width::Bits512 => prefilter512_clock(self.model, inputs, &raw mut outputs),
            }
        }
        outputs
    }

    /// One in four, when it is to stall at all.
    fn stalls(&mut self) -> bool {
        if self.random == 0 {
            return false;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 20 & 3 == 0
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // SAFETY: the model is of this width and nobody uses it after this.
        unsafe {
            match self.width {
                Width::Bits64 => prefilter64_free(self.model),
                Width::Bits512 => prefilter512_free(self.model),
            }
        }
    }
}

impl Width {
    const fn bytes(self) -> usize {
        match self {
            Self::Bits64 => 8,
            Self::Bits512 => 64,
        }
    }
}

impl Wire {
    fn of(slot: &Slot) -> Self {
        let mut bytes = slot.message.to_vec();
        bytes.resize(usize::from(slot.length.get()).min(FRAME_MAX), 0);
        Self {
            bytes,
            now: slot.now.get(),
            post_only: slot.flags & POST_ONLY != 0,
            sequence: slot.sequence.get(),
            began: 0,
        }
    }
}

fn address(offset: u32) -> u16 {
    u16::try_from(offset).expect("the map is below 4 KiB")
}
