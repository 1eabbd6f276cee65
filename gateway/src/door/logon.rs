//! The first message of a FIX client: who it says it is.

use proto::fix::{Fields, Frame, frame, msg_type, tag};

/// What the door reads of a message. What is missing is empty; a tag that comes twice counts as it came first. Everything
/// else about the message is the session's to judge.
#[derive(Clone, Copy, Default)]
pub(crate) struct FixLogon<'f> {
    pub(super) begin_string: &'f [u8],
    msg_type: &'f [u8],
    pub(super) sender_comp_id: &'f [u8],
    pub(super) target_comp_id: &'f [u8],
    pub(super) username: &'f [u8],
    pub(super) password: &'f [u8],
}

impl<'f> FixLogon<'f> {
    /// Reads a whole message, as [`proto::fix::frame`] finds it.
    pub(super) fn parse(message: &'f [u8]) -> Self {
        let mut logon = Self::default();
        for field in Fields::new(message).flatten() {
            let place = match field.tag {
                tag::BEGIN_STRING => &mut logon.begin_string,
                tag::MSG_TYPE => &mut logon.msg_type,
                tag::SENDER_COMP_ID => &mut logon.sender_comp_id,
                tag::TARGET_COMP_ID => &mut logon.target_comp_id,
                tag::USERNAME => &mut logon.username,
                tag::PASSWORD => &mut logon.password,
                _ => continue,
            };
            if place.is_empty() {
                *place = field.value;
            }
        }
        logon
    }

    /// Whether it is a Logon at all.
    pub(super) fn is_logon(&self) -> bool {
        self.msg_type == msg_type::LOGON
    }
}

/// The whole message at the start of what was received; all of it when there is none.
pub(super) fn first_message(received: &[u8]) -> &[u8] {
    match frame(received) {
        Frame::Message(length) => &received[..length],
        Frame::Incomplete | Frame::TooLong(_) | Frame::Garbled(..) => received,
    }
}

/// NewPassword (925).
const NEW_PASSWORD: u32 = 925;

/// A Logon without its passwords, length and checksum made right again: what a shard gets and its journal keeps. `None`
/// when there is none in it.
pub(super) fn without_passwords(message: &[u8]) -> Option<Vec<u8>> {
    let mut fields = Fields::new(message);
    let mut body = Vec::with_capacity(message.len());
    let (mut begin, mut is_changed) = (&message[..0], false);
    loop {
        let start = fields.position();
        let Some(field) = fields.next() else { break };
        let bytes = &message[start..fields.position().min(message.len())];
        match field.map(|field| field.tag) {
            Ok(tag::BEGIN_STRING) if start == 0 => begin = bytes,
            Ok(tag::BODY_LENGTH) if start == begin.len() => {}
            Ok(tag::CHECK_SUM) => break,
            Ok(tag::PASSWORD | NEW_PASSWORD) => is_changed = true,
            _ => body.extend_from_slice(bytes),
        }
    }
    if !is_changed {
        return None;
    }
    let mut whole = begin.to_vec();
    whole.extend_from_slice(format!("9={}\x01", body.len()).as_bytes());
    whole.extend_from_slice(&body);
    let sum = whole.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
    whole.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message of these fields, `|` between them.
    fn message(fields: &str) -> Vec<u8> {
        let body = fields.replace('|', "\x01");
        let mut whole = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
        let sum = whole.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
        whole.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        whole
    }

    #[test]
    fn a_logon_says_who_it_is_from() {
        let message = message("35=A|49=TRADER|56=TICKGATE|49=OTHER|553=desk7|554=secret|");
        let logon = FixLogon::parse(&message);
        assert!(logon.is_logon());
        assert_eq!(logon.begin_string, b"FIX.4.4");
        assert_eq!(
            (logon.sender_comp_id, logon.target_comp_id),
            (&b"TRADER"[..], &b"TICKGATE"[..])
        );
        assert_eq!((logon.username, logon.password), (&b"desk7"[..], &b"secret"[..]));
    }

    #[test]
    fn passwords_are_taken_out_and_the_rest_is_a_message_as_before() {
        let with = message("35=A|34=1|49=T|56=G|98=0|553=desk7|554=secret|925=new|108=30|554=again|");
        let without = without_passwords(&with).expect("it has some");
        assert_eq!(without, message("35=A|34=1|49=T|56=G|98=0|553=desk7|108=30|"));
        assert_eq!(frame(&without), Frame::Message(without.len()));
        assert_eq!(without_passwords(&without), None);
    }

    #[test]
    fn what_looks_like_a_password_within_data_is_data() {
        let with = message("35=A|95=10|96=ab|554=xyz|108=30|");
        assert_eq!(without_passwords(&with), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (FixLogon::parse(&bytes).is_logon(), without_passwords(&bytes));
        }

        #[test]
        fn no_password_is_left(before in "[0-9A-Za-z ]{1,20}", password in "[!-~]{1,20}", after in "[0-9A-Za-z]{1,20}") {
            let with = message(&format!("35=A|58={before}|554={}|1={after}|", password.replace('|', "!")));
            let without = without_passwords(&with).expect("it has one");
            prop_assert_eq!(without, message(&format!("35=A|58={before}|1={after}|")));
        }
    }
}
