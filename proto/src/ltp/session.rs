//! The handshake: how two ends agree on an epoch, on tags, and on where the numbers go on.
//!
//! The acceptor keeps nothing between the two steps. Its nonce is a function of its incarnation's seed and of the
//! initiator's nonce, so it recognises its own answer when it comes back, a flood of first steps costs it no memory,
//! and an answer of an earlier incarnation is not recognised. A second step that was recorded and is played again names
//! an epoch that is not above the highest, and is refused.

use super::NEVER;
use super::auth::Purpose;
use super::config::{Config, Role};
use super::refusal::Refusal;
use super::wire::{self, Establish, HeaderForm, Kind, Negotiate, Negotiated, Refuse, Step, VERSION};
use types::{Duration, SequenceNumber, Timestamp};
use zerocopy::little_endian::{U16, U32, U64};

/// One end's part in the handshake.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Session {
    role: Role,
    terms: Terms,
    /// Rises with each incarnation.
    seed: u64,
    state: State,
    /// Of the current attempt or session; 0: none yet.
    initiator_nonce: u64,
    acceptor_nonce: u64,
    /// Initiator: of the current attempt. Acceptor: the highest established.
    epoch: u64,
    /// Attempts of this incarnation.
    attempts: u64,
    /// When the initiator calls again.
    retry_at: Timestamp,
    retry_interval: Duration,
    /// How long the initiator waits after the next refusal.
    refused_interval: Duration,
    /// The call that waits for its answer was refused already: further refusals of it change nothing.
    is_call_refused: bool,
    reply: Reply,
}

/// How far an end is with its handshake.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Acceptor: waits to be called.
    Listening,
    /// Initiator: waits for the answer to the first step.
    Negotiating,
    /// Initiator: waits for the answer to the second step. Acceptor: has given it, and waits for a first sign that the
    /// initiator agrees.
    Establishing,
    /// The session is up.
    Up,
}

/// What is to be answered to the source of the last handshake datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Reply {
    None,
    Negotiated {
        initiator_nonce: u64,
    },
    Establish,
    Established,
    Refuse {
        initiator_nonce: u64,
        acceptor_nonce: u64,
        refusal: Refusal,
    },
}

/// What is said in the second step and does not change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Terms {
    session: u16,
    /// 0: none.
    key_id: u32,
    header: u8,
    copies: u8,
    takes_single: bool,
    window: u32,
    ack_delay_ns: u32,
    heartbeat_us: u32,
    max_message: u16,
}

/// Where the rings stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// What cannot be transmitted again, not even from the owner's journal: all below it.
    pub(super) gone_below: u64,
    /// The oldest message that is kept.
    pub(super) oldest: u64,
    /// The next that was never transmitted.
    pub(super) next_send: u64,
    pub(super) next_receive: u64,
    /// What is received below it is safe from the loss of the machine. 0: not told.
    pub(super) durable: u64,
}

/// What a handshake datagram did.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// It answers no question of this end.
    Stale,
    /// One step on; there may be a reply.
    Step,
    /// The session is up; what the peer said of itself.
    Up(Establish),
    /// This end refuses; the reply says so. A session that was up stays up.
    Refused(Refusal),
    /// The peer refuses.
    RefusedByPeer(Refusal),
}

