//! What the log says of a link: that it came up, that it went down and why, whom it refused; and while it is not up, what is
//! heard instead, so that a peer that is not there, one with another key and one that speaks something else can be told
//! apart.
//!
//! Whatever a peer or a stranger does, lines are few: those that come again come at growing intervals, with how many
//! there were.

use super::{DownReason, Link, LinkCounters, LinkEvent, LinkView};
use std::fmt::{self, Write};
use types::{Duration, Timestamp};

/// Beside a link, with its owner.
#[derive(Debug)]
pub struct LinkWatch {
    /// What kind of link, for people: `venue link`.
    what: &'static str,
    /// Which of them.
    which: String,
    /// Whether it is a fault that nobody is there.
    is_expected: bool,
    is_up: bool,
    /// Since when it is as it is.
    since: Timestamp,
    /// Why it went down or did not come up, last.
    reason: Option<DownReason>,
    look_at: Timestamp,
    changes: Pace,
    /// Ups and downs that were not told.
    changes_held: u64,
    waits: Pace,
    /// What was counted when a wait was told last, or began.
    waited: LinkCounters,
    refusals: Pace,
    refusals_told: u64,
}

/// How often a line may come: a few times at once, then at growing intervals. After a quiet time it begins anew.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Lines that may come at once after a quiet time, and those of them that are left.
    burst: u32,
    at_once: u32,
    next: Timestamp,
    interval: Duration,
    /// When there was something to tell last.
    last: Timestamp,
}

/// How often the owner's turns look at the counters.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A link that is not up is told of for the first time after this long.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// First and longest interval between lines that come again.
const INTERVAL_FIRST: Duration = Duration::from_secs(1);
const INTERVAL_LAST: Duration = Duration::from_secs(60);
/// Ups and downs that are told at once.
const CHANGES_AT_ONCE: u32 = 8;
/// Refusals that are told at once.
const REFUSALS_AT_ONCE: u32 = 1;

/// One line.
#[derive(PartialEq, Eq, Debug)]
struct Line {
    is_warning: bool,
    text: String,
}

impl LinkWatch {
    /// Of a link whose peer should be there. `what` is the kind of link for people, `which` tells it from others.
    #[must_use]
    pub fn new(what: &'static str, which: String) -> Self {
        Self {
            what,
            which,
            is_expected: true,
            is_up: false,
            since: Timestamp::NONE,
            reason: None,
            look_at: Timestamp::NONE,
            changes: Pace::new(CHANGES_AT_ONCE),
            changes_held: 0,
            waits: Pace::new(0),
            waited: LinkCounters::default(),
            refusals: Pace::new(REFUSALS_AT_ONCE),
            refusals_told: 0,
        }
    }

    /// Of a link whose peer may come or not.
    #[must_use]
    pub fn for_guest(what: &'static str, which: String) -> Self {
        Self {
            is_expected: false,
            ..Self::new(what, which)
        }
    }

    /// Since when the link is up or not.
    #[must_use]
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// Why it went down or did not come up, last; `None`: it did neither.
    #[must_use]
    pub const fn reason(&self) -> Option<DownReason> {
        self.reason
    }

    /// Its link told its owner something.
    pub fn on_event(&mut self, now: Timestamp, event: &LinkEvent, link: &impl Link) {
        let line = match event {
            LinkEvent::Up => self.up(now, &link.view()),
            LinkEvent::Down(reason) => self.down(now, *reason, &link.counters()),
            LinkEvent::Path(change) => Some(Line {
                is_warning: true,
                text: format!(
                    "a path of the {} is {}: {}: {change}",
                    self.what,
                    if change.is_up { "back" } else { "down" },
                    self.which
                ),
            }),
            LinkEvent::Recall { from, to } => Some(Line {
                is_warning: true,
                text: format!(
                    "the peer of the {} gets again what it has lost: {}: messages {from} up to below {to}",
                    self.what, self.which
                ),
            }),
            LinkEvent::Message { .. } | LinkEvent::Credits(_) => None,
        };
        tell(line);
    }

