//! The results of a run: its rows ([`recording`]), its totals ([`summary`]), and its [`state`] in between. Also the
//! estimate, made before it begins, of the memory that it will need ([`footprint`]).

pub(crate) mod footprint;
pub(crate) mod recording;
pub(crate) mod state;
pub(crate) mod summary;
