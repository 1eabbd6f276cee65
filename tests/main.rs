//! Tests of the whole: the rules that every crate keeps, and the program as a user runs it.

mod layers;
mod sources;
