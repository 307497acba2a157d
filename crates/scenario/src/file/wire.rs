//! `wire = { loss = 0.01, jitter = "5ms" }`: what a wire does to packets besides sending and delaying them.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::qdisc::{Distribution, GemodelKeys};
use crate::quantity::{Quantity, Times};
use crate::units::US;

/// A variation, for which the kernel has 32 bits.
pub(crate) type Jitter = Quantity<Times, US, 2_000_000_000>;

/// What the wire does to packets after the queue, with the meaning that Linux' netem gives it. Probabilities and correlations are
/// numbers up to 1.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Wire {
    /// Probability with which a packet is lost. Default: none is lost. Of loss and gemodel, one can be given.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) loss: Option<f64>,
    /// How much a loss depends on whether the packet before was lost. Default: not at all.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) loss_correlation: Option<f64>,
    /// Losses of the model of Gilbert and Elliott.
    pub(crate) gemodel: Option<Box<GemodelKeys>>,
    /// How far the propagation delay varies. Packets overtake one another then. Default: not at all.
    #[schemars(example = &"5ms")]
    pub(crate) jitter: Option<Jitter>,
    /// How much a delay depends on the one before. Default: not at all.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) correlation: Option<f64>,
    /// The distribution of the delays. Other than with uniform, the jitter is their standard deviation.
    #[serde(default)]
    pub(crate) distribution: Distribution,
    /// No packet overtakes another: one that would waits for the one before.
    #[serde(default)]
    pub(crate) keep_order: bool,
    /// Probability with which a packet is not delayed. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) reorder: Option<f64>,
    /// How much that depends on whether the packet before was not delayed. Default: not at all.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) reorder_correlation: Option<f64>,
    /// Only every packet of this number may be without a delay. Default, with reorder: 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) gap: Option<u32>,
}
