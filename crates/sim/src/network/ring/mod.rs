//! The second layer of a port: the transmit ring of a driver, if it has one.
//!
//! The discipline passes packets to the driver until the queue is stopped. The driver stops it after the packet that
//! leaves too little room for another one (`netif_tx_stop_queue`), and [byte queue limits](byte_limits) after the
//! packet that exceeds the limit (`netdev_tx_sent_queue`). The device takes one packet after the other from the ring,
//! whether or not the driver knows that earlier ones were sent. When it reports some as sent, the driver frees them,
//! and the queue restarts if both have room again. [`service`] connects the ring to the discipline above and the link
//! below.
//!
//! Unlike in Linux, nothing takes the processor any time: a restarted queue passes its packets on at once.

mod byte_limits;
mod service;

use std::collections::VecDeque;

use bufferscope_records::{Layer, Name, QueueRow};
use bufferscope_scenario::{self as scenario, Completion};

use self::byte_limits::ByteLimits;
use super::packet::TcpPacket;
use super::pool::{Backlog, Fifo, PacketId, Pool};
use super::samples;
use crate::timers::Timers;

/// A driver's ring and the part of its device that takes packets from it.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Packets that the device has not begun to send.
    waiting: Fifo,
    /// Packets that the device has begun to send and not reported as sent, oldest first.
    begun: VecDeque<Begun>,
    /// The newest of these, while it is being sent.
    sending: Option<PacketId>,
    /// The number of packets in the ring at which the driver stops the queue.
    room_packets: u32,
    completion: Completion,
    limits: Option<ByteLimits>,
    pub(crate) counts: Counts,
    /// When the queue above was last found empty.
    idle_since_ns: u64,
}

/// A packet that the device has begun to send. The packet itself is on the link's delay line, or has arrived.
#[derive(Clone, Copy, Debug)]
struct Begun {
    frames: u32,
    frame_bytes: u32,
    /// The segment, and the index of its flow, if its sender waits for it to be freed.
    awaited: Option<(u32, TcpPacket)>,
}

/// Packets and bytes that were sent completely since the start. A packet of several segments counts as so many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
}

/// When the device will report what it has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Now,
    At(u64),
    Later,
}

impl Ring {
    pub(crate) fn new(parameters: &scenario::Ring, timers: Timers) -> Self {
        Self {
            waiting: Fifo::new(),
            begun: VecDeque::new(),
            sending: None,
            room_packets: parameters.room_packets(),
            completion: parameters.completion,
            limits: parameters.bql.map(|limits| ByteLimits::new(limits, timers, 0)),
            counts: Counts::default(),
            idle_since_ns: 0,
        }
    }

    /// Whether the queue is stopped, by the driver or by byte queue limits.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.waiting.packets() + self.begun.len() as u32 >= self.room_packets
            || self.limits.as_ref().is_some_and(ByteLimits::is_exceeded)
    }

    /// Since when the queue above has been found empty.
    pub(super) fn idle_since(&self) -> u64 {
        self.idle_since_ns
    }

    /// Accepts a packet from the discipline. The queue must not be stopped.
    fn push(&mut self, packet: PacketId, pool: &mut Pool) {
        debug_assert!(!self.is_stopped(), "a stopped queue passes no packet to its driver");
        if let Some(limits) = &mut self.limits {
            limits.queue(pool.header(packet).frame_bytes);
        }
        self.waiting.push(packet, pool);
    }

    /// Whether the device is sending a packet.
    fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Takes the packet that the device sends next; it must be sending none.
    fn begin(&mut self, pool: &Pool) -> Option<PacketId> {
        debug_assert!(!self.is_sending(), "a device sends one packet at a time");
        self.sending = self.waiting.pop(pool);
        let packet = self.sending?;
        let header = pool.header(packet);
        let (frames, frame_bytes) = (header.load.frames(), header.frame_bytes);
        self.begun.push_back(Begun { frames, frame_bytes, awaited: None });
        Some(packet)
    }

    /// The sender of the packet that is being sent waits for it to be freed.
    fn await_sending(&mut self, flow: u32, segment: TcpPacket) {
        self.begun.back_mut().expect("a packet is being sent").awaited = Some((flow, segment));
    }

    /// The last bit of the packet that was being sent has been sent.
    fn end(&mut self) {
        self.sending = None;
        let sent = self.begun.back().expect("a packet was being sent");
        self.counts.sent_packets += u64::from(sent.frames);
        self.counts.sent_bytes += u64::from(sent.frame_bytes);
    }

    /// Whether the device has nothing left to send.
    fn has_sent_all(&self) -> bool {
        self.sending.is_none() && self.waiting.is_empty()
    }

    /// Packets that were sent and not reported.
    fn unreported(&self) -> usize {
        self.begun.len() - usize::from(self.sending.is_some())
    }

    /// When the device reports a packet that was just sent.
    fn report(&self, now_ns: u64) -> Report {
        match self.completion {
            Completion::Packets(packets) if self.unreported() >= packets as usize || self.has_sent_all() => Report::Now,
            Completion::Packets(_) => Report::Later,
            // An earlier one has set the time.
            Completion::AfterNs(_) if self.unreported() > 1 => Report::Later,
            Completion::AfterNs(ns) => Report::At(now_ns + ns),
        }
    }

    /// The driver frees a packet that was sent.
    fn free(&mut self) -> Option<Begun> {
        if self.unreported() == 0 { None } else { self.begun.pop_front() }
    }

    /// Called when the driver has freed packets of this many bytes in total.
    fn complete(&mut self, bytes: u64, now_ns: u64) {
        if let Some(limits) = &mut self.limits {
            limits.complete(bytes, now_ns);
        }
    }

    /// Packets that the device has not begun to send.
    pub(crate) fn waiting(&self) -> &Fifo {
        &self.waiting
    }

    /// Packets that were not sent completely.
    fn backlog(&self) -> Backlog {
        let Backlog { packets, bytes } = self.waiting.backlog();
        let sending = self.begun.back().filter(|_| self.sending.is_some());
        let sending_bytes = sending.map_or(0, |begun| u64::from(begun.frame_bytes));
        Backlog { packets: packets + u64::from(sending.is_some()), bytes: bytes + sending_bytes }
    }

    /// The limit in bytes, and the bytes that count against it, if there are byte queue limits.
    fn limits(&self) -> Option<(u64, u64)> {
        let limits = self.limits.as_ref()?;
        Some((limits.limit_bytes(), limits.inflight_bytes()))
    }

    /// A sample for the records. It contains the packets that have left the discipline and were not sent completely, as in
    /// the records of a card.
    pub(super) fn sample(&self, t_ns: u64, port: Name) -> QueueRow {
        let limits = self.limits();
        QueueRow {
            sent_packets: self.counts.sent_packets,
            sent_bytes: self.counts.sent_bytes,
            limit_bytes: limits.map(|(limit_bytes, _)| limit_bytes),
            inflight_bytes: limits.map(|(_, inflight_bytes)| inflight_bytes),
            ..samples::of_layer(t_ns, port, Layer::Ring, self.backlog())
        }
    }
}

#[cfg(test)]
mod tests;
