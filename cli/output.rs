//! What the program prints, whoever reads it.
//!
//! A reader that has seen enough (`| head`) closes the pipe. That is no failure, and a gateway does not stop for it: what
//! nobody reads is dropped, and the status is what it would have been. What else keeps standard output from being written,
//! such as a full disk, is told at the end, with status 1. `println!` and `eprintln!` panic in both cases, so a lint keeps
//! them out.

use crate::Failure;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Why standard output could not be written, the first time.
static FAILURE: OnceLock<Failure> = OnceLock::new();

/// A line on standard output.
macro_rules! say {
    ($($what:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($what)*))) };
}

/// A line on standard error.
macro_rules! note {
    ($($what:tt)*) => { $crate::output::complain(format_args!("{}\n", format_args!($($what)*))) };
}

pub(crate) use {note, say};

/// Writes to standard output.
pub(crate) fn print(what: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    let result = out.write_fmt(what).and_then(|()| out.flush());
    if let Err(failure) = written(result) {
        FAILURE.get_or_init(|| failure);
    }
}

/// Writes to standard error. Where that cannot be, there is nobody left to tell.
pub(crate) fn complain(what: fmt::Arguments<'_>) {
    let mut err = io::stderr().lock();
    drop(err.write_fmt(what).and_then(|()| err.flush()));
}

/// Whether what was written to standard output found a reader: long output ends where nobody reads on.
///
/// # Errors
/// It could not be written for another reason.
pub(crate) fn written(result: io::Result<()>) -> Result<bool, Failure> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format_args!("writing to standard output: {error}"))),
    }
}

/// Why not all that was printed is written.
pub(crate) fn failure() -> Option<&'static Failure> {
    FAILURE.get()
}
