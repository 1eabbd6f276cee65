//! The software backend, and mistakes that must be noticed.

use crate::model;
use prefilter::conformance::{Outcome, Step, parse, run};
use prefilter::{
    Caps, Control, Counters, Fault, PreFilter, Reasons, SessionLimits, Slot, Software, SymbolLimits, Verdict,
};
use types::{InstrumentId, Price, SessionId, Side};

const CAPS: Caps = Caps {
    symbols: 64,
    sessions: 16,
};

pub(crate) fn golden() -> Vec<Step> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/prefilter.txt");
    parse(&std::fs::read_to_string(path).expect("the golden script")).expect("a script")
}

pub(crate) fn clean(outcome: &Outcome) {
    let text: Vec<_> = outcome.differences.iter().map(ToString::to_string).collect();
    assert!(
        outcome.is_clean(),
        "{} differ: {text:#?} {:?}",
        outcome.different,
        outcome.counters
    );
}

#[test]
fn the_golden_script_gives_its_verdicts() {
    let outcome = run(&mut Software::new(CAPS), &golden()).expect("sound");
    assert!(outcome.frames > 2_000, "{}", outcome.frames);
    clean(&outcome);
}

#[test]
fn a_hundred_thousand_orders_are_judged_as_the_model_does() {
    for seed in 0..50 {
        let outcome = run(&mut Software::new(CAPS), &model::script(seed, 2_000)).expect("sound");
        clean(&outcome);
    }
}

/// A backend that sets other limits than it was told, or has a defect.
struct Mutant {
    inner: Software,
    symbol: fn(SymbolLimits) -> SymbolLimits,
    session: fn(SessionLimits) -> SessionLimits,
    defect: Defect,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// Counts one more.
    Counts,
    /// Gives no verdicts.
    Silent,
    /// Is at fault.
    Unsound,
}

impl Mutant {
    fn of(symbol: fn(SymbolLimits) -> SymbolLimits, session: fn(SessionLimits) -> SessionLimits) -> Self {
        Self {
            inner: Software::new(CAPS),
            symbol,
            session,
            defect: Defect::None,
        }
    }
}

impl PreFilter for Mutant {
    fn caps(&self) -> Caps {
        self.inner.caps()
    }
    fn set_control(&mut self, control: Control) -> Result<(), Fault> {
        self.inner.set_control(control)
    }
    fn set_symbol(&mut self, instrument: InstrumentId, limits: Option<SymbolLimits>) -> Result<(), Fault> {
        self.inner.set_symbol(instrument, limits.map(self.symbol))
    }
    fn set_session(&mut self, session: SessionId, limits: Option<SessionLimits>) -> Result<(), Fault> {
        self.inner.set_session(session, limits.map(self.session))
    }
    fn set_touch(&mut self, instrument: InstrumentId, side: Side, price: Price) -> Result<(), Fault> {
        self.inner.set_touch(instrument, side, price)
    }
    fn commit(&mut self) -> Result<u32, Fault> {
        self.inner.commit()
    }
    fn submit(&mut self, slots: &[Slot]) -> usize {
        self.inner.submit(slots)
    }
    fn poll(&mut self, verdicts: &mut [Verdict]) -> usize {
        match self.defect {
            Defect::Silent => 0,
            _ => self.inner.poll(verdicts),
        }
    }
    fn counters(&mut self) -> Counters {
        let mut counters = self.inner.counters();
        counters.passed += u64::from(self.defect == Defect::Counts && counters.received > 0);
        counters
    }
    fn health(&mut self) -> Result<(), Fault> {
        match self.defect {
            Defect::Unsound => Err(Fault::Reset),
            _ => self.inner.health(),
        }
    }
}

/// Both the script and the model notice each.
#[test]
fn mistakes_are_noticed() {
    let same_symbol = |limits| limits;
    let same_session = |limits| limits;
    // Lots at the limit refused: `>=` for `>`.
    let quantity = |limits: SymbolLimits| SymbolLimits {
        max_quantity: (limits.max_quantity - 1).max(1),
        ..limits
    };
    // Orders at the edge of the rate refused: `<` for `<=`.
    let rate = |limits: SessionLimits| SessionLimits {
        ahead_ns: limits.ahead_ns.saturating_sub(1),
        ..limits
    };
    // The halves of the bounds swapped.
    let price = |limits: SymbolLimits| SymbolLimits {
        lowest: Price(limits.lowest.0.rotate_left(32)),
        ..limits
    };
    for (name, symbol, session) in [
        ("quantity", quantity as fn(_) -> _, same_session as fn(_) -> _),
        ("rate", same_symbol as fn(_) -> _, rate as fn(_) -> _),
        ("price", price, same_session),
    ] {
        for script in [golden(), model::script(1, 10_000)] {
            let outcome = run(&mut Mutant::of(symbol, session), &script).expect("sound");
            assert!(outcome.different > 0, "{name} passes");
        }
    }
}

