//! `[[host]]`: settings of one host.

use schemars::JsonSchema;
use serde::Deserialize;

use super::defaults;
use crate::quantity::{Quantity, Sizes};
use crate::text::Name;
use crate::units::{GB, KB};

/// A receive buffer.
pub(crate) type ReceiveBuffer = Quantity<Sizes, { 4 * KB }, GB>;
/// Segments.
pub(crate) type InitialWindow = u32;

/// Settings of a host that some link names.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Host {
    /// The node's name in the links.
    #[schemars(example = &"h1")]
    pub(crate) name: Name,
    /// Its TCP.
    #[serde(default)]
    pub(crate) tcp: HostTcp,
}

/// A host's TCP settings, which Linux has as sysctls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct HostTcp {
    /// Largest receive buffer that auto-tuning may reach (`net.ipv4.tcp_rmem[2]`).
    pub(crate) rmem_max: ReceiveBuffer,
    /// Receive buffer that a connection starts with (`net.ipv4.tcp_rmem[1]`).
    pub(crate) rmem_default: ReceiveBuffer,
    /// Initial congestion window in segments.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) initial_window: InitialWindow,
}

impl Default for HostTcp {
    fn default() -> Self {
        Self {
            rmem_max: defaults::rmem_max(),
            rmem_default: defaults::rmem_default(),
            initial_window: defaults::initial_window(),
        }
    }
}
