//! The rules of a session, one test each, by bytes and virtual time.
//!
//! Messages stand as `35=A|34=1|98=0|…`: the harness adds BeginString, length, CompIDs, time and checksum to what comes in,
//! and takes them off what goes out.

mod framing;
mod keepalive;
mod logon;
mod logout;
mod pair;
mod resend;
mod sequence;

use super::*;
use crate::fix::{Fields, Frame, MAX_MESSAGE_LENGTH, TIMESTAMP_LENGTH, TimePrecision, frame, write_timestamp};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// 2026-03-01 00:00:00 UTC.
const START: Timestamp = Timestamp(1_772_323_200_000_000_000);

const SECOND: Duration = Duration::from_secs(1);

/// One end under test, and what it did since it was last asked.
struct End {
    session: Session,
    version: Version,
    now: Timestamp,
    did: Did,
}

#[derive(Default)]
struct Did {
    what: Vec<String>,
    /// First transmissions, sent or held, as an owner's journal has them.
    journal: Vec<Vec<u8>>,
    /// What is to be recalled, for an owner that has a journal.
    recalls: Option<Vec<Recall>>,
}

impl Output for Did {
    fn transmit(&mut self, sequence: SequenceNumber, message: &[u8]) {
        assert_eq!(frame(message), Frame::Message(message.len()));
        let mut scratch = Scratch::new();
        let parsed = scratch.parse(message);
        assert_eq!((parsed.violation(), parsed.sequence()), (None, Some(sequence.0)));
        self.what.push(readable(message));
        if !parsed.poss_dup() {
            self.journal.push(message.to_vec());
        }
    }

    fn hold(&mut self, _: SequenceNumber, message: &[u8]) {
        assert_eq!(frame(message), Frame::Message(message.len()));
        self.journal.push(message.to_vec());
    }

    fn recall(&mut self, recall: Recall) -> bool {
        let Some(recalls) = &mut self.recalls else { return false };
        self.what.push(format!("recall {} to {}", recall.begin, recall.end));
        recalls.push(recall);
        true
    }

    fn logged_on(&mut self, _: &Logon<'_>) {
        self.what.push("logged on".to_string());
    }

    fn logged_out(&mut self, text: &[u8]) {
        self.what.push(format!("logged out: {}", String::from_utf8_lossy(text)));
    }

    fn close(&mut self, reason: CloseReason, text: &[u8]) {
        self.what
            .push(format!("close: {reason:?}: {}", String::from_utf8_lossy(text)));
    }
}

impl End {
    fn new(role: Role, adjust: impl FnOnce(&mut SessionConfig)) -> Self {
        let (us, peer) = (CompId::new(b"US").unwrap(), CompId::new(b"PEER").unwrap());
        let mut config = SessionConfig::new(role, us, peer);
        adjust(&mut config);
        Self {
            version: config.versions[0],
            session: Session::new(config),
            now: START,
            did: Did::default(),
        }
    }

    /// An acceptor that is logged on, both ends at number 2.
    fn logged_on() -> Self {
        let mut end = Self::new(Role::Acceptor, |_| ());
        end.connect();
        let did = end.receives("35=A|34=1|98=0|108=30|");
        assert_eq!(did, ["35=A|34=1|98=0|108=30|", "logged on"]);
        end
    }

    fn connect(&mut self) -> Vec<String> {
        self.session.on_connected(self.now, &mut self.did);
        self.done()
    }

    /// Hands in one message and says what came of it.
    fn receives(&mut self, message: &str) -> Vec<String> {
        let bytes = wire(message, self.version, self.now);
        self.receives_bytes(&bytes)
    }

    fn receives_bytes(&mut self, bytes: &[u8]) -> Vec<String> {
        assert_eq!(frame(bytes), Frame::Message(bytes.len()));
        self.takes(bytes)
    }

    /// Hands in bytes that may be no message at all.
    fn takes(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut scratch = Scratch::new();
        let application = self.session.on_frame(self.now, bytes, &mut scratch, &mut self.did);
        self.did.note(application.as_ref());
        while self.session.has_early() {
            let mut buffer = [0; MAX_MESSAGE_LENGTH];
            let early = self.session.take_early(&mut buffer).unwrap();
            let application = self.session.on_early(self.now, early, &mut scratch, &mut self.did);
            self.did.note(application.as_ref());
        }
        self.done()
    }

