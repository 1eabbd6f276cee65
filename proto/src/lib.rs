//! Bytes on a wire or in a journal, and the state machines that make sense of them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod fix;
pub mod itch;
pub mod journal;
pub mod ltp;
pub mod mold;
pub mod native;
pub mod roce;
mod rtt;
pub mod soup;
