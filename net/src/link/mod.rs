//! Links between a gateway and a venue: numbered messages both ways, exactly once and in order, across reconnects and
//! restarts of either side.
//!
//! The contract of every link, whatever it runs over:
//!
//! - Messages are numbered from 1 in each direction. The sender keeps each message in a bounded ring until the peer has
//!   acknowledged it, also while the link is down. After a reconnect each end tells the other which number it wants
//!   next, and what is missing is sent again out of the ring. A peer that lost what it had acknowledged, with its
//!   machine, gets it again out of the owner's journal ([`LinkEvent::Recall`]).
//! - An acknowledgement covers what [`Link::poll`] has handed out, and leaves in [`Link::flush`]. So an owner that
//!   journals what it polled before it flushes never acknowledges a message that a crash could take from it.
//! - After a restart the owner builds the link with the next numbers its journal knows, puts back the messages that the
//!   peer may not have ([`Link::restore`]), and goes on.
//! - A message carries a journal position and leaves once the watermark given to `flush` has reached it.
//! - The owner is generic over the link and chooses it once at start-up.

pub mod any;
mod keys;
pub mod ltp;
pub mod roce;
mod table;
pub mod tcp;
mod view;
mod watch;

pub use any::{AnyLink, LinkConfig, LtpLinkConfig, SecondPath};
pub use ltp::LtpLink;
#[cfg(feature = "verbs")]
pub use roce::Verbs;
pub use roce::{DeviceName, RoceLink, RoceLinkConfig, RoceMeeting, RoceMismatch, RoceOperation, RoceTable};
pub use table::{LinkTable, Transport, VenueLinkTable};
pub use tcp::{TcpLink, TcpLinkConfig};
pub use view::{LinkState, LinkView, RefusedFor, RefusedPeer};
pub use watch::LinkWatch;

use crate::datagram::PathChange;
use proto::ltp::Refusal;
use proto::roce::wire::NakCode;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use types::{SequenceNumber, Timestamp};

/// One end of a link. It is driven by turns: `poll` until it gives `None`, act, then `flush`.
pub trait Link {
    /// How many messages [`send`](Self::send) takes now: the free places of the ring.
    fn room(&self) -> usize;

    /// Whether the peer is there and numbers are agreed.
    fn is_up(&self) -> bool;

    /// Queues a message and gives its number. `position` is its place in the owner's journal; it leaves in the first
    /// `flush` whose watermark has reached that. Works while the link is down too.
    ///
    /// # Panics
    /// When [`room`](Self::room) is 0 or the message is longer than configured: the owner reserves before it decides.
    fn send(&mut self, message: &[u8], position: u64) -> SequenceNumber;

    /// Puts back a message that was numbered before a restart and may not have reached the peer. Called in order of
    /// numbers before the first `poll`; the last one is just below the next number given at construction.
    ///
    /// # Panics
    /// When the numbers leave a gap or exceed the ring: the journal and the configuration contradict each other.
    fn restore(&mut self, sequence: SequenceNumber, message: &[u8]);

    /// Brings back a message that [`LinkEvent::Recall`] asked for, in order of numbers, in any turn after it. One that is not
    /// wanted any more is dropped.
    fn recalled(&mut self, sequence: SequenceNumber, message: &[u8]);

    /// The journal does not have a message that [`LinkEvent::Recall`] asked for: the peer is refused.
    fn not_recalled(&mut self, sequence: SequenceNumber);

