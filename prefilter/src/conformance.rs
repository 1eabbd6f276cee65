//! Scripts that set limits and submit orders, with the verdict that each must get; and a runner that holds any backend to
//! them. The golden script is `tests/vectors/prefilter.txt`.
//!
//! A line is a step:
//!
//! ```text
//! control ENABLE KILL                    0 or 1 each
//! symbol ID MAX_QUANTITY LOWEST HIGHEST ROUTE, or: symbol ID none
//! session ID INTERVAL_NS AHEAD_NS, or: session ID none
//! touch ID bid|ask PRICE
//! commit
//! frame NOW POST_ONLY HEX REASONS ACTION ROUTE
//! ```
//!
//! The first step is a commit: generations are counted from it. `#` begins a comment.

use crate::PreFilter;
use crate::abi::{MESSAGE_LENGTH, POST_ONLY, Reasons, Slot, Verdict};
use crate::limits::{Control, Counters, Fault, SessionLimits, SymbolLimits};
use core::fmt;
use std::str::FromStr;
use types::{InstrumentId, Price, SessionId, Side};

/// One step of a script.
#[derive(Clone, Debug)]
pub enum Step {
    /// [`PreFilter::set_control`].
    Control(Control),
    /// [`PreFilter::set_symbol`].
    Symbol(InstrumentId, Option<SymbolLimits>),
    /// [`PreFilter::set_session`].
    Session(SessionId, Option<SessionLimits>),
    /// [`PreFilter::set_touch`].
    Touch(InstrumentId, Side, Price),
    /// [`PreFilter::commit`].
    Commit,
    /// An order, and what must become of it.
    Frame(Frame),
}

/// An order, and what must become of it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The order. Its number is given by the runner.
    pub slot: Slot,
    /// Why it must be refused; empty: it must pass.
    pub reasons: Reasons,
    /// The verdict's action.
    pub action: u8,
    /// The verdict's route.
    pub route: u8,
}

/// What is wrong with a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptError {
    /// Counted from 1.
    pub line: usize,
    /// What was expected there.
    pub expected: &'static str,
}

/// A verdict that is not the one of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The order's place among the orders of the script, from 0.
    pub frame: u32,
    /// What the script says.
    pub expected: Verdict,
    /// What the backend said.
    pub found: Verdict,
}

/// What a run found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// Orders judged.
    pub frames: u32,
    /// How many verdicts differ.
    pub different: u32,
    /// The first of those, at most [`DIFFERENCES_KEPT`].
    pub differences: Vec<Difference>,
    /// What the script makes the counters and what the backend counted, when those differ.
    pub counters: Option<(Counters, Counters)>,
}

/// Differences that an [`Outcome`] keeps.
pub const DIFFERENCES_KEPT: usize = 16;

/// Polls without a verdict after which a verdict is overdue.
pub const POLLS_MAX: u32 = 10_000;

/// Slots submitted before their verdicts are taken, at most.
const BATCH: usize = 32;

impl Outcome {
    /// Whether the backend conforms.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.different == 0 && self.counters.is_none() && self.frames > 0
    }
}

/// Runs the steps against a backend that holds no limits.
///
/// # Errors
/// The backend's fault, or that a verdict is missing.
///
/// # Panics
/// When the first step is not a commit.
pub fn run<P: PreFilter>(backend: &mut P, steps: &[Step]) -> Result<Outcome, Fault> {
    assert!(
        matches!(steps.first(), Some(Step::Commit)),
        "a script begins with a commit"
    );
    let before = backend.counters();
    let mut runner = Runner {
        generation: 0,
        batch: Vec::with_capacity(BATCH),
        counted: Counters::default(),
        outcome: Outcome::default(),
    };
    for step in steps {
        if let Step::Frame(frame) = step {
            runner.batch.push(*frame);
            if runner.batch.len() == BATCH {
                runner.judge(backend)?;
            }
            continue;
        }
        runner.judge(backend)?;
        match *step {
            Step::Control(control) => backend.set_control(control)?,
            Step::Symbol(instrument, limits) => backend.set_symbol(instrument, limits)?,
            Step::Session(session, limits) => backend.set_session(session, limits)?,
            Step::Touch(instrument, side, price) => backend.set_touch(instrument, side, price)?,
            Step::Commit => runner.generation = backend.commit()?,
            Step::Frame(_) => {}
        }
    }
    runner.judge(backend)?;
    let after = backend.counters().since(&before);
    if after != runner.counted {
        runner.outcome.counters = Some((runner.counted, after));
    }
    backend.health()?;
    Ok(runner.outcome)
}

