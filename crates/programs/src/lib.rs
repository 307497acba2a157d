//! What the programs on a scenario's hosts do with their connections and datagrams: when they open a connection, what
//! they write and when, what they request next, and when they close; when a datagram leaves, and what its loss means.
//! All engines share this code, so that a file, a page, a swarm or a call is the same on each of them.
//!
//! No program performs I/O or reads a clock. An engine passes it the time and the events, and carries out its
//! decisions.
//!
//! - Over TCP, a [`StreamProgram`] decides for the clients of one entry of traffic. The engine carries out its actions
//!   through [`Sockets`]. A server only answers: it has the [`Requests`] of a connection, and the end that receives its
//!   data knows what is still [`Awaited`].
//! - Over UDP, a [`DatagramProgram`] decides for both ends of one entry, whose actions the engine carries out through
//!   [`DatagramSockets`].
//! - [`Playback`] says when a player plays the segments of a video.
//! - [`IputilsPing`] says when `ping -i` sends, and [`Probes`] what becomes of the requests.
//!
//! Each kind of traffic has a file with its name, which implements the trait of its transport (`streams.rs` or
//! `datagrams.rs`), and a line in the list below.

#[macro_use]
mod kinds;

mod agenda;
mod choker;
mod datagrams;
mod exchange;
mod iputils;
mod isochronous;
mod playback;
mod probes;
mod random;
mod sockets;
mod starts;
mod streams;
mod throughput;
mod writer;

programs! {
    streams {
        tcp::Tcp,
        web::Web,
        bittorrent::Bittorrent,
        video::Video,
    }
    datagrams {
        udp::Udp,
        voip::Voip,
        dns::Dns,
        irtt::Irtt,
        game::Game,
        netalyzr::Netalyzr,
    }
}

pub use datagrams::{Arrival, Counted, Datagram, DatagramProgram, DatagramSockets, Punctual};
pub use exchange::{Awaited, Requests};
pub use iputils::{IputilsPing, TIMER_SLACK_NS};
pub use list::Programs;
pub use netalyzr::{NetalyzrEstimate, NetalyzrStage};
pub use playback::{Playback, Played};
pub use probes::{Outcome, Probes, Stage};
pub use random::{Random, Uniform, scramble};
pub use sockets::{Ask, Opening, Role, Sockets, Transfer};
pub use starts::{START_JITTER_NS, late_ns};
pub use streams::{ConnectionEvents, StreamProgram};