    /// The owner looks for what was recalled, and says what came of it.
    fn finds(&mut self, finds: bool) -> Vec<String> {
        for recall in self.did.recalls.replace(Vec::new()).unwrap_or_default() {
            for number in recall.begin.0..=recall.end.0 {
                let of_number = |message: &&Vec<u8>| Scratch::new().parse(message).sequence() == Some(number);
                let message = self.did.journal.iter().rev().find(of_number).cloned();
                let message = message.filter(|_| finds);
                self.session.on_recalled(
                    self.now,
                    recall.id,
                    SequenceNumber(number),
                    message.as_deref(),
                    &mut self.did,
                );
            }
        }
        self.done()
    }

    /// Sends an application message whose Text is `text`.
    fn sends(&mut self, text: &str) -> Vec<String> {
        let body = News(text.to_string());
        self.session.send(self.now, &body, &mut self.did);
        self.done()
    }

    /// Lets time pass, calling the timer whenever it is due, and says what came of it, each with the seconds since the
    /// call.
    fn waits(&mut self, span: Duration) -> Vec<String> {
        let (from, until) = (self.now, self.now + span);
        let mut did = Vec::new();
        while let Some(due) = self.session.poll_timeout().filter(|&due| due <= until) {
            assert!(due > self.now || did.is_empty(), "time stands still");
            self.now = due.max(self.now);
            self.session.on_timer(self.now, &mut self.did);
            let seconds = self.now.since(from).0 / SECOND.0;
            did.extend(self.done().into_iter().map(|what| format!("{seconds} s: {what}")));
        }
        self.now = until;
        did
    }

    fn drop_connection(&mut self) {
        self.session.on_disconnected(self.now);
    }

    /// Sequence numbers: expected next, sent next.
    fn numbers(&self) -> (u64, u64) {
        (self.session.next_inbound().0, self.session.next_outbound().0)
    }

    fn done(&mut self) -> Vec<String> {
        core::mem::take(&mut self.did.what)
    }
}

impl Did {
    fn note(&mut self, application: Option<&Application<'_>>) {
        if let Some(application) = application {
            let (number, body) = (
                application.sequence,
                String::from_utf8_lossy(application.message.body()),
            );
            self.what
                .push(format!("application {number}: {body}").replace('\x01', "|"));
        }
    }
}

/// An application message with one field.
struct News(String);

impl Body for News {
    fn msg_type(&self) -> &'static [u8] {
        b"B"
    }

    fn encode(&self, encoder: &mut crate::fix::Encoder<'_>) {
        encoder.text(58, self.0.as_bytes());
    }
}

/// The bytes of a message from the peer. What it names itself of 8, 49, 52 and 56 stays as it is; `-52` leaves it out.
fn wire(message: &str, version: Version, now: Timestamp) -> Vec<u8> {
    let mut time = [0; TIMESTAMP_LENGTH];
    let length = write_timestamp(now, TimePrecision::Milliseconds.of(version), &mut time);
    let time = String::from_utf8_lossy(&time[..length]).to_string();
    let has = |tag: &str| message.split('|').any(|field| field.starts_with(tag));
    let mut fields: Vec<String> = message
        .split('|')
        .filter(|field| !field.is_empty() && !field.starts_with("8=") && !field.starts_with('-'))
        .map(ToString::to_string)
        .collect();
    for (tag, value) in [("49=", "PEER"), ("52=", time.as_str()), ("56=", "US")] {
        if !has(tag) && !has(&format!("-{}", &tag[..2])) {
            fields.insert(2.min(fields.len()), format!("{tag}{value}"));
        }
    }
    let spoken = core::str::from_utf8(version.begin_string()).unwrap();
    let version = message
        .strip_prefix("8=")
        .map_or(spoken, |rest| rest.split('|').next().unwrap());
    let body = fields.join("\x01") + "\x01";
    let mut bytes = format!("8={version}\x019={}\x01{body}", body.len()).into_bytes();
    let sum = bytes.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
    bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    bytes
}

/// A message of ours without the fields that all have.
fn readable(message: &[u8]) -> String {
    Fields::new(message)
        .map(Result::unwrap)
        .filter(|field| !matches!(field.tag, 8 | 9 | 10 | 49 | 52 | 56))
        .map(|field| format!("{}={}|", field.tag, String::from_utf8_lossy(field.value)))
        .collect()
}
