//! What is tested: network, queues, traffic.

#![warn(missing_docs)]

mod model;

pub use model::*;
