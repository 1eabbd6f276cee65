//! The clock, the stamps at the taps, recordings of them, histograms, and reports: everything that measures.
#![deny(unsafe_code)]

pub mod clock;
mod histogram;
mod histogram_log;
mod record;
mod recorder;
pub mod report;
pub mod shm;
mod tap;

pub use clock::{Clock, ClockFacts};
pub use histogram::{Histogram, Percentile, Percentiles, SAMPLES_BEYOND_MIN};
pub use histogram_log::{HistogramError, HistogramLog};
pub use record::{
    ClientOrder, ClientReport, ClientRequest, Counter, End, ExchangeOpen, ExchangeOrder, ExchangeReport, FieldLayout,
    Floor, FloorLeg, GatewayChild, GatewayOpen, GatewayOrder, GatewayReport, Name, OPEN_ORDERS, Phase, Protocol,
    RECORD_LENGTH, Record, RecordError, RequestKind, TickSent,
};
pub use recorder::{DRAIN_INTERVAL, Header, Host, Placement, Recorder, Recording, RecordingSummary, RecordingThread};
pub use tap::{Stamps, Tap};
