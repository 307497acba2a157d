//! The two ends of a live test: `serve` on one machine, `measure` on another.

pub mod local;