impl Session {
    pub(super) fn new(role: Role, config: &Config, seed: u64) -> Self {
        let state = match role {
            Role::Initiator => State::Negotiating,
            Role::Acceptor => State::Listening,
        };
        let mut session = Self {
            role,
            terms: Terms::new(config),
            seed,
            state,
            initiator_nonce: 0,
            acceptor_nonce: 0,
            epoch: 0,
            attempts: 0,
            retry_at: NEVER,
            retry_interval: RETRY_FIRST,
            refused_interval: RETRY_REFUSED_FIRST,
            is_call_refused: false,
            reply: Reply::None,
        };
        if role == Role::Initiator {
            session.negotiate(Timestamp::NONE);
        }
        session
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A mistake that the simulation and the model have to notice: an acceptor takes every epoch for a new one.
    #[cfg(test)]
    pub(super) fn forget_epoch(&mut self) {
        if self.role == Role::Acceptor {
            self.epoch = 0;
        }
    }

    /// For the model, in which a timer has fired whenever it could.
    #[cfg(test)]
    pub(super) fn forget_time(&mut self) {
        self.retry_at = Timestamp::NONE;
        self.retry_interval = RETRY_FIRST;
    }

    /// Whether [`poll_reply`](Self::poll_reply) has something to send.
    pub(super) const fn has_reply(&self) -> bool {
        !matches!(self.reply, Reply::None)
    }

    /// When there is something to send.
    pub(super) fn next_at(&self, now: Timestamp) -> Timestamp {
        if self.has_reply() { now } else { self.retry_at }
    }

    /// The session is over: the acceptor waits again, the initiator calls again.
    pub(super) fn end(&mut self, now: Timestamp) {
        match self.role {
            Role::Acceptor => self.state = State::Listening,
            Role::Initiator => self.negotiate(now),
        }
    }

    /// Begins a new attempt, whose first step leaves at `at`.
    fn negotiate(&mut self, at: Timestamp) {
        self.attempts += 1;
        self.state = State::Negotiating;
        self.initiator_nonce = mix(self.seed ^ mix(self.attempts));
        self.acceptor_nonce = 0;
        self.epoch = self.seed.saturating_add(self.attempts);
        self.retry_at = at;
        self.retry_interval = RETRY_FIRST;
    }

    /// Begins a new attempt after a refusal that a person has to look at.
    fn negotiate_after_refusal(&mut self, now: Timestamp) {
        let at = self.after_refusal(now);
        self.negotiate(at);
    }

    /// The initiator's call is refused by what may be nobody's word: an answer to it still counts, and the next one is later.
    fn call_later(&mut self, now: Timestamp) {
        if !core::mem::replace(&mut self.is_call_refused, true) {
            self.retry_at = self.after_refusal(now);
        }
    }

    /// When the initiator calls again after a refusal: later each time.
    fn after_refusal(&mut self, now: Timestamp) -> Timestamp {
        let at = now + self.refused_interval;
        self.refused_interval = Duration((2 * self.refused_interval.0).min(RETRY_REFUSED_LAST.0));
        at
    }

    /// What the key of this session is made of.
    pub(super) const fn purpose(&self) -> Purpose {
        Purpose {
            session: self.terms.session,
            initiator_nonce: self.initiator_nonce,
            acceptor_nonce: self.acceptor_nonce,
            epoch: self.epoch,
        }
    }

    /// The tags of this session's datagrams: those sent, those received. The top bit tells the direction, so that a
    /// datagram that comes back to its sender is foreign.
    pub(super) fn tags(&self, form: HeaderForm) -> (u32, u32) {
        let from_acceptor_bit = match form {
            HeaderForm::Full => 1 << 31,
            HeaderForm::Compact => 1 << 15,
        };
        let common = wire::low_32(mix(self.initiator_nonce ^ mix(self.acceptor_nonce ^ mix(self.epoch))));
        let from_initiator = (common & (from_acceptor_bit - 1)).max(1);
        let from_acceptor = from_initiator | from_acceptor_bit;
        match self.role {
            Role::Initiator => (from_initiator, from_acceptor),
            Role::Acceptor => (from_acceptor, from_initiator),
        }
    }

    /// Whether a step may be heard although it does not prove its origin: what says that the ends have no key in common, or
    /// not the session that keys are made for, cannot be proven with one. It draws a refusal, or is told to the owner, and
    /// changes nothing else.
    pub(super) fn is_about_keys(&self, step: &Step<'_>) -> bool {
        match step {
            Step::Negotiate(negotiate) => {
                let given = (negotiate.key_id.get(), negotiate.session.get());
                given != (self.terms.key_id, self.terms.session)
            }
            Step::Refuse(refuse) => {
                self.state == State::Negotiating && self.is_of_attempt(refuse) && is_unproven(refuse.refusal())
            }
            Step::Negotiated(_) | Step::Establish(_) | Step::Established(_) => false,
        }
    }

    pub(super) fn on_step(&mut self, now: Timestamp, step: Step<'_>, standing: Standing) -> Outcome {
        match (self.role, step) {
            (Role::Acceptor, Step::Negotiate(negotiate)) => self.on_negotiate(negotiate),
            (Role::Initiator, Step::Negotiated(negotiated)) => self.on_negotiated(now, negotiated),
            (Role::Acceptor, Step::Establish(establish)) => self.on_establish(establish, standing),
            (Role::Initiator, Step::Established(established)) => self.on_established(now, established, standing),
            (_, Step::Refuse(refuse)) => self.on_refuse(now, refuse),
            _ => Outcome::Stale,
        }
    }

    fn on_negotiate(&mut self, negotiate: &Negotiate) -> Outcome {
        let initiator_nonce = negotiate.initiator_nonce.get();
        if let Err(refusal) = self.check_negotiation(negotiate) {
            return self.refuse(initiator_nonce, 0, refusal);
        }
        self.reply = Reply::Negotiated { initiator_nonce };
        Outcome::Step
    }

    fn check_negotiation(&self, negotiate: &Negotiate) -> Result<(), Refusal> {
        let (version, session) = (negotiate.version, negotiate.session.get());
        if version != VERSION {
            let (given, held) = (version, VERSION);
            return Err(Refusal::Version { given, held });
        }
        self.check_session(session)?;
        let (given, held) = (negotiate.key_id.get(), self.terms.key_id);
        if given == held {
            Ok(())
        } else {
            Err(Refusal::Key { given, held })
        }
    }

    fn check_session(&self, given: u16) -> Result<(), Refusal> {
        let held = self.terms.session;
        if given == held {
            Ok(())
        } else {
            Err(Refusal::Session { given, held })
        }
    }

    fn on_negotiated(&mut self, now: Timestamp, negotiated: &Negotiated) -> Outcome {
        if self.state != State::Negotiating || negotiated.initiator_nonce.get() != self.initiator_nonce {
            return Outcome::Stale;
        }
        self.state = State::Establishing;
        self.acceptor_nonce = negotiated.acceptor_nonce.get();
        self.retry_interval = RETRY_FIRST;
        self.second_step(now);
        Outcome::Step
    }

    /// The second step leaves now, and again if it stays unanswered.
    fn second_step(&mut self, now: Timestamp) {
        self.reply = Reply::Establish;
        self.schedule_retry(now);
    }

    fn schedule_retry(&mut self, now: Timestamp) {
        self.retry_at = now + self.retry_interval;
        self.retry_interval = Duration((2 * self.retry_interval.0).min(RETRY_LAST.0));
    }

    fn on_establish(&mut self, peer: &Establish, standing: Standing) -> Outcome {
        let (initiator_nonce, acceptor_nonce) = (peer.initiator_nonce.get(), peer.acceptor_nonce.get());
        let known = (self.initiator_nonce, self.acceptor_nonce, self.epoch);
        if self.state == State::Up && known == (initiator_nonce, acceptor_nonce, peer.epoch.get()) {
            // The answer was lost.
            self.reply = Reply::Established;
            return Outcome::Step;
        }
        if let Err(refusal) = self.check_establishment(peer, standing) {
            return self.refuse(initiator_nonce, acceptor_nonce, refusal);
        }
        self.state = State::Up;
        self.initiator_nonce = initiator_nonce;
        self.acceptor_nonce = acceptor_nonce;
        self.epoch = peer.epoch.get();
        self.reply = Reply::Established;
        Outcome::Up(*peer)
    }

    fn check_establishment(&self, peer: &Establish, standing: Standing) -> Result<(), Refusal> {
        if peer.acceptor_nonce.get() != self.answer_to(peer.initiator_nonce.get()) {
            return Err(Refusal::UnknownNegotiation);
        }
        if peer.epoch.get() <= self.epoch {
            let (given, held) = (peer.epoch.get(), self.epoch);
            return Err(Refusal::StaleEpoch { given, held });
        }
        self.check_terms(peer)?;
        check_numbers(peer, standing)
    }

    fn check_terms(&self, peer: &Establish) -> Result<(), Refusal> {
        self.check_session(peer.session.get())?;
        let (given, held) = (peer.max_message.get(), self.terms.max_message);
        if given != held {
            return Err(Refusal::MessageLength { given, held });
        }
        if peer.window.get() == 0 || peer.heartbeat_us.get() == 0 || peer.copies == 0 {
            return Err(Refusal::Parameters);
        }
        let (given, held) = (peer.header, self.terms.header);
        if given != held {
            return Err(Refusal::Header { given, held });
        }
        if self.terms.takes_single && peer.copies != 1 {
            let given = peer.copies;
            return Err(Refusal::Copies { given });
        }
        Ok(())
    }

    fn on_established(&mut self, now: Timestamp, peer: &Establish, standing: Standing) -> Outcome {
        let given = (peer.initiator_nonce.get(), peer.acceptor_nonce.get(), peer.epoch.get());
        let attempt = (self.initiator_nonce, self.acceptor_nonce, self.epoch);
        if self.state != State::Establishing || given != attempt {
            return Outcome::Stale;
        }
        let checked = self.check_terms(peer).and_then(|()| check_numbers(peer, standing));
        if let Err(refusal) = checked {
            return self.give_up(now, refusal);
        }
        self.state = State::Up;
        self.refused_interval = RETRY_REFUSED_FIRST;
        self.retry_at = NEVER;
        Outcome::Up(*peer)
    }

    fn on_refuse(&mut self, now: Timestamp, refuse: &Refuse) -> Outcome {
        if self.state == State::Listening || !self.is_of_attempt(refuse) {
            return Outcome::Stale;
        }
        let refusal = refuse.refusal();
        match (self.role, self.state) {
            (Role::Acceptor, _) => self.state = State::Listening,
            (Role::Initiator, State::Negotiating) if is_unproven(refusal) => self.call_later(now),
            // The acceptor restarted between the steps.
            (Role::Initiator, _) if refusal == Refusal::UnknownNegotiation => self.negotiate(now + RETRY_FIRST),
            (Role::Initiator, _) => self.negotiate_after_refusal(now),
        }
        Outcome::RefusedByPeer(refusal)
    }

    fn is_of_attempt(&self, refuse: &Refuse) -> bool {
        let given = (refuse.initiator_nonce.get(), refuse.acceptor_nonce.get());
        given == (self.initiator_nonce, self.acceptor_nonce)
    }

    /// Ends the session that is up, and tells the peer why.
    pub(super) fn refuse_session(&mut self, now: Timestamp, refusal: Refusal) {
        self.refuse(self.initiator_nonce, self.acceptor_nonce, refusal);
        self.end(now);
    }

    fn refuse(&mut self, initiator_nonce: u64, acceptor_nonce: u64, refusal: Refusal) -> Outcome {
        self.reply = Reply::Refuse {
            initiator_nonce,
            acceptor_nonce,
            refusal,
        };
        Outcome::Refused(refusal)
    }

    /// This end cannot go on with the attempt or the session there is, and tells the peer.
    pub(super) fn give_up(&mut self, now: Timestamp, refusal: Refusal) -> Outcome {
        let outcome = self.refuse(self.initiator_nonce, self.acceptor_nonce, refusal);
        match self.role {
            Role::Acceptor => self.state = State::Listening,
            Role::Initiator => self.negotiate_after_refusal(now),
        }
        outcome
    }

    /// The acceptor's nonce for an attempt.
    fn answer_to(&self, initiator_nonce: u64) -> u64 {
        mix(self.seed ^ mix(!initiator_nonce))
    }

    /// Writes the reply to the last handshake datagram, if there is one.
    pub(super) fn poll_reply(&mut self, standing: Standing, out: &mut [u8]) -> Option<usize> {
        Some(match core::mem::replace(&mut self.reply, Reply::None) {
            Reply::None => return None,
            Reply::Negotiated { initiator_nonce } => {
                let negotiated = Negotiated {
                    initiator_nonce: U64::new(initiator_nonce),
                    acceptor_nonce: U64::new(self.answer_to(initiator_nonce)),
                    key_id: U32::new(self.terms.key_id),
                    session: U16::new(self.terms.session),
                    version: VERSION,
                    reserved: 0,
                };
                wire::emit(out, Kind::Negotiated, &negotiated)
            }
            Reply::Establish => wire::emit(out, Kind::Establish, &self.establish(standing)),
            Reply::Established => wire::emit(out, Kind::Established, &self.establish(standing)),
            Reply::Refuse {
                initiator_nonce,
                acceptor_nonce,
                refusal,
            } => wire::emit(
                out,
                Kind::Refuse,
                &Refuse::new(initiator_nonce, acceptor_nonce, refusal),
            ),
        })
    }

    /// Writes the initiator's next call when it is due.
    pub(super) fn poll(&mut self, now: Timestamp, standing: Standing, out: &mut [u8]) -> Option<usize> {
        if now < self.retry_at {
            return None;
        }
        if self.state == State::Establishing {
            self.second_step(now);
            return self.poll_reply(standing, out);
        }
        self.schedule_retry(now);
        self.is_call_refused = false;
        let negotiate = Negotiate {
            initiator_nonce: U64::new(self.initiator_nonce),
            key_id: U32::new(self.terms.key_id),
            session: U16::new(self.terms.session),
            version: VERSION,
            reserved: 0,
        };
        Some(wire::emit(out, Kind::Negotiate, &negotiate))
    }

    fn establish(&self, standing: Standing) -> Establish {
        Establish {
            initiator_nonce: U64::new(self.initiator_nonce),
            acceptor_nonce: U64::new(self.acceptor_nonce),
            epoch: U64::new(self.epoch),
            next_expected: U64::new(standing.next_receive),
            next_send: U64::new(standing.next_send),
            durable: U64::new(standing.durable),
            window: U32::new(self.terms.window),
            ack_delay_ns: U32::new(self.terms.ack_delay_ns),
            heartbeat_us: U32::new(self.terms.heartbeat_us),
            max_message: U16::new(self.terms.max_message),
            session: U16::new(self.terms.session),
            header: self.terms.header,
            copies: self.terms.copies,
            reserved: [0; 6],
        }
    }
}

/// Whether a refusal is for want of what proves its origin: a common key, for one session.
const fn is_unproven(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::Key { .. } | Refusal::Session { .. })
}

