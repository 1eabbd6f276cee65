//! `tickgate password`: a line of a credentials file.

use crate::Failure;
use crate::output::{self, say};
use ::gateway::config::credentials;
use clap::Args as ClapArgs;
use std::io::{self, BufRead, IsTerminal};

/// Makes a user's line for a credentials file. The password is read from standard input, up to the end of the line.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The user: what its client sends as Username (553), or logs in with.
    #[arg(value_name = "USER")]
    user: String,
}

/// Reads the password and prints the line.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let input = io::stdin();
    if input.is_terminal() {
        output::complain(format_args!("password of {} (it shows): ", args.user));
    }
    let mut password = String::new();
    input.lock().read_line(&mut password)?;
    let password = password.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(Failure::new("no password came on standard input"));
    }
    say!("{}", credentials::line(&args.user, password.as_bytes())?);
    Ok(())
}
