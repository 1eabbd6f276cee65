//! Bounded rings between shards: an order for another shard's instrument goes over, its reports come back.
//!
//! Two lanes each way. Requests are taken only while the lane of reports back has room; reports are always taken, as they
//! cause nothing but output to a client. So two shards never wait for each other.
//!
//! Messages are numbered a lane, on both sides, and both journals hold them. So a restart finds out what was on the way:
//! the receiving shard knows the last number it took, the sending shard has what follows in its journal.

use orders::{OrderStatus, Report};
use proto::native;
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;
use types::{AccountId, ClientOrderId, Notional, Price, Request, SequenceNumber, SessionId, ShardId};

/// One shard's ends of the lanes to and from another shard.
#[derive(Debug)]
pub(crate) struct Crossing {
    /// The other shard.
    pub(crate) peer: ShardId,
    /// By [`Lane`].
    outgoing: [Outgoing; 2],
    /// By [`Lane`].
    incoming: [Consumer<CrossingMessage>; 2],
}

/// What a ring carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Lane {
    /// Requests of clients of the sending shard, and that a client is lost.
    Requests = 0,
    /// Reports for clients of the receiving shard.
    Reports = 1,
}

/// A message between shards: its number and its bytes, as both journals have them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossingMessage {
    pub(crate) sequence: SequenceNumber,
    length: u8,
    bytes: [u8; MAX_LENGTH],
}

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// A client of the sending shard asks for something.
    Request(Request),
    /// A client of the sending shard is lost.
    SessionLost(SessionId),
    /// A report for a client of the receiving shard.
    Report(Report),
}

#[derive(Debug)]
struct Outgoing {
    ring: Producer<CrossingMessage>,
    next: SequenceNumber,
    /// Messages that wait for their record to be safe, each with its journal position, or for room in the ring. Counted as
    /// room taken. Never grows.
    held: VecDeque<(u64, CrossingMessage)>,
}

/// Longest message: kind, what a native report leaves out, native message.
pub(crate) const MAX_LENGTH: usize = REPORT_HEAD + native::MAX_ANSWER_LENGTH;
const _: () = assert!(MAX_LENGTH > native::MAX_MESSAGE_LENGTH, "a request fits as well");

/// Bytes before the native report in a report between shards.
const REPORT_HEAD: usize = 1 + 8 + 4 + 8 + 16 + 1;

const REQUEST: u8 = 1;
const SESSION_LOST: u8 = 2;
const REPORT: u8 = 3;

/// The rings of `shards` shards, each of `capacity` messages: for each shard its ends towards every other one. `open_orders`
/// is how many orders a shard may have open: at the end of a day it reports all of them at once.
pub(crate) fn connect(shards: usize, capacity: usize, open_orders: usize) -> Vec<Vec<Crossing>> {
    let mut ends = (0..shards).map(|_| Vec::with_capacity(shards)).collect::<Vec<_>>();
    let id = |shard: usize| ShardId(u8::try_from(shard).expect("shards are bounded by MAX_SHARDS"));
    for a in 0..shards {
        for b in a + 1..shards {
            let (to_b, from_a) = lanes(capacity, open_orders);
            let (to_a, from_b) = lanes(capacity, open_orders);
            ends[a].push(Crossing {
                peer: id(b),
                outgoing: to_b,
                incoming: from_b,
            });
            ends[b].push(Crossing {
                peer: id(a),
                outgoing: to_a,
                incoming: from_a,
            });
        }
    }
    ends
}

fn lanes(capacity: usize, open_orders: usize) -> ([Outgoing; 2], [Consumer<CrossingMessage>; 2]) {
    let (requests, requests_out) = RingBuffer::new(capacity);
    let (reports, reports_out) = RingBuffer::new(capacity);
    let outgoing = |ring, most_held| Outgoing {
        ring,
        next: SequenceNumber(1),
        held: VecDeque::with_capacity(most_held),
    };
    let outgoing = [outgoing(requests, capacity), outgoing(reports, capacity + open_orders)];
    (outgoing, [requests_out, reports_out])
}

