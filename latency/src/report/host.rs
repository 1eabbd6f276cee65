//! What the recordings' headers say together about machine, placement and clocks, and what a reader must be warned of.

use std::collections::BTreeMap;

use super::load::RecordingFacts;

/// Clock offsets of two processes of one host that differ by more were not taken on one side of a clock step, ns.
const OFFSET_DIFFERENCE_NS_MAX: u64 = 10_000;

/// What a reader of the figures must know, one sentence each.
pub(super) fn warnings(recordings: &[RecordingFacts]) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    let mut say = |warning: String| {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    };
    for recording in recordings {
        recording.header.warnings.iter().cloned().for_each(&mut say);
        let component = &recording.header.component;
        let clock = &recording.header.clock;
        if let Some(reason) = &clock.fallback_reason {
            say(format!(
                "{component}: stamps come from clock_gettime, which costs more than the counter: {reason}"
            ));
        }
        if clock.stepped_ns != 0 {
            let ms = clock.stepped_ns / 1_000_000;
            say(format!(
                "{component}: the system's clock was stepped by {ms} ms during the run; stamps do not follow"
            ));
        }
    }
    shared_cores(recordings).into_iter().for_each(&mut say);
    clocks_that_disagree(recordings).into_iter().for_each(&mut say);
    warnings
}

/// Threads of different names that were pinned to one core of one host.
fn shared_cores(recordings: &[RecordingFacts]) -> Vec<String> {
    let mut threads: BTreeMap<(&str, u32), Vec<&str>> = BTreeMap::new();
    for recording in recordings {
        for placement in &recording.header.placement {
            if let Some(core) = placement.core {
                let here = threads.entry((&recording.header.host.name, core)).or_default();
                if !here.contains(&placement.thread.as_str()) {
                    here.push(&placement.thread);
                }
            }
        }
    }
    threads
        .into_iter()
        .filter(|(_, threads)| threads.len() > 1)
        .map(|((_, core), threads)| {
            format!(
                "core {core} is shared by {}: their hops include waiting for each other",
                threads.join(", ")
            )
        })
        .collect()
}

fn clocks_that_disagree(recordings: &[RecordingFacts]) -> Vec<String> {
    let mut warnings = Vec::new();
    for pair in recordings.windows(2) {
        let (first, second) = (&pair[0].header, &pair[1].header);
        if first.host.name != second.host.name {
            warnings.push(format!(
                "{} and {} ran on different hosts ({}, {}): hops between them are as right as their clocks are in step",
                first.component, second.component, first.host.name, second.host.name
            ));
            continue;
        }
        let difference = second.clock.realtime_offset_ns - first.clock.realtime_offset_ns;
        if difference.unsigned_abs() > OFFSET_DIFFERENCE_NS_MAX {
            warnings.push(format!(
                "the system's clock was stepped by {} µs between the starts of {} and {}: hops between them are wrong by that",
                difference / 1_000,
                first.component,
                second.component
            ));
        }
    }
    warnings
}
