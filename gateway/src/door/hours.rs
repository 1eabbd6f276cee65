//! The hours of sessions: tells the shards when they begin and end.

use super::{Delivery, Queues};
use crate::config::Config;
use crate::schedule::Schedule;
use std::sync::Arc;
use types::{SessionId, ShardId, Timestamp};

/// Every session that has a schedule.
#[derive(Debug)]
pub(super) struct AllHours(Vec<Scheduled>);

#[derive(Debug)]
struct Scheduled {
    session: SessionId,
    shard: ShardId,
    schedule: Arc<Schedule>,
    /// When to look again.
    next: Timestamp,
}

impl AllHours {
    pub(super) fn new(config: &Config) -> Self {
        let scheduled = config.sessions.iter().filter_map(|session| {
            Some(Scheduled {
                session: session.id,
                shard: session.shard,
                schedule: Arc::clone(session.schedule.as_ref()?),
                next: Timestamp::NONE,
            })
        });
        Self(scheduled.collect())
    }

    /// Tells the shards what has changed; at first, how things stand. What finds no room is told later.
    pub(super) fn tell(&mut self, now: Timestamp, queues: &mut Queues) {
        for scheduled in self.0.iter_mut().filter(|scheduled| now >= scheduled.next) {
            let hours = scheduled.schedule.at(now);
            let delivery = match hours.since {
                Some(since) => Delivery::Open(scheduled.session, since),
                None => Delivery::Closed(scheduled.session),
            };
            if queues[usize::from(scheduled.shard.0)].push(delivery).is_ok() {
                scheduled.next = hours.until;
            }
        }
    }
}
