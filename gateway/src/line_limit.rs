//! Lines of the log that strangers can cause: so many a second, and how many more there were.

use types::Timestamp;

/// Lines of one second.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LineLimit {
    second: u64,
    lines: u32,
    left_out: u64,
}

/// Lines that are printed in one second.
const MAX_LINES_A_SECOND: u32 = 10;

impl LineLimit {
    /// Whether one more line may be printed; if not, it is counted.
    pub(crate) fn allows(&mut self, now: Timestamp) -> bool {
        self.begin_second(now);
        if self.lines == MAX_LINES_A_SECOND {
            self.left_out += 1;
            return false;
        }
        self.lines += 1;
        true
    }

    /// Lines that a second, now over, left out; told once.
    pub(crate) fn left_out(&mut self, now: Timestamp) -> Option<u64> {
        if now.0 / 1_000_000_000 == self.second || self.left_out == 0 {
            return None;
        }
        Some(std::mem::take(&mut self.left_out))
    }

    const fn begin_second(&mut self, now: Timestamp) {
        let second = now.0 / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.lines = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_prints_a_few_lines_a_second_and_how_many_more_there_were() {
        let (first, next) = (Timestamp(5_000_000_000), Timestamp(6_000_000_000));
        let mut limit = LineLimit::default();
        let printed = (0..1_000).filter(|_| limit.allows(first)).count();
        assert_eq!(printed, 10);
        assert_eq!(limit.left_out(first), None, "the second is not over");
        assert_eq!(limit.left_out(next), Some(990));
        assert_eq!(limit.left_out(next), None);
        assert!(limit.allows(next));
    }
}
