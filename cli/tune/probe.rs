//! What the host takes from a thread that only spins.

use super::checks::{Finding, Verdict};
use std::time::{Duration, Instant};

/// How long it spins.
const SPAN: Duration = Duration::from_secs(1);

/// A longer gap was somebody else's time: an interrupt, another thread, the hypervisor.
const GAP_MAX: Duration = Duration::from_micros(100);

/// Gaps that are told.
const SHOWN: usize = 5;

/// The longest times between two looks at the clock in a second of spinning.
pub(super) fn jitter() -> Finding {
    let start = Instant::now();
    let mut last = start;
    let mut longest = [Duration::ZERO; SHOWN];
    while last.duration_since(start) < SPAN {
        let now = Instant::now();
        let gap = now.duration_since(last);
        if gap > longest[SHOWN - 1] {
            longest[SHOWN - 1] = gap;
            longest.sort_unstable_by(|a, b| b.cmp(a));
        }
        last = now;
    }
    let shown = longest.map(|gap| format!("{:.1}", gap.as_secs_f64() * 1e6)).join(", ");
    Finding {
        name: "os_jitter".to_owned(),
        current: Some(format!("longest gaps in 1 s of spinning: {shown} µs")),
        wanted: format!("at most {} µs", GAP_MAX.as_micros()),
        why: "whatever interrupts a spinning thread delays the order that comes then",
        fix: "isolate CPUs, move interrupts off them, and let nothing else run there".to_owned(),
        verdict: if longest[0] <= GAP_MAX {
            Verdict::Fine
        } else {
            Verdict::Miss
        },
    }
}
