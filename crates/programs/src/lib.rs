//! What the programs on a scenario's hosts do with their TCP connections: when they open one, what they write and when,
//! what they request next, and when they close. All engines share this code, so that a file, a page or a swarm is the
//! same on each of them.
//!
//! [`IputilsPing`] says when `ping -i` sends.
//!
//! A [`Program`] does everything that one traffic of the scenario does, at both ends. It performs no I/O and reads no
//! clock: an engine tells it the time and what happened to its connections, and carries out its actions through
//! [`Sockets`].

mod agenda;
mod bulk;
mod choker;
mod exchange;
mod iputils;
mod program;
mod random;
mod sockets;
mod starts;
mod swarm;
mod web;
mod writer;

pub use exchange::Exchange;
pub use iputils::{IputilsPing, TIMER_SLACK_NS};
pub use program::{News, Program};
pub use random::{Random, Uniform};
pub use sockets::{Ask, Opening, Side, Sockets, Transfer};
pub use starts::START_JITTER_NS;
