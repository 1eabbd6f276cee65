//! A connection over LTP: native messages, numbered both ways, each exactly once.
//!
//! The numbers go on for as long as the gateway's journal does, so the client keeps a journal too: what it sent, before it
//! left, and what it received, before that is acknowledged. A client that starts on the journal of an earlier run goes on
//! with its numbers, sends again what the gateway may lack, and gets what it missed. A gateway that lost its machine gets
//! again what the journal has.
//!
//! Payloads, little-endian: [`Kind::VenueOutput`] and [`Kind::VenueMessage`] are a number u64 and the message.

use super::config::LinkLogin;
use super::connection::Answer;
use super::native::answer;
use super::{ClientConfig, StartError};
use journal::{JournalReader, JournalWriter, Portion, Seekers, SentIndex, Streams, Wanted, Watermark};
use latency::Clock;
use net::link::{AnyLink, LinkConfig, LinkEnd, LinkEvent, LinkWatch, LtpLinkConfig, Resume};
use net::{Link, SetupError};
use proto::journal::{Kind, record_length};
use proto::ltp;
use proto::native::{self, MAX_MESSAGE_LENGTH};
use std::collections::VecDeque;
use std::net::SocketAddr;
use types::{Request, SequenceNumber, SessionId, Timestamp};

/// The link, and what it goes on from after a restart.
#[derive(Debug)]
pub(super) struct LinkConnection {
    link: AnyLink,
    /// What the log says of it.
    watch: LinkWatch,
    journal: JournalWriter,
    /// Where in it the requests stand.
    sent: SentIndex,
    recalls: Recalls,
    _seekers: Seekers,
    /// The number that the next request gets.
    next_send: SequenceNumber,
    /// The end of the connection is expected, and there will be no other.
    is_leaving: bool,
    connects: u64,
}

type Recalls = journal::Recalls<Requests, MAX_MESSAGE_LENGTH>;

/// What the client's journal has of requests.
struct Requests;

impl Streams for Requests {
    type Stream = ();

    fn message((): (), kind: u16, payload: &[u8]) -> Option<(Option<SequenceNumber>, &[u8])> {
        let (number, message) = payload.split_first_chunk()?;
        let sequence = SequenceNumber(u64::from_le_bytes(*number));
        (kind == Kind::VenueOutput as u16).then_some((Some(sequence), message))
    }
}

/// What an earlier run left.
struct Kept {
    resume: Resume,
    sent: SentIndex,
    /// The last requests: as many as the link holds.
    requests: VecDeque<(SequenceNumber, Vec<u8>)>,
}

impl LinkConnection {
    /// Goes on where the journal ends.
    pub(super) fn open(config: &ClientConfig, login: &LinkLogin, clock: &Clock) -> Result<Self, StartError> {
        let settings = journal::Config::new(&login.journal, format!("client-session-{}", config.session));
        let journal = JournalWriter::open(&settings).map_err(StartError::Journal)?;
        let mut reader = JournalReader::open(&login.journal).map_err(StartError::Journal)?;
        let kept = Kept::read(&mut reader, login.ltp.window)?;
        let link = LinkConfig::Ltp(LtpLinkConfig {
            end: Self::end(config.gateway),
            ltp: login.ltp,
            carrier: login.carrier,
            second: None,
        });
        let mut link = AnyLink::new(&link, clock.now().0, kept.resume).map_err(StartError::Socket)?;
        for (sequence, request) in &kept.requests {
            link.restore(*sequence, request);
        }
        let (mut recalls, seeker) = journal::recalls(login.journal.clone(), 1, RECALL_PORTION);
        let seekers = Seekers::start(vec![seeker], std::iter::once(&mut recalls)).map_err(|error| {
            let doing = "starting the thread that reads the journal".to_owned();
            StartError::Socket(SetupError::new(doing, error, "raise the limit of processes"))
        })?;
        Ok(Self {
            link,
            watch: LinkWatch::new("link", format!("session {} at {}", config.session, config.gateway)),
            journal,
            sent: kept.sent,
            recalls,
            _seekers: seekers,
            next_send: kept.resume.next_send,
            is_leaving: false,
            connects: 0,
        })
    }

    /// The client connects.
    pub(super) const fn end(gateway: SocketAddr) -> LinkEnd {
        LinkEnd::Connect {
            peer: gateway,
            local: None,
        }
    }

    /// The settings of the client's end: one order a datagram, where a pre-filter finds it.
    pub(super) const fn settings(session: SessionId, window: usize) -> ltp::Config {
        ltp::Config::for_client(session, window, MAX_MESSAGE_LENGTH)
    }