    /// Called in each turn of the owner.
    #[inline]
    pub fn turn(&mut self, now: Timestamp, link: &impl Link) {
        if now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            for line in self.look(now, &link.view()) {
                tell(line);
            }
        }
    }

    /// One line with all that is counted.
    #[must_use]
    pub fn summary(&self, link: &impl Link) -> String {
        let view = link.view();
        format!(
            "{} {}: {}, {view}: {}",
            self.what,
            self.which,
            view.state.name(),
            view.figures()
        )
    }

    fn up(&mut self, now: Timestamp, view: &LinkView) -> Option<Line> {
        let waited = match self.since {
            Timestamp::NONE => String::new(),
            since => format!("; after {}", now.since(since)),
        };
        self.is_up = true;
        self.since = now;
        let text = format!("{} is up: {}: {view}{waited}", self.what, self.which);
        self.change(
            now,
            Line {
                is_warning: false,
                text,
            },
        )
    }

    fn down(&mut self, now: Timestamp, reason: DownReason, counters: &LinkCounters) -> Option<Line> {
        self.reason = Some(reason);
        if !std::mem::take(&mut self.is_up) {
            let text = format!("{} does not come up: {}: {reason}", self.what, self.which);
            return self.change(now, Line { is_warning: true, text });
        }
        let lasted = now.since(self.since);
        self.wait(now, counters);
        let text = format!(
            "{} is down: {}: {reason}; it was up for {lasted}",
            self.what, self.which
        );
        self.change(now, Line { is_warning: true, text })
    }

    /// It is not up from now on.
    fn wait(&mut self, now: Timestamp, counters: &LinkCounters) {
        self.since = now;
        self.waited = *counters;
        self.waits = Pace::new(0);
        self.waits.next = now + WAIT_FIRST;
        self.waits.last = now;
    }

    fn change(&mut self, now: Timestamp, mut line: Line) -> Option<Line> {
        self.changes.note(now);
        if !self.changes.allows(now) {
            self.changes_held += 1;
            return None;
        }
        let held = std::mem::take(&mut self.changes_held);
        if held > 0 {
            // Writing to a String does not fail.
            let _: fmt::Result = write!(line.text, "; {held} more changes were not told");
        }
        Some(line)
    }

    fn look(&mut self, now: Timestamp, view: &LinkView) -> [Option<Line>; 3] {
        if self.since == Timestamp::NONE {
            self.wait(now, &view.counters);
        }
        [self.held(now), self.refused(now, view), self.waiting(now, view)]
    }

    /// What happened too often to be told each time.
    fn held(&mut self, now: Timestamp) -> Option<Line> {
        if self.changes_held == 0 || !self.changes.allows(now) {
            return None;
        }
        let held = std::mem::take(&mut self.changes_held);
        let state = if self.is_up { "up" } else { "down" };
        let reason = self.reason.map_or(String::new(), |reason| format!("; last {reason}"));
        let text = format!(
            "{} comes and goes: {}: {held} more changes, now it is {state}{reason}",
            self.what, self.which
        );
        Some(Line { is_warning: true, text })
    }

    fn refused(&mut self, now: Timestamp, view: &LinkView) -> Option<Line> {
        let count = view.counters.refused - self.refusals_told;
        let peer = view.refused.filter(|_| count > 0)?;
        self.refusals.note(now);
        if !self.refusals.allows(now) {
            return None;
        }
        self.refusals_told = view.counters.refused;
        let times = if count == 1 {
            String::new()
        } else {
            format!(" {count} times, last")
        };
        let text = format!("{} refuses{times}: {}: {peer}", self.what, self.which);
        Some(Line { is_warning: true, text })
    }

    fn waiting(&mut self, now: Timestamp, view: &LinkView) -> Option<Line> {
        if self.is_up || !self.waits.allows(now) {
            return None;
        }
        let heard = heard(&view.counters, &self.waited);
        self.waited = view.counters;
        if heard.is_none() && !self.is_expected {
            return None;
        }
        let seconds = now.since(self.since).0 / 1_000_000_000;
        let heard = heard.unwrap_or_else(|| "nothing heard".to_owned());
        let reason = self.reason.map_or(String::new(), |reason| format!("; last {reason}"));
        let text = format!(
            "{} is not up for {seconds} s: {}: {view}: {heard}{reason}",
            self.what, self.which
        );
        Some(Line { is_warning: true, text })
    }
}

