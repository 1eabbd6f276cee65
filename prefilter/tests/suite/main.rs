//! Every backend against the golden script, and against a naive model at random.

#[cfg(feature = "rtl-sim")]
mod board;
mod model;
#[cfg(feature = "xdp")]
#[path = "../../../net/tests/namespaces/mod.rs"]
mod namespaces;
#[cfg(feature = "rtl-sim")]
mod rtl;
mod software;
#[cfg(feature = "xdp")]
mod xdp;
