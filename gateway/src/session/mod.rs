//! Client sessions as a shard knows them: from a message to a request in the gateway's words, and from a report back to
//! the client's protocol.

mod cl_ord_ids;
mod fix;
mod native;
mod sent;

use crate::config::{Config, ProtocolConfig, SessionConfig};
use crate::control::Home;
use crate::door::Binding;
use crate::effects::Effects;
use crate::instruments::Instruments;
use fix::{FixSession, NOBODY, Words};
use orders::Report;
use proto::fix::{CloseReason, CompId, Scratch};
use types::{
    AccountId, ClientOrderId, ExecType, InstrumentId, MassStatusRequest, Quantity, Reason, Request, SequenceNumber,
    SessionId, ShardId, Timestamp,
};

pub(crate) use cl_ord_ids::CL_ORD_IDS_MAX;
pub(crate) use native::refuse_instruments;
pub(crate) use sent::SentMessages;

/// All client sessions of the config; the state of those of this shard.
pub(crate) struct Sessions {
    shard: ShardId,
    /// By session id.
    entries: Vec<Option<Entry>>,
    /// When a session timer may be due next, and whose it is. Never too late; too early costs one call that finds nothing
    /// to do, and saves a look at every session with each message.
    next_timer: Option<(Timestamp, SessionId)>,
    /// FIX sessions of this shard: those that have timers.
    with_timers: Vec<SessionId>,
    /// Accounts, and sessions of this shard that get copies of their reports.
    copies: Vec<(AccountId, SessionId)>,
    /// Where a FIX message is scanned into, whichever session it is of.
    scratch: Scratch,
}

/// One session.
struct Entry {
    /// Where its client connects.
    shard: ShardId,
    /// Who its client is: CompID or user.
    name: CompId,
    /// The highest number that a request of it had.
    last_client_order_id: ClientOrderId,
    /// How its client comes in.
    entrance: Entrance,
    /// An operator has disabled it.
    is_disabled: bool,
    /// Requests of its that were refused.
    refused: u64,
    protocol: Protocol,
    /// The mass status that is being answered.
    mass_status: Option<MassStatus>,
}

/// How a client comes in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entrance {
    /// By the door, and it is not here.
    Away,
    /// By the door, and it is here.
    Here,
    /// Over a link, which comes and goes by itself.
    Link,
}

/// A mass status on its way: every shard that may have orders of the session tells how many it told.
struct MassStatus {
    request: u64,
    /// Shards that have not told their end.
    shards: u8,
    told: Quantity,
    /// Why orders are missing in the answer, if any are.
    reason: Reason,
}

/// What a session's client speaks, and what the session keeps for it.
enum Protocol {
    /// Nothing to keep: the connection and its numbers are not the shard's business.
    Native,
    Fix(Box<FixSession>),
}

/// What a client's message turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Incoming {
    /// Something between the sessions alone.
    Nothing,
    /// Not a message; the client was told.
    Malformed,
    /// The client wants to know an instrument, or all.
    InstrumentMap(Option<InstrumentId>),
    /// A request.
    Request(Request),
    /// A request that cannot be put into the gateway's words as it is; it is refused.
    Refused(Request, Reason),
}

/// Bytes that the state of a session takes.
pub(crate) fn memory_bytes(session: &SessionConfig) -> usize {
    FixSession::memory_bytes(session)
}

impl Sessions {
    /// The sessions of a config, as `shard` sees them.
    pub(crate) fn new(config: &Config, shard: ShardId) -> Self {
        let highest = config.sessions.iter().map(|session| session.id.0).max().unwrap_or(0);
        let mut entries = (0..=highest).map(|_| None).collect::<Vec<_>>();
        let mut with_timers = Vec::new();
        for session in &config.sessions {
            let protocol = match &session.protocol {
                ProtocolConfig::Fix { .. } if session.shard == shard => {
                    with_timers.push(session.id);
                    Protocol::Fix(Box::new(FixSession::new(config, session)))
                }
                _ => Protocol::Native,
            };
            let name = match &session.protocol {
                ProtocolConfig::Fix { client_comp_id, .. } => client_comp_id.as_deref().unwrap_or(NOBODY),
                ProtocolConfig::Native { user } => user,
            };
            entries[usize::from(session.id.0)] = Some(Entry {
                shard: session.shard,
                name: CompId::new(name.as_bytes()).expect("names were checked with the config"),
                last_client_order_id: ClientOrderId(0),
                entrance: if session.link.is_some() {
                    Entrance::Link
                } else {
                    Entrance::Away
                },
                is_disabled: false,
                refused: 0,
                protocol,
                mass_status: None,
            });
        }
        let copies = config.sessions.iter().filter(|session| session.shard == shard);
        let copies = copies
            .flat_map(|session| session.drop_copy.iter().map(|&account| (account, session.id)))
            .collect();
        Self {
            shard,
            entries,
            next_timer: None,
            with_timers,
            copies,
            scratch: Scratch::new(),
        }
    }

