//! A backend of the pre-filter beside the shard's own: on a board or a model of one, or in the kernel.
//!
//! What it refuses is refused by the world, as far as the shard knows, and stands in the journal as such. The shard's own
//! filter and the risk checks come behind it all the same, so no fault of it widens a limit. What becomes of new orders
//! after a fault is the operator's choice, `on_fault`; it lasts until the gateway starts again.

#[cfg(any(test, feature = "rtl-sim", feature = "xdp"))]
mod guard;

#[cfg(any(test, feature = "rtl-sim"))]
mod aside;
#[cfg(feature = "xdp")]
mod kernel;

use crate::config::Config;
#[cfg(any(feature = "rtl-sim", feature = "xdp"))]
use crate::config::PrefilterBackend;
use crate::instruments::Instruments;
use crate::places::InstrumentPlace;
use net::SetupError;
use net::link::LinkFlow;
use orders::Orders;
use prefilter::{Counters, Fault};
use types::{NewOrder, Reason, SequenceNumber, SessionId, Timestamp};

/// The backend that the config chose.
#[derive(Debug)]
pub(crate) enum Outside {
    /// The shard's own filter is all there is.
    None,
    /// The RTL in simulation: asked, and waited for.
    #[cfg(feature = "rtl-sim")]
    Rtl(Box<aside::Aside<prefilter::rtl::Rtl>>),
    /// The program in the kernel: its verdict comes with the order.
    #[cfg(feature = "xdp")]
    Xdp(Box<kernel::Kernel>),
}

/// Bytes that the backend takes beside the shard's own.
pub(crate) fn memory_bytes(_config: &Config) -> usize {
    #[cfg(feature = "xdp")]
    if let PrefilterBackend::Xdp(_) = &_config.prefilter.backend {
        return kernel::memory_bytes(_config);
    }
    0
}

/// How the pre-filter of a shard stands, for operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FilterView {
    pub(crate) backend: &'static str,
    pub(crate) generation: u32,
    pub(crate) counters: Counters,
    /// What is wrong with it; `None`: it is sound.
    pub(crate) fault: Option<Fault>,
    pub(crate) fallback: Fallback,
}

/// What became of new orders that the backend did not judge.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Fallback {
    /// Refused.
    pub(crate) refused: u64,
    /// Left to the shard's own filter.
    pub(crate) to_software: u64,
    /// Of both, those that came past a backend that is sound.
    pub(crate) unjudged: u64,
}

impl Outside {
    /// Builds the backend, with the limits that `orders` has.
    ///
    /// # Errors
    /// It cannot be had, or does not do as it is told.
    #[cfg_attr(
        not(any(feature = "rtl-sim", feature = "xdp")),
        allow(clippy::unnecessary_wraps, reason = "the config names software alone then")
    )]
    pub(crate) fn open(_config: &Config, _instruments: &Instruments, _orders: &Orders) -> Result<Self, SetupError> {
        #[cfg(feature = "rtl-sim")]
        if _config.prefilter.backend == PrefilterBackend::Rtl {
            return aside::rtl(_config, _instruments, _orders).map(|aside| Self::Rtl(Box::new(aside)));
        }
        #[cfg(feature = "xdp")]
        if let PrefilterBackend::Xdp(interface) = &_config.prefilter.backend {
            return kernel::Kernel::open(_config, interface, _orders).map(|kernel| Self::Xdp(Box::new(kernel)));
        }
        Ok(Self::None)
    }

    /// Takes over the limits of all instruments, as one.
    pub(crate) fn load(&mut self, _instruments: &Instruments, _orders: &Orders) {
        match self {
            Self::None => {}
            #[cfg(feature = "rtl-sim")]
            Self::Rtl(aside) => aside.load(_instruments, _orders),
            #[cfg(feature = "xdp")]
            Self::Xdp(kernel) => kernel.load(_orders),
        }
    }

    /// Judges a new order.
    ///
    /// # Errors
    /// Why it is refused.
    #[inline]
    pub(crate) fn judge(&mut self, _now: Timestamp, _place: InstrumentPlace, _order: &NewOrder) -> Result<(), Reason> {
        match self {
            Self::None => Ok(()),
            #[cfg(feature = "rtl-sim")]
            Self::Rtl(aside) => aside.judge(_now, _place, _order),
            #[cfg(feature = "xdp")]
            Self::Xdp(kernel) => kernel.judge(_order),
        }
    }

    /// A message of a session that came over its link, and is handled next.
    #[inline]
    pub(crate) fn arrived(&mut self, _session: SessionId, _sequence: SequenceNumber, _message: &[u8]) {
        #[cfg(feature = "xdp")]
        if let Self::Xdp(kernel) = self {
            kernel.arrived(_session, _sequence, _message);
        }
    }

    /// Whose datagrams are a session's from now on; `None`: nobody's.
    pub(crate) fn flow(&mut self, _session: SessionId, _flow: Option<LinkFlow>) {
        #[cfg(feature = "xdp")]
        if let Self::Xdp(kernel) = self {
            kernel.flow(_session, _flow);
        }
    }

    /// Its heartbeat: to be called every few milliseconds.
    pub(crate) fn beat(&mut self) {
        match self {
            Self::None => {}
            #[cfg(feature = "rtl-sim")]
            Self::Rtl(aside) => aside.beat(),
            #[cfg(feature = "xdp")]
            Self::Xdp(kernel) => kernel.beat(),
        }
    }

    /// How it stands; `None` when there is nothing beside the shard's own.
    pub(crate) fn view(&mut self) -> Option<FilterView> {
        match self {
            Self::None => None,
            #[cfg(feature = "rtl-sim")]
            Self::Rtl(aside) => Some(aside.view("rtl")),
            #[cfg(feature = "xdp")]
            Self::Xdp(kernel) => Some(kernel.view()),
        }
    }
}
