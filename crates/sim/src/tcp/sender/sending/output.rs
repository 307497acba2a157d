//! Passes packets from the sender to its host (the kernel's `__tcp_transmit_skb`).

use crate::network::segment::{Flags, Segment};
use crate::network::traffic_class::Ecn;
use crate::network::xmit::Xmit;
use crate::tcp::egress::{Egress, Outgoing};
use crate::tcp::journal::Trigger;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::Sender;
use crate::tcp::timestamps;
use crate::transport::congestion::Event;

/// The destination of segments, together with the receiving half, whose acknowledgement each segment carries.
pub(crate) struct Output<'a> {
    /// Now.
    pub(crate) now_ns: u64,
    /// The endpoint's other half.
    pub(crate) receiver: &'a mut Receiver,
    /// Takes the segments.
    pub(crate) out: &'a mut (dyn Egress + 'a),
}

/// Delay until the next attempt when the host dropped a retransmission or a probe of a closed window
/// (`TCP_RESOURCE_PROBE_INTERVAL`).
pub(crate) const HOST_BUSY_NS: u64 = 500_000_000;

/// The contents of a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp::sender) struct Parcel {
    /// Sequence number of the first byte.
    pub(in crate::tcp::sender) seq: u64,
    /// Payload.
    pub(in crate::tcp::sender) bytes: u32,
    /// FIN if one follows the payload, and PSH if the end of a write is in it.
    pub(in crate::tcp::sender) ends: Flags,
    /// Number of segments into which the packet is eventually split.
    pub(in crate::tcp::sender) segments: u32,
}

impl Parcel {
    /// The flags that the contents require.
    pub(in crate::tcp::sender) fn flags(&self) -> Flags {
        if self.segments > 1 { self.ends | Flags::PSH } else { self.ends }
    }
}

impl Output<'_> {
    /// Sends a segment with `len` bytes of payload. The pending acknowledgement counts as sent even if the host drops
    /// the segment, since the receiving half is not notified of the drop.
    pub(crate) fn send(&mut self, seq: u64, len: u32, flags: Flags, ecn: Ecn) -> Xmit {
        if len > 0 {
            self.receiver.on_data_sent(self.now_ns);
        }
        let ack = self.receiver.acknowledge(len == 0);
        let flags = flags | ack.flags;
        let segment = Segment {
            seq,
            ack: ack.ack,
            len,
            window_bytes: ack.window_bytes,
            ts_val: timestamps::clock(self.now_ns),
            ts_ecr: ack.ts_ecr,
            sack: ack.sack,
            flags,
        };
        self.out.send(&Outgoing { segment, ecn })
    }
}

impl Sender {
    /// Passes a packet to the host, with these flags and those of its contents. Returns whether the host
    /// accepted it.
    #[inline]
    pub(in crate::tcp::sender) fn hand_down(
        &mut self,
        parcel: Parcel,
        flags: Flags,
        ecn: Ecn,
        output: &mut Output,
    ) -> bool {
        let Parcel { seq, bytes, segments, .. } = parcel;
        let now_ns = output.now_ns;
        if self.board.in_flight() == 0 {
            self.cc.on_event(&self.context(now_ns), Event::TxStart);
        }
        let xmit = output.send(seq, bytes, flags | parcel.flags(), ecn);
        self.last_sent_ns = now_ns;
        self.on_xmit_result(now_ns, xmit);
        match xmit {
            Xmit::Queued | Xmit::Displacing => self.small_queue.on_queued(self.board.transmissions() + 1, bytes),
            Xmit::Left => self.small_queue.on_passed(now_ns, bytes),
            Xmit::Orphaned | Xmit::Congested | Xmit::Dropped => {}
        }
        let is_taken = xmit != Xmit::Dropped;
        if is_taken {
            self.pacer.on_sent(now_ns, bytes, segments, self.cc.window().pacing_bytes_per_s);
        } else {
            self.pacer.on_dropped(now_ns, segments);
        }
        is_taken
    }

    /// A segment without payload was passed to the host.
    #[inline]
    pub(crate) fn on_empty_sent(&mut self, now_ns: u64, xmit: Xmit) {
        self.pacer.on_unpaced(now_ns);
        self.on_xmit_result(now_ns, xmit);
    }

    /// Handles the host's result for a packet. If the host's own queue is too long, that counts as congestion
    /// (`__tcp_transmit_skb`).
    #[inline]
    fn on_xmit_result(&mut self, now_ns: u64, xmit: Xmit) {
        if xmit.is_congested() {
            self.enter_cwr(now_ns, Trigger::HostQueue);
        }
    }
}