/// Whether two ends can go on in order: what the peer wants was sent and can be sent again, and what it will send is what is
/// wanted here.
fn check_numbers(peer: &Establish, standing: Standing) -> Result<(), Refusal> {
    let wanted = peer.next_expected.get();
    let given = peer.next_send.get();
    if wanted < standing.gone_below {
        return Err(Refusal::MessagesGone {
            wanted: SequenceNumber(wanted),
            oldest: SequenceNumber(standing.oldest),
        });
    }
    if wanted > standing.next_send {
        return Err(Refusal::NumbersAhead {
            wanted: SequenceNumber(wanted),
            next: SequenceNumber(standing.next_send),
        });
    }
    if given < standing.next_receive {
        return Err(Refusal::NumbersBehind {
            given: SequenceNumber(given),
            wanted: SequenceNumber(standing.next_receive),
        });
    }
    Ok(())
}

impl Terms {
    /// The config was checked: everything fits.
    fn new(config: &Config) -> Self {
        Self {
            session: config.session.0,
            key_id: config.key.map_or(0, |key| key.id),
            header: config.header.number(),
            copies: config.redundancy.copies(),
            takes_single: config.takes_single,
            window: wire::low_32(config.window.next_power_of_two() as u64),
            ack_delay_ns: wire::low_32(config.ack_delay.0),
            heartbeat_us: wire::low_32(config.heartbeat.0.div_ceil(1_000)),
            max_message: wire::low_16(config.max_message),
        }
    }
}

/// Spreads the bits of a number (the finaliser of SplitMix64): neighbours become unlike. No cryptography.
const fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// First interval between calls of the initiator; each doubles, up to the last.
const RETRY_FIRST: Duration = Duration::from_millis(1);
const RETRY_LAST: Duration = Duration::from_millis(10);

/// How long an initiator waits after a refusal that a person has to look at; it doubles with each, up to the last.
const RETRY_REFUSED_FIRST: Duration = Duration::from_millis(100);
const RETRY_REFUSED_LAST: Duration = Duration::from_secs(5);
