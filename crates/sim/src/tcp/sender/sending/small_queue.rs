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
//! The connection does not send in the moment in which a packet leaves, but shortly after, in a tasklet. Whatever is sent
//! in between takes the place in the queue, so that others get in although a few connections keep it full.
//!
//! A packet that the port passes on at once is charged for a moment too. While the host handles a packet or a timer, all
//! that it passes on stays charged until it has finished; then the tasklet sends more. So a burst that answers one
//! acknowledgement is also sent a few packets at a time. While the application writes, each packet is no longer charged
//! when the next is sent.
//!
//! A packet that is still in that queue is not retransmitted, even if the timer expires (`skb_still_in_host_queue`).

use std::collections::VecDeque;

use crate::network::truesize::TCP_BYTES;
use crate::tcp::sender::Sender;
use crate::tcp::sender::loss::scoreboard::SentId;
use crate::transport::congestion::rate_of_window;

/// Memory that a packet takes in addition to its payload.
pub(in crate::tcp::sender) const OVERHEAD_BYTES: u64 = TCP_BYTES as u64;
/// The limit is what the pacing rate sends in this fraction of a second, as a shift (`sk_pacing_shift`).
const RATE_SHIFT: u32 = 10;
/// Largest limit if the connection is not paced (`tcp_limit_output_bytes`).
const LIMIT_BYTES: u64 = 1 << 20;
/// Retransmissions may fill the queue to twice the limit.
const RETRANSMIT_FACTOR: u64 = 2;

/// Time from when a packet leaves the queue to when the tasklet sends the next. It is 8 or 9 us in the guest (between the
/// kernel's tracepoints `qdisc_dequeue` and `qdisc_enqueue`).
const TASKLET_NS: u64 = 9_000;

/// The connection's packets in the host's queue.
#[derive(Debug, Default)]
pub(crate) struct SmallQueue {
    /// `sk_wmem_alloc`.
    charged_bytes: u64,
    /// Numbers of the charged packets, in the order in which they were queued and will leave.
    queued: VecDeque<u64>,
    /// Memory of the packets that the port has passed on at once, at the time `passed_ns`.
    passed_bytes: u64,
    passed_ns: u64,
    /// The sender holds packets back (`TSQ_THROTTLED`).
    holds_back: bool,
    /// When the tasklet runs that sends what was held back.
    tasklet_ns: Option<u64>,
}

impl SmallQueue {
    /// Packet number `order` was queued, with `len` bytes of payload.
    #[inline]
    pub(crate) fn on_queued(&mut self, order: u64, len: u32) {
        self.charged_bytes += charge_bytes(len);
        self.queued.push_back(order);
    }

    /// A packet with `len` bytes of payload was passed on at once.
    #[inline]
    pub(crate) fn on_passed(&mut self, now_ns: u64, len: u32) {
        if self.passed_ns != now_ns {
            (self.passed_ns, self.passed_bytes) = (now_ns, 0);
        }
        self.passed_bytes += charge_bytes(len);
    }

    /// Memory of the packets that have been passed on now.
    #[inline]
    fn passed_bytes(&self, now_ns: u64) -> u64 {
        if self.passed_ns == now_ns { self.passed_bytes } else { 0 }
    }

    /// Whether the queue contains no charged packet of the connection.
    pub(crate) fn is_empty(&self) -> bool {
        self.charged_bytes == 0
    }

    /// A packet with `len` bytes of payload has left. What was held back is sent by a tasklet.
    #[inline]
    fn on_left(&mut self, now_ns: u64, len: u32) {
        self.charged_bytes -= charge_bytes(len);
        self.queued.pop_front();
        if std::mem::take(&mut self.holds_back) {
            self.tasklet_ns.get_or_insert(now_ns + TASKLET_NS);
        }
    }

    /// Whether more is sent as soon as the host has finished what it is doing now.
    #[inline]
    pub(in crate::tcp::sender) fn continues(&self, now_ns: u64) -> bool {
        self.tasklet_ns.is_some() && self.passed_bytes(now_ns) > 0
    }

    /// When the tasklet runs.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.tasklet_ns
    }

    /// Whether the tasklet runs now.
    pub(in crate::tcp::sender) fn tasklet_runs(&mut self, now_ns: u64) -> bool {
        self.tasklet_ns.take_if(|at_ns| *at_ns <= now_ns).is_some()
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

    /// A packet with `len` bytes of payload has left the host's queue.
    #[inline]
    pub(crate) fn on_left_host(&mut self, now_ns: u64, len: u32) {
        self.small_queue.on_left(now_ns, len);
    }

    /// Whether the last transmission of this packet is still in the host's queue. If so, sending resumes after it has left.
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
        let passed_bytes = if self.is_writing() { 0 } else { self.small_queue.passed_bytes(now_ns) };
        let charged_bytes = self.small_queue.charged_bytes + passed_bytes;
        // The kernel's count starts at one. With at most one packet outstanding, the kernel always sends.
        if charged_bytes < factor * least_bytes || self.board.packets_out() <= 1 {
            return false;
        }
        let limit_bytes = self.rate_limit_bytes(now_ns).max(least_bytes);
        if charged_bytes < limit_bytes.saturating_mul(factor) {
            return false;
        }
        if passed_bytes > 0 {
            self.small_queue.tasklet_ns.get_or_insert(now_ns + TASKLET_NS);
        } else {
            self.small_queue.holds_back = true;
        }
        true
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
