//! Drivers' transmit rings. A port with a ring sends through a network card of a virtual machine. The card's other end
//! is another card of the same machine.
//!
//! The card sends one packet per tick, and every packet takes the time of a full one. This drains the ring as a wire
//! drains the ring of a real card, and the ring fills up in the same way. So a port with a ring has no shaper; its
//! queueing discipline passes packets to the driver.

use bufferscope_scenario::sizes::MTU_BYTES;
use bufferscope_scenario::{ByteLimits, Completion, Link, Port, Scenario};

use super::{Cable, Plan, PlanError, wire};

/// Ring sizes that `virtio_net` can be set to: powers of two up to the size of the device, with room for a packet in
/// fragments.
const SIZES: [u32; 3] = [64, 128, 256];
/// Longest time per packet that the card's timer can be set to: 32 bits of nanoseconds.
const LONGEST_NS: u64 = u32::MAX as u64;
/// Most pairs of cards. The virtual machine has slots for these and a few to spare.
const MOST_PAIRS: usize = 8;

/// Two network cards that face each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cards {
    /// Number of the pair within the plan.
    pub number: usize,
    /// How long each end takes to send a packet; `None`: a negligible time.
    pub wire_ns: [Option<u64>; 2],
}

/// A port's ring, and where to count the packets that have left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRing {
    /// Its size in descriptors, as `ethtool -G` sets it.
    pub size_packets: u32,
    /// The byte queue limits that bound its contents, if there are any.
    pub bql: Option<ByteLimits>,
    /// The pair of cards, and its sending end.
    pub card: (usize, usize),
    /// The size that every packet counts as on the wire.
    pub frame_bytes: u64,
}

impl Cards {
    /// The hardware address by which a card is found in the machine before it has the addresses of the plan.
    pub fn factory_address(number: usize, end: usize) -> String {
        format!("02:01:00:00:{number:02x}:{end:02x}")
    }
}

impl Plan {
    /// The pairs of network cards that the plan needs, in the order of their numbers.
    pub fn cards(&self) -> impl Iterator<Item = Cards> {
        self.cables.iter().filter_map(|cable| cable.cards)
    }

    /// The cable of a pair of cards.
    pub fn cable_of(&self, number: usize) -> Option<&Cable> {
        self.cables.iter().find(|cable| cable.cards.is_some_and(|cards| cards.number == number))
    }
}

/// Refuses rings that no card can have.
pub(super) fn check(scenario: &Scenario) -> Result<(), PlanError> {
    for (name, port) in scenario.port_names().zip(scenario.ports()) {
        check_port(&name, port)?;
    }
    let pairs = scenario.links.iter().map(|link| if delayed(link) { 2 } else { 1 } - idle_cables(link)).sum::<usize>();
    if let Some(port) = scenario.first_ring().filter(|_| pairs > MOST_PAIRS) {
        let reason = format!("is one of more than {MOST_PAIRS}, the most that a virtual machine supports");
        return Err(PlanError::Ring { port, reason });
    }
    Ok(())
}

fn check_port(name: &str, port: &Port) -> Result<(), PlanError> {
    let refuse = |reason| Err(PlanError::Ring { port: name.to_owned(), reason });
    let (Some(ring), Some(rate)) = (port.ring, &port.rate) else { return Ok(()) };
    if !SIZES.contains(&ring.size_packets) {
        let allowed = SIZES.map(|size| format!("{size}p")).join(", ");
        return refuse(format!("has {}p, which virtio_net cannot be set to; allowed: {allowed}", ring.size_packets));
    }
    if ring.completion != Completion::default() {
        return refuse("has a completion, and a virtual machine's card reports each packet at once".to_owned());
    }
    if rate.steps().len() > 1 {
        return refuse("needs a wire of constant rate: a network card's cannot change while it runs".to_owned());
    }
    if !port.encapsulation.only_adds() {
        return refuse(
            "needs an overhead that only adds bytes: a network card has neither cells nor an mpu".to_owned(),
        );
    }
    if port.boost.is_some() {
        return refuse("needs a wire of constant rate: a network card has no boost".to_owned());
    }
    match wire_ns(port) {
        Some(ns) if ns > LONGEST_NS => {
            refuse(format!("needs a wire that sends a full packet in {LONGEST_NS} ns at most"))
        }
        _ => Ok(()),
    }
}

/// How long a full packet takes on a port's wire, if that is a card's wire.
pub(super) fn wire_ns(port: &Port) -> Option<u64> {
    port.ring?;
    let rate = port.rate.as_ref()?.steps().first()?.bits_per_second;
    Some((frame_bytes(port) * 8 * 1_000_000_000).div_ceil(rate))
}

/// The size that every packet counts as on the wire of a card.
pub(super) fn frame_bytes(port: &Port) -> u64 {
    u64::from(port.encapsulation.frame_bytes(MTU_BYTES))
}

/// Whether a link passes through a wire's namespace.
fn delayed(link: &Link) -> bool {
    wire::is_needed(link)
}

/// Number of a link's cables on which no card sends.
fn idle_cables(link: &Link) -> usize {
    let rings = link.ports().map(|port| port.ring.is_some());
    if delayed(link) { rings.into_iter().filter(|has| !has).count() } else { usize::from(rings == [false, false]) }
}
