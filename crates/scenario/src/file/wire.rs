//! `wire = { loss = 0.01, jitter = "5ms" }`: the impairments of a wire.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::qdisc::{Distribution, GemodelKeys};
use crate::quantity::{Quantity, Times};
use crate::units::US;

/// A variation, for which the kernel has 32 bits.
pub(crate) type Jitter = Quantity<Times, US, 2_000_000_000>;

/// Impairments of the wire, after the queue, as Linux' netem applies them. Probabilities and correlations are numbers
/// up to 1.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Wire {
    /// Probability with which a packet is lost. Default: none is lost. Of loss and gemodel, one can be given.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) loss: Option<f64>,
    /// Correlation of a loss with the loss of the previous packet. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) loss_correlation: Option<f64>,
    /// Losses by the Gilbert-Elliott model.
    pub(crate) gemodel: Option<Box<GemodelKeys>>,
    /// Jitter: how far the propagation delay varies. It can reorder packets. Default: none.
    #[schemars(example = &"5ms")]
    pub(crate) jitter: Option<Jitter>,
    /// Correlation of a delay with the previous one. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) correlation: Option<f64>,
    /// The distribution of the delays. For distributions other than uniform, the jitter is their standard deviation.
    #[serde(default)]
    pub(crate) distribution: Distribution,
    /// Keep packets in order: a packet that would overtake the previous one waits for it.
    #[serde(default)]
    pub(crate) keep_order: bool,
    /// Probability with which a packet skips the delay. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) reorder: Option<f64>,
    /// Correlation of that with the previous packet. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) reorder_correlation: Option<f64>,
    /// Only every n-th packet may skip the delay. Default, with reorder: 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) gap: Option<u32>,
}
