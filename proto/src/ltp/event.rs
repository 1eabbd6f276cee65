//! What a connection tells its owner.

use super::refusal::Refusal;
use types::SequenceNumber;

/// What happened, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A session is established; what the peer lacks is being transmitted again.
    Up {
        /// Its epoch: higher than that of every session before.
        epoch: u64,
    },
    /// The session is over, or could not be established. The connection goes on trying.
    Down {
        /// Why.
        reason: DownReason,
    },
    /// The acceptor has granted another number of open orders (told to the initiator).
    Credits {
        /// How many may be open at once, in all.
        slots: u32,
    },
    /// The peer has lost messages that it had acknowledged, with its machine: the owner brings them back from its journal
    /// ([`Connection::recalled`](super::Connection::recalled)) in order, now or later, or says that it cannot
    /// ([`Connection::not_recalled`](super::Connection::not_recalled)).
    Recall {
        /// The first.
        from: SequenceNumber,
        /// The one behind the last.
        to: SequenceNumber,
    },
    /// The next message, in the caller's buffer. It is acknowledged by the next datagram.
    Message {
        /// Its number: one above that of the message before.
        sequence: SequenceNumber,
        /// Bytes.
        length: usize,
    },
}

/// Why there is no session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DownReason {
    /// Nothing came from the peer for too long.
    Silence,
    /// The peer has established a new session in place of the old one.
    Superseded,
    /// This end cannot go on with the peer, and told it so.
    Refused(Refusal),
    /// The owner says that the carrier failed.
    Carrier,
    /// The peer cannot go on with this end.
    RefusedByPeer(Refusal),
}

impl DownReason {
    /// Whether it is the same refusal, be it of other numbers.
    pub(super) fn is_like(self, other: Self) -> bool {
        match (self, other) {
            (Self::Refused(this), Self::Refused(that)) | (Self::RefusedByPeer(this), Self::RefusedByPeer(that)) => {
                this.number() == that.number()
            }
            _ => self == other,
        }
    }
}

/// What a datagram was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// Nothing of this connection; dropped and counted.
    Dropped,
    /// A step of the handshake. There may be a reply to its source
    /// ([`Connection::poll_reply`](super::Connection::poll_reply)).
    Handshake,
    /// A step of the handshake that established a session: its source is the peer.
    Established,
    /// A datagram of the session.
    Session,
}

/// Counts since construction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Datagrams given out to be sent.
    pub datagrams_sent: u64,
    /// Datagrams that came in, good and bad.
    pub datagrams_received: u64,
    /// Messages transmitted the first time.
    pub messages_sent: u64,
    /// Messages handed to the owner.
    pub messages_received: u64,
    /// Messages transmitted again.
    pub retransmits: u64,
    /// Of those, messages that the peer had already: it says so.
    pub retransmits_spurious: u64,
    /// Messages that the peer had acknowledged and lost, brought back from the owner's journal.
    pub recalled: u64,
    /// Messages repeated before new ones, though nobody had asked ([`Redundancy::Repeat`](super::Redundancy::Repeat)).
    pub repeats: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Requests for retransmission sent.
    pub naks_sent: u64,
    /// Requests for retransmission received.
    pub naks_received: u64,
    /// Messages that had come before and were dropped.
    pub duplicates: u64,
    /// Datagrams dropped because they are not LTP.
    pub malformed: u64,
    /// Datagrams dropped because their tag is not the session's: of an earlier session, or of somebody else.
    pub foreign: u64,
    /// Datagrams dropped because their tag does not prove that the peer wrote them.
    pub forged: u64,
    /// Datagrams without messages that had come before, or too late, and were dropped.
    pub replayed: u64,
    /// Datagrams dropped because they acknowledge what was never sent.
    pub false_acks: u64,
    /// Datagrams dropped because their numbers are beyond the window.
    pub beyond_window: u64,
    /// Handshake datagrams dropped because they answer no question of this end.
    pub handshakes_stale: u64,
    /// Handshakes and sessions that this end refused.
    pub refusals: u64,
    /// Handshakes and sessions that the peer refused.
    pub refused_by_peer: u64,
    /// Sessions established.
    pub ups: u64,
    /// Sessions ended.
    pub downs: u64,
}
