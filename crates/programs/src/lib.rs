//! What the programs on a scenario's hosts do with their connections and datagrams: when they open a connection, what
//! they write and when, what they request next, and when they close; when a datagram leaves, and what its loss means.
//! All engines share this code, so that a file, a page, a swarm or a call is the same on each of them.
//!
//! No program performs I/O or reads a clock. An engine passes it the time and the events, and carries out its
//! decisions.
//!
//! - Over TCP, a [`Program`] decides for the clients of one entry of traffic. The engine carries out its actions
//!   through [`Sockets`]. A server only answers: it has the [`Requests`] of a connection, and the end that receives its
//!   data knows what is still [`Awaited`].
//! - Over UDP, each end of a flow is a type of its own: [`UdpSender`] and [`UdpReceiver`], [`Resolver`] and
//!   [`NameServer`], and [`Isochronous`], the sender of a call or of round trips to measure, whose packets are
//!   [`Probes`] like those of a ping.
//! - [`NetalyzrClient`] tests the path's buffers; its server only answers.
//! - [`IputilsPing`] says when `ping -i` sends.

mod agenda;
mod bulk;
mod choker;
mod datagram;
mod dns;
mod exchange;
mod iputils;
mod isochronous;
mod netalyzr;
mod probes;
mod program;
mod random;
mod sockets;
mod starts;
mod swarm;
mod udp;
mod web;
mod writer;

pub use datagram::Datagram;
pub use dns::{Attempt, LookUp, NameServer, Resolver};
pub use exchange::{Awaited, Requests};
pub use iputils::{IputilsPing, TIMER_SLACK_NS};
pub use isochronous::Isochronous;
pub use netalyzr::{NetalyzrClient, NetalyzrEstimate, NetalyzrStage, NetalyzrStep};
pub use probes::{Outcome, Probes, Stage};
pub use program::{ConnectionEvents, Program};
pub use random::{Random, Uniform, scramble};
pub use sockets::{Ask, Opening, Role, Sockets, Transfer};
pub use starts::{START_JITTER_NS, late_ns};
pub use udp::{UdpReceiver, UdpSender};
