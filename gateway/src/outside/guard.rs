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
