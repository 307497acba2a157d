//! Loss detection: the segments in flight ([`scoreboard`]), detection by time ([`rack`]), by a probe when
//! acknowledgements stop ([`probe`]), and by a timeout ([`timeout`]).

pub(super) mod probe;
pub(super) mod rack;
pub(super) mod scoreboard;
pub(super) mod timeout;
