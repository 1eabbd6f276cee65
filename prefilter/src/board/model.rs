//! The RTL with its rings in simulation, as a board: registers and host memory for [`Board`](super::Board).
//!
//! The board's clock goes on whenever the host looks at it: with each access to a register or to memory.

use super::DmaMem;
use crate::driver::Bar;
use core::cell::RefCell;
use core::ffi::c_void;
use std::rc::Rc;

/// The registers of the model.
#[derive(Clone, Debug)]
pub struct ModelBar(Rc<RefCell<Model>>);

/// The memory that it shares with its host.
#[derive(Clone, Debug)]
pub struct ModelMem(Rc<RefCell<Model>>);

/// What goes wrong on the board's way to memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Defect {
    /// Nothing.
    #[default]
    None,
    /// Verdicts never arrive.
    LosesWrites,
    /// A verdict is told twice, in the place of the next one.
    Repeats,
    /// The board is gone from the bus: registers read as all ones, nothing else happens.
    Gone,
}

#[derive(Debug)]
struct Model {
    model: *mut c_void,
    memory: Vec<u8>,
    defect: Defect,
    /// Answers to reads, in order; the memory takes a clock.
    answer: Option<u64>,
    /// The last verdict's words.
    last: [u64; 2],
    read_data: u32,
    /// Registers that read as something else.
    forged: Option<(u32, u32)>,
    clocks: u64,
}

/// Where the board has the memory: nothing but words of it is reached.
const BASE: u64 = 0x0001_2345_0000_0000;
/// Clocks that pass with each look into memory.
const CLOCKS: u32 = 16;

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct RingInputs {
    word_data: u64,
    write_data: u32,
    write_address: u16,
    read_address: u16,
    reset: u8,
    write: u8,
    ask_ready: u8,
    word_valid: u8,
    put_ready: u8,
    reserved: [u8; 3],
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct RingOutputs {
    ask_address: u64,
    put_address: u64,
    put_data: u64,
    read_data: u32,
    ask_valid: u8,
    put_valid: u8,
    reserved: [u8; 2],
}

const _: () = assert!(size_of::<RingInputs>() == 24);
const _: () = assert!(size_of::<RingOutputs>() == 32);

unsafe extern "C" {
    fn prefilter_rings_new() -> *mut c_void;
    fn prefilter_rings_free(model: *mut c_void);
    fn prefilter_rings_clock(model: *mut c_void, inputs: *const RingInputs, outputs: *mut RingOutputs);
}

/// A board with so many bytes of memory to share.
#[must_use]
pub fn board(memory_bytes: usize) -> (ModelBar, ModelMem) {
    let model = Model {
        // SAFETY: makes a model; nothing is asked of the caller.
        model: unsafe { prefilter_rings_new() },
        memory: vec![0; memory_bytes.next_multiple_of(8)],
        defect: Defect::None,
        answer: None,
        last: [0; 2],
        read_data: 0,
        forged: None,
        clocks: 0,
    };
    let model = Rc::new(RefCell::new(model));
    (ModelBar(Rc::clone(&model)), ModelMem(model))
}

impl ModelBar {
    /// Builds a defect in, or takes it out.
    pub fn set_defect(&self, defect: Defect) {
        self.0.borrow_mut().defect = defect;
    }

    /// A register reads as something else from now on; `None`: none does.
    pub fn forge(&self, register: Option<(u32, u32)>) {
        self.0.borrow_mut().forged = register;
    }

    /// Lets so many clocks pass.
    pub fn run(&self, clocks: u64) {
        let mut model = self.0.borrow_mut();
        for _ in 0..clocks {
            model.clock(RingInputs::default());
        }
    }
}

impl Bar for ModelBar {
    fn read(&mut self, offset: u32) -> u32 {
        let mut model = self.0.borrow_mut();
        model.clock(RingInputs {
            read_address: address(offset),
            ..RingInputs::default()
        });
        // What is read appears with the clock after the next.
        model.clock(RingInputs::default());
        model.clock(RingInputs::default());
        match (model.defect, model.forged) {
            (Defect::Gone, _) => u32::MAX,
            (_, Some((register, value))) if register == offset => value,
            _ => model.read_data,
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.0.borrow_mut().clock(RingInputs {
            write: 1,
            write_address: address(offset),
            write_data: value,
            ..RingInputs::default()
        });
    }

    fn reset(&mut self) {
        let mut model = self.0.borrow_mut();
        for _ in 0..4 {
            model.clock(RingInputs {
                reset: 1,
                ..RingInputs::default()
            });
        }
        model.answer = None;
    }
}

impl DmaMem for ModelMem {
    fn address(&self) -> u64 {
        BASE
    }

    fn length(&self) -> usize {
        self.0.borrow().memory.len()
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.0.borrow_mut().memory[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn read(&mut self, offset: usize, bytes: &mut [u8]) {
        let mut model = self.0.borrow_mut();
        for _ in 0..CLOCKS {
            model.clock(RingInputs::default());
        }
        bytes.copy_from_slice(&model.memory[offset..offset + bytes.len()]);
    }
}

impl Model {
    fn clock(&mut self, mut inputs: RingInputs) {
        if self.defect == Defect::Gone {
            return;
        }
        self.clocks += 1;
        // Memory is not always ready.
        inputs.ask_ready = u8::from(!self.clocks.is_multiple_of(3));
        inputs.put_ready = u8::from(!self.clocks.is_multiple_of(5));
        if let Some(word) = self.answer.take() {
            inputs.word_valid = 1;
            inputs.word_data = word;
        }
        let mut outputs = RingOutputs::default();
        // SAFETY: the model lives until the drop; the structs are laid out as the shim's.
        unsafe { prefilter_rings_clock(self.model, &raw const inputs, &raw mut outputs) };
        self.read_data = outputs.read_data;
        if inputs.reset == 1 {
            return;
        }
        if outputs.ask_valid & inputs.ask_ready == 1 {
            self.answer = Some(self.word(outputs.ask_address));
        }
        if outputs.put_valid & inputs.put_ready == 1 {
            self.put(outputs.put_address, outputs.put_data);
        }
    }

    fn word(&self, address: u64) -> u64 {
        let place = place(address);
        u64::from_le_bytes(self.memory[place..place + 8].try_into().expect("eight bytes"))
    }

    fn put(&mut self, address: u64, word: u64) {
        let upper = usize::from(address & 8 != 0);
        // The phase is that of its place, whatever is repeated.
        const PHASE: u64 = 0xff << 56;
        let told = match (self.defect, upper) {
            (Defect::LosesWrites, _) => return,
            (Defect::Repeats, 0) => self.last[0],
            (Defect::Repeats, _) => self.last[1] & !PHASE | word & PHASE,
            _ => word,
        };
        self.last[upper] = told;
        let place = place(address);
        self.memory[place..place + 8].copy_from_slice(&told.to_le_bytes());
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: nobody uses the model after this.
        unsafe { prefilter_rings_free(self.model) };
    }
}

fn place(address: u64) -> usize {
    usize::try_from(address - BASE).expect("the board stays within the memory that it was given")
}

fn address(offset: u32) -> u16 {
    u16::try_from(offset).expect("the map is below 4 KiB")
}
