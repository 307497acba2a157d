//! Parts that several disciplines share: control laws, queues per flow, filters, rates.

pub(crate) mod classifier;
pub(crate) mod codel_law;
pub(crate) mod fifo;
pub(crate) mod flow_queues;
pub(crate) mod inner;
pub(crate) mod limited_fifo;
pub(crate) mod pie_controller;
pub(crate) mod rate;
pub(crate) mod red_core;
pub(crate) mod segments;
