//! What stands in a journal, as text for people.

use ::gateway::record::{Record, decode_limits};
use orders::{Limit, LimitValue};
use proto::{fix, native};
use std::fmt::Write as _;
use types::Timestamp;

/// A time as `2026-11-30T09:30:00.000001Z`.
pub(crate) fn utc(time: Timestamp) -> String {
    let mut digits = [0; fix::TIMESTAMP_LENGTH];
    let length = fix::write_timestamp(time, fix::TimePrecision::Microseconds, &mut digits);
    let text = String::from_utf8_lossy(&digits[..length]);
    format!("{}-{}-{}T{}Z", &text[..4], &text[4..6], &text[6..8], &text[9..])
}

/// A time that a user wrote, with or without decimals (3, 6 or 9) and `Z`.
pub(super) fn parse_utc(text: &str) -> Result<Timestamp, String> {
    let parsed = || {
        let (date, clock) = text.strip_suffix('Z').unwrap_or(text).split_once('T')?;
        fix::parse_timestamp(format!("{}-{clock}", date.replace('-', "")).as_bytes())
    };
    parsed().ok_or_else(|| "a time is written 2026-11-30T09:30:00 or 2026-11-30T09:30:00.000001, in UTC".to_owned())
}

/// A record: an arrow for its direction, FIX with `|` between fields, native messages by their fields.
pub(super) fn shown(record: &Record<'_>) -> String {
    match record {
        Record::ClientMessage { session, message } => format!("session {session} > {}", text(message)),
        Record::ClientOutput { session, message } => format!("session {session} < {}", text(message)),
        Record::ClientHeld { session, message } => format!("session {session} holds {}", text(message)),
        Record::Recalled {
            session,
            sequence,
            message,
            ..
        } => format!("session {session} recalls {sequence} {}", text(message)),
        Record::VenueMessage {
            venue,
            sequence,
            message,
        } => format!("venue {venue} > {sequence} {}", text(message)),
        Record::VenueOutput {
            venue,
            sequence,
            message,
        } => format!("venue {venue} < {sequence} {}", text(message)),
        Record::ConfigLimits { scope, changes } => {
            let changes = decode_limits(changes).unwrap_or_default();
            let shown = |(limit, value): (Limit, LimitValue)| format!("{} = {value}", limit.name());
            let changes: Vec<_> = changes.into_iter().map(shown).collect();
            format!("config: {scope:?}: {}", changes.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// A message of a client or a venue.
pub(super) fn text(message: &[u8]) -> String {
    if is_fix(message) {
        return fix_text(message);
    }
    match native::decode(message) {
        Ok(message) => format!("{message:?}"),
        Err(error) => format!("{} bytes: {}", message.len(), error.text()),
    }
}

/// The value of a FIX message's first field with this tag.
pub(super) fn value(message: &[u8], tag: u32) -> Option<&[u8]> {
    let start = format!("{tag}=");
    let mut fields = message.split(|&byte| byte == fix::SOH).filter(|_| is_fix(message));
    fields.find_map(|field| field.strip_prefix(start.as_bytes()))
}

fn is_fix(message: &[u8]) -> bool {
    message.starts_with(b"8=FIX")
}

/// A `|` behind each field, passwords left out. What a client may have put into a value cannot end the line or move the
/// terminal's cursor.
fn fix_text(message: &[u8]) -> String {
    let mut text = String::with_capacity(message.len() + 8);
    for field in message.split_inclusive(|&byte| byte == fix::SOH) {
        let secret = SECRETS.iter().find(|secret| field.starts_with(secret));
        if let Some(secret) = secret {
            text.push_str(&String::from_utf8_lossy(secret));
            text.push_str("***|");
            continue;
        }
        for &byte in field {
            match byte {
                fix::SOH => text.push('|'),
                b' '..=b'~' => text.push(char::from(byte)),
                // Writing to a String does not fail.
                _ => drop(write!(text, "\\x{byte:02x}")),
            }
        }
    }
    text
}

/// Password, NewPassword, and both encrypted.
const SECRETS: [&[u8]; 4] = [b"554=", b"925=", b"1402=", b"1404="];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_and_say_microseconds() {
        let time = Timestamp(1_796_000_000_123_456_000);
        assert_eq!(utc(time), "2026-11-30T00:53:20.123456Z");
        assert_eq!(parse_utc(&utc(time)), Ok(time));
        assert_eq!(
            parse_utc("2026-11-30T00:53:20"),
            Ok(Timestamp(1_796_000_000_000_000_000))
        );
        for wrong in ["", "yesterday", "2026-11-30", "2026-13-30T00:00:00"] {
            assert!(parse_utc(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_fix_message_is_one_line_without_passwords() {
        let message = b"8=FIX.4.4\x0135=A\x0134=7\x01554=secret\x01925=other\x0158=a\n\x1b[2J\x0110=000\x01";
        assert_eq!(
            text(message),
            "8=FIX.4.4|35=A|34=7|554=***|925=***|58=a\\x0a\\x1b[2J|10=000|"
        );
        assert_eq!(value(message, 34), Some(&b"7"[..]));
        assert_eq!(value(b"\x00\x01", 34), None);
    }
}
