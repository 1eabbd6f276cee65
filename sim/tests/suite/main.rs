//! The simulator from outside.

mod exchange;
mod feed_book;
mod history_rules;
mod market;
mod market_properties;
mod order_types;
mod request_rules;
