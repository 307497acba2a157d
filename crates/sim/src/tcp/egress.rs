//! The way out of an endpoint's host, and what the host reports of a packet sent that way (the kernel's
//! `dev_queue_xmit` and its `NET_XMIT_*` codes).
//!
//! The fate of one segment decides whether the next is sent, so they cannot be collected first. The virtual call takes
//! as many instructions as collecting them did (callgrind: 313.4 against 313.5 million for 5 s of 30 flows).

use super::Outgoing;

/// Accepts an endpoint's segments, one by one, in the order in which they are sent.
pub trait Egress {
    /// Accepts one, and reports at once what became of it.
    fn send(&mut self, outgoing: &Outgoing) -> Xmit;
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xmit {
    /// It is on its way: it has left the host, or its host does not report when it leaves.
    Left,
    /// It stands in the queue of the host's port; [`Endpoint::on_left_host`](super::Endpoint::on_left_host) is to be called when it
    /// leaves.
    Queued,
    /// The queue dropped it for being too long, before it was full (`NET_XMIT_CN`). The transport treats it as sent.
    Congested,
    /// The queue had no room for it (`NET_XMIT_DROP`). The transport treats it as never sent.
    Dropped,
}

impl Xmit {
    /// Is the host's own queue too long?
    #[inline]
    pub(super) fn is_congested(self) -> bool {
        matches!(self, Self::Congested | Self::Dropped)
    }
}

/// Collects the segments for later delivery: all have [`Left`](Xmit::Left).
impl Egress for Vec<Outgoing> {
    fn send(&mut self, outgoing: &Outgoing) -> Xmit {
        self.push(*outgoing);
        Xmit::Left
    }
}
