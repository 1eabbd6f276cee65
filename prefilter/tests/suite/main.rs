//! Every backend against the golden script, and against a naive model at random.

mod model;
#[cfg(feature = "rtl-sim")]
mod rtl;
mod software;