/// What came in the place of the peer since `before`; `None`: nothing.
fn heard(counters: &LinkCounters, before: &LinkCounters) -> Option<String> {
    let more = |count: fn(&LinkCounters) -> u64, what: &str| {
        let more = count(counters) - count(before);
        (more > 0).then(|| format!("{more} {what}"))
    };
    let rows = [
        more(|counters| counters.refused_by_peer, "refused by the peer"),
        more(|counters| counters.refused, "refused here"),
        more(
            |counters| counters.forged,
            "forged (another secret under the same key id, or a stranger)",
        ),
        more(|counters| counters.foreign, "foreign (of another session or attempt)"),
        more(|counters| counters.malformed, "malformed (not the protocol)"),
        more(|counters| counters.impossible, "with impossible numbers"),
        more(|counters| counters.unreachable, "times nobody listened there"),
    ];
    let rows = rows.into_iter().flatten().collect::<Vec<_>>();
    if rows.is_empty() {
        return more(|counters| counters.heard, "heard, of which nothing came");
    }
    Some(rows.join(", "))
}

impl Pace {
    const fn new(at_once: u32) -> Self {
        Self {
            burst: at_once,
            at_once,
            next: Timestamp::NONE,
            interval: INTERVAL_FIRST,
            last: Timestamp::NONE,
        }
    }

    /// There is something to tell.
    fn note(&mut self, now: Timestamp) {
        let quiet = now.since(self.last);
        self.last = now;
        if quiet >= INTERVAL_LAST {
            self.interval = INTERVAL_FIRST;
            self.at_once = self.burst;
        }
    }

    /// Whether a line may come now; then it does.
    fn allows(&mut self, now: Timestamp) -> bool {
        if now < self.next {
            return false;
        }
        if self.at_once > 0 {
            self.at_once -= 1;
            return true;
        }
        self.next = now + self.interval;
        self.interval = Duration((2 * self.interval.0).min(INTERVAL_LAST.0));
        true
    }
}

