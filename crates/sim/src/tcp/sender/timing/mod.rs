//! Measurements of time: round trips ([`rtt`]), the delivery rate ([`rate`]), and how long the sender was busy or
//! limited ([`chrono`]). Also the timer ([`timer`]), and what happens when it expires ([`expiry`]).

pub(super) mod chrono;
mod expiry;
pub(super) mod rate;
pub(super) mod rtt;
pub(super) mod timer;