    /// Receives, and gives what happened next. A message is copied into `buffer`, which holds at least the configured
    /// longest message. Called until it gives `None`.
    fn poll(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<LinkEvent>;

    /// As [`poll`](Self::poll), for an owner that has no room for what a message would cause: messages wait. `None` unless
    /// the peer gets again what it lost, which makes room.
    fn poll_recall(&mut self, now: Timestamp) -> Option<LinkEvent>;

    /// Transmits whatever may leave: messages up to `watermark`, acknowledgements, retransmissions, heartbeats.
    fn flush(&mut self, now: Timestamp, watermark: u64);

    /// Tells how far the owner's journal has got: all that `poll` has handed out stands in it below `appended`, and the loss
    /// of the machine does not reach what stands below `synced`. LTP tells the peer; another link drops it.
    fn journaled(&mut self, _appended: u64, _synced: u64) {}

    /// The number below which the peer cannot lose messages even with its machine. `None`: it has not said.
    fn peer_durable(&self) -> Option<SequenceNumber> {
        None
    }

    /// How many orders the venue lets be open at once, as it said last. `None`: it has not said, and there is no limit of
    /// this kind; a link that carries no credits never has one.
    fn credits(&self) -> Option<u32> {
        None
    }

    /// Grants the peer so many open orders in all, at the venue's end; 0 is a grant. The peer is told with the next
    /// `flush` and again and again, in this session and those that follow. A link that carries no credits drops it.
    ///
    /// # Panics
    /// At the gateway's end of a link that carries credits.
    fn grant(&mut self, _slots: u32) {}

    /// By what the peer's datagrams can be told from others while the link is up. `None`: it is down, or runs over no
    /// datagrams.
    fn flow(&self) -> Option<LinkFlow> {
        None
    }

    /// Counts since construction.
    fn counters(&self) -> LinkCounters;

    /// What it is and where it stands, for people and monitors. It takes a while, in comparison to the path of an order.
    fn view(&self) -> LinkView {
        LinkView {
            state: if self.is_up() {
                LinkState::Up
            } else {
                LinkState::Calling
            },
            counters: self.counters(),
            ..LinkView::default()
        }
    }
}

/// What all datagrams of a peer have, but for the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkFlow {
    /// Where they come from.
    pub peer: SocketAddr,
    /// Their tag.
    pub tag: u32,
    /// Bytes behind the payload.
    pub trailer: u16,
}

/// The two ends of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEnd {
    /// Connects: the gateway's end.
    Connect {
        /// Where the other end listens.
        peer: SocketAddr,
        /// The local address to come from; `None` lets the kernel choose.
        local: Option<SocketAddr>,
    },
    /// Listens, for this link alone: the venue's end.
    Listen {
        /// The local address.
        local: SocketAddr,
    },
}

/// Where the numbers go on after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resume {
    /// The number of the next message we send.
    pub next_send: SequenceNumber,
    /// The number of the next message we have not received.
    pub next_receive: SequenceNumber,
}

/// What [`Link::poll`] tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// The peer is there and numbers are agreed.
    Up,
    /// The peer is gone. Messages stay in the ring; the link goes on trying. Also told, once a reason, when the link
    /// could not come up.
    Down(DownReason),
    /// The venue grants another number of open orders than before. Told only on a change, so that an owner can journal it
    /// as the input that it is.
    Credits(u32),
    /// One of two paths to the peer has gone down or come back; the link goes on over the other.
    Path(PathChange),
    /// The peer has lost messages that it had acknowledged, with its machine. The owner brings them back from its journal
    /// ([`Link::recalled`]), or says that it cannot ([`Link::not_recalled`]). New messages wait in the ring meanwhile.
    Recall {
        /// The first.
        from: SequenceNumber,
        /// The one behind the last.
        to: SequenceNumber,
    },
    /// The next message, of `length` bytes in the caller's buffer.
    Message {
        /// Its number; one above that of the message before.
        sequence: SequenceNumber,
        /// Bytes.
        length: usize,
    },
}

/// Why a link went down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DownReason {
    /// The peer closed the connection or ended the session.
    Closed,
    /// Nothing came from the peer for the configured time.
    Silent,
    /// The peer lives but takes or acknowledges nothing of what it is sent.
    Stalled,
    /// The peer started anew: a new login or a new epoch takes the place of the old one.
    Replaced,
    /// The peer refused the session: wrong name, password or session, or its ring no longer holds what we want.
    Refused,
    /// The peer wants a number that is neither in the ring nor in the journal, or that was never sent (TCP). The two journals
    /// contradict each other, and resuming would lose or repeat messages; a person has to look.
    Unresumable {
        /// The number the peer wants next.
        wanted: SequenceNumber,
        /// The oldest number the ring still holds (the next number, when it is empty).
        oldest: SequenceNumber,
        /// The next number that was never sent. Below `wanted`: this end has lost messages that it had sent.
        next: SequenceNumber,
    },
    /// This end refuses the peer, and says so to it (LTP).
    Incompatible(Refusal),
    /// The peer refuses this end, and says why (LTP).
    RefusedBecause(Refusal),
    /// The two ends of a RoCEv2 link are not configured alike.
    Mismatched(RoceMismatch),
    /// This end wants a number that the peer cannot send any more, or has never sent (RoCEv2). The two journals contradict
    /// each other, and a person has to look.
    Gone {
        /// The number that this end wants next.
        wanted: SequenceNumber,
        /// The oldest that the peer can send.
        oldest: SequenceNumber,
        /// The next that the peer has never sent.
        next: SequenceNumber,
    },
    /// A request of one end was refused by the other, which breaks the queue pair of both (RoCEv2).
    QueuePair {
        /// Why.
        code: NakCode,
        /// This end refused it.
        is_ours: bool,
    },
    /// The peer sent bytes that are not the protocol.
    Malformed,
    /// The peer acknowledged what was never sent.
    FalseAck,
    /// The RDMA device does not serve: it is gone, or gives no queue pair (RoCEv2).
    Device(io::ErrorKind),
    /// The socket failed.
    Io(io::ErrorKind),
}

