//! Faults in what the kernel holds for us. Need root, so `cargo test` leaves them out; `.ci/extended xdp` runs them.

use super::*;
use crate::abi::Action;

const OPEN: Control = Control {
    enable: true,
    kill: false,
};

/// Open, at generation 1.
fn opened() -> Xdp {
    let settings = Settings {
        caps: Caps {
            symbols: 2,
            sessions: 2,
        },
        flows: 1,
        window: 64,
        ring_bytes: 4_096,
        heartbeat_ns: 60_000_000_000,
    };
    let mut xdp = Xdp::new(&settings).expect("root");
    xdp.set_session(SessionId(1), Some(SessionLimits::UNLIMITED))
        .expect("a place");
    assert_eq!(xdp.commit(), Ok(1));
    xdp.set_control(OPEN).expect("open");
    assert!(!is_closed(&mut xdp, 1));
    xdp
}

/// What the program itself says.
fn is_closed(xdp: &mut Xdp, sequence: u32) -> bool {
    let mut slot = Slot::of(&[0; 48], 1, false);
    slot.sequence = sequence.into();
    assert_eq!(xdp.submit(&[slot]), 1);
    let mut verdict = [Verdict::new_zeroed()];
    assert_eq!(xdp.poll(&mut verdict), 1);
    verdict[0].action & Action::CLOSED != 0
}

#[test]
#[ignore = "needs root"]
fn another_generation_than_the_committed_one_is_a_fault_and_closes() {
    let mut xdp = opened();
    let other = Entry::head(77, xdp.caps);
    xdp.maps.banks[xdp.maps.bank]
        .set(&FIRST, other.as_bytes())
        .expect("a place");
    let fault = Err(Fault::WrongGeneration {
        committed: 1,
        found: 77,
    });
    assert_eq!(xdp.health(), fault);
    assert!(is_closed(&mut xdp, 2));
    assert_eq!(xdp.set_control(OPEN), fault);
    assert!(is_closed(&mut xdp, 3));
}

#[test]
#[ignore = "needs root"]
fn other_limits_in_the_place_of_those_in_force_are_a_fault_and_close() {
    let mut xdp = opened();
    let maps = &xdp.maps;
    maps.table.set_map(&maps.banks[1 - maps.bank]).expect("a place");
    let fault = Fault::WrongGeneration {
        committed: 1,
        found: u32::MAX,
    };
    assert_eq!(xdp.health(), Err(fault));
    assert!(is_closed(&mut xdp, 2));
}

#[test]
#[ignore = "needs root"]
fn limits_that_the_kernel_does_not_take_are_a_fault_and_close() {
    let mut xdp = opened();
    // It has room for a head alone.
    let small = Map::new(MapKind::Array, 4, size(size_of::<Entry>()), 1).expect("root");
    xdp.maps.banks[1 - xdp.maps.bank] = small;
    xdp.set_session(SessionId(1), None).expect("staged");
    assert_eq!(xdp.commit(), Err(Fault::Kernel));
    assert!(is_closed(&mut xdp, 2));
}

#[test]
#[ignore = "needs root"]
fn the_heartbeat_puts_off_the_time_at_which_it_closes() {
    let mut xdp = opened();
    let closes_at = |xdp: &Xdp| {
        let mut control = ControlValue::new_zeroed();
        xdp.maps.control.value(&FIRST, control.as_mut_bytes()).expect("there");
        control.closes_at.get()
    };
    let before = closes_at(&xdp);
    assert_eq!(xdp.health(), Ok(()));
    assert!(closes_at(&xdp) > before);
}