/// Bytes that the rings of `shards` shards take.
pub(crate) const fn memory_bytes(shards: usize, capacity: usize, open_orders: usize) -> usize {
    shards * (shards - 1) * (4 * capacity + open_orders) * size_of::<CrossingMessage>()
}

impl Lane {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Requests, Self::Reports];

    /// From its number in a journal.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Requests),
            1 => Some(Self::Reports),
            _ => None,
        }
    }
}

impl Crossing {
    /// Messages that can be sent now.
    pub(crate) fn room(&self, lane: Lane) -> usize {
        let outgoing = &self.outgoing[lane as usize];
        outgoing.ring.slots().saturating_sub(outgoing.held.len())
    }

    /// The number that the next message sent gets.
    pub(crate) const fn next(&self, lane: Lane) -> SequenceNumber {
        self.outgoing[lane as usize].next
    }

    /// Queues a message. It leaves once the journal's watermark has reached `position`, see [`flush`](Self::flush).
    ///
    /// # Panics
    /// When there is no room: it was reserved before the order logic ran.
    pub(crate) fn send(&mut self, lane: Lane, bytes: &[u8], position: u64) {
        let outgoing = &mut self.outgoing[lane as usize];
        assert!(outgoing.held.len() < outgoing.held.capacity(), "room was reserved");
        outgoing
            .held
            .push_back((position, CrossingMessage::new(outgoing.next, bytes)));
        outgoing.next = outgoing.next.next();
    }

    /// Passes on what may leave: a message must not reach the other shard's journal before it is safe in this one's.
    pub(crate) fn flush(&mut self, watermark: u64) {
        for Outgoing { ring, held, .. } in &mut self.outgoing {
            while let Some((position, message)) = held.front()
                && *position <= watermark
                && ring.push(*message).is_ok()
            {
                held.pop_front();
            }
        }
    }

    /// After a restart: sends again what the journal has and the peer did not take, and goes on behind it.
    pub(crate) fn resume(
        &mut self,
        lane: Lane,
        next: SequenceNumber,
        again: impl IntoIterator<Item = CrossingMessage>,
    ) {
        let outgoing = &mut self.outgoing[lane as usize];
        outgoing.held.extend(again.into_iter().map(|message| (0, message)));
        outgoing.next = next;
    }

    /// The next message from the other shard.
    pub(crate) fn receive(&mut self, lane: Lane) -> Option<CrossingMessage> {
        self.incoming[lane as usize].pop().ok()
    }
}

