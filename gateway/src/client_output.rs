//! What leaves for the clients of a shard: numbered messages that are kept, buffers that are bounded.

use crate::config::{Config, ProtocolConfig, SessionConfig};
use crate::limits::{MAX_REPORT_LENGTH, REPORTS_RESERVED_AN_ORDER};
use crate::outbox::Outbox;
use crate::session::SentMessages;
use journal::SentIndex;
use latency::Protocol;
use proto::{native, soup};
use types::{SequenceNumber, SessionId, ShardId};

/// The outputs of all sessions of a shard.
#[derive(Debug)]
pub(crate) struct ClientOutputs {
    /// By session id: the place in `outputs`.
    places: Box<[Option<u16>]>,
    outputs: Vec<ClientOutput>,
    /// Places of outputs that may have something to send. Each at most once.
    waiting: Vec<u16>,
}

/// What leaves for one client.
#[derive(Debug)]
pub(crate) struct ClientOutput {
    pub(crate) session: SessionId,
    pub(crate) outbox: Outbox,
    is_connected: bool,
    /// The connection is to be closed once all has left.
    pub(crate) is_closing: bool,
    /// The client reads too slowly and something did not fit: the connection is to be closed now.
    pub(crate) is_too_slow: bool,
    /// Of a native session. Its messages wait there and not in the outbox, so that a replay after a login and what
    /// happened since are one stream.
    native: Option<NativeOutput>,
    /// Of a FIX session: where in the journal its messages are.
    index: Option<SentIndex>,
    is_waiting: bool,
}

/// The numbered messages of a native session.
#[derive(Debug)]
struct NativeOutput {
    sent: SentMessages,
    /// The next message that the connection gets.
    next: SequenceNumber,
}

impl ClientOutputs {
    /// For the sessions of `shard` whose clients come in by the door, nobody connected.
    pub(crate) fn new(config: &Config, shard: ShardId) -> Self {
        let highest = config.sessions.iter().map(|session| session.id.0).max().unwrap_or(0);
        let mut places = vec![None; usize::from(highest) + 1].into_boxed_slice();
        let mut outputs = Vec::new();
        let of_door = |session: &&SessionConfig| session.shard == shard && session.link.is_none();
        for session in config.sessions.iter().filter(of_door) {
            places[usize::from(session.id.0)] = u16::try_from(outputs.len()).ok();
            let (native, index) = match session.protocol {
                ProtocolConfig::Native { .. } => {
                    let native = NativeOutput {
                        sent: SentMessages::new(session.resend_messages),
                        next: SequenceNumber(1),
                    };
                    (Some(native), None)
                }
                ProtocolConfig::Fix { .. } => (None, Some(SentIndex::new())),
            };
            outputs.push(ClientOutput {
                session: session.id,
                outbox: Outbox::new(session.send_buffer_bytes),
                is_connected: false,
                is_closing: false,
                is_too_slow: false,
                native,
                index,
                is_waiting: false,
            });
        }
        let waiting = Vec::with_capacity(outputs.len());
        Self {
            places,
            outputs,
            waiting,
        }
    }