struct Runner {
    generation: u32,
    batch: Vec<Frame>,
    counted: Counters,
    outcome: Outcome,
}

impl Runner {
    /// Submits what has gathered and compares the verdicts.
    fn judge<P: PreFilter>(&mut self, backend: &mut P) -> Result<(), Fault> {
        let mut slots = [Slot::default(); BATCH];
        let count = self.batch.len();
        let first = self.outcome.frames;
        for ((slot, frame), sequence) in slots.iter_mut().zip(&self.batch).zip(first..) {
            *slot = frame.slot;
            slot.sequence = sequence.into();
        }
        let mut submitted = 0;
        let mut judged = 0;
        let mut idle = 0;
        while judged < count {
            submitted += backend.submit(&slots[submitted..count]);
            let mut verdicts = [Verdict::default(); BATCH];
            let polled = backend.poll(&mut verdicts[..count - judged]);
            for found in &verdicts[..polled] {
                self.compare(&self.batch[judged].clone(), *found);
                judged += 1;
            }
            idle = if polled == 0 { idle + 1 } else { 0 };
            if idle > POLLS_MAX {
                return Err(Fault::Overdue {
                    sequence: self.outcome.frames,
                });
            }
        }
        self.batch.clear();
        Ok(())
    }

    fn compare(&mut self, frame: &Frame, mut found: Verdict) {
        let expected = Verdict {
            sequence: self.outcome.frames.into(),
            generation: self.generation.into(),
            reasons: frame.reasons.0.into(),
            action: frame.action,
            route: frame.route,
            ..Verdict::default()
        };
        // The ring's business.
        found.phase = 0;
        if found != expected {
            self.outcome.different += 1;
            if self.outcome.differences.len() < DIFFERENCES_KEPT {
                self.outcome.differences.push(Difference {
                    frame: self.outcome.frames,
                    expected,
                    found,
                });
            }
        }
        self.counted.count(frame.reasons);
        self.outcome.frames += 1;
    }
}

/// Reads a script.
///
/// # Errors
/// The line that is no step, and what was expected there.
pub fn parse(text: &str) -> Result<Vec<Step>, ScriptError> {
    let mut steps = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default();
        let mut words = Words {
            words: code.split_ascii_whitespace(),
        };
        let Some(verb) = words.words.next() else { continue };
        let step = words.step(verb).and_then(|step| match words.words.next() {
            Some(_) => Err("the end of the line"),
            None => Ok(step),
        });
        let is_first_commit = !steps.is_empty() || matches!(step, Ok(Step::Commit) | Err(_));
        let step = if is_first_commit { step } else { Err(FIRST) };
        steps.push(step.map_err(|expected| ScriptError {
            line: index + 1,
            expected,
        })?);
    }
    if steps.is_empty() {
        return Err(ScriptError {
            line: text.lines().count().max(1),
            expected: FIRST,
        });
    }
    Ok(steps)
}

/// Of a script.
const FIRST: &str = "a commit, first of all";

struct Words<'a> {
    words: std::str::SplitAsciiWhitespace<'a>,
}

