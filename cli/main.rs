//! The `tickgate` command.
fn main() {}
