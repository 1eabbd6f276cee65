//! What the counters of a port say about its lossless class. docs/rdma-monitor.md has the rules as a table.

use super::catalog::PRIORITIES;
use super::rates::Reading;
use std::fmt;
use std::time::Duration;

/// A priority that is paused for so much of an interval, in per cent, is worth a word.
const PAUSED_PERCENT: u64 = 10;

/// Whether some priority is paused rather than dropped: whether PFC (priority flow control) is on for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Lossless {
    /// On these priorities.
    On(Vec<usize>),
    /// The card counts by priority, and PFC is on for none.
    Off,
    /// The card has no counters that say so.
    Unknown,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Severity {
    Fine,
    Unknown,
    Warning,
    Broken,
}

/// A rule that the counters meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) counter: String,
    /// By how much that counter rose.
    pub(super) rise: u64,
    pub(super) why: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = if self.severity == Severity::Broken {
            "lossless class not working"
        } else {
            "warning"
        };
        write!(f, "{title}: {} +{}: {}", self.counter, self.rise, self.why)
    }
}

/// What the counters of a port say of one interval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Health {
    pub(super) lossless: Lossless,
    /// The worst first.
    pub(super) findings: Vec<Finding>,
    /// Some counter was read twice, so that there is something to judge by.
    pub(super) has_rises: bool,
}

impl Health {
    /// The worst that is found.
    pub(super) fn severity(&self) -> Severity {
        let found = self.findings.first().map(|finding| finding.severity);
        found.unwrap_or(match self.lossless {
            Lossless::On(_) if self.has_rises => Severity::Fine,
            _ => Severity::Unknown,
        })
    }

    /// One line for each finding; where there is none, one that says what that is worth.
    pub(super) fn lines(&self) -> Vec<String> {
        if !self.findings.is_empty() {
            return self.findings.iter().map(Finding::to_string).collect();
        }
        if !self.has_rises {
            return vec!["nothing to judge by yet: no counter was read twice".to_owned()];
        }
        vec![match &self.lossless {
            Lossless::On(priorities) => {
                let list: Vec<String> = priorities.iter().map(usize::to_string).collect();
                format!(
                    "fine: PFC is on for priority {}, and nothing of it was lost",
                    list.join(", ")
                )
            }
            Lossless::Off => "no lossless class: PFC is on for no priority; no RDMA packet was missed".to_owned(),
            Lossless::Unknown => {
                "lossless class unknown: no counters of pause frames; no RDMA packet was missed".to_owned()
            }
        }]
    }
}

/// The port's lossless class. mlx5 has counters of pause frames of those priorities only that PFC is on for.
fn lossless(reading: &Reading) -> Lossless {
    let paused: Vec<usize> = (0..PRIORITIES)
        .filter(|priority| {
            reading.has(&format!("rx_prio{priority}_pause")) || reading.has(&format!("tx_prio{priority}_pause"))
        })
        .collect();
    if !paused.is_empty() {
        Lossless::On(paused)
    } else if reading.values.keys().any(|name| name.starts_with("rx_prio")) {
        Lossless::Off
    } else {
        Lossless::Unknown
    }
}