impl Words<'_> {
    fn step(&mut self, verb: &str) -> Result<Step, &'static str> {
        Ok(match verb {
            "control" => Step::Control(Control {
                enable: self.flag()?,
                kill: self.flag()?,
            }),
            "symbol" => {
                let instrument = InstrumentId(self.number()?);
                let limits = match self.number_or_none()? {
                    None => None,
                    Some(max_quantity) => Some(SymbolLimits {
                        max_quantity,
                        lowest: Price(self.number()?),
                        highest: Price(self.number()?),
                        route: self.number()?,
                    }),
                };
                Step::Symbol(instrument, limits)
            }
            "session" => {
                let session = SessionId(self.number()?);
                let limits = match self.number_or_none()? {
                    None => None,
                    Some(interval_ns) => Some(SessionLimits {
                        interval_ns,
                        ahead_ns: self.number()?,
                    }),
                };
                Step::Session(session, limits)
            }
            "touch" => Step::Touch(InstrumentId(self.number()?), self.side()?, Price(self.number()?)),
            "commit" => Step::Commit,
            "frame" => Step::Frame(self.frame()?),
            _ => return Err("control, symbol, session, touch, commit or frame"),
        })
    }

    fn frame(&mut self) -> Result<Frame, &'static str> {
        let now: u64 = self.number()?;
        let post_only = self.flag()?;
        let bytes = hex(self.words.next().ok_or("a message in hex")?)?;
        Ok(Frame {
            slot: Slot::of(&bytes, now, post_only),
            reasons: Reasons(self.number()?),
            action: self.number()?,
            route: self.number()?,
        })
    }

    fn number<T: FromStr>(&mut self) -> Result<T, &'static str> {
        let word = self.words.next().ok_or("a number")?;
        word.parse().map_err(|_| "a number that fits")
    }

    fn number_or_none<T: FromStr>(&mut self) -> Result<Option<T>, &'static str> {
        match self.words.next() {
            Some("none") => Ok(None),
            Some(word) => word.parse().map(Some).map_err(|_| "a number that fits, or none"),
            None => Err("a number or none"),
        }
    }

    fn flag(&mut self) -> Result<bool, &'static str> {
        match self.words.next() {
            Some("0") => Ok(false),
            Some("1") => Ok(true),
            _ => Err("0 or 1"),
        }
    }

    fn side(&mut self) -> Result<Side, &'static str> {
        match self.words.next() {
            Some("bid") => Ok(Side::Buy),
            Some("ask") => Ok(Side::Sell),
            _ => Err("bid or ask"),
        }
    }
}

/// `-` is no bytes at all.
fn hex(word: &str) -> Result<Vec<u8>, &'static str> {
    if word == "-" {
        return Ok(Vec::new());
    }
    let digits = word.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err("a message in hex");
    }
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).map_err(|_| "a message in hex")?;
        u8::from_str_radix(pair, 16).map_err(|_| "a message in hex")
    };
    digits.chunks_exact(2).map(byte).collect()
}

impl Slot {
    /// A slot for a message as it came, of whatever length.
    #[must_use]
    pub fn of(message: &[u8], now: u64, post_only: bool) -> Self {
        let mut slot = Self::default();
        let kept = message.len().min(MESSAGE_LENGTH);
        slot.message[..kept].copy_from_slice(&message[..kept]);
        slot.now = now.into();
        slot.length = u16::try_from(message.len()).unwrap_or(u16::MAX).into();
        slot.flags = if post_only { POST_ONLY } else { 0 };
        slot
    }
}

impl Default for Slot {
    fn default() -> Self {
        zerocopy::FromZeros::new_zeroed()
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} expected", self.line, self.expected)
    }
}

impl core::error::Error for ScriptError {}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let say = |f: &mut fmt::Formatter<'_>, verdict: &Verdict| {
            write!(
                f,
                "sequence {} generation {} {:?} action {} route {}",
                verdict.sequence,
                verdict.generation,
                Reasons(verdict.reasons.get()),
                verdict.action,
                verdict.route
            )
        };
        write!(f, "order {}: expected ", self.frame)?;
        say(f, &self.expected)?;
        f.write_str(", found ")?;
        say(f, &self.found)
    }
}
