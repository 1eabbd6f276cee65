//! RDMA READ of the peer's ring, whose program has no part in it: for measuring.

use super::{Backend, RoceLink};
use proto::roce::{Operation, SendRequest};

/// Reads asked for and handed out.
#[derive(Debug, Default)]
pub(super) struct Reads {
    asked: u64,
    /// Those whose bytes have come.
    pub(super) done: u64,
    taken: u64,
}

/// The name of a request that is a read: no message has this number.
pub(super) const READ: u64 = u64::MAX;

impl<B: Backend> RoceLink<B> {
    /// Asks for the first bytes of the peer's ring, which its config must allow. `false`: not now.
    ///
    /// # Panics
    /// When it is more than a message.
    pub fn post_read(&mut self, length: usize) -> bool {
        assert!(length <= self.config.max_message, "a read is no longer than a message");
        let Some(session) = self.session.as_ref().filter(|session| session.is_up) else {
            return false;
        };
        if self.reads.asked - self.reads.taken >= self.config.queue_pair.reads as u64 || self.backend.send_room() == 0 {
            return false;
        }
        let request = SendRequest {
            id: READ,
            operation: Operation::Read { from: session.ring() },
            // Nothing is brought back while this is measured.
            offset: self.arena.recalled(self.reads.asked),
            length,
            is_signaled: true,
        };
        let is_posted = self.backend.post_send(request).is_ok();
        self.reads.asked += u64::from(is_posted);
        is_posted
    }

    /// Copies out the bytes of the next read that has come. `false`: none has.
    pub fn take_read(&mut self, out: &mut [u8]) -> bool {
        let number = self.reads.taken;
        let is_there = number < self.reads.done;
        if is_there {
            let offset = self.arena.recalled(number);
            self.backend.copy_out(offset, out);
            self.reads.taken += 1;
        }
        is_there
    }

    /// Whether all reads have come. Packets leave and are taken in by turns of the link, as messages are.
    #[must_use]
    pub const fn has_read_all(&self) -> bool {
        self.reads.taken == self.reads.asked
    }
}

impl Reads {
    /// A session has ended: what it asked for does not come.
    pub(super) const fn restart(&mut self) {
        (self.asked, self.done, self.taken) = (0, 0, 0);
    }
}
