//! The session core of either end: logon, sequence numbers, keepalive, resends, logout.
//!
//! Inputs are connections that come and go, whole frames, and time; outputs go to an [`Output`]. There is no clock, no
//! socket and no randomness, so the same inputs give the same outputs, byte for byte, and a session is rebuilt by feeding
//! it its inputs again. Numbers and sent messages outlive a connection; only a reset ends them.
//!
//! **In.** A message has the expected number, or a higher one (a gap), or a lower one. At a gap the core asks once for
//! everything from the expected number on (`gap`). What comes too early waits in bounded memory (`early`) and is handled in
//! order once the gap is filled; what finds no room comes again. Only a resend request is answered even when it comes too
//! early, or two ends with a gap each would wait for one another. A lower number is an error, unless marked as a possible
//! duplicate: then it was seen and is dropped.
//!
//! **Out.** Every message but the answer to a failed logon gets a number and is kept. A peer that asks for old numbers gets
//! application messages and rejects again and one gap fill for each run of others (`replay`). Messages that are numbered
//! while nobody is logged on wait in the store: at the next logon the peer sees the gap and asks. What the store no longer
//! holds is recalled from the owner ([`Output::recall`]).
//!
//! Clauses are of the FIX session layer as in FIX 4.4, volume 2, and of its test cases.

mod admin;
mod config;
mod early;
mod gap;
mod inbound;
mod logon;
mod logout;
mod long;
mod outbound;
mod output;
mod refuse;
mod replay;
mod store;
#[cfg(test)]
mod tests;

pub use admin::{Logon, MAX_HEARTBEAT_SECONDS};
pub use config::{CompId, ResetOnLogon, Role, SessionConfig};
pub use output::{Application, CloseReason, Output, Recall, SessionCounters};

use super::{Body, Message, SOH, Scratch, Version};
use admin::{Heartbeat, TestRequest};
use early::Early;
use inbound::Inbound;
use outbound::Outbound;
use types::{Duration, SequenceNumber, Timestamp};

/// One FIX session.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    phase: Phase,
    /// When the phase began.
    since: Timestamp,
    /// The heartbeat interval agreed at logon; 0 is none.
    heartbeat: Duration,
    inbound: Inbound,
    outbound: Outbound,
    /// Numbers start again once the connection is gone.
    day_ended: bool,
    /// The latest time seen.
    now: Timestamp,
    counters: SessionCounters,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Disconnected,
    /// Acceptor: connected, no Logon yet.
    AwaitingLogon,
    /// Initiator: connected and asked.
    LogonSent,
    LoggedOn,
    /// Logout said, the answer is awaited.
    LogoutSent,
    /// Logout answered, the peer is to close.
    LogoutAnswered,
    /// The peer broke a rule and was told so with a Logout, for this reason. It may answer.
    TurnedAway(CloseReason),
    /// The owner was told to close.
    Closing,
}

impl Session {
    /// A session that has never been connected. Allocates all it will ever use.
    ///
    /// # Panics
    /// When the store has no room for one message of the greatest length, or no version is spoken.
    #[must_use]
    pub fn new(config: SessionConfig) -> Self {
        let version = *config.versions.first().expect("a session speaks a version");
        Self {
            phase: Phase::Disconnected,
            since: Timestamp::NONE,
            heartbeat: config.heartbeat,
            inbound: Inbound::new(config.early_bytes),
            outbound: Outbound::new(&config, version),
            day_ended: false,
            now: Timestamp::NONE,
            counters: SessionCounters::default(),
            config,
        }
    }

    /// Says who the peer is, for a session that is anyone's until its first Logon. Numbers start at 1.
    ///
    /// # Panics
    /// When the session has a connection.
    pub fn bind(&mut self, target_comp_id: CompId) {
        assert!(!self.is_connected(), "a session is bound before its peer connects");
        self.config.target_comp_id = target_comp_id;
        self.outbound.bind(target_comp_id);
        self.reset_numbers();
    }

    /// A connection was made. An initiator says Logon.
    ///
    /// # Panics
    /// When the session has a connection: the owner keeps the live one and refuses the other.
    pub fn on_connected(&mut self, now: Timestamp, out: &mut impl Output) {
        assert!(!self.is_connected(), "a session has one connection");
        self.now = now;
        self.inbound.connected(now);
        match self.config.role {
            Role::Acceptor => self.enter(Phase::AwaitingLogon),
            Role::Initiator => self.say_logon(out),
        }
    }

    /// The connection is gone. Numbers and messages stay, unless the session day has ended.
    pub fn on_disconnected(&mut self, now: Timestamp) {
        self.now = now;
        self.inbound.disconnected();
        self.phase = Phase::Disconnected;
        if self.day_ended {
            self.begin_day();
        }
    }

