//! The gateway's shard from outside: bytes in, bytes out, journal and replay in between.

mod answers;
mod book;
mod config_limits;
mod cross;
mod cross_edges;
mod cross_journal;
mod drop_copy;
mod filter;
mod first_stage;
mod fix;
mod fixture;
mod held;
mod hours;
mod journal_runs;
mod late;
mod marks;
mod native;
mod no_alloc;
mod orders;
mod rates;
mod recovery;
mod resend;
mod room;
mod routes;
mod sends;
mod shards;
