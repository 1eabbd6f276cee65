//! What happens to an order: risk, first-stage screen, routing, state.
//!
//! [`Orders`] holds the orders of one shard. A new order passes four steps that the shard calls one after the other, so
//! that they can be seen and timed: [`check_risk`](Orders::check_risk), [`screen`](Orders::screen),
//! [`route`](Orders::route), [`accept`](Orders::accept). Each step wants what the step before gave, and only the last one
//! changes anything. One that has to wait for own orders to be cancelled is held by [`hold`](Orders::hold) in place of the
//! last step, one whose type its venue lacks by [`hold_here`](Orders::hold_here), and one that comes faster than a rate allows
//! by [`enqueue`](Orders::enqueue). Cancels and replaces have the same form. What the venue answers goes to
//! [`on_venue_report`](Orders::on_venue_report) and comes out of a [`Sink`] in the client's terms.
//!
//! The crate knows no clock, no socket and no wire. Time is an argument, everything is allocated in [`Orders::new`], and
//! the same calls give the same results in every run: nothing iterates over a hash table.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod audit;
mod book;
mod change;
mod config;
mod control;
mod counters;
mod cross;
mod detour;
mod done;
mod emulate;
mod entry;
mod exposure;
mod held;
mod late;
mod limit_change;
mod limit_table;
mod limit_value;
mod limits;
mod list;
mod map;
mod mark;
mod modes;
mod number;
mod order;
mod order_types;
mod own;
mod queue;
mod rate;
mod repeats;
mod report;
mod restricted;
mod risk;
mod stake;
mod state;
mod status;
mod terms;
mod together;
mod venue;
mod waiting;
mod watch;

pub use audit::AuditError;
pub use change::{CancelChecked, ReplaceChecked, ReplaceScreened};
pub use config::{
    AccountConfig, AccountLimits, AuctionLimits, BookLimit, Capacity, Collar, ConfigError, CrossingConfig, FirmLimits,
    InstrumentLimits, MissingBook, MissingReference, OrdersConfig, RateAction, RateLimit, RateQueueConfig,
    ReferenceChoice, RepeatLimit, Restrictions, Route, RouteKey, SelfMatch, SessionConfig, SessionLimits, ShortSales,
    VenueConfig,
};
pub use control::{KillScope, Stop};
pub use counters::{Anomaly, Counters};
pub use cross::Meeting;
pub use emulate::{Due, HeldStep};
pub use entry::{RiskChecked, Routed, Screened};
pub use exposure::{AccountExposure, Exposure};
pub use limit_table::{Limit, LimitScope};
pub use limit_value::{LimitError, LimitValue};
pub use limits::{
    AGE_MAX_MS, BOOKS_MAX, DONE_ORDERS, NOTIONAL_MAX, OPEN_ORDERS_MAX, POSITIONS_MAX, QUANTITY_MAX, REPEATS_MAX,
    RESTRICTED_CLASSES_MAX, RESTRICTIONS_MAX, VALUE_LIMIT_MAX,
};
pub use mark::Mark;
pub use order::{OrderState, OrderView};
pub use order_types::{Handling, OrderTypes};
pub use queue::{Queued, QueuedVerdict};
pub use rate::{Rate, TooFast};
pub use report::{ForVenue, OrderStatus, Report, Sink};
pub use restricted::{Party, Traded};
pub use risk::Reference;
pub use stake::{AccountPlace, Need, Places, SessionPlace, SessionStake, SharedScope, Stake, units_down};
pub use state::Orders;
pub use waiting::{Waiting, WaitingVerdict};
pub use watch::Watched;