    pub(super) fn turn(&mut self, now: Timestamp, clock: &Clock, deliver: &mut impl FnMut(Timestamp, Answer)) -> bool {
        if self.is_leaving {
            return false;
        }
        let mut message = [0; MAX_MESSAGE_LENGTH];
        let mut worked = false;
        for _ in 0..MESSAGES_PER_TURN {
            if !self.journal.room(RECORD_LENGTH) {
                break;
            }
            let Some(event) = self.link.poll(now, &mut message) else {
                break;
            };
            worked = true;
            self.watch.on_event(now, &event, &self.link);
            match event {
                LinkEvent::Message { sequence, length } => {
                    let message = &message[..length];
                    self.append(now, Kind::VenueMessage, sequence, message);
                    deliver(clock.now(), answer(message));
                }
                LinkEvent::Up => self.connects += 1,
                LinkEvent::Recall { from, to } => {
                    let wanted = Wanted::from_index((), from, to, &self.sent);
                    self.recalls.recall_anew(wanted);
                }
                // A gateway grants its clients nothing, and there is one path.
                LinkEvent::Credits(_) | LinkEvent::Path(_) | LinkEvent::Down(_) => {}
            }
        }
        worked |= self.bring_recalled();
        self.flush(now);
        worked
    }

    /// Hands to the link what was read back from the journal. Whether there was anything.
    fn bring_recalled(&mut self) -> bool {
        let mut worked = false;
        while let Some(found) = self.recalls.found() {
            worked = true;
            if found.is_missing() {
                self.link.not_recalled(found.first);
                self.recalls.give_up(&found);
            } else {
                self.link.recalled(found.sequence, found.message());
            }
        }
        worked | self.recalls.ask(|()| Portion::Of(RECALL_PORTION))
    }

    pub(super) fn is_ready(&self) -> bool {
        self.link.is_up() && self.link.room() > 0 && self.journal.room(RECORD_LENGTH)
    }

    pub(super) fn write(&mut self, now: Timestamp, request: &Request) {
        let mut message = [0; MAX_MESSAGE_LENGTH];
        let length = native::encode_request(request, &mut message);
        self.sent.note(self.next_send, self.journal.position());
        let position = self.append(now, Kind::VenueOutput, self.next_send, &message[..length]);
        self.link.send(&message[..length], position);
        self.next_send = self.next_send.next();
    }

    pub(super) fn flush(&mut self, now: Timestamp) {
        let (appended, synced) = (self.journal.position(), self.journal.watermark(Watermark::Synced));
        self.link.journaled(appended, synced);
        self.link.flush(now, appended);
        self.watch.turn(now, &self.link);
    }

    pub(super) const fn leave(&mut self) {
        self.is_leaving = true;
    }

    pub(super) const fn is_down(&self) -> bool {
        self.is_leaving
    }

    /// What the link did, in a line.
    pub(super) fn summary(&self) -> String {
        self.watch.summary(&self.link)
    }

    pub(super) const fn connects(&self) -> u64 {
        self.connects
    }

    fn append(&mut self, now: Timestamp, kind: Kind, sequence: SequenceNumber, message: &[u8]) -> u64 {
        let parts = [&sequence.0.to_le_bytes(), message];
        self.journal.append(kind as u16, RECORD_VERSION, now, &parts)
    }
}

impl Kept {
    fn read(reader: &mut JournalReader, window: usize) -> Result<Self, StartError> {
        let mut kept = Self {
            resume: Resume::START,
            sent: SentIndex::new(),
            requests: VecDeque::with_capacity(window),
        };
        while let Some(record) = reader.next_record().map_err(StartError::Journal)? {
            let kind = Kind::from_u16(record.kind).filter(|_| record.version == RECORD_VERSION);
            let number = record.payload.split_first_chunk();
            let number = number.map(|(number, message)| (SequenceNumber(u64::from_le_bytes(*number)), message));
            match (kind, number) {
                (Some(Kind::VenueOutput), Some((sequence, message))) => {
                    if kept.requests.len() == window {
                        kept.requests.pop_front();
                    }
                    kept.requests.push_back((sequence, message.to_vec()));
                    kept.resume.next_send = sequence.next();
                    kept.sent.note(sequence, record.position);
                }
                (Some(Kind::VenueMessage), Some((sequence, _))) => kept.resume.next_receive = sequence.next(),
                _ => {
                    return Err(StartError::OtherJournal {
                        position: record.position,
                    });
                }
            }
        }
        Ok(kept)
    }
}

/// Version of the payloads' layout.
const RECORD_VERSION: u16 = 1;

/// Longest record, bytes.
const RECORD_LENGTH: usize = record_length(8 + MAX_MESSAGE_LENGTH);

/// Requests that are read back from the journal at a time.
const RECALL_PORTION: usize = 32;

/// Messages that one turn takes.
const MESSAGES_PER_TURN: usize = 64;
