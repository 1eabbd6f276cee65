//! What the host does with the registers of a board, wherever they are: on the bus or in a simulation.

use crate::abi::{ABI_VERSION, Reasons};
use crate::limits::{Caps, Control, Counters, Fault, SessionLimits, Staged, SymbolLimits};
use crate::registers as register;
use types::{InstrumentId, Price, SessionId, Side};

/// The registers of a board: 32 bits each, by byte offset.
pub trait Bar {
    /// Reads one. A board that is gone reads as all ones.
    fn read(&mut self, offset: u32) -> u32;
    /// Writes one.
    fn write(&mut self, offset: u32, value: u32);
    /// Resets the board, as the bus can.
    fn reset(&mut self);
}

/// The control side of a board.
#[derive(Debug)]
pub struct Driver<B> {
    bar: B,
    caps: Caps,
    /// Said since the last commit: it is in one bank only and goes into the other when the banks have swapped.
    staged: Vec<Staged>,
    generation: u32,
    heartbeat_cycles: u32,
    is_closed: bool,
}

/// Reads of the status until the board is ready after a reset, and until a swap is done.
const STATUS_READS_MAX: u32 = 1 << 20;

impl<B: Bar> Driver<B> {
    /// Takes over a board that was reset and waits until its tables are cleared. It closes by itself when
    /// [`health`](Self::health) is not called every `heartbeat_cycles` of its clock.
    ///
    /// # Errors
    /// There is no board that can be used.
    pub fn open(mut bar: B, heartbeat_cycles: u32) -> Result<Self, Fault> {
        let caps = identify(&mut bar)?;
        let mut driver = Self {
            bar,
            caps,
            staged: Vec::with_capacity(caps.symbols as usize + caps.sessions as usize),
            generation: 0,
            heartbeat_cycles,
            is_closed: true,
        };
        driver.begin()?;
        Ok(driver)
    }

    /// Resets the board and waits until its tables are cleared: it has no limits, and is closed. Generations count on.
    ///
    /// # Errors
    /// There is no board that can be used, or it is another one.
    pub fn reset(&mut self) -> Result<(), Fault> {
        self.bar.reset();
        self.is_closed = true;
        self.staged.clear();
        if identify(&mut self.bar)? != self.caps {
            let caps = self.bar.read(register::CAPS);
            return Err(Fault::WrongCaps(caps));
        }
        self.begin()
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.wait(|status| status & register::STATUS_READY != 0, Fault::Reset)?;
        // One that was not reset has limits of somebody else in its tables.
        let found = self.bar.read(register::GENERATION);
        if found != 0 {
            return Err(Fault::WrongGeneration { committed: 0, found });
        }
        Ok(())
    }

    /// What the board can hold.
    #[must_use]
    pub const fn caps(&self) -> Caps {
        self.caps
    }

    /// The registers, for what is not the control side's.
    pub const fn bar(&mut self) -> &mut B {
        &mut self.bar
    }

    /// Opens, closes or kills.
    ///
    /// # Errors
    /// The board did not open.
    pub fn set_control(&mut self, control: Control) -> Result<(), Fault> {
        let enable = if control.enable { register::CONTROL_ENABLE } else { 0 };
        let kill = if control.kill { register::CONTROL_KILL } else { 0 };
        self.bar.write(register::HEARTBEAT, self.heartbeat_cycles);
        self.bar.write(register::CONTROL, enable | kill);
        self.is_closed = !control.enable;
        self.health()
    }

    /// Stages the limits of an instrument.
    ///
    /// # Errors
    /// The board cannot hold them.
    pub fn set_symbol(&mut self, instrument: InstrumentId, limits: Option<SymbolLimits>) -> Result<(), Fault> {
        self.caps.check_symbol(instrument, limits)?;
        self.stage(Staged::Symbol(instrument, limits))
    }

    /// Stages the limits of a session.
    ///
    /// # Errors
    /// The board cannot hold them.
    pub fn set_session(&mut self, session: SessionId, limits: Option<SessionLimits>) -> Result<(), Fault> {
        self.caps.check_session(session, limits)?;
        self.stage(Staged::Session(session, limits))
    }

    /// Sets the best price of a side.
    ///
    /// # Errors
    /// The instrument is not in the board's table.
    pub fn set_touch(&mut self, instrument: InstrumentId, side: Side, price: Price) -> Result<(), Fault> {
        self.caps.check_symbol(instrument, None)?;
        let is_ask = side == Side::Sell;
        let price = if is_ask && price.is_null() { i64::MAX } else { price.0 };
        self.write_wide(register::TOUCH_LOW, register::TOUCH_HIGH, price);
        self.bar
            .write(register::TOUCH_COMMIT, instrument.0 | u32::from(is_ask) << 24);
        Ok(())
    }

