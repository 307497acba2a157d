//! What several kinds of traffic have in common.

pub(crate) mod demand;
pub(crate) mod flent;
pub(crate) mod keys;
pub(crate) mod on_off;
pub(crate) mod pattern;
pub(crate) mod sending;
pub(crate) mod servers;
