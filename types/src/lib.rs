//! The vocabulary of the gateway: prices, quantities, identifiers, times, orders, reports, reasons.
//!
//! Nothing here does I/O or knows a wire format; every other crate speaks in these words.
#![no_std]
#![forbid(unsafe_code)]

mod ids;
mod instrument;
mod market;
mod order;
mod price;
mod quantity;
mod reason;
mod report;
mod time;

pub use ids::{
    AccountId, ClientOrderId, ExecId, InstrumentId, OrderId, SequenceNumber, SessionId, ShardId, Trigger, VenueId,
};
pub use instrument::{Instrument, LimitClass, Symbol};
pub use market::{Bbo, Quote, TradingDay};
pub use order::{
    CancelOrder, MassCancel, MassStatusRequest, NewOrder, OrderStatusRequest, OrderTerms, OrderType, ReplaceOrder,
    Request, ShortSale, Side, TimeInForce,
};
pub use price::{Notional, Price};
pub use quantity::Quantity;
pub use reason::Reason;
pub use report::{ExecReport, ExecType};
pub use time::{Duration, Timestamp};
