//! How long the sender was busy or limited ([`chrono`]), the timer ([`timer`]), and what happens when it expires
//! ([`expiry`]).

pub(super) mod chrono;
mod expiry;
pub(super) mod timer;
