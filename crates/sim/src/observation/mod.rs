//! The results of a run: its rows ([`recording`]) and its totals ([`summary`]). Also the estimate, made before it
//! begins, of the memory that it will need ([`footprint`]).

pub(crate) mod footprint;
pub(crate) mod recording;
pub(crate) mod summary;