/// What a link did since it was built.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkCounters {
    /// Messages transmitted the first time.
    pub sent: u64,
    /// Messages handed out by `poll`.
    pub received: u64,
    /// Messages transmitted again.
    pub retransmitted: u64,
    /// Of those, the ones that the peer had already, as far as it told us; 0 where the transport does not tell.
    pub retransmits_spurious: u64,
    /// Messages that came a second time and were dropped.
    pub duplicates: u64,
    /// Requests for retransmission sent.
    pub naks_sent: u64,
    /// Requests for retransmission received.
    pub naks_received: u64,
    /// Messages that the peer had acknowledged and lost, brought back from the owner's journal.
    pub recalled: u64,
    /// Datagrams that came in, good and bad; over TCP, connections.
    pub heard: u64,
    /// How often the peer's host said that nobody listens there; over TCP, attempts to connect that failed.
    pub unreachable: u64,
    /// Datagrams, packets or connections dropped because they were not the protocol.
    pub malformed: u64,
    /// Datagrams dropped because they are of another session or attempt, or from another address than the peer's.
    pub foreign: u64,
    /// Datagrams dropped because they do not prove that the peer wrote them.
    pub forged: u64,
    /// Datagrams without messages that had come before, or too late, and were dropped.
    pub replayed: u64,
    /// Datagrams dropped because their numbers cannot be: they acknowledge what was never sent, or exceed the window.
    pub impossible: u64,
    /// Logins, handshakes and sessions that this end refused.
    pub refused: u64,
    /// Logins, handshakes and sessions that the peer refused.
    pub refused_by_peer: u64,
    /// Times the link came up.
    pub ups: u64,
    /// Times the link went down.
    pub downs: u64,
    /// Of two paths to the peer, those that are down now.
    pub paths_down: u64,
    /// Bytes handed to sockets.
    pub bytes_sent: u64,
    /// Bytes taken from sockets.
    pub bytes_received: u64,
}

impl Resume {
    /// Nothing was sent or received yet.
    pub const START: Self = Self {
        next_send: SequenceNumber(1),
        next_receive: SequenceNumber(1),
    };
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("peer closed"),
            Self::Silent => f.write_str("peer is silent"),
            Self::Stalled => f.write_str("peer takes or acknowledges nothing"),
            Self::Replaced => f.write_str("peer started anew"),
            Self::Refused => f.write_str("peer refused the session"),
            Self::Unresumable { wanted, next, .. } if wanted > next => write!(
                f,
                "peer wants message {wanted}, the next to be sent is {next}: this end has lost messages that it had sent"
            ),
            Self::Unresumable { wanted, oldest, .. } => {
                write!(
                    f,
                    "peer wants message {wanted}, not all before {oldest} can be had any more"
                )
            }
            Self::Incompatible(refusal) => write!(f, "peer cannot be served: {refusal}"),
            Self::RefusedBecause(refusal) => write!(f, "refused by the peer: {refusal}"),
            Self::Mismatched(mismatch) => write!(f, "the ends are not configured alike: {mismatch}"),
            Self::Gone { wanted, oldest, next } => write!(
                f,
                "message {wanted} is wanted next, and the peer has those from {oldest} to before {next} alone"
            ),
            Self::QueuePair { code, is_ours: false } => {
                write!(f, "peer refused a request, and the queue pair broke: {code}")
            }
            Self::QueuePair { code, is_ours: true } => {
                write!(f, "refused a request of the peer, and the queue pair broke: {code}")
            }
            Self::Malformed => f.write_str("peer does not speak the protocol"),
            Self::FalseAck => f.write_str("peer acknowledged what was never sent"),
            Self::Device(kind) => write!(f, "RDMA device: {kind}"),
            Self::Io(kind) => write!(f, "socket: {kind}"),
        }
    }
}
