//! The simulator from outside.

mod feed_book;
mod history_rules;
mod market;
mod market_properties;
mod request_rules;
