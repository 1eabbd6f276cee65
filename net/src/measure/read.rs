//! RDMA READ: the near end fetches, the far end's program has no part in it but to hand packets on.

use super::{End, MESSAGE_LENGTH_MIN};
use crate::link::roce::{Backend, UserSpace};
use crate::link::{Link, LinkEvent, RoceLink};
use crate::tcp::Retransmits;
use std::collections::VecDeque;
use std::io;
use types::Timestamp;

/// One end of a link over RoCEv2, of which messages are reads: a send asks for as many bytes of the other end's ring, and
/// what is received is those bytes, under the number of the send. The far end receives nothing.
#[derive(Debug)]
pub struct RoceReads<B = UserSpace> {
    link: Box<RoceLink<B>>,
    /// The numbers of the reads under way.
    asked: VecDeque<[u8; MESSAGE_LENGTH_MIN]>,
    was_up: bool,
}

impl<B: Backend> RoceReads<B> {
    /// An end over a link that allows reads.
    #[must_use]
    pub fn new(link: RoceLink<B>) -> Self {
        Self {
            link: Box::new(link),
            asked: VecDeque::with_capacity(proto::roce::READS_MAX),
            was_up: false,
        }
    }
}

impl<B: Backend> End for RoceReads<B> {
    fn is_reliable(&self) -> bool {
        true
    }

    fn is_up(&self) -> bool {
        self.link.is_up()
    }

    fn send(&mut self, message: &[u8]) -> io::Result<bool> {
        let is_posted = self.link.post_read(message.len());
        if is_posted && let Some(number) = message.first_chunk() {
            self.asked.push_back(*number);
        }
        Ok(is_posted)
    }

    fn flush(&mut self, now: Timestamp) -> io::Result<()> {
        self.link.flush(now, 0);
        Ok(())
    }

    fn recv(&mut self, now: Timestamp, message: &mut [u8]) -> io::Result<bool> {
        while let Some(event) = self.link.poll(now, message) {
            match event {
                LinkEvent::Up => self.was_up = true,
                LinkEvent::Down(reason) if self.was_up => {
                    return Err(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        format!("the link went down: {reason}"),
                    ));
                }
                // Nothing else happens where no message is sent.
                _ => {}
            }
        }
        let has_come = self.link.take_read(message);
        if has_come && let Some(number) = self.asked.pop_front() {
            message[..number.len()].copy_from_slice(&number);
        }
        Ok(has_come)
    }

    fn is_drained(&self) -> bool {
        self.link.has_read_all()
    }

    fn retransmits(&self) -> Retransmits {
        Retransmits {
            total: self.link.counters().retransmitted,
            spurious: 0,
        }
    }
}