#[test]
fn wrong_counts_silence_and_a_fault_are_noticed() {
    let script = golden();
    let outcome = |defect| {
        let mut backend = Mutant::of(|limits| limits, |limits| limits);
        backend.defect = defect;
        run(&mut backend, &script)
    };
    clean(&outcome(Defect::None).expect("sound"));
    let counts = outcome(Defect::Counts).expect("sound");
    assert!(counts.different == 0 && !counts.is_clean());
    assert_eq!(outcome(Defect::Silent), Err(Fault::Overdue { sequence: 0 }));
    assert_eq!(outcome(Defect::Unsound), Err(Fault::Reset));
    let nothing = run(&mut Software::new(CAPS), &[Step::Commit]).expect("sound");
    assert!(!nothing.is_clean(), "it shows nothing");
}

#[test]
fn what_was_judged_is_counted_by_reason_and_a_run_counts_its_own() {
    let mut filter = Software::new(CAPS);
    let script = parse("commit\ncontrol 0 0\nframe 1 0 00 1 5 0\nframe 1 0 - 1 5 0\n").expect("a script");
    clean(&run(&mut filter, &script).expect("sound"));
    let mut passing = golden();
    passing.retain(|step| !matches!(step, Step::Frame(frame) if frame.reasons != Reasons::NONE));
    run(&mut filter, &passing).expect("sound");
    clean(&run(&mut filter, &script).expect("sound"));
    let counters = filter.counters();
    assert_eq!((counters.refused, counters.reasons), (4, [4, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert!(
        counters.passed > 300 && counters.received == counters.passed + 4,
        "{counters:?}"
    );
}

#[test]
fn what_does_not_fit_the_tables_is_said() {
    let mut filter = Software::new(CAPS);
    let limits = SymbolLimits {
        max_quantity: 1,
        lowest: Price(0),
        highest: Price(1),
        route: 0,
    };
    let beyond = |id, entries| Err(Fault::BeyondTable { id, entries });
    assert_eq!(filter.set_symbol(InstrumentId(64), Some(limits)), beyond(64, 64));
    assert_eq!(
        filter.set_session(SessionId(16), Some(SessionLimits::UNLIMITED)),
        beyond(16, 16)
    );
    assert_eq!(filter.set_touch(InstrumentId(64), Side::Buy, Price(1)), beyond(64, 64));
    let none = SymbolLimits {
        max_quantity: 0,
        ..limits
    };
    assert_eq!(filter.set_symbol(InstrumentId(1), Some(none)), Err(Fault::InvalidLimit));
    let session = |interval_ns, ahead_ns| SessionLimits { interval_ns, ahead_ns };
    for wrong in [session(0, 0), session(1, 1 << 48)] {
        assert_eq!(filter.set_session(SessionId(1), Some(wrong)), Err(Fault::InvalidLimit));
    }
    for _ in 0..80 {
        assert_eq!(filter.set_symbol(InstrumentId(1), Some(limits)), Ok(()));
    }
    assert_eq!(filter.set_symbol(InstrumentId(1), Some(limits)), Err(Fault::StageFull));
    assert_eq!(filter.commit(), Ok(1));
}

#[test]
fn a_rate_is_turned_into_nanoseconds() {
    let limits = |interval_ns, ahead_ns| Some(SessionLimits { interval_ns, ahead_ns });
    assert_eq!(SessionLimits::rate(1_000, 5), limits(1_000_000, 4_000_000));
    assert_eq!(SessionLimits::rate(3, 1), limits(333_333_334, 0));
    assert_eq!(
        SessionLimits::rate(u32::MAX, u32::MAX),
        limits(1, u64::from(u32::MAX) - 1)
    );
    assert_eq!(SessionLimits::rate(0, 5), None);
    assert_eq!(SessionLimits::rate(5, 0), None);
    assert_eq!(SessionLimits::rate(1, u32::MAX), None);
}

#[test]
fn verdicts_wait_for_a_poll_and_no_more_is_taken_than_there_is_room_for() {
    let mut filter = Software::new(CAPS);
    let slots = vec![Slot::default(); 5_000];
    let taken = filter.submit(&slots);
    assert_eq!(taken, prefilter::software::VERDICTS_MAX);
    assert_eq!(filter.submit(&slots), 0);
    let mut verdicts = [Verdict::default(); 100];
    assert_eq!(filter.poll(&mut verdicts), 100);
    assert_eq!(filter.submit(&slots), 100);
}

#[test]
fn a_line_that_is_no_step_is_named() {
    let wrong = |text: &str| parse(text).expect_err("no script");
    for (text, line, expected) in [
        ("", 1, "a commit, first of all"),
        ("# nothing\n\n", 2, "a commit, first of all"),
        ("control 1 0", 1, "a commit, first of all"),
        ("commit\nfoo", 2, "control, symbol, session, touch, commit or frame"),
        ("commit\n# x\nsymbol 1 2 3", 3, "a number"),
        ("commit\nsymbol 1 99999999999 0 0 0", 2, "a number that fits, or none"),
        ("commit\nframe 1 0 abc 0 0 0", 2, "a message in hex"),
        ("commit\nframe 1 0 +1 0 0 0", 2, "a message in hex"),
        ("commit extra", 1, "the end of the line"),
    ] {
        let error = wrong(text);
        assert_eq!((error.line, error.expected), (line, expected), "{text}");
    }
}