impl CrossingMessage {
    /// A message with its number.
    ///
    /// # Panics
    /// When it is longer than a message can be.
    pub(crate) fn new(sequence: SequenceNumber, bytes: &[u8]) -> Self {
        let length = u8::try_from(bytes.len()).expect("a message between shards is short");
        let mut message = Self {
            sequence,
            length,
            bytes: [0; MAX_LENGTH],
        };
        message.bytes[..bytes.len()].copy_from_slice(bytes);
        message
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Content {
    /// The lane it travels in.
    pub(crate) const fn lane(&self) -> Lane {
        match self {
            Self::Request(_) | Self::SessionLost(_) => Lane::Requests,
            Self::Report(_) => Lane::Reports,
        }
    }

    /// Writes the message and gives its length.
    pub(crate) fn encode(&self, buffer: &mut [u8; MAX_LENGTH]) -> usize {
        match self {
            Self::Request(request) => {
                buffer[0] = REQUEST;
                1 + native::encode_request(request, &mut buffer[1..])
            }
            Self::SessionLost(session) => {
                buffer[0] = SESSION_LOST;
                buffer[1..3].copy_from_slice(&session.0.to_le_bytes());
                3
            }
            Self::Report(Report { exec, traded, status }) => {
                buffer[0] = REPORT;
                // What a native report leaves out, because its client knows it.
                buffer[1..9].copy_from_slice(&exec.orig_client_order_id.0.to_le_bytes());
                buffer[9..13].copy_from_slice(&exec.account.0.to_le_bytes());
                buffer[13..21].copy_from_slice(&exec.price.0.to_le_bytes());
                buffer[21..37].copy_from_slice(&traded.0.to_le_bytes());
                buffer[37] = *status as u8;
                REPORT_HEAD + native::encode_report(exec, &mut buffer[REPORT_HEAD..])
            }
        }
    }

    /// Reads a message; `None` when it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&REQUEST, rest) => native::decode_request(rest).ok().map(Self::Request),
            (&SESSION_LOST, rest) => Some(Self::SessionLost(SessionId(u16::from_le_bytes(*rest.first_chunk()?)))),
            (&REPORT, rest) => {
                let (orig, rest) = rest.split_first_chunk()?;
                let (account, rest) = rest.split_first_chunk()?;
                let (price, rest) = rest.split_first_chunk()?;
                let (traded, rest) = rest.split_first_chunk()?;
                let (&status, rest) = rest.split_first()?;
                let mut exec = native::decode_report(rest).ok()?;
                exec.orig_client_order_id = ClientOrderId(u64::from_le_bytes(*orig));
                exec.account = AccountId(u32::from_le_bytes(*account));
                exec.price = Price(i64::from_le_bytes(*price));
                Some(Self::Report(Report {
                    exec,
                    traded: Notional(i128::from_le_bytes(*traded)),
                    status: OrderStatus::from_u8(status)?,
                }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_numbered_a_lane_and_arrive_in_order() {
        let mut ends = connect(2, 4, 8);
        let mut b = ends.pop().expect("two shards");
        let mut a = ends.pop().expect("two shards");
        a[0].send(Lane::Requests, b"one", 1);
        a[0].send(Lane::Reports, b"report", 2);
        a[0].send(Lane::Requests, b"two", 3);
        a[0].flush(3);
        assert_eq!((a[0].room(Lane::Requests), a[0].room(Lane::Reports)), (2, 3));
        let mut received = Vec::new();
        while let Some(message) = b[0].receive(Lane::Requests) {
            received.push((message.sequence.0, message.bytes().to_vec()));
        }
        assert_eq!(received, [(1, b"one".to_vec()), (2, b"two".to_vec())]);
        assert_eq!(a[0].next(Lane::Requests), SequenceNumber(3));
        assert!(b[0].receive(Lane::Reports).is_some());
    }

    #[test]
    fn after_a_restart_what_was_on_the_way_is_sent_again() {
        let mut ends = connect(2, 4, 8);
        let mut b = ends.pop().expect("two shards");
        let mut a = ends.pop().expect("two shards");
        a[0].resume(
            Lane::Requests,
            SequenceNumber(8),
            [CrossingMessage::new(SequenceNumber(7), b"seven")],
        );
        a[0].send(Lane::Requests, b"eight", 0);
        a[0].flush(0);
        assert_eq!(
            b[0].receive(Lane::Requests).map(|message| message.sequence),
            Some(SequenceNumber(7))
        );
        assert_eq!(
            b[0].receive(Lane::Requests).map(|message| message.sequence),
            Some(SequenceNumber(8))
        );
    }

    #[test]
    fn a_message_waits_until_its_record_is_safe() {
        let mut ends = connect(2, 4, 8);
        let mut b = ends.pop().expect("two shards");
        let mut a = ends.pop().expect("two shards");
        a[0].send(Lane::Requests, b"one", 10);
        a[0].send(Lane::Requests, b"two", 20);
        a[0].flush(9);
        assert!(b[0].receive(Lane::Requests).is_none());
        assert_eq!(a[0].room(Lane::Requests), 2);
        a[0].flush(19);
        assert_eq!(
            b[0].receive(Lane::Requests).map(|message| message.sequence),
            Some(SequenceNumber(1))
        );
        assert!(b[0].receive(Lane::Requests).is_none());
    }
}