fn tell(line: Option<Line>) {
    match line {
        Some(Line { is_warning: true, text }) => tracing::warn!("{text}"),
        Some(Line {
            is_warning: false,
            text,
        }) => tracing::info!("{text}"),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::RefusedPeer;
    use proto::ltp::Refusal;

    fn watch() -> LinkWatch {
        LinkWatch::new("venue link", "venue sim, shard 0".to_owned())
    }

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp(1_000_000_000_000) + Duration::from_millis(milliseconds)
    }

    /// Looks as often as the turns of so many seconds would, and gives the lines with their times.
    fn looks(watch: &mut LinkWatch, from_ms: u64, seconds: u64, view: &LinkView) -> Vec<(u64, String)> {
        let mut lines = Vec::new();
        for look in 0..seconds * 10 {
            let ms = from_ms + 100 * look;
            for line in watch.look(at(ms), view).into_iter().flatten() {
                assert!(line.is_warning);
                lines.push((ms, line.text));
            }
        }
        lines
    }

    /// Sets counters.
    type Count = fn(&mut LinkCounters);

    fn counted(change: Count) -> LinkView {
        let mut view = LinkView {
            transport: "LTP",
            carrier: Some("UDP"),
            ..LinkView::default()
        };
        change(&mut view.counters);
        view
    }

    #[test]
    fn a_link_that_does_not_come_up_is_told_at_growing_intervals_up_to_a_minute() {
        let mut watch = watch();
        let lines = looks(&mut watch, 0, 400, &counted(|_| {}));
        let times = lines.iter().map(|(ms, _)| ms / 1_000).collect::<Vec<_>>();
        assert_eq!(times, [1, 2, 4, 8, 16, 32, 64, 124, 184, 244, 304, 364]);
        let first = "venue link is not up for 1 s: venue sim, shard 0: LTP over UDP: nothing heard";
        assert_eq!(lines[0].1, first);
    }

    #[test]
    fn what_is_heard_in_the_place_of_the_peer_is_told_apart_and_counted_from_the_last_line_on() {
        let cases: [(Count, &str); 8] = [
            (|counters| counters.forged = 5, "5 forged (another secret"),
            (|counters| counters.foreign = 5, "5 foreign (of another session"),
            (|counters| counters.malformed = 5, "5 malformed"),
            (|counters| counters.refused = 5, "5 refused here"),
            (|counters| counters.refused_by_peer = 5, "5 refused by the peer"),
            (|counters| counters.unreachable = 5, "5 times nobody listened there"),
            (|counters| counters.impossible = 5, "5 with impossible numbers"),
            (|counters| counters.heard = 5, "5 heard, of which nothing came"),
        ];
        for (change, text) in cases {
            let mut watch = watch();
            watch.look(at(0), &counted(|_| {}));
            let lines = looks(&mut watch, 100, 3, &counted(change));
            let texts = lines.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>();
            assert_eq!(texts.len(), 2, "{texts:?}");
            assert!(texts[0].contains(text), "{texts:?}");
            assert!(texts[1].ends_with("nothing heard"), "{texts:?}");
        }
    }

    #[test]
    fn nobody_is_told_of_a_guest_that_does_not_come_but_of_one_that_cannot_come_in() {
        let mut watch = LinkWatch::for_guest("client's link", "session 5".to_owned());
        assert_eq!(looks(&mut watch, 0, 100, &counted(|_| {})), []);
        let forged = counted(|counters| (counters.heard, counters.forged) = (7, 7));
        let lines = looks(&mut watch, 100_000, 100, &forged);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].1.contains("7 forged"), "{lines:?}");
    }

    #[test]
    fn an_up_and_a_down_are_told_once_each_with_why() {
        let mut watch = watch();
        watch.look(at(0), &counted(|_| {}));
        let up = watch.up(at(500), &counted(|_| {})).expect("a line");
        let text = "venue link is up: venue sim, shard 0: LTP over UDP; after 500.00 ms";
        assert_eq!((up.is_warning, up.text.as_str()), (false, text));
        assert_eq!(looks(&mut watch, 500, 100, &counted(|_| {})), []);
        let down = watch.down(at(100_500), DownReason::Silent, &LinkCounters::default());
        let text = "venue link is down: venue sim, shard 0: peer is silent; it was up for 100.0 s";
        assert_eq!(down.map(|line| line.text).as_deref(), Some(text));
        let lines = looks(&mut watch, 100_600, 1, &counted(|_| {}));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].1.ends_with("nothing heard; last peer is silent"), "{lines:?}");
    }

    /// As an acceptor whose initiator comes and goes each second.
    #[test]
    fn one_that_comes_and_goes_for_ever_is_told_of_less_and_less() {
        let mut watch = watch();
        let mut lines = Vec::new();
        for second in 0..1_000 {
            let now = at(1_000 * second);
            let changes = [
                watch.up(now, &counted(|_| {})),
                watch.down(now, DownReason::Closed, &LinkCounters::default()),
            ];
            lines.extend(changes.into_iter().flatten().map(|line| line.text));
            lines.extend(
                looks(&mut watch, 1_000 * second, 1, &counted(|_| {}))
                    .into_iter()
                    .map(|(_, text)| text),
            );
        }
        assert!((20..40).contains(&lines.len()), "{lines:?}");
        assert!(
            lines[10..].iter().all(|line| line.contains(" more changes")),
            "{lines:?}"
        );
        // After a minute of quiet it is news again.
        assert!(watch.up(at(1_100_000), &counted(|_| {})).is_some());
        let down = watch.down(at(1_100_000), DownReason::Closed, &LinkCounters::default());
        assert!(down.is_some());
    }

    #[test]
    fn whom_it_refuses_is_told_with_who_and_why_and_how_often() {
        let mut watch = watch();
        let mut view = counted(|_| {});
        view.refused = Some(RefusedPeer {
            from: Some(([127, 0, 0, 1], 4_000).into()),
            user: None,
            reason: Refusal::Key { given: 3, held: 7 }.into(),
        });
        let mut lines = Vec::new();
        watch.up(at(0), &view);
        for second in 0..100 {
            view.counters.refused += 10;
            lines.extend(looks(&mut watch, 1_000 * second, 1, &view));
        }
        let first =
            "venue link refuses 10 times, last: venue sim, shard 0: 127.0.0.1:4000: key 3 offered, key 7 configured";
        assert_eq!(lines[0].1, first);
        assert!((5..12).contains(&lines.len()), "{lines:?}");
    }
}
