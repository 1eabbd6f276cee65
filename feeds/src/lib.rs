//! Market data: reads historical feeds, replays them over MoldUDP64, receives feeds and keeps their best prices.
#![forbid(unsafe_code)]

mod binary_file;
mod inspect;
pub mod instruments;
pub mod limits;
mod pace;
mod publisher;
mod receiver;
mod reference;
mod replay;
pub mod sample;
mod symbols;

pub use binary_file::{BinaryFile, Ending, FeedError, FeedFile};
pub use inspect::{Inspection, SymbolFacts};
pub use instruments::InstrumentRow;
pub use pace::{Pace, PaceError};
pub use publisher::{UdpCounters, UdpPublisher, UdpPublisherConfig};
pub use receiver::{UdpReceiver, UdpReceiverConfig};
pub use reference::{FeedInstrument, ReferenceCounters, ReferenceFeed, ReferenceFeedConfig};
pub use replay::{Replay, ReplayConfig, ReplayCounters, ReplayError};
pub use symbols::SymbolFilter;
