//! The matcher from outside: against a naive one, against reference hashes, and by hand.

mod model;
mod order_types;
mod rules;
mod same_as_model;
mod workload;
