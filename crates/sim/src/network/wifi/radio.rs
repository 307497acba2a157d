//! The part of a port that sends on the air: the driver's packets for one receiver.

use bufferscope_records::{Layer, Name, QueueRow};

use super::scheduler::Number;
use super::window::Window;
use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::port::Port;
use crate::network::samples;
use crate::random::Random;

/// The driver's packets and state for one receiver.
#[derive(Debug)]
pub(crate) struct Radio {
    /// Its network, the sender there, and the receiver's number among those of the sender.
    pub(super) medium: u16,
    pub(super) sender: u16,
    pub(super) receiver: Number,
    /// Packets that the driver has taken from the interface's queueing discipline.
    pub(super) fifo: Fifo,
    pub(super) window: Window,
    /// Its queue holds packets back, or has none that it passes on.
    pub(super) is_held_back: bool,
    /// The probability that a frame is lost, in units of 2^-32.
    error: u32,
    backlog: Backlog,
    pub(crate) counts: RadioCounts,
}

/// What was sent to a receiver since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RadioCounts {
    /// Packets that the driver has taken.
    pub(crate) entered: u64,
    /// Packets of this port's queue that the driver has taken for other receivers.
    pub(crate) entered_elsewhere: u64,
    /// Packets that were dropped after their retries.
    pub(crate) dropped: u64,
    /// Packets that arrived, and their bytes.
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    /// Time that the transmissions took.
    pub(crate) airtime_ns: u64,
    /// Transmissions.
    pub(crate) transmissions: u64,
}

impl Radio {
    pub(super) fn new(medium: u16, sender: u16, receiver: Number, error_rate: f64) -> Self {
        Self {
            medium,
            sender,
            receiver,
            fifo: Fifo::new(),
            window: Window::default(),
            is_held_back: false,
            error: (error_rate * f64::from(u32::MAX)) as u32,
            backlog: Backlog::default(),
            counts: RadioCounts::default(),
        }
    }

    /// Whether a frame arrives.
    pub(super) fn passes(&self, random: &mut Random) -> bool {
        self.error == 0 || random.next_u32() >= self.error
    }

    /// The driver takes a packet.
    pub(super) fn enter(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool) {
        let header = pool.header_mut(packet);
        header.at_ns = now_ns;
        self.counts.entered += 1;
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(header.frame_bytes);
    }

    /// A packet has arrived at the receiver, or was given up.
    pub(super) fn leave(&mut self, packet: PacketId, pool: &Pool) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(pool.header(packet).frame_bytes);
    }

    /// The backlog in the driver.
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// A sample of the driver for the records.
    pub(in crate::network) fn sample(&self, t_ns: u64, port: Name) -> QueueRow {
        let counts = self.counts;
        QueueRow {
            dropped: counts.dropped,
            sent_packets: counts.sent_packets,
            sent_bytes: counts.sent_bytes,
            airtime_ns: Some(counts.airtime_ns),
            transmissions: Some(counts.transmissions),
            ..samples::of_layer(t_ns, port, Layer::Ring, self.backlog())
        }
    }

    /// The packets in the driver.
    pub(crate) fn packets(&self, pool: &Pool) -> impl Iterator<Item = PacketId> {
        self.fifo.iter(pool).chain(self.window.packets())
    }
}

impl Port {
    /// Whether the driver has frames for the receiver that are in no aggregate, in the `fifo` mode.
    pub(super) fn holds_frames(&self) -> bool {
        self.radio.as_ref().is_some_and(|radio| radio.window.has_waiting() || !radio.fifo.is_empty())
    }

    /// Whether an aggregate can be made for the receiver.
    pub(super) fn has_frames(&self, is_fifo: bool) -> bool {
        let Some(radio) = &self.radio else { return false };
        let has_new = || match is_fifo {
            true => !radio.fifo.is_empty(),
            false => !radio.is_held_back && self.queue.as_ref().is_some_and(|queue| !queue.is_empty()),
        };
        radio.window.has_waiting() || radio.window.has_room() && has_new()
    }
}
