//! What executes a link's requests: a queue pair of our own in user space, or that of a device.

use super::config::RoceLinkConfig;
use super::random::Random;
use crate::error::SetupError;
use crate::link::{DownReason, LinkCounters};
use proto::roce::{Completion, Counters, PostError, ReceiveRequest, SendRequest};
use std::fmt::Debug;
use std::io;
use types::Timestamp;

/// A queue pair and the memory of one link, laid out as `Arena` says. Chosen when the link is built.
pub trait Backend: Debug + Sized {
    /// A peer's RDMA WRITE without immediate shows in memory and nowhere else.
    const WRITES_SHOW_NOWHERE_ELSE: bool;

    /// Allocates and registers all memory, and takes what it needs of the host.
    ///
    /// # Errors
    /// The settings contradict each other, or the host does not give it.
    fn open(config: &RoceLinkConfig) -> Result<Self, SetupError>;

    /// What carries the packets, for people.
    fn name(&self) -> &'static str;

    /// The names under which the next peer is to know this end. They are new: what a peer of the past sends reaches nothing.
    ///
    /// # Errors
    /// There is no queue pair to be had now.
    fn introduce(&mut self, random: &mut Random) -> Result<Introduction, DownReason>;

    /// Begins with the peer to whom this end was introduced so.
    ///
    /// # Errors
    /// It cannot.
    fn connect(&mut self, ours: &Introduction, theirs: &Introduction) -> Result<(), DownReason>;

    /// Ends it: what was posted is forgotten, and no peer reaches the memory.
    fn close(&mut self);

    /// Why the queue pair is broken.
    fn failure(&self) -> Option<DownReason>;

    /// How many requests can be posted now without waiting long for those before them: what a message says of what its sender
    /// wants is as old as the message.
    fn send_room(&self) -> usize;

    /// Posts a request, whose bytes stay as they are until it has ended.
    ///
    /// # Errors
    /// It cannot be posted now, or ever.
    fn post_send(&mut self, request: SendRequest) -> Result<(), PostError>;

    /// Posts a receive.
    ///
    /// # Errors
    /// It cannot be posted now, or ever.
    fn post_receive(&mut self, request: ReceiveRequest) -> Result<(), PostError>;

    /// Takes in a little of what has come. `false`: nothing has.
    ///
    /// # Errors
    /// What carries the packets is unusable.
    fn receive(&mut self, now: Timestamp, counters: &mut LinkCounters) -> io::Result<bool>;

    /// The next request or receive that has ended.
    fn poll_completion(&mut self) -> Option<Completion>;

    /// Lets go of what was posted.
    ///
    /// # Errors
    /// What carries the packets is unusable.
    fn transmit(&mut self, now: Timestamp, counters: &mut LinkCounters) -> io::Result<()>;

    /// Adds what it counts itself.
    fn count(&self, counters: &mut LinkCounters);

    /// What the protocol counts. `None`: a device does.
    fn roce_counters(&self) -> Option<Counters> {
        None
    }

    /// The number in the arena at `at`.
    fn number(&self, at: usize) -> u64;

    /// Puts a number there.
    fn put_number(&mut self, at: usize, number: u64);

    /// Puts bytes there.
    fn put(&mut self, at: usize, bytes: &[u8]);

    /// Copies out the bytes there.
    fn copy_out(&self, at: usize, out: &mut [u8]);
}

/// How a peer knows an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Introduction {
    /// The queue pair, 24 bits.
    pub qpn: u32,
    /// The first packet number that it sends, 24 bits.
    pub psn: u32,
    /// The key of its ring.
    pub remote_key: u32,
    /// Where its ring is, bytes.
    pub address: u64,
}