    /// The shard of a session, when it is another one than this.
    pub(crate) fn shard_elsewhere(&self, session: SessionId) -> Option<ShardId> {
        self.entry(session)
            .map(|entry| entry.shard)
            .filter(|&shard| shard != self.shard)
    }

    /// Reads a client's message. The session's own protocol is answered here.
    pub(crate) fn decode<E: Effects>(
        &mut self,
        now: Timestamp,
        session: SessionId,
        message: &[u8],
        instruments: &Instruments,
        effects: &mut E,
    ) -> Incoming {
        let Some(Some(entry)) = self.entries.get_mut(usize::from(session.0)) else {
            return Incoming::Malformed;
        };
        match &mut entry.protocol {
            Protocol::Native => native::decode(session, message, effects),
            Protocol::Fix(fix) => {
                let incoming = fix.decode(now, message, &mut self.scratch, instruments, effects);
                let due = fix.next_timer();
                self.note_timer(session, due);
                incoming
            }
        }
    }

    /// A FIX message passed that is longer than any that is read. The session answers.
    pub(crate) fn too_long<E: Effects>(&mut self, now: Timestamp, session: SessionId, head: &[u8], effects: &mut E) {
        if let Some(Some(entry)) = self.entries.get_mut(usize::from(session.0))
            && let Protocol::Fix(fix) = &mut entry.protocol
        {
            fix.too_long(now, head, &mut self.scratch, effects);
            let due = fix.next_timer();
            self.note_timer(session, due);
        }
    }

    /// Whether a message that a session has put off has its turn now.
    pub(crate) fn has_early(&self, session: SessionId) -> bool {
        match self.entry(session).map(|entry| &entry.protocol) {
            Some(Protocol::Fix(fix)) => fix.has_early(),
            _ => false,
        }
    }

    /// Reads that message.
    pub(crate) fn decode_early<E: Effects>(
        &mut self,
        now: Timestamp,
        session: SessionId,
        instruments: &Instruments,
        effects: &mut E,
    ) -> Incoming {
        let Some(Some(Entry {
            protocol: Protocol::Fix(fix),
            ..
        })) = self.entries.get_mut(usize::from(session.0))
        else {
            return Incoming::Nothing;
        };
        let incoming = fix.decode_early(now, &mut self.scratch, instruments, effects);
        let due = fix.next_timer();
        self.note_timer(session, due);
        incoming
    }

    /// Whether a request's number was used before; else it is used from now on.
    pub(crate) fn is_repeat(&mut self, request: &Request) -> bool {
        if matches!(request, Request::Status(_) | Request::MassStatus(_)) {
            return false;
        }
        let number = request.client_order_id();
        let Some(Some(entry)) = self.entries.get_mut(usize::from(request.session().0)) else {
            return true;
        };
        let is_repeat = number <= entry.last_client_order_id;
        entry.last_client_order_id = entry.last_client_order_id.max(number);
        is_repeat
    }

    /// The number that the client itself gave a request: in FIX its ClOrdID, when that is a number. 0 for none.
    pub(crate) fn client_number(&self, session: SessionId, number: ClientOrderId) -> ClientOrderId {
        match self.entry(session).map(|entry| &entry.protocol) {
            Some(Protocol::Fix(fix)) => fix.client_number(number),
            _ => number,
        }
    }

    /// A mass status begins that so many shards answer; `total` is the number of orders, where it is known. Returns false
    /// when one is being answered already.
    pub(crate) fn begin_mass_status(&mut self, mass: &MassStatusRequest, shards: u8, total: Option<u32>) -> bool {
        let Some(Some(entry)) = self.entries.get_mut(usize::from(mass.session.0)) else {
            return false;
        };
        if entry.mass_status.is_some() {
            return false;
        }
        entry.mass_status = Some(MassStatus {
            request: mass.request,
            shards,
            told: Quantity::ZERO,
            reason: Reason::None,
        });
        if let Protocol::Fix(fix) = &mut entry.protocol {
            fix.begin_mass_status(mass.request, total);
        }
        true
    }

