//! The order pre-filter: one verdict function, in software, in the kernel or on a board, that may only refuse.
//!
//! Orders in the native 48 bytes go in, verdicts of 16 bytes come out, by submit and poll: the only shape that fits
//! software, a simulation and a board alike. The host's own risk checks always stay behind it, so that no fault of a board
//! widens a limit. `docs/prefilter.md` has the rules and the layouts as tables; [`abi`] and [`registers`] are the same for
//! programs.
//!
//! | module | what it is |
//! |---|---|
//! | [`abi`] | slots, verdicts, reasons |
//! | [`registers`] | the register map of a board |
//! | [`message`] | the 48 bytes, as the filter sees them |
//! | [`software`] | the backend in software, which is the reference in Rust |
//! | [`driver`] | what the host does with those registers |
//! | [`board`] | a board with rings in the host's memory |
//! | `rtl` | the RTL in simulation, with the feature `rtl-sim` |
//! | `xdp` | the program in the kernel, with the feature `xdp` |
//! | [`conformance`] | scripts with the verdicts that every backend must give |

pub mod abi;
pub mod board;
pub mod conformance;
pub mod driver;
pub mod limits;
pub mod message;
pub mod registers;
#[cfg(feature = "rtl-sim")]
pub mod rtl;
pub mod software;
#[cfg(feature = "xdp")]
pub mod xdp;

pub use abi::{Action, Reasons, Slot, Verdict};
pub use limits::{Caps, Control, Counters, Fault, SessionLimits, SymbolLimits};
pub use message::{Kind, Order};
pub use software::Software;

use types::{InstrumentId, Price, SessionId, Side};

/// A backend.
///
/// Limits are staged and take effect together with [`commit`](Self::commit), at the start of a frame. The control and the
/// touch take effect at once. After any fault the backend refuses everything until the caller enables it anew.
pub trait PreFilter {
    /// What the backend can hold.
    fn caps(&self) -> Caps;

    /// Opens, closes or kills. A backend is closed until it is enabled.
    ///
    /// # Errors
    /// The backend does not answer as it should.
    fn set_control(&mut self, control: Control) -> Result<(), Fault>;

    /// Stages the limits of an instrument; `None`: its orders are refused.
    ///
    /// # Errors
    /// The id is not in the table, the limits are not representable, or more is staged than there is room for.
    fn set_symbol(&mut self, instrument: InstrumentId, limits: Option<SymbolLimits>) -> Result<(), Fault>;

    /// Stages the limits of a session; `None`: its requests are refused.
    ///
    /// # Errors
    /// As [`set_symbol`](Self::set_symbol).
    fn set_session(&mut self, session: SessionId, limits: Option<SessionLimits>) -> Result<(), Fault>;

    /// The best price of a side of the market, 1e-9, [`Price::NULL`] for none.
    ///
    /// # Errors
    /// The id is not in the table.
    fn set_touch(&mut self, instrument: InstrumentId, side: Side, price: Price) -> Result<(), Fault>;

    /// Puts all that was staged in force, as one. Gives the new generation, which verdicts name from then on.
    ///
    /// # Errors
    /// The backend does not confirm the generation.
    fn commit(&mut self) -> Result<u32, Fault>;

    /// Gives orders to the backend, in order. Returns how many it took; it takes none of the rest.
    fn submit(&mut self, slots: &[Slot]) -> usize;

    /// Takes verdicts, in the order of the slots. Returns how many there were.
    fn poll(&mut self, verdicts: &mut [Verdict]) -> usize;

    /// What was counted since the reset.
    fn counters(&mut self) -> Counters;

    /// Is the heartbeat, and tells whether the backend is sound. To be called more often than the backend's timeout.
    ///
    /// # Errors
    /// What is wrong. The backend is closed then.
    fn health(&mut self) -> Result<(), Fault>;
}
