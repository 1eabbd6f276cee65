//! From samples to readings: by how much each counter rose, and how far it has come over all wraps.

use super::catalog::Counter;
use super::read::{Port, Sample};
use std::collections::BTreeMap;

/// One counter that there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value {
    /// As the card has it, and the wraps seen since it was first read.
    pub(super) total: u64,
    /// Since the sample before. `None`: there was none, or the counter began anew.
    pub(super) rise: Option<u64>,
}

/// One port between two samples.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Reading {
    pub(super) interface: Option<String>,
    /// What there is; what is absent is not here.
    pub(super) values: BTreeMap<String, Value>,
    /// It was there before, and is not now.
    pub(super) is_gone: bool,
}

impl Reading {
    /// By how much a counter rose; 0 when that is not known.
    pub(super) fn rise(&self, name: &str) -> u64 {
        self.values.get(name).and_then(|value| value.rise).unwrap_or(0)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }
}

/// What was read last, and how often each counter wrapped.
#[derive(Default, Debug)]
pub(super) struct Rates {
    last: Sample,
    /// What wraps add to a counter.
    wrapped: BTreeMap<(Port, String), u64>,
    /// Ports that were there, and went.
    gone: BTreeMap<Port, Option<String>>,
}

impl Rates {
    /// Takes the next sample.
    pub(super) fn next(&mut self, catalog: &[Counter], sample: Sample) -> BTreeMap<Port, Reading> {
        let mut readings = BTreeMap::new();
        for (port, counts) in &sample {
            self.gone.remove(port);
            let mut reading = Reading {
                interface: counts.interface.clone(),
                ..Reading::default()
            };
            for counter in catalog {
                let Some(&now) = counts.values.get(&counter.name) else {
                    continue;
                };
                let before = self.last.get(port).and_then(|last| last.values.get(&counter.name));
                let key = (port.clone(), counter.name.clone());
                let change = before.map_or(Change::Reset, |&before| change(before, now, counter.bits));
                let rise = match change {
                    Change::Rise(rise) => Some(rise),
                    Change::Wrap(rise) => {
                        *self.wrapped.entry(key.clone()).or_default() += 1 << counter.bits;
                        Some(rise)
                    }
                    Change::Reset => {
                        self.wrapped.remove(&key);
                        None
                    }
                };
                let total = now.saturating_add(self.wrapped.get(&key).copied().unwrap_or(0));
                reading.values.insert(counter.name.clone(), Value { total, rise });
            }
            readings.insert(port.clone(), reading);
        }
        for (port, counts) in &self.last {
            if !sample.contains_key(port) {
                self.gone.insert(port.clone(), counts.interface.clone());
            }
        }
        for (port, interface) in &self.gone {
            let reading = Reading {
                interface: interface.clone(),
                is_gone: true,
                ..Reading::default()
            };
            readings.insert(port.clone(), reading);
        }
        self.last = sample;
        readings
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Rise(u64),
    Wrap(u64),
    Reset,
}

/// What became of a counter. One that fell has wrapped if it is narrow, was in the upper half of its range, and came less than
/// half a range further; else the device was reset.
fn change(before: u64, now: u64, bits: u32) -> Change {
    if now >= before {
        return Change::Rise(now - before);
    }
    if bits >= 64 {
        return Change::Reset;
    }
    let (range, half) = (1_u64 << bits, 1_u64 << (bits - 1));
    if !(half..range).contains(&before) {
        return Change::Reset;
    }
    let rise = range - before + now;
    if rise < half { Change::Wrap(rise) } else { Change::Reset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_counter_that_fell_wrapped_if_it_was_near_its_end_and_else_was_reset() {
        let end = u64::from(u32::MAX);
        assert_eq!(change(5, 9, 32), Change::Rise(4));
        assert_eq!(change(end - 4, 6, 32), Change::Wrap(11));
        assert_eq!(change(end, 0, 32), Change::Wrap(1));
        assert_eq!(change(9, 5, 32), Change::Reset, "far from its end");
        assert_eq!(change(end + 9, 5, 32), Change::Reset, "it was wider than that");
        assert_eq!(
            change(end, end - 1, 32),
            Change::Reset,
            "nearly a whole range in one interval"
        );
        assert_eq!(change(end, 0, 64), Change::Reset, "64 bits do not wrap");
        assert_eq!(change(u64::MAX, 0, 64), Change::Reset);
    }
}
