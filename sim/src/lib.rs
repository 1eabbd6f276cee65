//! The world around a gateway, simulated: an exchange that is a real market, an order client, a network that loses.
#![forbid(unsafe_code)]

pub mod client;
pub mod exchange;
pub mod lossy;
