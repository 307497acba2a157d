//! What a transport needs apart from its own protocol: round trips ([`rtt`]), the delivery rate ([`delivery_rate`]),
//! pacing ([`pacing`]) and congestion control ([`congestion`]).
//!
//! Nothing here reads sequence numbers or headers of a protocol: only times, packets and counts of bytes. The states of
//! a sender are those of Linux' TCP, which is the only user so far ([`crate::tcp`]).

pub(crate) mod congestion;
pub(crate) mod delivery_rate;
mod extremes;
pub(crate) mod pacing;
pub(crate) mod rtt;
