//! What an acknowledgement says, in one byte (InfiniBand Architecture, section 9.7.5.2).

use core::fmt;
use types::Duration;

/// The verdict in an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syndrome {
    /// All up to its PSN has been executed. Credits are not told: the ring above has its own.
    Ack,
    /// No receive was posted; try again after [`rnr_delay`] of this code.
    RnrNak(u8),
    /// Refused.
    Nak(NakCode),
}

/// Why a request was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum NakCode {
    /// A packet before it is missing: go back to this PSN.
    SequenceError = 0,
    /// Not served, out of turn in its message, or of a wrong length.
    InvalidRequest = 1,
    /// The remote key, the bounds or the access do not allow it.
    RemoteAccessError = 2,
    /// The responder cannot go on.
    RemoteOperationalError = 3,
}

impl fmt::Display for NakCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SequenceError => "a packet before it is missing",
            Self::InvalidRequest => "not served, out of turn, or of a wrong length",
            Self::RemoteAccessError => "its key, bounds or access do not allow it",
            Self::RemoteOperationalError => "the responder cannot go on",
        })
    }
}

impl Syndrome {
    /// From its byte. `None`: reserved, or a refusal that a reliable connection does not have.
    #[must_use]
    pub const fn from_u8(byte: u8) -> Option<Self> {
        Some(match (byte >> 5, byte & 0x1f) {
            (0b000, _) => Self::Ack,
            (0b001, code) => Self::RnrNak(code),
            (0b011, 0) => Self::Nak(NakCode::SequenceError),
            (0b011, 1) => Self::Nak(NakCode::InvalidRequest),
            (0b011, 2) => Self::Nak(NakCode::RemoteAccessError),
            (0b011, 3) => Self::Nak(NakCode::RemoteOperationalError),
            _ => return None,
        })
    }

    /// Its byte.
    #[must_use]
    pub const fn to_u8(self) -> u8 {
        match self {
            Self::Ack => NO_CREDITS,
            Self::RnrNak(code) => 0b001 << 5 | code & 0x1f,
            Self::Nak(code) => 0b011 << 5 | code as u8,
        }
    }
}

/// How long a requester waits after an RNR NAK with this code, of which the low five bits count (table 45).
#[must_use]
pub const fn rnr_delay(code: u8) -> Duration {
    const CODE_0_US: u64 = 655_360;
    let micros = match code & 0x1f {
        0 => CODE_0_US,
        code @ 1..=4 => 10 * code as u64,
        // Every second code doubles: 60, 80, 120, 160, 240 …
        code if code % 2 == 1 => 60 << ((code - 5) / 2),
        code => 80 << ((code - 6) / 2),
    };
    Duration::from_micros(micros)
}

/// An ACK whose credit count says nothing.
const NO_CREDITS: u8 = 0x1f;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syndrome_comes_back_as_it_was_written() {
        for byte in 0..=u8::MAX {
            match Syndrome::from_u8(byte) {
                Some(Syndrome::Ack) => assert_eq!(byte >> 5, 0),
                Some(syndrome) => assert_eq!(syndrome.to_u8(), byte),
                None => assert!(byte >= 0x40 && !(0x60..0x64).contains(&byte)),
            }
        }
        assert_eq!(Syndrome::Nak(NakCode::SequenceError).to_u8(), 0x60);
    }

    #[test]
    fn the_delays_are_those_of_the_table() {
        let table = [
            655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1_280, 1_920, 2_560, 3_840, 5_120,
            7_680, 10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520,
        ];
        for (code, micros) in (0..32).zip(table) {
            assert_eq!(rnr_delay(code), Duration::from_micros(micros), "code {code}");
        }
    }
}