    /// A whole message came in, as [`super::frame`] finds it; it is scanned into `scratch`. Gives what the order logic must
    /// see. Then the owner asks [`Session::has_early`].
    pub fn on_frame<'f>(
        &mut self,
        now: Timestamp,
        frame: &'f [u8],
        scratch: &'f mut Scratch,
        out: &mut impl Output,
    ) -> Option<Application<'f>> {
        self.now = now;
        match self.phase {
            Phase::AwaitingLogon | Phase::LogonSent => {
                self.received(now);
                let version = self.version_of_frame(frame);
                self.on_first_message(&self.scan(version, frame, scratch), out);
                None
            }
            Phase::LoggedOn | Phase::LogoutSent => {
                self.received(now);
                let application = self.on_message(frame, &self.scan(self.version(), frame, scratch), out);
                self.outbound.pump(now, &mut self.counters, out);
                application
            }
            Phase::TurnedAway(reason) => {
                self.on_last_words(reason, &self.scan(self.version(), frame, scratch), out);
                None
            }
            // After the last word nothing is heard.
            Phase::LogoutAnswered | Phase::Closing | Phase::Disconnected => None,
        }
    }

    /// What the owner has found of a [`Recall`]: the message with this number as it was first sent, or that there is none.
    /// They come in rising order; the last is that of [`Recall::end`]. Numbers that are passed over could not be found.
    pub fn on_recalled(
        &mut self,
        now: Timestamp,
        recall: u64,
        sequence: SequenceNumber,
        message: Option<&[u8]>,
        out: &mut impl Output,
    ) {
        self.now = now;
        if self.is_live() || self.phase == Phase::LogoutAnswered {
            self.outbound
                .on_recalled(now, recall, sequence.0, message, &mut self.counters, out);
            self.outbound.pump(now, &mut self.counters, out);
        }
    }

    /// The time that [`Session::poll_timeout`] named has come. Calling it early or late does no harm.
    pub fn on_timer(&mut self, now: Timestamp, out: &mut impl Output) {
        self.now = now;
        if self.is_live() || self.phase == Phase::LogoutAnswered {
            self.outbound.pump(now, &mut self.counters, out);
        }
        if let Some(due) = self.phase_timeout()
            && now >= due
        {
            let reason = match self.phase {
                Phase::AwaitingLogon | Phase::LogonSent => CloseReason::LogonTimeout,
                Phase::TurnedAway(reason) => reason,
                _ => CloseReason::LogoutTimeout,
            };
            return self.close(reason, b"", out);
        }
        if self.is_live() && self.early_logout_due().is_some_and(|due| now >= due) {
            self.on_early_logout(out);
        }
        if self.phase == Phase::LoggedOn {
            self.keep_alive(out);
        }
    }

    /// When [`Session::on_timer`] is due. In the past while a replay goes on: the owner calls in each of its turns, as far
    /// as its send queue has room.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let may_send = self.is_live() || self.phase == Phase::LogoutAnswered;
        if may_send && self.outbound.is_ready() {
            return Some(self.now);
        }
        let keep_alive = (self.phase == Phase::LoggedOn && self.heartbeat > Duration(0)).then(|| self.peer_due());
        let heartbeat = keep_alive.and_then(|_| self.heartbeat_due());
        let early_logout = self.is_live().then(|| self.early_logout_due()).flatten();
        [self.phase_timeout(), keep_alive, heartbeat, early_logout]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the connection ends because the peer has not done what the phase waits for.
    fn phase_timeout(&self) -> Option<Timestamp> {
        let patience = match self.phase {
            Phase::Disconnected | Phase::Closing | Phase::LoggedOn => return None,
            Phase::AwaitingLogon | Phase::LogonSent => self.config.logon_timeout,
            Phase::LogoutSent => self.config.logout_timeout,
            Phase::LogoutAnswered | Phase::TurnedAway(_) => self.config.close_timeout,
        };
        Some(self.since + patience)
    }

    /// Numbers a message, keeps it, and sends it when the session is logged on. While it is not, the message waits for
    /// the peer to ask for it after the next logon.
    pub fn send(&mut self, now: Timestamp, body: &impl Body, out: &mut impl Output) -> SequenceNumber {
        self.now = now;
        self.say(body, out)
    }

    /// A new session day begins: both directions start again at 1. A live peer is told with a Logout first; what comes until
    /// its connection is gone still belongs to the old day, and the numbers start again then.
    pub fn on_new_session_day(&mut self, now: Timestamp, out: &mut impl Output) {
        self.now = now;
        match self.phase {
            Phase::Disconnected | Phase::AwaitingLogon => return self.begin_day(),
            Phase::LogonSent => self.close(CloseReason::LoggedOut, b"", out),
            Phase::LoggedOn => self.logout(now, b"end of the session day", out),
            Phase::LogoutSent | Phase::LogoutAnswered | Phase::TurnedAway(_) | Phase::Closing => (),
        }
        self.day_ended = true;
    }

    /// Whether there is a connection.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        !matches!(self.phase, Phase::Disconnected)
    }

    /// Whether the session is logged on and no Logout was said.
    #[must_use]
    pub const fn is_logged_on(&self) -> bool {
        matches!(self.phase, Phase::LoggedOn)
    }

    /// The version in force: that of the last Logon, at first the first of the config.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.outbound.header.version
    }

    /// Scans a message, with the dictionary of that version when there is one.
    fn scan<'f>(&self, version: Version, frame: &'f [u8], scratch: &'f mut Scratch) -> Message<'f> {
        scratch.parse_with(frame, self.config.dictionaries.get(version))
    }

    /// The version that a frame is of before a Logon says more: FIXT.1.1 is the same under all of its versions.
    fn version_of_frame(&self, frame: &[u8]) -> Version {
        let is_spoken = |version: &&Version| {
            let rest = frame
                .strip_prefix(b"8=")
                .and_then(|rest| rest.strip_prefix(version.begin_string()));
            rest.is_some_and(|rest| rest.first() == Some(&SOH))
        };
        self.config
            .versions
            .iter()
            .find(is_spoken)
            .copied()
            .unwrap_or(self.version())
    }

    /// The number that the next message sent will have.
    #[must_use]
    pub const fn next_outbound(&self) -> SequenceNumber {
        SequenceNumber(self.outbound.next)
    }

    /// The number that is expected next.
    #[must_use]
    pub const fn next_inbound(&self) -> SequenceNumber {
        SequenceNumber(self.inbound.next)
    }

    /// What was counted since the session was made.
    #[must_use]
    pub const fn counters(&self) -> SessionCounters {
        self.counters
    }

    /// Bytes that the session has allocated.
    #[must_use]
    pub const fn allocated(&self) -> usize {
        self.outbound.allocated() + self.inbound.early.allocated()
    }

    const fn received(&mut self, now: Timestamp) {
        self.counters.received += 1;
        self.inbound.last_received = now;
        self.inbound.tested_at = None;
    }

    /// Sends a heartbeat after silence of our own, a test request after the peer's, and gives the peer up after more.
    fn keep_alive(&mut self, out: &mut impl Output) {
        if self.heartbeat == Duration(0) {
            return;
        }
        if self.now >= self.peer_due() {
            if self.inbound.tested_at.is_some() {
                self.close(CloseReason::PeerSilent, b"", out);
                return;
            }
            self.inbound.tested_at = Some(self.now);
            self.say(&TestRequest { test_req_id: b"TEST" }, out);
        } else if self.heartbeat_due().is_some_and(|due| self.now >= due) {
            self.say(&Heartbeat { test_req_id: b"" }, out);
        }
    }

    /// When a heartbeat is due; never while a replay goes on, which is traffic, or while a test request is not answered,
    /// which says more.
    fn heartbeat_due(&self) -> Option<Timestamp> {
        let is_needed = !self.outbound.is_busy() && self.inbound.tested_at.is_none();
        is_needed.then(|| self.outbound.last_sent + self.heartbeat)
    }

    /// When the peer's silence has lasted a heartbeat and a grace, since it was last heard or was tested.
    fn peer_due(&self) -> Timestamp {
        let grace = Duration((self.heartbeat.0 / 5).max(Duration::from_secs(1).0));
        self.inbound.tested_at.unwrap_or(self.inbound.last_received) + self.heartbeat + grace
    }

    /// Whether what is numbered now may be sent now.
    const fn is_live(&self) -> bool {
        matches!(self.phase, Phase::LoggedOn | Phase::LogoutSent)
    }

    fn say(&mut self, body: &impl Body, out: &mut impl Output) -> SequenceNumber {
        let live = self.is_live();
        SequenceNumber(self.outbound.send(self.now, body, live, &mut self.counters, out))
    }

    const fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = self.now;
    }

    fn begin_day(&mut self) {
        self.counters.days += 1;
        self.reset_numbers();
    }

    fn reset_numbers(&mut self) {
        self.day_ended = false;
        self.counters.resets += 1;
        self.inbound.reset();
        self.outbound.reset();
    }
}
