//! Tests of the whole: the rules that every crate keeps, and the program as a user runs it.

mod bad_input;
mod configs;
mod control;
mod credits;
mod devices;
mod door;
mod fix_client;
mod held;
mod journal;
mod lat;
mod lat_ends;
mod layers;
mod links;
mod machines;
mod market;
mod netns;
mod output;
mod prefilter;
mod processes;
mod resend;
mod shards;
mod sources;
mod tls;
mod top;
mod trader;
mod tune;
