//! The way of a packet from the sender to its host (the kernel's `__tcp_transmit_skb`).

use super::super::congestion::Event;
use super::super::egress::{Egress, Xmit};
use super::super::receiver::Receiver;
use super::super::segment::{Flags, Outgoing, Segment};
use super::super::timestamps;
use super::Sender;
use crate::packet;

/// Where segments go: the way out of the host, and the receiving half, whose acknowledgement each segment carries.
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

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    /// Sequence number of the first byte.
    pub(super) seq: u64,
    /// Payload.
    pub(super) bytes: u32,
    /// The FIN behind it.
    pub(super) fin: bool,
    /// Segments that it is eventually split into.
    pub(super) segments: u32,
}

impl Output<'_> {
    /// Sends a segment with `len` bytes of payload. A segment that the host drops still carries the pending
    /// acknowledgement: the receiving half does not learn of the drop.
    pub(crate) fn send(&mut self, seq: u64, len: u32, flags: Flags, ecn: packet::Ecn) -> Xmit {
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
    /// Passes a packet to the host, with these flags and those that its contents require; returns whether the host
    /// accepted it.
    #[inline]
    pub(super) fn hand_down(
        &mut self,
        parcel: Parcel,
        mut flags: Flags,
        ecn: packet::Ecn,
        output: &mut Output,
    ) -> bool {
        let Parcel { seq, bytes, fin, segments } = parcel;
        let now_ns = output.now_ns;
        if self.board.in_flight() == 0 {
            self.cc.on_event(&self.context(now_ns), Event::TxStart);
        }
        if fin {
            flags |= Flags::FIN;
        }
        if segments > 1 {
            flags |= Flags::PSH;
        }
        let xmit = output.send(seq, bytes, flags, ecn);
        self.last_sent_ns = now_ns;
        self.heed(now_ns, xmit);
        if xmit == Xmit::Queued {
            self.small_queue.on_queued(self.board.transmissions() + 1, bytes);
        }
        let is_taken = xmit != Xmit::Dropped;
        if is_taken {
            self.pacer.on_sent(now_ns, bytes, segments, self.cc.window().pacing_bytes_per_s);
        }
        is_taken
    }

    /// A packet was passed to the host: if the host's own queue is too long, that counts as congestion
    /// (`__tcp_transmit_skb`).
    #[inline]
    pub(crate) fn heed(&mut self, now_ns: u64, xmit: Xmit) {
        if xmit.is_congested() {
            self.enter_cwr(now_ns);
        }
    }
}
