//! TCP small queues: how much of a connection may be in its own host's queue (the kernel's `tcp_small_queue_check`,
//! `tcp_wfree` and `tcp_tsq_write`).
//!
//! The limit is about as much as the pacing rate sends in a millisecond, whether or not the connection is paced, and at
//! least two packets. If the window allows more, that data stays in the connection until a packet leaves the queue. So
//! if the host's own port is the bottleneck, its queue stays short however large the window is. The host knows nothing
//! about packets in other queues.
//!
//! Packets are counted with the memory that the kernel charges for them, not with their payload. Only packets with
//! payload or a FIN are charged.
//!
//! A packet that is still in that queue is not retransmitted, even if the timer expires (`skb_still_in_host_queue`).

use std::collections::VecDeque;

use super::output::Output;
use crate::network::truesize::TCP_BYTES;
use crate::tcp::sender::loss::scoreboard::SentId;
use crate::tcp::sender::{Sender, State};
use crate::transport::congestion::rate_of_window;

/// Memory that a packet takes in addition to its payload.
pub(in crate::tcp::sender) const OVERHEAD_BYTES: u64 = TCP_BYTES as u64;
/// The limit is what the pacing rate sends in this fraction of a second, as a shift (`sk_pacing_shift`).
const RATE_SHIFT: u32 = 10;
/// Largest limit if the connection is not paced (`tcp_limit_output_bytes`).
const LIMIT_BYTES: u64 = 1 << 20;
/// Retransmissions may fill the queue to twice the limit.
const RETRANSMIT_FACTOR: u64 = 2;

/// The connection's packets in the host's queue.
#[derive(Debug, Default)]
pub(crate) struct SmallQueue {
    /// `sk_wmem_alloc`.
    charged_bytes: u64,
    /// Numbers of the charged packets, in the order in which they were queued and will leave.
    queued: VecDeque<u64>,
    /// The sender holds packets back (`TSQ_THROTTLED`).
    holds_back: bool,
}

impl SmallQueue {
    /// Packet number `order` was queued, with `len` bytes of payload.
    #[inline]
    pub(crate) fn on_queued(&mut self, order: u64, len: u32) {
        self.charged_bytes += charge_bytes(len);
        self.queued.push_back(order);
    }

    /// Whether the queue contains no charged packet of the connection.
    pub(crate) fn is_empty(&self) -> bool {
        self.charged_bytes == 0
    }

    /// A packet with `len` bytes of payload has left. Returns whether packets were held back, which may be sent now.
    #[inline]
    fn on_left(&mut self, len: u32) -> bool {
        self.charged_bytes -= charge_bytes(len);
        self.queued.pop_front();
        std::mem::take(&mut self.holds_back)
    }
}

impl Sender {
    /// Whether a new packet with `len` bytes of payload must wait until another one leaves the host's queue.
    #[inline]
    pub(in crate::tcp::sender) fn awaits_departure(&mut self, now_ns: u64, len: u32) -> bool {
        self.exceeds(now_ns, len, 1)
    }

    /// The same for a retransmission.
    #[inline]
    pub(in crate::tcp::sender) fn retransmission_awaits_departure(&mut self, now_ns: u64, len: u32) -> bool {
        self.exceeds(now_ns, len, RETRANSMIT_FACTOR)
    }

    /// A packet with `len` bytes of payload has left the host's queue. If packets waited for that, sending resumes,
    /// with retransmissions first.
    #[inline]
    pub(crate) fn on_left_host(&mut self, len: u32, output: &mut Output) {
        if self.small_queue.on_left(len) {
            if self.recovery.state() >= State::Recovery {
                self.retransmit_lost(output);
            }
            self.transmit(output);
        }
    }

    /// Whether the last transmission of this packet is still in the host's queue. If so, sending resumes when it has
    /// left.
    #[inline]
    pub(in crate::tcp::sender) fn still_in_host_queue(&mut self, id: SentId) -> bool {
        let Some(sent) = self.board.get(id) else { return false };
        let is_queued = self.small_queue.queued.binary_search(&sent.order).is_ok();
        self.small_queue.holds_back |= is_queued;
        is_queued
    }

    #[inline]
    fn exceeds(&mut self, now_ns: u64, len: u32, factor: u64) -> bool {
        let least_bytes = 2 * charge_bytes(len);
        // The kernel's count starts at one. With at most one packet outstanding, the kernel always sends.
        if self.small_queue.charged_bytes < factor * least_bytes || self.board.packets_out() <= 1 {
            return false;
        }
        let limit_bytes = self.rate_limit_bytes(now_ns).max(least_bytes);
        let exceeds = self.small_queue.charged_bytes >= limit_bytes.saturating_mul(factor);
        self.small_queue.holds_back |= exceeds;
        exceeds
    }

    /// The limit that follows from the rate. The kernel computes a rate even if the connection is not paced.
    fn rate_limit_bytes(&self, now_ns: u64) -> u64 {
        let window = self.cc.window();
        if self.pacer.is_enabled() {
            return window.pacing_bytes_per_s >> RATE_SHIFT;
        }
        (rate_of_window(window, &self.context(now_ns)) >> RATE_SHIFT).min(LIMIT_BYTES)
    }
}

fn charge_bytes(len: u32) -> u64 {
    OVERHEAD_BYTES + u64::from(len)
}