/// Judges an interval.
pub(super) fn judge(reading: &Reading, interval: Duration) -> Health {
    let lossless = lossless(reading);
    let mut findings = Vec::new();
    let mut find = |severity: Severity, counter: &str, why: &'static str| {
        let rise = reading.rise(counter);
        if rise > 0 {
            findings.push(Finding {
                severity,
                counter: counter.to_owned(),
                rise,
                why,
            });
        }
    };
    let paused = match &lossless {
        Lossless::On(priorities) => priorities.as_slice(),
        Lossless::Off | Lossless::Unknown => &[],
    };
    let counts_by_priority = paused.iter().all(|p| reading.has(&format!("rx_prio{p}_discards")));
    for priority in paused {
        for what in ["discards", "cong_discard"] {
            let counter = format!("rx_prio{priority}_{what}");
            find(Severity::Broken, &counter, DROPPED);
        }
        for (way, why) in [("rx", PAUSED_BY_PEER), ("tx", PAUSES_PEER)] {
            let counter = format!("{way}_prio{priority}_pause_duration");
            let interval_us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
            if reading.rise(&counter) >= (interval_us / 100).saturating_mul(PAUSED_PERCENT) {
                find(Severity::Warning, &counter, why);
            }
        }
    }
    // Without a lossless class packets may get lost, and that is all that these say then.
    let (lost, why) = match lossless {
        Lossless::On(_) => (Severity::Broken, LOST),
        Lossless::Off | Lossless::Unknown => (Severity::Warning, LOST_WITHOUT_CLASS),
    };
    find(Severity::Broken, "tx_pause_storm_error_events", STORM);
    for counter in SEQUENCE.iter().chain(&RETRANSMITS) {
        find(lost, counter, why);
    }
    // The port's own counter says nothing of priorities: it counts only where those are silent.
    if !paused.is_empty() && !counts_by_priority {
        find(Severity::Broken, "rx_discards_phy", DROPPED_SOMEWHERE);
    } else {
        find(Severity::Warning, "rx_discards_phy", DROPPED_SOMEWHERE);
    }
    for (counter, why) in WARNINGS {
        find(Severity::Warning, counter, why);
    }
    let (marks, cnps) = ("np_ecn_marked_roce_packets", "np_cnp_sent");
    if reading.has(marks) && reading.has(cnps) {
        if reading.rise(cnps) == 0 {
            find(Severity::Warning, marks, MARKS_WITHOUT_CNPS);
        }
        if reading.rise(marks) == 0 {
            find(Severity::Warning, cnps, CNPS_WITHOUT_MARKS);
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Health {
        lossless,
        findings,
        has_rises: reading.values.values().any(|value| value.rise.is_some()),
    }
}

/// Packets that did not come, or came out of turn.
const SEQUENCE: [&str; 5] = [
    "out_of_sequence",
    "packet_seq_err",
    "implied_nak_seq_err",
    "out_of_seq_request",
    "rcvd_seq_err",
];

/// Packets that were sent again.
const RETRANSMITS: [&str; 4] = [
    "local_ack_timeout_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "completer_retry_err",
];

const DROPPED: &str = "PFC is on for this priority, and frames of it were dropped; give its buffer more headroom";
const DROPPED_SOMEWHERE: &str = "the port dropped frames, of which priority the card does not say";
const STORM: &str = "the card stalled so long that it stopped pausing its peer; what comes now is lost";
const LOST: &str = "packets were lost or came out of turn on a network that should lose none; look for a hop without PFC, \
                    or for queue pairs whose traffic class is not that of the priority with PFC";
const LOST_WITHOUT_CLASS: &str = "packets were lost or came out of turn, and no lossless class is known";
const PAUSED_BY_PEER: &str = "µs in which the network made this port wait; look for a slow receiver behind it";
const PAUSES_PEER: &str = "µs in which this port made its peer wait; this host does not keep up";
const MARKS_WITHOUT_CNPS: &str = "packets come marked, and no CNP goes out; turn on DCQCN's notification point";
const CNPS_WITHOUT_MARKS: &str = "CNPs go out without a marked packet; ECN marks are not what slows the senders down";

/// What is worth a word wherever it rises.
const WARNINGS: [(&str, &str); 16] = [
    (
        "tx_pause_storm_warning_events",
        "the card stalls and pauses its peer for long; this host does not keep up",
    ),
    (
        "rp_cnp_ignored",
        "the peer asks to slow down, and this card does not; turn on DCQCN's reaction point",
    ),
    (
        "out_of_buffer",
        "packets came and no receive was posted: this receiver is too slow",
    ),
    (
        "send_rnr_err",
        "this receiver is too slow: it told its peer to wait (RNR)",
    ),
    (
        "rnr_nak_retry_err",
        "the peer's receiver is too slow: it told us to wait (RNR)",
    ),
    (
        "rcvd_rnr_err",
        "the peer's receiver is too slow: it told us to wait (RNR)",
    ),
    (
        "retry_rnr_exceeded_err",
        "a queue pair broke: the peer's receiver stayed too slow",
    ),
    ("retry_exceeded_err", "a queue pair broke: the peer did not answer"),
    ("req_cqe_error", "requests ended in an error"),
    ("resp_cqe_error", "receives ended in an error"),
    ("send_err", "packets could not be sent"),
    ("link_downed", "the link went down"),
    (
        "rx_icrc_encapsulated",
        "packets came with a wrong ICRC; something on the way changes them",
    ),
    ("tx_discards_phy", "the port dropped frames that it should have sent"),
    (
        "duplicate_request",
        "a peer sent requests again: an answer was lost or late",
    ),
    ("roce_slow_restart", "connections began slowly again"),
];
