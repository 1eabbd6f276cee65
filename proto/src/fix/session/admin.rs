//! The administrative messages.

use crate::fix::value::{Digits, parse_bool, parse_u64};
use crate::fix::{Body, Encoder, MAX_SEQUENCE, Message, Version, Violation, msg_type, tag};
use core::fmt;
use types::Duration;

/// Heartbeat (0).
pub(super) struct Heartbeat<'a> {
    /// TestReqID (112) of the test request that is answered; else empty.
    pub(super) test_req_id: &'a [u8],
}

/// TestRequest (1).
pub(super) struct TestRequest<'a> {
    /// TestReqID (112).
    pub(super) test_req_id: &'a [u8],
}

/// ResendRequest (2).
pub(super) struct ResendRequest {
    /// BeginSeqNo (7).
    pub(super) begin: u64,
    /// EndSeqNo (16); [`Version::no_end`] is all there are.
    pub(super) end: u64,
}

/// SequenceReset (4).
pub(super) struct SequenceReset {
    /// GapFillFlag (123); without it the message is a reset.
    pub(super) gap_fill: bool,
    /// NewSeqNo (36).
    pub(super) new_sequence: u64,
}

/// Logout (5).
pub(super) struct Logout<'a> {
    /// Text (58); empty when absent.
    pub(super) text: &'a [u8],
}

/// Logon (A).
#[derive(Clone, Copy)]
pub struct Logon<'a> {
    /// The version that is spoken from now on: BeginString (8), and over FIXT.1.1 DefaultApplVerID (1137).
    pub version: Version,
    /// HeartBtInt (108), whole seconds; 0 is none.
    pub heartbeat: Duration,
    /// ResetSeqNumFlag (141).
    pub reset: bool,
    /// NextExpectedMsgSeqNum (789).
    pub next_expected: Option<u64>,
    /// Username (553); empty when absent.
    pub username: &'a [u8],
    /// Password (554); empty when absent. Never in a log.
    pub password: &'a [u8],
}

impl<'a> TestRequest<'a> {
    pub(super) fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        Ok(Self {
            test_req_id: message.required(tag::TEST_REQ_ID)?,
        })
    }
}

impl ResendRequest {
    pub(super) fn decode(message: &Message<'_>) -> Result<Self, Violation> {
        Ok(Self {
            begin: sequence(message, tag::BEGIN_SEQ_NO)?,
            end: number(message, tag::END_SEQ_NO)?,
        })
    }

    /// The last number that is asked for. Before 4.2 the number for all there are is a possible one, far from any that is
    /// sent; so it means the same in all versions, and so does 0.
    pub(super) const fn last(&self) -> u64 {
        if self.end == 0 { u64::MAX } else { self.end }
    }
}

impl SequenceReset {
    pub(super) fn decode(message: &Message<'_>) -> Result<Self, Violation> {
        Ok(Self {
            gap_fill: flag(message, tag::GAP_FILL_FLAG)?,
            new_sequence: sequence(message, tag::NEW_SEQ_NO)?,
        })
    }
}

impl<'a> Logout<'a> {
    /// The text, or nothing: a Logout is obeyed whatever else it holds.
    pub(super) fn decode(message: &Message<'a>) -> Self {
        Self {
            text: message.get(tag::TEXT),
        }
    }
}

impl<'a> Logon<'a> {
    /// Reads a message of type A in a version that its BeginString and DefaultApplVerID name.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(message: &Message<'a>, version: Version) -> Result<Self, Violation> {
        if number(message, tag::ENCRYPT_METHOD)? != 0 {
            return Err(Violation::incorrect(tag::ENCRYPT_METHOD));
        }
        let seconds = number(message, tag::HEART_BT_INT)?;
        if seconds > MAX_HEARTBEAT_SECONDS {
            return Err(Violation::incorrect(tag::HEART_BT_INT));
        }
        let next_expected = match message.get(tag::NEXT_EXPECTED_MSG_SEQ_NUM) {
            b"" => None,
            _ => Some(sequence(message, tag::NEXT_EXPECTED_MSG_SEQ_NUM)?),
        };
        Ok(Self {
            version,
            heartbeat: Duration::from_secs(seconds),
            reset: flag(message, tag::RESET_SEQ_NUM_FLAG)?,
            next_expected,
            username: message.get(tag::USERNAME),
            password: message.get(tag::PASSWORD),
        })
    }
}

