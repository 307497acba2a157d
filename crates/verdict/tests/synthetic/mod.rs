//! Synthetic paths with planted queues, and the observations that a test of them would make.

pub(crate) mod observe;
pub(crate) mod path;
pub(crate) mod queue;
pub(crate) mod random;
