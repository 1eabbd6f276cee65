//! The gateway's shard from outside: bytes in, bytes out, journal and replay in between.

mod book;
mod drop_copy;
mod filter;
mod first_stage;
mod fix;
mod fixture;
mod hours;
mod native;
mod no_alloc;
mod orders;
mod recovery;
mod resend;
mod room;
mod routes;
mod sends;