    /// Swaps the banks, and brings the one that was in force up to date.
    ///
    /// # Errors
    /// The board does not confirm the generation.
    pub fn commit(&mut self) -> Result<u32, Fault> {
        let committed = self.generation.wrapping_add(1);
        self.bar.write(register::GENERATION, committed);
        let unconfirmed = Fault::WrongGeneration {
            committed,
            found: self.generation,
        };
        self.wait(|status| status & register::STATUS_SWAPPING == 0, unconfirmed)?;
        let found = self.bar.read(register::GENERATION);
        if found != committed {
            return Err(self.close(Fault::WrongGeneration { committed, found }));
        }
        self.generation = committed;
        for place in 0..self.staged.len() {
            self.put(self.staged[place]);
        }
        self.staged.clear();
        Ok(committed)
    }

    /// Reads the counters.
    pub fn counters(&mut self) -> Counters {
        let mut read = |offset| u64::from(self.bar.read(offset));
        let mut reasons = [0; Reasons::COUNT];
        for (count, offset) in reasons.iter_mut().zip((register::REASONS..).step_by(4)) {
            *count = read(offset);
        }
        Counters {
            received: read(register::RECEIVED),
            passed: read(register::PASSED),
            refused: read(register::REFUSED),
            reasons,
        }
    }

    /// Writes the heartbeat and looks whether the board is as the host left it.
    ///
    /// # Errors
    /// What is wrong with it; it is closed then.
    pub fn health(&mut self) -> Result<(), Fault> {
        let id = self.bar.read(register::ID);
        if id != register::ID_VALUE {
            return Err(self.close(Fault::NotAPreFilter(id)));
        }
        let status = self.bar.read(register::STATUS);
        if status & register::STATUS_HEARTBEAT_LOST != 0 {
            return Err(self.close(Fault::HeartbeatLost));
        }
        let found = self.bar.read(register::GENERATION);
        if found == 0 && self.generation != 0 {
            return Err(self.close(Fault::Reset));
        }
        if found != self.generation {
            let committed = self.generation;
            return Err(self.close(Fault::WrongGeneration { committed, found }));
        }
        if !self.is_closed && status & register::STATUS_OPEN == 0 {
            return Err(self.close(Fault::Reset));
        }
        self.bar.write(register::HEARTBEAT, self.heartbeat_cycles);
        Ok(())
    }

    /// Closes the board, as far as it still listens.
    pub fn close(&mut self, fault: Fault) -> Fault {
        self.bar.write(register::CONTROL, 0);
        self.is_closed = true;
        fault
    }

    fn stage(&mut self, change: Staged) -> Result<(), Fault> {
        if self.staged.len() == self.staged.capacity() {
            return Err(Fault::StageFull);
        }
        self.staged.push(change);
        self.put(change);
        Ok(())
    }

    /// Writes limits into the bank that is not in force.
    fn put(&mut self, change: Staged) {
        match change {
            Staged::Symbol(instrument, limits) => {
                self.bar.write(
                    register::SYMBOL_MAX_QUANTITY,
                    limits.map_or(0, |limits| limits.max_quantity),
                );
                if let Some(limits) = limits {
                    self.write_wide(
                        register::SYMBOL_LOWEST_LOW,
                        register::SYMBOL_LOWEST_HIGH,
                        limits.lowest.0,
                    );
                    self.write_wide(
                        register::SYMBOL_HIGHEST_LOW,
                        register::SYMBOL_HIGHEST_HIGH,
                        limits.highest.0,
                    );
                }
                let route = limits.map_or(0, |limits| limits.route);
                self.bar
                    .write(register::SYMBOL_COMMIT, instrument.0 | u32::from(route) << 24);
            }
            Staged::Session(session, limits) => {
                self.bar.write(
                    register::SESSION_INTERVAL,
                    limits.map_or(0, |limits| limits.interval_ns),
                );
                let ahead = limits.map_or(0, |limits| limits.ahead_ns);
                self.write_wide(
                    register::SESSION_AHEAD_LOW,
                    register::SESSION_AHEAD_HIGH,
                    ahead.cast_signed(),
                );
                self.bar.write(register::SESSION_COMMIT, session.0.into());
            }
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "takes both halves")]
    fn write_wide(&mut self, low: u32, high: u32, value: i64) {
        self.bar.write(low, value as u32);
        self.bar.write(high, (value >> 32) as u32);
    }

    fn wait(&mut self, done: impl Fn(u32) -> bool, fault: Fault) -> Result<(), Fault> {
        for _ in 0..STATUS_READS_MAX {
            let status = self.bar.read(register::STATUS);
            if status != u32::MAX && done(status) {
                return Ok(());
            }
        }
        Err(self.close(fault))
    }
}

/// What stands behind the registers.
fn identify(bar: &mut impl Bar) -> Result<Caps, Fault> {
    let id = bar.read(register::ID);
    if id != register::ID_VALUE {
        return Err(Fault::NotAPreFilter(id));
    }
    let abi = bar.read(register::ABI);
    if abi != ABI_VERSION {
        return Err(Fault::WrongAbi(abi));
    }
    let word = bar.read(register::CAPS);
    let (symbols_log2, sessions_log2) = (word & 0xff, word >> 8 & 0xff);
    if !(1..=24).contains(&symbols_log2) || !(1..=16).contains(&sessions_log2) {
        return Err(Fault::WrongCaps(word));
    }
    Ok(Caps {
        symbols: 1 << symbols_log2,
        sessions: 1 << sessions_log2,
    })
}
