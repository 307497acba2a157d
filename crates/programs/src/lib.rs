//! What the programs on a scenario's hosts do with their TCP connections: when they open one, what they write and when,
//! what they request next, when they close. It is written only once, so that a file, a page or a swarm is the same on
//! every engine.
//!
//! A [`Program`] is all that one traffic of the scenario does, at both ends. It performs no I/O and reads no clock: an
//! engine tells it the time and what happened to its connections, and carries out its actions through [`Sockets`].

mod agenda;
mod bulk;
mod choker;
mod exchange;
mod program;
mod random;
mod sockets;
mod starts;
mod swarm;
mod web;
mod writer;

pub use exchange::Exchange;
pub use program::{News, Program};
pub use random::{Random, Uniform};
pub use sockets::{Ask, Opening, Side, Sockets, Transfer};
pub use starts::START_JITTER_NS;
