//! Messages that a session's peer has lost with its machine: they are read back from the journal, by a thread of their own.

use super::live::Line;
use super::record::Output;
use journal::{Portion, Seekers, SentIndex, Streams, Wanted};
use net::Link;
use proto::journal::Kind;
use proto::native::MAX_MESSAGE_LENGTH;
use std::io;
use std::path::PathBuf;
use types::{SequenceNumber, SessionId};

/// Where they are read, and by whom.
#[derive(Debug)]
pub struct Recall {
    recalls: Recalls,
    _seekers: Seekers,
}

type Recalls = journal::Recalls<Sent, MAX_MESSAGE_LENGTH>;

/// What the exchange's journal has of messages to sessions.
struct Sent;

impl Streams for Sent {
    type Stream = SessionId;

    fn message(stream: SessionId, kind: u16, payload: &[u8]) -> Option<(Option<SequenceNumber>, &[u8])> {
        match Output::decode(Kind::from_u16(kind)?, payload)? {
            Output::Session {
                session,
                sequence,
                message,
            } if session == stream => Some((Some(sequence), message)),
            _ => None,
        }
    }
}

impl Recall {
    /// Of the journal in `directory`, with so many sessions.
    ///
    /// # Errors
    /// No thread can be had.
    pub(super) fn start(directory: PathBuf, sessions: usize) -> io::Result<Self> {
        let (mut recalls, seeker) = journal::recalls(directory, sessions, PORTION);
        let seekers = Seekers::start(vec![seeker], std::iter::once(&mut recalls))?;
        Ok(Self {
            recalls,
            _seekers: seekers,
        })
    }

    /// A session's link asks for messages `from` up to below `to`.
    pub(super) fn want(&mut self, session: SessionId, from: SequenceNumber, to: SequenceNumber, sent: &SentIndex) {
        self.recalls.recall_anew(Wanted::from_index(session, from, to, sent));
    }

    /// Hands on what was found, and asks for more. Returns whether there was anything.
    pub(super) fn turn<L: Link>(&mut self, lines: &mut [Line<L>]) -> bool {
        let mut worked = false;
        while let Some(found) = self.recalls.found() {
            worked = true;
            let line = lines.iter_mut().find(|line| line.session == found.stream);
            let Some(Line { link, .. }) = line else { continue };
            if found.is_missing() {
                link.not_recalled(found.first);
                self.recalls.give_up(&found);
            } else {
                link.recalled(found.sequence, found.message());
            }
        }
        worked | self.recalls.ask(|_| Portion::Of(PORTION))
    }
}

/// Messages that are looked up at a time.
const PORTION: usize = 32;