    /// Of no session.
    pub(crate) fn none() -> Self {
        Self {
            places: Box::default(),
            outputs: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Bytes that the output of a session takes.
    pub(crate) fn memory_bytes(session: &SessionConfig) -> usize {
        if let Some(link) = &session.link {
            return link.memory() + SentIndex::MEMORY_BYTES;
        }
        let kept = match session.protocol {
            ProtocolConfig::Native { .. } => SentMessages::memory_bytes(session.resend_messages),
            ProtocolConfig::Fix { .. } => SentIndex::MEMORY_BYTES,
        };
        Outbox::memory_bytes(session.send_buffer_bytes) + kept
    }

    /// A session of this shard.
    pub(crate) fn get_mut(&mut self, session: SessionId) -> Option<&mut ClientOutput> {
        let place = self.places.get(usize::from(session.0)).copied().flatten()?;
        self.outputs.get_mut(usize::from(place))
    }

    /// A session of this shard.
    pub(crate) fn get(&self, session: SessionId) -> Option<&ClientOutput> {
        let place = self.places.get(usize::from(session.0)).copied().flatten()?;
        self.outputs.get(usize::from(place))
    }

    /// A session of this shard that something is about to be sent to: it is looked at when the turn ends.
    pub(crate) fn wake(&mut self, session: SessionId) -> Option<&mut ClientOutput> {
        let place = self.places.get(usize::from(session.0)).copied().flatten()?;
        let output = self.outputs.get_mut(usize::from(place))?;
        if !output.is_waiting {
            output.is_waiting = true;
            self.waiting.push(place);
        }
        Some(output)
    }

    /// Sessions that may have something to send.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The `index`-th of them.
    pub(crate) fn waiting_session(&self, index: usize) -> SessionId {
        self.outputs[usize::from(self.waiting[index])].session
    }

    /// Keeps those that still have something to send.
    pub(crate) fn retain_waiting(&mut self) {
        let outputs = &mut self.outputs;
        self.waiting.retain(|&place| {
            let output = &mut outputs[usize::from(place)];
            output.is_waiting = output.has_something();
            output.is_waiting
        });
    }

    /// Whether the session's client is there.
    pub(crate) fn is_connected(&self, session: SessionId) -> bool {
        self.get(session).is_some_and(|output| output.is_connected)
    }

    /// Bytes of the session's buffer.
    pub(crate) fn capacity(&self, session: SessionId) -> usize {
        self.get(session).map_or(0, |output| output.outbox.capacity())
    }

    /// Whether the reports that one request may cause find room. A session of another shard is that shard's business; a
    /// client that is away fills no buffer.
    pub(crate) fn has_room(&self, session: SessionId) -> bool {
        self.has_room_for(session, REPORTS_RESERVED_AN_ORDER)
    }

    /// Whether so many messages find room, see [`has_room`](Self::has_room).
    pub(crate) fn has_room_for(&self, session: SessionId, count: usize) -> bool {
        self.get(session).is_none_or(|output| match &output.native {
            _ if !output.is_connected => true,
            Some(native) => native.sent.room(native.next) >= count,
            None => output.outbox.room() >= count * MAX_REPORT_LENGTH,
        })
    }

    /// What the session's client speaks.
    pub(crate) fn protocol(&self, session: SessionId) -> Protocol {
        match self.get(session) {
            Some(ClientOutput { native: None, .. }) => Protocol::Fix,
            _ => Protocol::Native,
        }
    }
}

impl ClientOutput {
    /// Whether something is still to be sent, or the connection to be closed.
    fn has_something(&self) -> bool {
        let unsent = self
            .native
            .as_ref()
            .is_some_and(|native| native.next < native.sent.next());
        self.is_connected && (unsent || !self.outbox.is_empty() || self.is_closing || self.is_too_slow)
    }

    /// A client logged on. A native one gets its messages from `next` on.
    pub(crate) fn connect(&mut self, next: SequenceNumber) {
        self.is_connected = true;
        self.is_closing = false;
        self.is_too_slow = false;
        if let Some(native) = &mut self.native {
            native.next = next;
        }
    }

    /// The client is gone. Its numbered messages stay.
    pub(crate) fn disconnect(&mut self) {
        self.is_connected = false;
        self.is_closing = false;
        self.is_too_slow = false;
        self.outbox.clear();
    }

    /// The numbers a native client may ask for at login: the oldest still held, and the next.
    pub(crate) fn held(&self) -> Option<(SequenceNumber, SequenceNumber)> {
        self.native
            .as_ref()
            .map(|native| (native.sent.oldest(), native.sent.next()))
    }

    /// The message of a FIX session with this number stands at `position` of the journal.
    pub(crate) fn note(&mut self, sequence: SequenceNumber, position: u64) {
        if let Some(index) = &mut self.index {
            index.note(sequence, position);
        }
    }

    /// The numbers of a FIX session started at 1 again with what stands at `position` of the journal.
    pub(crate) fn renumber(&mut self, position: u64) {
        if let Some(index) = &mut self.index {
            index.restart(position);
        }
    }

    /// A place of the journal that the message with this number does not stand before, see [`SentIndex::before`].
    pub(crate) fn before(&self, sequence: SequenceNumber) -> Option<(SequenceNumber, u64)> {
        self.index.as_ref()?.before(sequence)
    }

    /// A numbered message that may leave once the journal's watermark has reached `position`.
    pub(crate) fn push(&mut self, message: &[u8], position: u64) {
        match &mut self.native {
            Some(native) => native.sent.push(message, position),
            None if self.is_connected => self.is_too_slow |= !self.outbox.push(&[message], position),
            None => {}
        }
    }

    /// Bytes that have no number, or had one before.
    pub(crate) fn push_unnumbered(&mut self, message: &[u8]) {
        if self.is_connected {
            self.is_too_slow |= !self.outbox.push(&[message], 0);
        }
    }

    /// Moves what waits for a native client into its buffer, as far as it goes. Returns whether anything moved.
    pub(crate) fn fill(&mut self) -> bool {
        let Some(native) = &mut self.native else { return false };
        if !self.is_connected || native.next >= native.sent.next() {
            return false;
        }
        let mut packet = [0; soup::HEADER_LENGTH + native::MAX_ANSWER_LENGTH];
        let before = native.next;
        while native.next < native.sent.next() {
            let Some((message, position)) = native.sent.get(native.next) else {
                // What the client is still to get is no longer held: it reads too slowly.
                self.is_too_slow = true;
                break;
            };
            let length = soup::write_sequenced(message, &mut packet);
            if !self.outbox.push(&[&packet[..length]], position) {
                break;
            }
            native.next = native.next.next();
        }
        native.next > before
    }
}
