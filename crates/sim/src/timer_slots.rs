//! The assignment of event queue slots to entities.

use bufferscope_scenario::{Completion, Ring, Scenario};

use crate::event_queue::Slot;
use crate::network::packet::Role;
use crate::network::qdisc::Qdisc;
use crate::network::routes::PortIndex;

/// The entity to which an event belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The link of a port has sent its frame.
    Link(PortIndex),
    /// The queue of a port may have a packet for the link again.
    Queue(PortIndex),
    /// The timer of a port's queue is due.
    Timer(PortIndex),
    /// The device below a port's ring reports what it has sent.
    Ring(PortIndex),
    /// A packet reaches the end of a port's delay line.
    Line(PortIndex),
    /// Time to sample queues, flows or both, or the end of the run's duration.
    Sampler,
    /// A second is over.
    Second,
    /// A station may start, or has finished, transmitting on a channel (by index).
    Medium(u16),
    /// A planned action of an entry of traffic (by index).
    Begin(u32),
    /// The stop or a timeout of an entry of traffic (by index).
    End(u32),
    /// A timer of one end of a connection.
    Endpoint(u32, Role),
}

/// The layout of the slots: ports, clocks, traffic, channels, queues if any keeps time (two for each port), rings if any
/// reports late (one for each port), and last the connections, whose number changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimerSlots {
    /// The first slots after those of ports, of traffic, of channels, of queues, and of rings.
    sampler: Slot,
    media: Slot,
    queues: Slot,
    rings: Slot,
    connections: Slot,
}

impl TimerSlots {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self::layout(scenario, false)
    }

    /// The slots of the scenario that these slots' scenario was changed to. Queues that have slots keep them.
    pub(crate) fn changed(self, to: &Scenario) -> Self {
        Self::layout(to, self.queues_keep_time())
    }

    fn layout(scenario: &Scenario, queues_kept_time: bool) -> Self {
        let count = |n: usize| u32::try_from(n).expect("a scenario is small");
        let ports = count(2 * scenario.links.len());
        let mut queues = scenario.links.iter().flat_map(|link| [&link.forward.queue, &link.reverse.queue]);
        let keep_time = queues_kept_time || queues.any(Qdisc::keeps_time);
        let sampler = 2 * ports;
        let media = sampler + 2 + 2 * count(scenario.traffic.len());
        let queues = media + count(scenario.wifi.len());
        let rings = queues + if keep_time { 2 * ports } else { 0 };
        let reports_late = |ring: &Ring| matches!(ring.completion, Completion::AfterNs(_));
        let report_late = scenario.ports().filter_map(|port| port.ring.as_ref()).any(reports_late);
        Self { sampler, media, queues, rings, connections: rings + if report_late { ports } else { 0 } }
    }

    /// Whether queues have slots.
    pub(crate) fn queues_keep_time(self) -> bool {
        self.queues < self.rings
    }

    /// Slots that always exist.
    pub(crate) fn fixed(self) -> usize {
        self.connections as usize
    }

    /// The slots of ports, which come first.
    pub(crate) fn ports(self) -> usize {
        self.sampler as usize
    }

    #[inline]
    pub(crate) fn link(self, port: PortIndex) -> Slot {
        2 * port
    }

    #[inline]
    pub(crate) fn line(self, port: PortIndex) -> Slot {
        2 * port + 1
    }

    pub(crate) fn sampler(self) -> Slot {
        self.sampler
    }

    pub(crate) fn second(self) -> Slot {
        self.sampler + 1
    }

    pub(crate) fn begin(self, traffic: u32) -> Slot {
        self.sampler + 2 + 2 * traffic
    }

    pub(crate) fn end(self, traffic: u32) -> Slot {
        self.begin(traffic) + 1
    }

    pub(crate) fn medium(self, index: u16) -> Slot {
        self.media + Slot::from(index)
    }

    #[inline]
    pub(crate) fn endpoint(self, connection: u32, role: Role) -> Slot {
        self.connections + 2 * connection + role as u32
    }

    pub(crate) fn queue(self, port: PortIndex) -> Slot {
        self.queues + 2 * port
    }

    pub(crate) fn timer(self, port: PortIndex) -> Slot {
        self.queue(port) + 1
    }

    pub(crate) fn ring(self, port: PortIndex) -> Slot {
        self.rings + port
    }

    /// The owner of a slot.
    #[inline]
    pub(crate) fn target(self, slot: Slot) -> Target {
        if slot < self.sampler {
            return if slot & 1 == 0 { Target::Link(slot / 2) } else { Target::Line(slot / 2) };
        }
        if slot >= self.connections {
            let index = slot - self.connections;
            let role = if index & 1 == 0 { Role::Client } else { Role::Server };
            return Target::Endpoint(index / 2, role);
        }
        if slot >= self.rings {
            return Target::Ring(slot - self.rings);
        }
        if slot >= self.queues {
            let index = slot - self.queues;
            return if index & 1 == 0 { Target::Queue(index / 2) } else { Target::Timer(index / 2) };
        }
        if slot >= self.media {
            return Target::Medium((slot - self.media) as u16);
        }
        match slot - self.sampler {
            0 => Target::Sampler,
            1 => Target::Second,
            rest if rest & 1 == 0 => Target::Begin(rest / 2 - 1),
            rest => Target::End(rest / 2 - 1),
        }
    }

    /// The slot of an owner.
    pub(crate) fn slot(self, target: Target) -> Slot {
        match target {
            Target::Link(port) => self.link(port),
            Target::Queue(port) => self.queue(port),
            Target::Timer(port) => self.timer(port),
            Target::Ring(port) => self.ring(port),
            Target::Line(port) => self.line(port),
            Target::Sampler => self.sampler(),
            Target::Second => self.second(),
            Target::Medium(index) => self.medium(index),
            Target::Begin(traffic) => self.begin(traffic),
            Target::End(traffic) => self.end(traffic),
            Target::Endpoint(connection, role) => self.endpoint(connection, role),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_that_of_its_owner() {
        // Three ports, two kinds of traffic, a channel, queues that keep time, and rings that report late.
        let slots = TimerSlots { sampler: 6, media: 12, queues: 13, rings: 19, connections: 22 };
        assert!((0..40).all(|slot| slots.slot(slots.target(slot)) == slot));
    }
}
