//! The account of the packets of a flow, and what all of them have in common.

use bufferscope_records::Name;

/// The account of one flow's packets, in both directions together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) name: Name,
    pub(crate) account: Account,
    pub(super) labels: Labels,
    /// The hashes of the flow's packets, by the [role](super::packet::Role) of their receiver.
    pub(super) hashes: [u32; 2],
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    /// Packets of a waiting sender that were sent, and that its driver has not freed yet.
    pub(super) held: u64,
}

/// The header fields of all packets of a flow, in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labels {
    /// DSCP code point.
    pub(crate) dscp: u8,
    /// The server's port.
    pub(crate) port: u16,
}

/// How the [`Summary`](crate::Summary) identifies a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Account {
    /// Index of the entry of traffic.
    pub(crate) traffic: u32,
    /// Number of the flow; `None` if all flows of the entry share one account.
    pub(crate) number: Option<u32>,
}

impl Flow {
    /// Packets still in the network.
    pub(crate) fn under_way(&self) -> u64 {
        self.sent - self.delivered - self.dropped
    }

    /// Whether nothing is left of it, neither in the network nor in its host.
    pub(crate) fn is_gone(&self) -> bool {
        self.under_way() == 0 && self.held == 0
    }
}
