//! Properties of several disciplines.

mod fairness;
mod operations;
mod shaping;