    /// Puts a report into the client's protocol and sends it.
    pub(crate) fn report<E: Effects>(
        &mut self,
        now: Timestamp,
        report: &Report,
        instruments: &Instruments,
        effects: &mut E,
    ) {
        let session = report.exec.session;
        let Some(Some(entry)) = self.entries.get_mut(usize::from(session.0)) else {
            return;
        };
        let Some(report) = entry.gather(report) else { return };
        if matches!(report.exec.exec_type, ExecType::Rejected | ExecType::RequestRejected) {
            entry.refused += 1;
        }
        if let Protocol::Fix(fix) = &entry.protocol
            && !fix.is_of_its_client(&report.exec)
        {
            return;
        }
        let report = &report;
        match &mut entry.protocol {
            Protocol::Native => native::report(&report.exec, effects),
            Protocol::Fix(fix) => {
                fix.report(now, report, instruments, effects);
                let due = fix.next_timer();
                self.note_timer(session, due);
            }
        }
        if !self.copies.is_empty() {
            self.copy(now, report, instruments, effects);
        }
    }

    /// Sends copies of an execution report to whoever watches its account.
    fn copy<E: Effects>(&mut self, now: Timestamp, report: &Report, instruments: &Instruments, effects: &mut E) {
        let exec = &report.exec;
        let is_answer = matches!(
            exec.exec_type,
            ExecType::Status | ExecType::StatusEnd | ExecType::RequestRejected | ExecType::MassCancelAccepted
        );
        // An account that is not the session's stands in a refusal only because the client wrote it there.
        if is_answer || exec.reason == Reason::UnknownAccount {
            return;
        }
        let Some(entry) = self.entry(exec.session) else {
            return;
        };
        let name = entry.name;
        let words = match &entry.protocol {
            Protocol::Native => Words::of_native(report, instruments),
            Protocol::Fix(fix) => fix.words(report, instruments),
        };
        for index in 0..self.copies.len() {
            let (account, session) = self.copies[index];
            if account == exec.account
                && let Some(fix) = self.fix(session)
            {
                fix.copy(now, report, &words, name, instruments, effects);
                let due = fix.next_timer();
                self.note_timer(session, due);
            }
        }
    }

    /// A template's instance has a client, whose numbers start at 1.
    pub(crate) fn bind<E: Effects>(&mut self, binding: &Binding, effects: &mut E) {
        if let Some(Some(entry)) = self.entries.get_mut(usize::from(binding.session.0))
            && let Protocol::Fix(fix) = &mut entry.protocol
        {
            entry.name = binding.comp_id;
            fix.bind(binding, effects);
        }
    }

