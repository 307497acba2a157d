//! `overhead`: how a link layer changes the length of a packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::qdisc::{Cells, Framing, FramingWords};
use crate::quantity::{Quantity, Sizes};

/// Bytes that a link layer adds to an IP packet, or the length of the shortest packet.
pub(crate) type LinkBytes = Quantity<Sizes, 0, 1000>;

/// Bytes, keywords of tc-cake(8), or a table.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Overhead {
    Bytes(LinkBytes),
    Word(Framing),
    Words(Vec<Framing>),
    Link(OverheadKeys),
}

/// The overhead of a link layer.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct OverheadKeys {
    /// The link's framing by a keyword of tc-cake(8), or by several in order, such as pppoe-ptm and ether-vlan.
    #[serde(default, skip_serializing_if = "FramingWords::is_empty")]
    #[schemars(example = json!(["pppoe-ptm", "ether-vlan"]))]
    pub(crate) framing: FramingWords,
    /// Bytes that the link layer adds to each IP packet. Default: as framing says, or 14.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"40b")]
    pub(crate) bytes: Option<LinkBytes>,
    /// The shortest packet on the link, overhead included. Default: as framing says, or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"64b")]
    pub(crate) mpu: Option<LinkBytes>,
    /// The cells of the link. Default: as framing says, or noatm.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"atm")]
    pub(crate) atm: Option<Cells>,
}
