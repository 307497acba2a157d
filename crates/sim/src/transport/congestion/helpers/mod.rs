//! Measurements and computations that several congestion controls share.

pub(super) mod aggregation;
pub(super) mod bandwidth;
pub(super) mod hystart;
pub(super) mod pacing_rate;
pub(super) mod queueing_delay;
pub(super) mod rounds;
pub(super) mod window_rate;
