//! What is done after a fault of a backend: the operator's choice, counted and logged.

use super::Fallback;
use crate::config::OnFault;
use prefilter::Fault;
use types::Reason;

#[derive(Debug)]
pub(super) struct Guard {
    on_fault: OnFault,
    fault: Option<Fault>,
    fallback: Fallback,
}

impl Guard {
    /// Of a sound backend.
    pub(super) fn new(on_fault: OnFault) -> Self {
        Self {
            on_fault,
            fault: None,
            fallback: Fallback::default(),
        }
    }

    /// The backend is at fault from now on.
    pub(super) fn fail(&mut self, fault: Fault) {
        if self.fault.is_none() {
            let then = match self.on_fault {
                OnFault::Reject => "new orders are refused until the gateway starts again",
                OnFault::Software => "the shard's own filter alone judges new orders until the gateway starts again",
            };
            tracing::error!("the pre-filter {fault}; {then}");
            self.fault = Some(fault);
        }
    }

    pub(super) const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    pub(super) const fn fallback(&self) -> Fallback {
        self.fallback
    }

    /// What becomes of a new order without a verdict.
    pub(super) fn unjudged(&mut self) -> Result<(), Reason> {
        if self.fault.is_none() {
            self.fallback.unjudged += 1;
        }
        match self.on_fault {
            OnFault::Reject => {
                self.fallback.refused += 1;
                Err(Reason::Killed)
            }
            OnFault::Software => {
                self.fallback.to_software += 1;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    /// What was logged as an error.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Visit for Log {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            if field.name() == "message" {
                self.0.lock().expect("one thread").push(format!("{value:?}"));
            }
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() == Level::ERROR
        }
        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn a_fault_is_logged_once_with_what_holds_from_then_on() {
        for (on_fault, words) in [
            (OnFault::Reject, "are refused"),
            (OnFault::Software, "filter alone judges"),
        ] {
            let log = Log::default();
            tracing::subscriber::with_default(log.clone(), || {
                let mut guard = Guard::new(on_fault);
                guard.fail(Fault::HeartbeatLost);
                guard.fail(Fault::Reset);
                assert_eq!(guard.fault(), Some(Fault::HeartbeatLost), "the first stays");
            });
            let lines = log.0.lock().expect("one thread");
            assert!(lines.len() == 1, "{lines:?}");
            assert!(
                lines[0].contains("closed itself without a heartbeat") && lines[0].contains(words),
                "{lines:?}"
            );
        }
    }
}
