//! The hosts and the traffic of their programs: the programs of `crates/programs` over TCP ([`streams`], which use
//! [`connections`]), and traffic over ICMP ([`ping`]) and UDP ([`datagrams`]).
//!
//! [`sources`] creates each source of traffic from its [`setup`] and dispatches events to it.

pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod datagrams;
pub(crate) mod ping;
pub(crate) mod setup;
pub(crate) mod sources;
pub(crate) mod streams;
