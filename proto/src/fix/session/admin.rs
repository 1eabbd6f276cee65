//! The administrative messages.

use crate::fix::field::Violation;
use crate::fix::value::{Digits, parse_bool, parse_u64};
use crate::fix::{Body, Encoder, MAX_SEQUENCE, Message, msg_type, tag};
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
    /// EndSeqNo (16); 0 is all there are.
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
pub(super) struct Logon {
    /// HeartBtInt (108).
    pub(super) heartbeat: Duration,
    /// ResetSeqNumFlag (141).
    pub(super) reset: bool,
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

impl Logon {
    pub(super) fn decode(message: &Message<'_>) -> Result<Self, Violation> {
        if number(message, tag::ENCRYPT_METHOD)? != 0 {
            return Err(Violation::incorrect(tag::ENCRYPT_METHOD));
        }
        let seconds = number(message, tag::HEART_BT_INT)?;
        if seconds > MAX_HEARTBEAT_SECONDS {
            return Err(Violation::incorrect(tag::HEART_BT_INT));
        }
        Ok(Self {
            heartbeat: Duration::from_secs(seconds),
            reset: flag(message, tag::RESET_SEQ_NUM_FLAG)?,
        })
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

impl Body for Logon {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::LOGON
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.number(tag::ENCRYPT_METHOD, 0);
        encoder.number(tag::HEART_BT_INT, self.heartbeat.0 / Duration::from_secs(1).0);
        if self.reset {
            encoder.flag(tag::RESET_SEQ_NUM_FLAG, true);
        }
    }
}

/// `MsgSeqNum too low, expecting 7 but received 5`, the words that other engines look for.
pub(super) struct TooLowText {
    bytes: [u8; 96],
    length: usize,
}

impl TooLowText {
    pub(super) fn new(expected: u64, received: u64) -> Self {
        let mut text = Self {
            bytes: [0; 96],
            length: 0,
        };
        text.push(b"MsgSeqNum too low, expecting ");
        text.push(Digits::new(expected).as_bytes());
        text.push(b" but received ");
        text.push(Digits::new(received).as_bytes());
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
    let value = message.get(tag);
    if value.is_empty() {
        return Ok(false);
    }
    parse_bool(value).ok_or(Violation::format(tag))
}

/// Longest heartbeat interval that is taken: a day.
const MAX_HEARTBEAT_SECONDS: u64 = 86_400;
