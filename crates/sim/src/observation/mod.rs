//! The results of a run: its rows ([`recording`]), its totals ([`summary`]), its [`state`] in between, and what changes
//! in the state of TCP ([`state_log`]). Also the estimate, made before it begins, of the memory that it will need
//! ([`footprint`]).

pub(crate) mod footprint;
pub(crate) mod recording;
pub(crate) mod state;
pub(crate) mod state_log;
pub(crate) mod summary;
