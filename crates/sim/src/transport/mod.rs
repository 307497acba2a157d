//! What a transport needs apart from its own protocol: round trips ([`rtt`]), the delivery rate ([`delivery_rate`]),
//! pacing ([`pacing`]) and congestion control ([`congestion`]).
//!
//! Nothing here knows sequence numbers, segments or acknowledgements of a protocol: only times, packets and counts of
//! bytes. TCP ([`crate::tcp`]) is its only user so far.

pub(crate) mod congestion;
pub(crate) mod delivery_rate;
mod extremes;
pub(crate) mod pacing;
pub(crate) mod rtt;
