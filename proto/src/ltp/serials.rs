//! Which serials have come: each datagram without messages has one, and is taken once.

/// The serials of one session, as far back as datagrams overtake each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serials {
    highest: u64,
    /// Bit `i`: `highest - i` has come.
    seen: u64,
}

impl Serials {
    /// Serials begin at 1.
    pub(super) const START: Self = Self { highest: 0, seen: 1 };

    /// Whether a serial comes for the first time. One that is older than can be remembered does not count as such.
    pub(super) fn take(&mut self, serial: u64) -> bool {
        if serial > self.highest {
            let shift = u32::try_from(serial - self.highest).unwrap_or(u32::MAX);
            self.seen = self.seen.checked_shl(shift).unwrap_or(0) | 1;
            self.highest = serial;
            return true;
        }
        let bit = u32::try_from(self.highest - serial)
            .ok()
            .and_then(|back| 1u64.checked_shl(back))
            .unwrap_or(0);
        let is_new = bit != 0 && self.seen & bit == 0;
        self.seen |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_serial_is_taken_once_also_when_it_was_overtaken() {
        let mut serials = Serials::START;
        assert!(!serials.take(0));
        for (serial, is_new) in [
            (2, true),
            (1, true),
            (1, false),
            (2, false),
            (70, true),
            (7, true),
            (6, false),
            (71, true),
            (1 << 40, true),
            (71, false),
            ((1 << 40) - 63, true),
            ((1 << 40) - 64, false),
            (u64::MAX, true),
            (u64::MAX, false),
        ] {
            assert_eq!(serials.take(serial), is_new, "{serial}");
        }
    }
}