/// Without the password.
impl fmt::Debug for Logon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logon")
            .field("version", &self.version)
            .field("heartbeat", &self.heartbeat)
            .field("reset", &self.reset)
            .field("next_expected", &self.next_expected)
            .field("username", &format_args!("{}", self.username.escape_ascii()))
            .finish_non_exhaustive()
    }
}

impl Body for Heartbeat<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::HEARTBEAT
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.text(tag::TEST_REQ_ID, self.test_req_id);
    }
}

impl Body for TestRequest<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::TEST_REQUEST
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.text(tag::TEST_REQ_ID, self.test_req_id);
    }
}

impl Body for ResendRequest {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::RESEND_REQUEST
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.number(tag::BEGIN_SEQ_NO, self.begin);
        encoder.number(tag::END_SEQ_NO, self.end);
    }
}

impl Body for SequenceReset {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::SEQUENCE_RESET
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.number(tag::NEW_SEQ_NO, self.new_sequence);
        encoder.flag(tag::GAP_FILL_FLAG, self.gap_fill);
    }
}

impl Body for Logout<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::LOGOUT
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.free_text(self.text);
    }
}

impl Body for Logon<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::LOGON
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.number(tag::ENCRYPT_METHOD, 0);
        encoder.number(tag::HEART_BT_INT, self.heartbeat.0 / Duration::from_secs(1).0);
        if self.reset {
            encoder.flag(tag::RESET_SEQ_NUM_FLAG, true);
        }
        if let Some(next_expected) = self.next_expected {
            encoder.number(tag::NEXT_EXPECTED_MSG_SEQ_NUM, next_expected);
        }
        if let Some(code) = self.version.appl_ver_id() {
            encoder.code(tag::DEFAULT_APPL_VER_ID, code);
        }
    }
}

/// `MsgSeqNum too low, expecting 7 but received 5`, the words that other engines look for.
pub(super) fn too_low(expected: u64, received: u64) -> ReasonText {
    let mut text = ReasonText::new(b"MsgSeqNum too low, expecting ");
    text.push(Digits::new(expected).as_bytes());
    text.push(b" but received ");
    text.push(Digits::new(received).as_bytes());
    text
}

/// What is wrong with a Logon, and with which tag: `Required tag missing (1137)`.
pub(super) fn violation(violation: Violation) -> ReasonText {
    let mut text = ReasonText::new(violation.reason.text().as_bytes());
    if let Some(tag) = violation.tag {
        text.push(b" (");
        if tag < 0 {
            text.push(b"-");
        }
        text.push(Digits::new(u64::from(tag.unsigned_abs())).as_bytes());
        text.push(b")");
    }
    text
}

/// A Text (58) that is put together.
pub(super) struct ReasonText {
    bytes: [u8; 96],
    length: usize,
}

impl ReasonText {
    fn new(start: &[u8]) -> Self {
        let mut text = Self {
            bytes: [0; 96],
            length: 0,
        };
        text.push(start);
        text
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, part: &[u8]) {
        self.bytes[self.length..self.length + part.len()].copy_from_slice(part);
        self.length += part.len();
    }
}

fn number(message: &Message<'_>, tag: u32) -> Result<u64, Violation> {
    parse_u64(message.required(tag)?).ok_or(Violation::format(tag))
}

fn sequence(message: &Message<'_>, tag: u32) -> Result<u64, Violation> {
    let sequence = number(message, tag)?;
    if sequence == 0 || sequence > MAX_SEQUENCE {
        return Err(Violation::incorrect(tag));
    }
    Ok(sequence)
}

/// `N` when absent.
fn flag(message: &Message<'_>, tag: u32) -> Result<bool, Violation> {
    match message.get(tag) {
        b"" => Ok(false),
        value => parse_bool(value).ok_or(Violation::format(tag)),
    }
}

/// Longest heartbeat interval that is taken: a day.
pub const MAX_HEARTBEAT_SECONDS: u64 = 86_400;
