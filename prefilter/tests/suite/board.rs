//! The board's host side against the RTL's rings in simulation: conformance, faults and recovery.

use crate::model;
use crate::software::{clean, golden};
use prefilter::board::model::{Defect, ModelBar, ModelMem, board};
use prefilter::board::{Board, IDLE_BEATS_MAX, memory_bytes};
use prefilter::conformance::{Step, run};
use prefilter::driver::Bar;
use prefilter::{Action, Control, Fault, PreFilter, Reasons, SessionLimits, Slot, SymbolLimits, Verdict, registers};
use types::{InstrumentId, Price, SessionId};

type Simulated = Board<ModelBar, ModelMem>;

const HEARTBEAT_CYCLES: u32 = 1 << 30;
const OPEN: Control = Control {
    enable: true,
    kill: false,
};

fn simulated(entries_log2: u32) -> Simulated {
    try_open(entries_log2, HEARTBEAT_CYCLES, |_| {}).expect("a board")
}

fn try_open(entries_log2: u32, heartbeat: u32, prepare: impl Fn(&ModelBar)) -> Result<Simulated, Fault> {
    let (bar, memory) = board(memory_bytes(entries_log2));
    prepare(&bar);
    Board::open(bar, memory, entries_log2, heartbeat)
}

/// An order that limits like [`allow`]'s pass.
fn order(sequence: u32) -> Slot {
    let frames = golden().into_iter().filter_map(|step| match step {
        Step::Frame(frame) if frame.slot.length.get() == 48 && frame.reasons.0 == 0 => Some(frame.slot),
        _ => None,
    });
    let mut slot = frames.into_iter().next().expect("one that passes");
    slot.sequence = sequence.into();
    slot
}

fn instrument_of(slot: &Slot) -> InstrumentId {
    InstrumentId(u32::from_le_bytes(slot.message[8..12].try_into().expect("four bytes")))
}

fn session_of(slot: &Slot) -> SessionId {
    SessionId(u16::from_le_bytes([slot.message[36], slot.message[37]]))
}

fn allow(board: &mut Simulated, slot: &Slot) {
    let limits = SymbolLimits {
        max_quantity: u32::MAX,
        lowest: Price::NULL,
        highest: Price(i64::MAX),
        route: 9,
    };
    board.set_symbol(instrument_of(slot), Some(limits)).expect("a place");
    board
        .set_session(session_of(slot), Some(SessionLimits::UNLIMITED))
        .expect("a place");
    board.commit().expect("confirmed");
    board.set_control(OPEN).expect("open");
}

fn opened(entries_log2: u32) -> Simulated {
    let mut board = simulated(entries_log2);
    allow(&mut board, &order(0));
    board
}

fn verdict(board: &mut Simulated, sequence: u32) -> Option<Verdict> {
    if board.submit(&[order(sequence)]) == 0 {
        return None;
    }
    let mut verdict = [Verdict::default()];
    (0..1_000).any(|_| board.poll(&mut verdict) == 1).then(|| verdict[0])
}

/// It takes nothing, tells nothing, and the board itself is closed.
fn is_closed(board: &mut Simulated, fault: Fault) {
    assert_eq!(board.fault(), Some(fault));
    assert_eq!(board.submit(&[order(1)]), 0);
    assert_eq!(board.poll(&mut [Verdict::default()]), 0);
    assert_eq!(board.health(), Err(fault));
    assert_eq!(board.set_control(OPEN), Err(fault));
    assert_eq!(board.commit(), Err(fault));
    // What is written to a register holds a clock later.
    board.bar().run(2);
    let status = board.bar().read(registers::STATUS);
    assert!(
        status == u32::MAX || status & registers::STATUS_OPEN == 0,
        "{status:#x}"
    );
}

/// After that it has the limits it had, and passes what it passed once it is enabled.
fn recovers(board: &mut Simulated, lost: u32) {
    assert_eq!(board.recover(), Ok(lost));
    let closed = verdict(board, 5).expect("a verdict");
    assert_eq!(closed.action & Action::CLOSED, Action::CLOSED);
    board.set_control(OPEN).expect("open");
    let open = verdict(board, 6).expect("a verdict");
    assert_eq!((open.reasons.get(), open.route), (0, 9));
    assert_eq!(board.health(), Ok(()));
}

#[test]
fn the_golden_script_gives_its_verdicts_through_rings_of_every_size() {
    for entries_log2 in [1, 2, 5, 6] {
        clean(&run(&mut simulated(entries_log2), &golden()).expect("sound"));
    }
}

#[test]
fn ten_thousand_orders_are_judged_as_the_model_does() {
    for seed in 0..10 {
        let mut board = simulated(4);
        clean(&run(&mut board, &model::script(3_000 + seed, 1_000)).expect("sound"));
    }
}

/// Registers whose reads and writes are counted.
struct Counting {
    bar: ModelBar,
    reads: u32,
    writes: u32,
}

