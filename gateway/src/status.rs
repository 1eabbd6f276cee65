//! What others may know of a running shard: numbers that the shard writes now and then, and that anyone may read. Reading
//! them never touches the path of an order.

use crate::clients::Clients;
use crate::live::Live;
use crate::outside::FilterView;
use crate::shard::Shard;
use net::Link;
use net::link::LinkCounters;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use types::{Duration, ExecType, Reason, Timestamp};

/// The numbers of one shard.
#[derive(Debug)]
pub struct Status {
    /// By [`VenueId`](types::VenueId).
    pub links: Vec<LinkStatus>,
    /// Where the shard's clients connect, once they can.
    addresses: OnceLock<Addresses>,
    /// What each link did, a line each, once the shard has ended.
    summaries: OnceLock<Vec<String>>,
    /// Clients connected.
    pub connected: AtomicU64,
    /// Connections that ended, for whatever reason.
    pub disconnected: AtomicU64,
    /// Logons that the shard refused; see [`DoorStatus::refused`] for the others.
    pub logons_refused: AtomicU64,
    /// Handshakes and sessions that the links of clients refused: key, header, more than one order a datagram and so on.
    pub client_links_refused: AtomicU64,
    /// Clients disconnected because they did not read what they were sent.
    pub too_slow: AtomicU64,
    /// Sends to clients: all that one turn makes for one client leaves in one.
    pub client_sends: AtomicU64,
    /// FIX messages that were skipped: wrong length or checksum.
    pub garbled: AtomicU64,
    /// FIX messages that were longer than any that is read, and refused.
    pub too_long: AtomicU64,
    /// Messages of clients that could not be decoded.
    pub malformed: AtomicU64,
    /// Orders open.
    pub open_orders: AtomicU64,
    /// New orders accepted.
    pub accepted: AtomicU64,
    /// Fills reported to clients.
    pub fills: AtomicU64,
    /// Requests refused, by place of the reason in [`Reason::ALL`].
    pub refused: Vec<AtomicU64>,
    /// New orders that the pre-filter judged.
    pub filter_received: AtomicU64,
    /// New orders that it refused; by reason they are among the others in `refused`.
    pub filter_refused: AtomicU64,
    /// Of the pre-filter's backend beside the shard's own; zeros without one.
    pub outside: OutsideStatus,
    /// Reports of venues that contradict what is known.
    pub anomalies: AtomicU64,
    /// Bytes appended to the journal.
    pub journal_position: AtomicU64,
}

/// Where clients connect.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Addresses {
    /// By FIX.
    pub fix: Option<SocketAddr>,
    /// By FIX with TLS.
    pub fix_tls: Option<SocketAddr>,
    /// By the native protocol.
    pub native: Option<SocketAddr>,
}

/// The numbers of the door: of connections that are nobody's yet.
#[derive(Default, Debug)]
pub struct DoorStatus {
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Clients handed on to their shard.
    pub handed_on: AtomicU64,
    /// Logons refused: name, password.
    pub refused: AtomicU64,
    /// Connections closed because no logon came in time.
    pub timed_out: AtomicU64,
    /// Connections closed because another wanted their place.
    pub gave_way: AtomicU64,
    /// Connections closed because what came is not the protocol.
    pub malformed: AtomicU64,
    /// Connections that the peer closed before a logon.
    pub closed: AtomicU64,
    /// FIX messages before a Logon that were skipped: wrong length or checksum.
    pub garbled: AtomicU64,
}

/// The numbers of one venue link.
#[derive(Default, Debug)]
pub struct LinkStatus {
    /// Whether the venue is there.
    pub is_up: AtomicBool,
    /// Messages transmitted the first time.
    pub sent: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
    /// Messages transmitted again.
    pub retransmitted: AtomicU64,
    /// Requests for retransmission sent.
    pub naks_sent: AtomicU64,
    /// Messages that came twice.
    pub duplicates: AtomicU64,
}

/// The numbers of a backend of the pre-filter.
#[derive(Default, Debug)]
pub struct OutsideStatus {
    /// Messages that it judged.
    pub received: AtomicU64,
    /// Of those, refused.
    pub refused: AtomicU64,
    /// New orders that it did not judge: refused, or left to the shard's own.
    pub unjudged: AtomicU64,
    /// Whether it is at fault.
    pub is_faulty: AtomicBool,
}

/// How often a shard writes its numbers.
pub(crate) const INTERVAL: Duration = Duration::from_millis(5);

