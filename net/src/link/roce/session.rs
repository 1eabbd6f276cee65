//! What there is between two meetings.

use super::config::{RoceLinkConfig, RoceOperation};
use super::hello::Hello;
use super::meeting::{LOOK_EVERY, MEET_WITHIN};
use super::way::Way;
use crate::link::DownReason;
use proto::roce::{Operation, Remote};
use std::fmt;
use std::net::SocketAddr;
use types::{Duration, Timestamp};

/// A queue pair that is connected, and what its ends met over beside it.
#[derive(Debug)]
pub(super) struct Session {
    way: Way,
    /// Both ends have agreed: messages pass.
    pub(super) is_up: bool,
    since: Timestamp,
    look_at: Timestamp,
    /// What the owner found, and the next look tells.
    pub(super) failed: Option<DownReason>,
    local: SocketAddr,
    peer: SocketAddr,
    qpns: [u32; 2],
    /// The peer's ring.
    ring: Remote,
    pub(super) peer_slots: usize,
    /// The number that the peer was told last.
    told: u64,
    /// When that is to be told anew, if no message does; never, where it is not.
    tell_at: Timestamp,
    /// When something was posted last.
    posted_at: Timestamp,
    /// Words sent.
    pub(super) beats: u64,
    /// The number of the peer's last word.
    pub(super) beat_heard: u64,
    /// When the peer last showed itself.
    pub(super) heard_at: Timestamp,
}

impl Session {
    pub(super) fn new(now: Timestamp, way: Way, config: &RoceLinkConfig, ours: &Hello, theirs: &Hello) -> Self {
        let [local, peer] = config.ports();
        Self {
            way,
            is_up: false,
            since: now,
            look_at: now,
            failed: None,
            local,
            peer,
            qpns: [ours.qpn.get(), theirs.qpn.get()],
            ring: Remote {
                address: theirs.address.get(),
                key: theirs.remote_key.get(),
            },
            peer_slots: usize::try_from(theirs.slots.get()).expect("within the limit"),
            told: ours.next_receive.get(),
            tell_at: NEVER,
            posted_at: now,
            beats: 0,
            beat_heard: 0,
            heard_at: now,
        }
    }

    /// Looks at the connection. `true`: the peer has agreed.
    ///
    /// # Errors
    /// Why the session is over.
    pub(super) fn look(&mut self, now: Timestamp) -> Result<bool, DownReason> {
        if let Some(reason) = self.failed {
            return Err(reason);
        }
        if self.is_up && now < self.look_at {
            return Ok(false);
        }
        self.look_at = now + LOOK_EVERY;
        match self.way.look(self.is_up)? {
            None if self.is_up || now.since(self.since) < MEET_WITHIN => Ok(false),
            None => Err(DownReason::Silent),
            Some(verdict) => verdict.reason().map_or(Ok(true), Err),
        }
    }

    /// The peer's ring.
    pub(super) const fn ring(&self) -> Remote {
        self.ring
    }

    /// How something goes to a place in the peer's ring.
    pub(super) const fn operation(&self, operation: RoceOperation, at: u64, immediate: Option<u32>) -> Operation {
        match operation {
            RoceOperation::Write => Operation::Write {
                to: Remote {
                    address: self.ring.address.wrapping_add(at),
                    key: self.ring.key,
                },
                immediate,
            },
            RoceOperation::Send => Operation::Send { immediate },
        }
    }

    /// A message was handed out: the peer is to be told before long.
    pub(super) fn on_handed_out(&mut self, now: Timestamp) {
        if self.tell_at == NEVER {
            self.tell_at = now + TELL_AFTER;
        }
    }

    /// The peer is being told that this number is wanted next.
    pub(super) const fn on_told(&mut self, now: Timestamp, wanted: u64) {
        (self.told, self.tell_at, self.posted_at) = (wanted, NEVER, now);
    }

    /// Whether the peer should hear which number is wanted, or that this end lives.
    pub(super) fn owes_word(&self, now: Timestamp, wanted: u64, config: &RoceLinkConfig) -> bool {
        let quarter = (config.slots().min(self.peer_slots) / 4).max(1) as u64;
        wanted - self.told >= quarter || now >= self.posted_at + config.heartbeat || now >= self.tell_at
    }
}

/// One line for the log.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [local, peer] = self.qpns;
        let (here, there, slots) = (self.local.ip(), self.peer.ip(), self.peer_slots);
        write!(
            f,
            "queue pair {local:#08x} at {here} with {peer:#08x} at {there}, whose ring holds {slots} messages"
        )
    }
}

/// A time that does not come.
const NEVER: Timestamp = Timestamp(u64::MAX);
/// How long the peer waits for the number that this end wants next, if no message tells it.
const TELL_AFTER: Duration = Duration::from_micros(50);
