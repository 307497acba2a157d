//! The result that a port's queueing discipline returns to the sending host. It models the kernel's `NET_XMIT_*` codes,
//! the results of `dev_queue_xmit`.

/// What the port did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xmit {
    /// The packet has left the port already. The sender is not notified.
    Left,
    /// The packet no longer counts as the sender's (the kernel orphans it, or frees it in silence). The sender is not
    /// notified when it leaves.
    Orphaned,
    /// The packet waits in the queue of the host's port. The sender is notified when it leaves.
    Queued,
    /// The packet waits in the queue, and the queue dropped another packet to make room for it (also `NET_XMIT_CN`).
    Displacing,
    /// The queue dropped the packet because the queue is too long, although it is not full (`NET_XMIT_CN`). The
    /// transport treats the packet as sent.
    Congested,
    /// The queue had no room for the packet (`NET_XMIT_DROP`). The transport treats the packet as never sent.
    Dropped,
}

impl Xmit {
    /// The result for a packet that has left the queue again, or was dropped on leaving. The sender is not notified of
    /// such a drop.
    #[inline]
    pub(crate) fn if_left(self) -> Self {
        match self {
            Self::Queued => Self::Left,
            Self::Displacing => Self::Congested,
            Self::Left | Self::Orphaned | Self::Congested | Self::Dropped => self,
        }
    }

    /// Whether the host's own queue is too long.
    #[inline]
    pub(crate) fn is_congested(self) -> bool {
        matches!(self, Self::Displacing | Self::Congested | Self::Dropped)
    }

    /// Whether the packet is in the queue.
    #[inline]
    pub(crate) fn is_queued(self) -> bool {
        matches!(self, Self::Queued | Self::Displacing)
    }
}
