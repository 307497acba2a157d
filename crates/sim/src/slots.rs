//! The assignment of event queue slots to entities.

use crate::clock::Slot;
use crate::network::packet::Side;
use crate::network::routes::PortIndex;

/// The entity to which an event belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The wire of a port has sent its frame.
    Wire(PortIndex),
    /// A packet reaches the end of a port's delay line.
    Line(PortIndex),
    /// Time to sample queues, flows or both, or the end of the run's duration.
    Sampler,
    /// A second is over.
    Second,
    /// Traffic (by index) has something to begin.
    Begin(u32),
    /// Traffic (by index) has something to end.
    End(u32),
    /// A timer of one end of a connection.
    Endpoint(u32, Side),
}

/// The layout of the slots: ports, clocks, traffic, and last the connections, whose number changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    ports: u32,
    traffic: u32,
}

impl Slots {
    pub(crate) fn new(ports: usize, traffic: usize) -> Self {
        let count = |n: usize| u32::try_from(n).expect("a scenario is small");
        Self { ports: count(ports), traffic: count(traffic) }
    }

    /// Slots that always exist.
    pub(crate) fn fixed(self) -> usize {
        self.connections() as usize
    }

    /// The slots of ports, which come first.
    pub(crate) fn ports(self) -> usize {
        self.sampler() as usize
    }

    #[inline]
    pub(crate) fn wire(self, port: PortIndex) -> Slot {
        2 * port
    }

    #[inline]
    pub(crate) fn line(self, port: PortIndex) -> Slot {
        2 * port + 1
    }

    pub(crate) fn sampler(self) -> Slot {
        2 * self.ports
    }

    pub(crate) fn second(self) -> Slot {
        self.sampler() + 1
    }

    pub(crate) fn begin(self, traffic: u32) -> Slot {
        self.sampler() + 2 + 2 * traffic
    }

    pub(crate) fn end(self, traffic: u32) -> Slot {
        self.begin(traffic) + 1
    }

    #[inline]
    pub(crate) fn endpoint(self, connection: u32, side: Side) -> Slot {
        self.connections() + 2 * connection + side as u32
    }

    /// The owner of a slot.
    #[inline]
    pub(crate) fn target(self, slot: Slot) -> Target {
        if slot < self.sampler() {
            return if slot & 1 == 0 { Target::Wire(slot / 2) } else { Target::Line(slot / 2) };
        }
        if slot >= self.connections() {
            let index = slot - self.connections();
            let side = if index & 1 == 0 { Side::Client } else { Side::Server };
            return Target::Endpoint(index / 2, side);
        }
        match slot - self.sampler() {
            0 => Target::Sampler,
            1 => Target::Second,
            rest if rest & 1 == 0 => Target::Begin(rest / 2 - 1),
            rest => Target::End(rest / 2 - 1),
        }
    }

    /// The slot of an owner.
    pub(crate) fn slot(self, target: Target) -> Slot {
        match target {
            Target::Wire(port) => self.wire(port),
            Target::Line(port) => self.line(port),
            Target::Sampler => self.sampler(),
            Target::Second => self.second(),
            Target::Begin(traffic) => self.begin(traffic),
            Target::End(traffic) => self.end(traffic),
            Target::Endpoint(connection, side) => self.endpoint(connection, side),
        }
    }

    #[inline]
    fn connections(self) -> Slot {
        self.begin(self.traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_that_of_its_owner() {
        let slots = Slots::new(3, 2);
        assert!((0..40).all(|slot| slots.slot(slots.target(slot)) == slot));
    }
}