    /// The clients of templates' instances, of the trading day so far.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = Binding> + '_ {
        self.with_timers
            .iter()
            .filter_map(|&session| match &self.entry(session)?.protocol {
                Protocol::Fix(fix) => fix.binding(),
                Protocol::Native => None,
            })
    }

    /// The hours of a session began or ended.
    pub(crate) fn hours<E: Effects>(
        &mut self,
        now: Timestamp,
        session: SessionId,
        since: Option<Timestamp>,
        effects: &mut E,
    ) {
        if let Some(fix) = self.fix(session) {
            fix.set_hours(now, since, effects);
            let due = fix.next_timer();
            self.note_timer(session, due);
        }
    }

    /// What was told last of a session's hours; `None` when nothing was.
    pub(crate) fn known_hours(&self, session: SessionId) -> Option<Option<Timestamp>> {
        match &self.entry(session)?.protocol {
            Protocol::Fix(fix) => fix.hours(),
            Protocol::Native => None,
        }
    }

    /// A client logged on.
    pub(crate) fn connected<E: Effects>(&mut self, now: Timestamp, session: SessionId, effects: &mut E) {
        self.set_entrance(session, Entrance::Here);
        if let Some(fix) = self.fix(session) {
            fix.connected(now, effects);
            let due = fix.next_timer();
            self.note_timer(session, due);
        }
    }

    /// A client's connection ended.
    pub(crate) fn disconnected<E: Effects>(&mut self, now: Timestamp, session: SessionId, effects: &mut E) {
        self.set_entrance(session, Entrance::Away);
        if let Some(fix) = self.fix(session) {
            fix.disconnected(now, effects);
        }
    }

    fn set_entrance(&mut self, session: SessionId, entrance: Entrance) {
        if let Some(Some(entry)) = self.entries.get_mut(usize::from(session.0))
            && entry.entrance != Entrance::Link
        {
            entry.entrance = entrance;
        }
    }

    /// What an operator is told of a session that this shard serves; the inner `None`: another one does.
    pub(crate) fn home(&self, session: SessionId) -> Option<Option<Home>> {
        let entry = self.entry(session)?;
        let home = Home {
            name: entry.name,
            is_disabled: entry.is_disabled,
            is_logged_on: false,
            connection: None,
            next_sent: None,
            next_received: None,
            refused: entry.refused,
        };
        let home = match &entry.protocol {
            Protocol::Native => home,
            Protocol::Fix(fix) => fix.home(home),
        };
        Some((entry.shard == self.shard).then_some(home))
    }

    /// The highest number of a session.
    pub(crate) fn last(&self) -> SessionId {
        SessionId(u16::try_from(self.entries.len() - 1).unwrap_or(u16::MAX))
    }

    /// Whether an operator has disabled it.
    pub(crate) fn is_disabled(&self, session: SessionId) -> bool {
        self.entry(session).is_some_and(|entry| entry.is_disabled)
    }

    /// An operator disables it, or enables it again.
    pub(crate) fn set_disabled(&mut self, session: SessionId, is_disabled: bool) {
        if let Some(Some(entry)) = self.entries.get_mut(usize::from(session.0)) {
            entry.is_disabled = is_disabled;
        }
    }

    /// Logs out the client of a session, if it is here. Returns whether it comes in over a link, and so cannot be.
    pub(crate) fn log_out<E: Effects>(
        &mut self,
        now: Timestamp,
        session: SessionId,
        why: Reason,
        effects: &mut E,
    ) -> bool {
        let text = why.text().as_bytes();
        match self.entry(session).map(|entry| entry.entrance) {
            None | Some(Entrance::Away) => return false,
            Some(Entrance::Link) => return true,
            Some(Entrance::Here) => {}
        }
        match self.fix(session) {
            Some(fix) => {
                fix.log_out(now, text, effects);
                let due = fix.next_timer();
                self.note_timer(session, due);
            }
            None => effects.close(session, CloseReason::LoggedOut, text),
        }
        false
    }

    /// A message that a session has asked for was looked up; an empty one could not be found.
    pub(crate) fn recalled<E: Effects>(
        &mut self,
        now: Timestamp,
        session: SessionId,
        recall: u64,
        sequence: SequenceNumber,
        message: &[u8],
        effects: &mut E,
    ) {
        if let Some(fix) = self.fix(session) {
            fix.recalled(now, recall, sequence, message, effects);
            let due = fix.next_timer();
            self.note_timer(session, due);
        }
    }

    /// A session's timer is due.
    pub(crate) fn timer<E: Effects>(&mut self, now: Timestamp, session: SessionId, effects: &mut E) {
        if let Some(fix) = self.fix(session) {
            fix.timer(now, effects);
        }
        self.find_next_timer();
    }

    /// When the next session timer is due, and whose it is.
    pub(crate) const fn next_timer(&self) -> Option<(Timestamp, SessionId)> {
        self.next_timer
    }

    /// A new trading day: numbers start anew.
    pub(crate) fn new_day(&mut self) {
        for entry in self.entries.iter_mut().flatten() {
            entry.last_client_order_id = ClientOrderId(0);
            if let Protocol::Fix(fix) = &mut entry.protocol {
                fix.new_day();
            }
        }
    }

    fn entry(&self, session: SessionId) -> Option<&Entry> {
        self.entries.get(usize::from(session.0))?.as_ref()
    }

    fn fix(&mut self, session: SessionId) -> Option<&mut FixSession> {
        match &mut self.entries.get_mut(usize::from(session.0))?.as_mut()?.protocol {
            Protocol::Fix(fix) => Some(fix),
            Protocol::Native => None,
        }
    }

    /// A session's timer is due then: sooner than what was known?
    fn note_timer(&mut self, session: SessionId, due: Option<Timestamp>) {
        if let Some(due) = due
            && self.next_timer.is_none_or(|(next, _)| due < next)
        {
            self.next_timer = Some((due, session));
        }
    }

    /// Looks at every session: once a timer, not once a message.
    fn find_next_timer(&mut self) {
        let due = |&session: &SessionId| match &self.entry(session)?.protocol {
            Protocol::Fix(fix) => Some((fix.next_timer()?, session)),
            Protocol::Native => None,
        };
        self.next_timer = self.with_timers.iter().filter_map(due).min();
    }
}

impl Entry {
    /// The report as the client gets it: of the ends of a mass status only the last, for all shards together. One that was
    /// refused because another is being answered is not part of it.
    fn gather(&mut self, report: &Report) -> Option<Report> {
        let mut report = *report;
        let is_end = report.exec.exec_type == ExecType::StatusEnd && report.exec.reason != Reason::RequestPending;
        if is_end && let Some(mass) = &mut self.mass_status {
            mass.shards -= 1;
            mass.told += report.exec.quantity;
            if report.exec.reason != Reason::None {
                mass.reason = report.exec.reason;
            }
            if mass.shards > 0 {
                return None;
            }
            (report.exec.quantity, report.exec.reason) = (mass.told, mass.reason);
            report.exec.client_order_id = ClientOrderId(mass.request);
            self.mass_status = None;
        }
        Some(report)
    }
}
