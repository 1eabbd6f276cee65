//! What a connection knows of the other end while a session is up.

use crate::ltp::NEVER;
use crate::ltp::auth::Authenticator;
use crate::ltp::config::Config;
use crate::ltp::serials::Serials;
use crate::ltp::wire::Establish;
use types::{Duration, Timestamp};

/// See the file's head.
#[derive(Debug)]
pub(super) struct Peer {
    /// This end knows that the other one agrees to the session. The initiator does from the beginning; the acceptor has the
    /// last word of the handshake, and learns it from the first datagram of the session.
    pub(super) is_confirmed: bool,
    pub(super) send_tag: u32,
    pub(super) receive_tag: u32,
    /// `None` without a key.
    pub(super) authenticator: Option<Authenticator>,
    /// Messages in flight that the peer has room for.
    pub(super) window: u64,
    /// The peer sends each datagram more than once: that a message came before says nothing.
    pub(super) sends_copies: bool,
    /// Observed silence that ends the session.
    pub(super) silence_max: Duration,
    /// How long nothing new has come from the peer while this end was looking.
    pub(super) silence: Duration,
    /// When this end last sent anything.
    pub(super) sent_at: Timestamp,
    /// When it last sent what the peer takes as a sign of life, and not only something again.
    pub(super) news_at: Timestamp,
    /// When an acknowledgement leaves by itself.
    pub(super) ack_at: Timestamp,
    /// When the credits are told.
    pub(super) credits_at: Timestamp,
    /// The peer is to learn the next number at once: a timeout has not retransmitted everything.
    pub(super) probe: bool,
    /// Of the last datagram without messages that this end sent.
    pub(super) serial: u64,
    /// Those of the peer.
    pub(super) serials: Serials,
    /// The serial with which the last credits came.
    pub(super) credits_serial: u64,
    /// Retransmitted messages that were here already.
    pub(super) duplicates: u32,
    /// The peer's count of the same.
    pub(super) duplicates_told: u32,
}

impl Peer {
    /// `tags`: those sent, those received.
    pub(super) fn new(
        config: &Config,
        (send_tag, receive_tag): (u32, u32),
        authenticator: Option<Authenticator>,
        establish: &Establish,
        time: Timestamp,
    ) -> Self {
        let heartbeat = Duration::from_micros(establish.heartbeat_us.get().into());
        let interval = heartbeat.max(config.heartbeat).min(Config::HEARTBEAT_MAX);
        Self {
            is_confirmed: false,
            send_tag,
            receive_tag,
            authenticator,
            window: establish.window.get().into(),
            sends_copies: establish.copies > 1,
            silence_max: Duration(interval.0.saturating_mul(config.dead_after.into())),
            silence: Duration(0),
            sent_at: time,
            news_at: time,
            ack_at: NEVER,
            credits_at: NEVER,
            probe: false,
            serial: 0,
            serials: Serials::START,
            credits_serial: 0,
            duplicates: 0,
            duplicates_told: 0,
        }
    }

    /// The serial of the next datagram without messages.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
}
