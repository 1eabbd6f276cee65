//! What people and monitors see of a link: what it is, where it stands, what it did.

use super::{DownReason, LinkCounters};
use proto::ltp::Refusal;
use proto::soup::UserName;
use std::fmt;
use std::net::SocketAddr;
use types::SequenceNumber;

/// A link as it stands.
#[derive(Clone, Copy, Default, Debug)]
pub struct LinkView {
    /// The protocol: `LTP`, `TCP`, `RoCEv2`.
    pub transport: &'static str,
    /// What in fact carries its datagrams: `UDP`, `AF_XDP`; `None` where the protocol has no choice.
    pub carrier: Option<&'static str>,
    /// Where it stands.
    pub state: LinkState,
    /// The epoch of the session that is up, where the protocol has epochs.
    pub epoch: Option<u64>,
    /// Where the peer is, as far as it is known.
    pub peer: Option<SocketAddr>,
    /// The number of the message that the owner sends next.
    pub next_send: SequenceNumber,
    /// The number of the message that the owner is given next.
    pub next_receive: SequenceNumber,
    /// The number below which the peer has acknowledged all.
    pub peer_received: SequenceNumber,
    /// The number below which the peer cannot lose messages even with its machine; `None`: it has not said.
    pub peer_durable: Option<SequenceNumber>,
    /// The number below which this end cannot; `None`: it says nothing of the kind.
    pub durable: Option<SequenceNumber>,
    /// Messages that wait to be transmitted for the first time.
    pub queued: u64,
    /// Messages transmitted and not acknowledged.
    pub in_flight: u64,
    /// Open orders that are granted; `None`: nothing is said of them.
    pub credits: Option<u32>,
    /// Whom this end refused last.
    pub refused: Option<RefusedPeer>,
    /// What it did since it was built.
    pub counters: LinkCounters,
    /// What RoCEv2 in user space counts beside that.
    pub roce: Option<proto::roce::Counters>,
}

/// Where a link stands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LinkState {
    /// Waits for the peer to call.
    #[default]
    Listening,
    /// Calls the peer, which has not answered.
    Calling,
    /// The peer has answered; the session is not agreed yet.
    Agreeing,
    /// Numbers are agreed.
    Up,
}

/// Somebody whom this end refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusedPeer {
    /// Where it is; `None`: the transport cannot say.
    pub from: Option<SocketAddr>,
    /// Who it said it is, where the transport asks.
    pub user: Option<UserName>,
    /// Why.
    pub reason: RefusedFor,
}

/// Why somebody was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusedFor {
    /// By a handshake or login.
    Refusal(Refusal),
    /// At a meeting over RoCEv2.
    Meeting(DownReason),
}

impl From<Refusal> for RefusedFor {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}

impl fmt::Display for RefusedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refusal(refusal) => refusal.fmt(f),
            Self::Meeting(reason) => reason.fmt(f),
        }
    }
}

impl LinkState {
    /// As it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Listening => "listening",
            Self::Calling => "calling",
            Self::Agreeing => "agreeing",
            Self::Up => "up",
        }
    }
}

impl LinkView {
    /// What it runs over, for people.
    #[must_use]
    pub fn over(&self) -> String {
        match self.carrier {
            Some(carrier) => format!("{} over {carrier}", self.transport),
            None => self.transport.to_owned(),
        }
    }
}

impl LinkView {
    /// Where its numbers stand, by name, in the order in which they are shown; `None`: it has none such.
    #[must_use]
    pub fn numbers(&self) -> [(&'static str, Option<u64>); 8] {
        let number = |sequence: SequenceNumber| Some(sequence.0);
        [
            ("next_send", number(self.next_send)),
            ("next_receive", number(self.next_receive)),
            ("peer_received", number(self.peer_received)),
            ("peer_durable", self.peer_durable.and_then(number)),
            ("durable", self.durable.and_then(number)),
            ("queued", Some(self.queued)),
            ("in_flight", Some(self.in_flight)),
            ("credits", self.credits.map(u64::from)),
        ]
    }

    /// All that is counted, by name, in the order in which it is shown.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let roce = self.roce.iter().flat_map(proto::roce::Counters::rows);
        self.counters.rows().into_iter().chain(roce)
    }

    /// All numbers and counters in one line.
    #[must_use]
    pub fn figures(&self) -> String {
        let numbers = self.numbers().into_iter();
        let all = numbers.chain(self.counts().map(|(name, count)| (name, Some(count))));
        let shown =
            all.map(|(name, number)| number.map_or_else(|| format!("{name}=-"), |number| format!("{name}={number}")));
        shown.collect::<Vec<_>>().join(" ")
    }
}

/// One line: where it stands.
impl fmt::Display for LinkView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.over())?;
        if let Some(peer) = self.peer {
            write!(f, ", peer {peer}")?;
        }
        if let Some(epoch) = self.epoch {
            write!(f, ", epoch {epoch}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RefusedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(from) => write!(f, "{from}")?,
            None => f.write_str("somebody")?,
        }
        if let Some(user) = self.user {
            write!(f, " (user {})", user.as_str())?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl LinkCounters {
    /// The counters by name, in the order in which they are shown.
    #[must_use]
    pub const fn rows(&self) -> [(&'static str, u64); 22] {
        [
            ("sent", self.sent),
            ("received", self.received),
            ("retransmitted", self.retransmitted),
            ("retransmits_spurious", self.retransmits_spurious),
            ("duplicates", self.duplicates),
            ("naks_sent", self.naks_sent),
            ("naks_received", self.naks_received),
            ("heard", self.heard),
            ("unreachable", self.unreachable),
            ("malformed", self.malformed),
            ("foreign", self.foreign),
            ("forged", self.forged),
            ("replayed", self.replayed),
            ("impossible", self.impossible),
            ("refused", self.refused),
            ("refused_by_peer", self.refused_by_peer),
            ("ups", self.ups),
            ("downs", self.downs),
            ("paths_down", self.paths_down),
            ("bytes_sent", self.bytes_sent),
            ("bytes_received", self.bytes_received),
            ("recalled", self.recalled),
        ]
    }
}
