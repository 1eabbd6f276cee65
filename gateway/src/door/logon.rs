//! The first message of a FIX client: who it says it is.

use proto::fix::{Fields, msg_type, tag};

/// What the door reads of a message. What is missing is empty; a tag that comes twice counts as it came first. Everything
/// else about the message is the session's to judge.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct FixLogon<'f> {
    msg_type: &'f [u8],
    pub(super) sender_comp_id: &'f [u8],
    pub(super) target_comp_id: &'f [u8],
}

impl<'f> FixLogon<'f> {
    /// Reads a whole message, as [`proto::fix::frame`] finds it.
    pub(super) fn parse(message: &'f [u8]) -> Self {
        let mut logon = Self::default();
        for field in Fields::new(message).flatten() {
            let place = match field.tag {
                tag::MSG_TYPE => &mut logon.msg_type,
                tag::SENDER_COMP_ID => &mut logon.sender_comp_id,
                tag::TARGET_COMP_ID => &mut logon.target_comp_id,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_logon_says_who_it_is_from() {
        let message = b"8=FIX.4.4\x019=0\x0135=A\x0149=TRADER\x0156=TICKGATE\x0149=OTHER\x0110=000\x01";
        let logon = FixLogon::parse(message);
        assert!(logon.is_logon());
        assert_eq!(logon.sender_comp_id, b"TRADER");
        assert_eq!(logon.target_comp_id, b"TICKGATE");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = FixLogon::parse(&bytes);
        }
    }
}