impl Status {
    /// All zero, for a shard with links to `venues` venues.
    #[must_use]
    pub fn new(venues: usize) -> Self {
        Self {
            links: (0..venues).map(|_| LinkStatus::default()).collect(),
            addresses: OnceLock::new(),
            summaries: OnceLock::new(),
            connected: AtomicU64::new(0),
            disconnected: AtomicU64::new(0),
            logons_refused: AtomicU64::new(0),
            client_links_refused: AtomicU64::new(0),
            too_slow: AtomicU64::new(0),
            client_sends: AtomicU64::new(0),
            garbled: AtomicU64::new(0),
            too_long: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            open_orders: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            fills: AtomicU64::new(0),
            refused: Reason::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            filter_received: AtomicU64::new(0),
            filter_refused: AtomicU64::new(0),
            outside: OutsideStatus::default(),
            anomalies: AtomicU64::new(0),
            journal_position: AtomicU64::new(0),
        }
    }

    /// Where the shard's clients connect. Nowhere until the door is open.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses.get().copied().unwrap_or_default()
    }

    pub(crate) fn set_addresses(&self, addresses: Addresses) {
        // The door opens once, so nothing was there before.
        let _: Result<_, _> = self.addresses.set(addresses);
    }

    /// What each link did, a line each. None before the shard has ended.
    #[must_use]
    pub fn link_summaries(&self) -> &[String] {
        self.summaries.get().map_or(&[], Vec::as_slice)
    }

    /// Writes what each link did, at the end.
    pub(crate) fn summarize<L: Link>(&self, live: &Live<L>) {
        let venues = live.links.iter().zip(&live.watches);
        let venues = venues.map(|(link, watch)| watch.summary(link));
        let clients = live
            .client_links
            .all()
            .iter()
            .map(|client| client.watch().summary(client.link()));
        // A shard ends once, so nothing was there before.
        let _: Result<_, _> = self.summaries.set(venues.chain(clients).collect());
    }

    /// Whether every venue is there.
    #[must_use]
    pub fn all_links_up(&self) -> bool {
        self.links.iter().all(|link| link.is_up.load(Ordering::Relaxed))
    }

    /// Writes the numbers as they are now.
    pub(crate) fn write<L: Link>(&self, live: &Live<L>, shard: &Shard, clients: &Clients) {
        let set = |counter: &AtomicU64, value: u64| counter.store(value, Ordering::Relaxed);
        for (status, link) in self.links.iter().zip(&live.links) {
            status.is_up.store(link.is_up(), Ordering::Relaxed);
            status.write(&link.counters());
        }
        let edge = clients.counters();
        set(
            &self.connected,
            (clients.connected() + live.client_links.connected()) as u64,
        );
        set(&self.disconnected, edge.closed);
        set(&self.logons_refused, edge.logons_refused);
        set(&self.client_links_refused, live.client_links.refused());
        set(&self.too_slow, edge.too_slow + live.client_links.overrun() as u64);
        set(&self.client_sends, edge.sends);
        set(&self.garbled, edge.garbled);
        set(&self.too_long, edge.too_long);
        set(&self.malformed, edge.malformed + shard.counters().malformed_requests);
        let orders = shard.orders();
        let counters = orders.counters();
        set(&self.open_orders, orders.open_orders() as u64);
        set(&self.accepted, counters.accepted);
        set(&self.fills, counters.reported(ExecType::Fill));
        for (counter, &reason) in self.refused.iter().zip(Reason::ALL) {
            set(counter, counters.refused(reason));
        }
        let filter = shard.filter_counters();
        set(&self.filter_received, filter.received);
        set(&self.filter_refused, filter.refused);
        set(
            &self.anomalies,
            orders::Anomaly::ALL
                .iter()
                .map(|&anomaly| counters.anomalies(anomaly))
                .sum(),
        );
        set(&self.journal_position, live.journal.position());
    }
}

impl OutsideStatus {
    pub(crate) fn write(&self, view: &FilterView) {
        let set = |counter: &AtomicU64, value: u64| counter.store(value, Ordering::Relaxed);
        set(&self.received, view.counters.received);
        set(&self.refused, view.counters.refused);
        set(&self.unjudged, view.fallback.refused + view.fallback.to_software);
        self.is_faulty.store(view.fault.is_some(), Ordering::Relaxed);
    }
}

impl LinkStatus {
    fn write(&self, counters: &LinkCounters) {
        let set = |counter: &AtomicU64, value: u64| counter.store(value, Ordering::Relaxed);
        set(&self.sent, counters.sent);
        set(&self.received, counters.received);
        set(&self.retransmitted, counters.retransmitted);
        set(&self.naks_sent, counters.naks_sent);
        set(&self.duplicates, counters.duplicates);
    }
}

/// When the numbers are written next.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Schedule(Timestamp);

impl Schedule {
    /// Whether it is time; then the next time is set.
    pub(crate) fn is_due(&mut self, now: Timestamp) -> bool {
        if now < self.0 {
            return false;
        }
        self.0 = now + INTERVAL;
        true
    }
}
