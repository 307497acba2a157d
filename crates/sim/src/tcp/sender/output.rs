//! The way of a packet from the sender to its host (the kernel's `__tcp_transmit_skb`).

use super::super::congestion::Event;
use super::super::egress::{Egress, Xmit};
use super::super::receiver::Receiver;
use super::super::segment::{Flags, Outgoing, Segment};
use super::super::timestamps;
use super::Sender;
use crate::packet;

/// Where segments leave: the way out of the host, and the receiving half, whose acknowledgement each segment carries.
pub(crate) struct Output<'a> {
    /// Now.
    pub(crate) now_ns: u64,
    /// The endpoint's other half.
    pub(crate) receiver: &'a mut Receiver,
    /// Takes the segments.
    pub(crate) out: &'a mut (dyn Egress + 'a),
}

/// Wait until the next attempt where the host took neither a retransmission nor a probe of a closed window
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
    /// Segments that it is cut into in the end.
    pub(super) segments: u32,
}

impl Output<'_> {
    /// Sends a segment with `len` bytes of payload. Also one that the host drops carries what acknowledgement is owed, for the
    /// receiving half hears nothing of that.
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
    /// Hands a packet to the host, with these flags and those that what it carries asks for; returns whether the host took it.
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

    /// A packet was handed to the host: if its own queue is too long for it, that is congestion (`__tcp_transmit_skb`).
    #[inline]
    pub(crate) fn heed(&mut self, now_ns: u64, xmit: Xmit) {
        if xmit.is_congested() {
            self.enter_cwr(now_ns);
        }
    }
}