impl Bar for Counting {
    fn read(&mut self, offset: u32) -> u32 {
        self.reads += 1;
        self.bar.read(offset)
    }
    fn write(&mut self, offset: u32, value: u32) {
        self.writes += 1;
        self.bar.write(offset, value);
    }
    fn reset(&mut self) {
        self.bar.reset();
    }
}

#[test]
fn one_doorbell_rings_for_all_and_no_other_register_is_touched() {
    let (bar, memory) = board(memory_bytes(2));
    let bar = Counting {
        bar,
        reads: 0,
        writes: 0,
    };
    let mut board = Board::open(bar, memory, 2, HEARTBEAT_CYCLES).expect("a board");
    let before = (board.bar().reads, board.bar().writes);
    assert_eq!(board.submit(&[order(0), order(1), order(2)]), 3);
    let mut verdicts = [Verdict::default(); 3];
    let count: usize = (0..1_000).map(|_| board.poll(&mut verdicts)).sum();
    assert_eq!(count, 3);
    assert_eq!((board.bar().reads, board.bar().writes), (before.0, before.1 + 1));
}

#[test]
fn no_more_is_taken_than_the_ring_holds() {
    let mut board = opened(2);
    let slots: Vec<_> = (0..7).map(order).collect();
    assert_eq!(board.submit(&slots), 4);
    assert_eq!(board.submit(&slots[4..]), 0);
    let mut verdicts = [Verdict::default(); 7];
    let mut count = 0;
    for _ in 0..1_000 {
        count += board.poll(&mut verdicts[count..]);
    }
    assert_eq!(count, 4);
    assert_eq!(board.submit(&slots[4..]), 3);
    for _ in 0..1_000 {
        count += board.poll(&mut verdicts[count..]);
    }
    let numbers: Vec<_> = verdicts.iter().map(|verdict| verdict.sequence.get()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn what_is_no_board_of_ours_is_not_opened() {
    let open = |register, value| {
        try_open(2, HEARTBEAT_CYCLES, |bar| bar.forge(Some((register, value))))
            .map(drop)
            .expect_err("it is another one")
    };
    assert_eq!(open(registers::ID, 7), Fault::NotAPreFilter(7));
    assert_eq!(open(registers::ABI, 2), Fault::WrongAbi(2));
    for tables in [0x0601_0720, 0x0601_2007, 0x0601_0700, 0x0601_0007] {
        assert_eq!(open(registers::CAPS, tables), Fault::WrongCaps(tables));
    }
    assert_eq!(
        open(registers::CAPS, 0x0600_0707),
        Fault::WrongCaps(0x0600_0707),
        "no rings"
    );
    for status in [0, u32::MAX] {
        assert_eq!(open(registers::STATUS, status), Fault::Reset, "never ready");
    }
    let not_reset = Fault::WrongGeneration { committed: 0, found: 5 };
    assert_eq!(open(registers::GENERATION, 5), not_reset);
    let gone = try_open(2, HEARTBEAT_CYCLES, |bar| bar.set_defect(Defect::Gone)).map(drop);
    assert_eq!(gone, Err(Fault::NotAPreFilter(u32::MAX)));
}

#[test]
fn one_that_somebody_used_is_reset_and_taken_over_without_limits() {
    let (bar, memory) = board(memory_bytes(2));
    let open = || Board::open(bar.clone(), memory.clone(), 2, HEARTBEAT_CYCLES).expect("a board");
    allow(&mut open(), &order(0));
    let mut board = open();
    board.set_control(OPEN).expect("open");
    let refused = verdict(&mut board, 1).expect("a verdict");
    assert_eq!(refused.reasons.get(), Reasons::SESSION.0 | Reasons::SYMBOL.0);
}

#[test]
fn what_it_cannot_do_is_said_and_is_no_fault_of_it() {
    let mut board = opened(2);
    let (id, entries) = (1 << 20, board.caps().symbols);
    assert_eq!(
        board.set_symbol(InstrumentId(id), None),
        Err(Fault::BeyondTable { id, entries })
    );
    assert_eq!(board.fault(), None);
    assert_eq!(verdict(&mut board, 1).expect("a verdict").reasons.get(), 0);
}

#[test]
fn a_reset_behind_the_hosts_back_is_a_fault_until_it_is_recovered() {
    let mut board = opened(2);
    board.bar().reset();
    board.bar().run(2_000);
    assert_eq!(board.health(), Err(Fault::Reset));
    is_closed(&mut board, Fault::Reset);
    recovers(&mut board, 0);

    // What was said and is not committed is said once.
    let slot = order(0);
    let caps = board.caps();
    for _ in 0..caps.symbols + caps.sessions {
        board
            .set_session(session_of(&slot), Some(SessionLimits::UNLIMITED))
            .expect("a place");
    }
    board.bar().reset();
    board.bar().run(2_000);
    assert_eq!(board.health(), Err(Fault::Reset));
    recovers(&mut board, 0);

    // Before the first commit nothing tells it but that it is closed.
    let mut board = simulated(2);
    board.set_control(OPEN).expect("open");
    board.bar().reset();
    board.bar().run(2_000);
    assert_eq!(board.health(), Err(Fault::Reset));
    is_closed(&mut board, Fault::Reset);
}

#[test]
fn a_recovery_brings_back_neither_old_verdicts_nor_limits_that_were_taken_away() {
    let mut board = opened(2);
    let slot = order(1);
    assert!(verdict(&mut board, 1).is_some());
    board.set_symbol(instrument_of(&slot), None).expect("a place");
    board.set_session(session_of(&slot), None).expect("a place");
    board.commit().expect("confirmed");
    assert_eq!(board.recover(), Ok(0));
    board.set_control(OPEN).expect("open");
    board.bar().set_defect(Defect::LosesWrites);
    assert_eq!(verdict(&mut board, 1), None, "it is that of before");
    assert_eq!(board.fault(), None);

    board.bar().set_defect(Defect::None);
    assert_eq!(board.recover(), Ok(1));
    board.set_control(OPEN).expect("open");
    let refused = verdict(&mut board, 2).expect("a verdict");
    assert_eq!(refused.reasons.get(), Reasons::SESSION.0 | Reasons::SYMBOL.0);
}

#[test]
fn without_a_heartbeat_it_closes() {
    let mut board = try_open(2, 20_000, |_| {}).expect("a board");
    allow(&mut board, &order(0));
    board.bar().run(15_000);
    assert_eq!(board.health(), Ok(()));
    board.bar().run(21_000);
    let closed = verdict(&mut board, 1).expect("a verdict");
    assert_eq!(closed.action & Action::CLOSED, Action::CLOSED);
    assert_eq!(board.health(), Err(Fault::HeartbeatLost));
    is_closed(&mut board, Fault::HeartbeatLost);
    recovers(&mut board, 0);
}

#[test]
fn another_generation_than_the_committed_one_is_a_fault() {
    let mut board = opened(2);
    // Its verdict is there, and is not told any more.
    assert_eq!(board.submit(&[order(9)]), 1);
    board.bar().run(200);
    board.bar().forge(Some((registers::GENERATION, 77)));
    let fault = Fault::WrongGeneration {
        committed: 1,
        found: 77,
    };
    assert_eq!(board.health(), Err(fault));
    is_closed(&mut board, fault);
    board.bar().forge(None);
    recovers(&mut board, 1);

    board.bar().forge(Some((registers::GENERATION, 77)));
    let fault = Fault::WrongGeneration {
        committed: 3,
        found: 77,
    };
    assert_eq!(board.commit(), Err(fault), "the second was the recovery's");
    is_closed(&mut board, fault);
}

#[test]
fn a_verdict_that_does_not_come_is_overdue() {
    let mut board = opened(2);
    board.bar().set_defect(Defect::LosesWrites);
    assert_eq!(verdict(&mut board, 3), None);
    for _ in 1..IDLE_BEATS_MAX {
        assert_eq!(board.health(), Ok(()));
    }
    let fault = Fault::Overdue { sequence: 3 };
    assert_eq!(board.health(), Err(fault));
    is_closed(&mut board, fault);
    board.bar().set_defect(Defect::None);
    recovers(&mut board, 1);
}

#[test]
fn none_is_overdue_where_none_is_awaited_or_where_they_come() {
    let mut board = opened(2);
    for _ in 0..3 * IDLE_BEATS_MAX {
        assert_eq!(board.health(), Ok(()));
    }
    for sequence in 0..3 * IDLE_BEATS_MAX {
        assert_eq!(board.submit(&[order(sequence)]), 1);
        assert_eq!(board.health(), Ok(()));
        assert!((0..1_000).any(|_| board.poll(&mut [Verdict::default()]) == 1));
    }
}

#[test]
fn a_verdict_on_another_order_is_a_fault() {
    let mut board = opened(2);
    assert!(verdict(&mut board, 3).is_some());
    board.bar().set_defect(Defect::Repeats);
    assert_eq!(verdict(&mut board, 4), None);
    let fault = Fault::SequenceGap { expected: 4, found: 3 };
    is_closed(&mut board, fault);
    board.bar().set_defect(Defect::None);
    recovers(&mut board, 1);
}

#[test]
fn a_board_that_is_gone_is_a_fault_and_stays_one_until_it_is_back() {
    let mut board = opened(2);
    board.bar().set_defect(Defect::Gone);
    let fault = Fault::NotAPreFilter(u32::MAX);
    assert_eq!(board.health(), Err(fault));
    is_closed(&mut board, fault);
    assert_eq!(board.recover(), Err(fault));
    is_closed(&mut board, fault);
    board.bar().set_defect(Defect::None);
    let another = Fault::WrongCaps(0x0601_0808);
    board.bar().forge(Some((registers::CAPS, 0x0601_0808)));
    assert_eq!(board.recover(), Err(another));
    is_closed(&mut board, another);
    board.bar().forge(None);
    recovers(&mut board, 0);
}
