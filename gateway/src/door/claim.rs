//! Who a connection says it is, for the log: a line about one that was refused must say whose it was.

use super::logon::{FixLogon, first_message};
use proto::soup::Login;
use std::fmt;

/// What a first message says of its sender. Printed so that it can neither end the line nor move a terminal's cursor, and
/// never with a password.
#[derive(Clone, Copy)]
pub(crate) enum Claim<'a> {
    Fix(FixLogon<'a>),
    Native(&'a Login),
    /// Nothing was understood, or nothing came.
    Nothing,
}

/// Longest value that is printed, bytes: a stranger decides what it is.
const VALUE_LENGTH: usize = 64;

impl<'a> Claim<'a> {
    /// Of a FIX connection, from what was received.
    pub(super) fn of_fix(received: &'a [u8]) -> Self {
        let logon = FixLogon::parse(first_message(received));
        if logon.begin_string.is_empty() {
            return Self::Nothing;
        }
        Self::Fix(logon)
    }

    /// Of a native connection, from its login.
    pub(super) const fn of_native(login: &'a Login) -> Self {
        Self::Native(login)
    }
}

impl fmt::Display for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nobody"),
            Self::Native(login) => write!(f, "user {}", shown(login.user_name.as_str().as_bytes())),
            Self::Fix(logon) => {
                write!(
                    f,
                    "{} {} to {}",
                    shown(logon.begin_string),
                    shown(logon.sender_comp_id),
                    shown(logon.target_comp_id)
                )?;
                match logon.username {
                    b"" => Ok(()),
                    user => write!(f, " user {}", shown(user)),
                }
            }
        }
    }
}

fn shown(value: &[u8]) -> impl fmt::Display + '_ {
    value[..value.len().min(VALUE_LENGTH)].escape_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_printed_without_password_and_cannot_break_the_line() {
        let received = b"8=FIX.4.4\x019=5\x0135=A\x0149=TRA\nDER\x0156=TICKGATE\x01553=desk7\x01554=secret\x01";
        let line = Claim::of_fix(received).to_string();
        assert_eq!(line, "FIX.4.4 TRA\\nDER to TICKGATE user desk7");
        assert_eq!(Claim::of_fix(b"GET / HTTP/1.1").to_string(), "nobody");
        let long = [b"8=FIX.4.4\x0149=", &[b'x'; 1_000][..], b"\x01"].concat();
        assert!(Claim::of_fix(&long).to_string().len() < 100);
    }
}
