//! Feeds from file to best price, against oracles that others wrote.

mod generator;
mod itch5;
mod network;
mod real_packets;
