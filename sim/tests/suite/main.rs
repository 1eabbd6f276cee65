//! The simulator from outside.

mod exchange;
mod feed_book;
mod history_rules;
mod market;
mod market_properties;
mod request_rules;
