//! The RTL, verilated, at both widths.

use crate::model;
use crate::software::{clean, golden};
use prefilter::conformance::run;
use prefilter::rtl::{Rtl, Width};
use prefilter::{Control, Fault, PreFilter, Software};

const WIDTHS: [Width; 2] = [Width::Bits64, Width::Bits512];

/// No frame came out where or as it should not, and all that went in came out.
fn streams_are_right(rtl: &mut Rtl, frames: u32) {
    rtl.simulation().run(200);
    let timing = rtl.simulation().timing();
    assert_eq!(timing.wrong_frames, 0);
    assert_eq!((timing.frames_out, timing.frames_left), (u64::from(frames), 0));
}

#[test]
fn the_golden_script_gives_its_verdicts() {
    for width in WIDTHS {
        for seed in [0, 1] {
            let mut rtl = Rtl::new(width, seed).expect("a model");
            let outcome = run(&mut rtl, &golden()).expect("sound");
            clean(&outcome);
            streams_are_right(&mut rtl, outcome.frames);
        }
    }
}

#[test]
fn a_hundred_thousand_orders_with_stalls_and_gaps_are_judged_as_the_model_does() {
    for seed in 0..50 {
        for width in WIDTHS {
            let mut rtl = Rtl::new(width, seed + 1).expect("a model");
            let outcome = run(&mut rtl, &model::script(1_000 + seed, 1_000)).expect("sound");
            clean(&outcome);
            streams_are_right(&mut rtl, outcome.frames);
        }
    }
}

/// The figures of docs/prefilter.md.
#[test]
fn a_verdict_takes_eight_clocks_and_an_order_six() {
    for (width, verdict, first_out) in [(Width::Bits64, 8, 10), (Width::Bits512, 9, 17)] {
        let mut rtl = Rtl::new(width, 0).expect("a model");
        let script: Vec<_> = golden().into_iter().filter(is_of_full_length).collect();
        run(&mut rtl, &script).expect("sound");
        let timing = rtl.simulation().timing();
        assert_eq!((timing.verdict_max, timing.interval_min), (verdict, 6), "{width:?}");
        assert_eq!(timing.first_out_max, first_out, "{width:?}");
    }
}

fn is_of_full_length(step: &prefilter::conformance::Step) -> bool {
    match step {
        prefilter::conformance::Step::Frame(frame) => frame.slot.length.get() == 48,
        _ => true,
    }
}

#[test]
fn without_a_heartbeat_it_closes_and_stays_closed_until_it_is_enabled_anew() {
    let mut rtl = Rtl::with_heartbeat(Width::Bits64, 0, 1_000).expect("a model");
    let control = Control {
        enable: true,
        kill: false,
    };
    rtl.set_control(control).expect("open");
    rtl.simulation().run(900);
    assert_eq!(rtl.health(), Ok(()));
    rtl.simulation().run(900);
    assert_eq!(rtl.health(), Ok(()));
    rtl.simulation().run(1_001);
    assert_eq!(rtl.health(), Err(Fault::HeartbeatLost));
    let mut verdict = [prefilter::Verdict::default()];
    let message = golden().into_iter().find_map(|step| match step {
        prefilter::conformance::Step::Frame(frame) if frame.slot.length.get() == 48 => Some(frame.slot),
        _ => None,
    });
    rtl.submit(&[message.expect("an order")]);
    assert_eq!(rtl.poll(&mut verdict), 1);
    assert_eq!(verdict[0].action & prefilter::Action::CLOSED, prefilter::Action::CLOSED);
    rtl.set_control(control).expect("open again");
    assert_eq!(rtl.health(), Ok(()));
}

#[test]
fn a_reset_behind_the_hosts_back_is_a_fault_and_closes() {
    let mut rtl = Rtl::new(Width::Bits64, 0).expect("a model");
    rtl.commit().expect("confirmed");
    rtl.set_control(Control {
        enable: true,
        kill: false,
    })
    .expect("open");
    rtl.simulation().reset();
    rtl.simulation().run(2_000);
    assert_eq!(rtl.health(), Err(Fault::Reset));
}

#[test]
fn software_and_rtl_count_alike() {
    let script = model::script(7, 1_000);
    let mut rtl = Rtl::new(Width::Bits64, 0).expect("a model");
    let mut software = Software::new(rtl.caps());
    run(&mut rtl, &script).expect("sound");
    run(&mut software, &script).expect("sound");
    assert_eq!(rtl.counters(), software.counters());
}
