//! The two ends of a live test: `serve` on one machine, `measure` on another.

pub mod client;
pub mod command;
pub mod cookie;
pub mod departures;
pub mod flood;
pub mod ladder;
pub mod load;
pub mod local;
pub mod records;
pub mod server;
pub mod syn_ladder;
pub mod time;
pub mod udp;
pub mod wire;
