//! The wire as arguments of `tc`: netem's `rate` sends one packet after the other, each for as long as its bits take,
//! and its `delay` starts when the last bit was sent.

use bufferscope_scenario::sizes::ETHERNET_HEADER_BYTES;
use bufferscope_scenario::{Cells, Encapsulation, Link, Netem, Port, Scenario};

use super::{PlanError, Wire, units};

/// Packets that a netem may hold: enough for a second of 10 Gbit/s, so that a wire never becomes a queue that drops.
const LIMIT: u32 = 1_000_000;

/// Handle of the netem with a wire's impairments.
pub const FAULTS_HANDLE: u32 = 2 << 16;

/// Entries of a size table, one for each length from 1 on: enough for every packet that no offload made large.
const SIZES: u32 = 2048;

/// Refuses link layers for which `tc` has no size table.
pub(super) fn check(scenario: &Scenario) -> Result<(), PlanError> {
    let is_ptm = |port: &Port| port.rate.is_some() && port.encapsulation.cells == Cells::Ptm;
    let mut ports = scenario.port_names().zip(scenario.ports());
    ports.find(|(_, port)| is_ptm(port)).map_or(Ok(()), |(port, _)| Err(PlanError::Ptm { port }))
}

/// A link's wires, in the order of the ends that they lead to.
pub(super) fn of_link(link: &Link) -> [Wire; 2] {
    [of(&link.reverse), of(&link.forward)]
}

/// The wires of a link with impairments, in the same order.
pub(super) fn faults(link: &Link) -> [Option<Netem>; 2] {
    [&link.reverse, &link.forward].map(|port| port.faults.map(|faults| faults.netem(port.delay_ns)))
}

/// Whether packets have to wait on a link, or may be lost.
pub(super) fn is_needed(link: &Link) -> bool {
    of_link(link).into_iter().any(holds) || link.ports().into_iter().any(|port| port.faults.is_some())
}

/// The wire of a port, at the rate with which the experiment begins. Below a ring, the network card sends at the port's
/// rate, so this wire has none.
fn of(port: &Port) -> Wire {
    let rate = port.rate.as_ref().filter(|_| port.ring.is_none());
    Wire {
        rate_bps: match port.boost {
            Some(boost) => rate.map(|_| boost.rate_bps),
            None => rate.and_then(|rate| Some(rate.steps().first()?.bits_per_second)),
        },
        encapsulation: port.encapsulation,
        // A netem inside this one delays, because a netem with a rate does not let its delays overlap.
        delay_ns: if port.faults.is_some() { 0 } else { port.delay_ns },
    }
}

/// Whether packets have to wait on this wire.
pub(super) fn holds(wire: Wire) -> bool {
    wire.rate_bps.is_some() || wire.delay_ns > 0
}

/// The qdisc of a device as arguments of `tc`, from `root` on.
pub(super) fn netem(wire: Wire) -> String {
    let mut text = format!("root handle 1:{} netem limit {LIMIT}", size_table(wire.encapsulation));
    if wire.delay_ns > 0 {
        text += &format!(" delay {}", units::time(wire.delay_ns));
    }
    if let Some(rate_bps) = wire.rate_bps {
        text += &format!(" rate {}", units::rate(rate_bps));
    }
    text
}

/// A size table makes rates, queue limits and statistics count the lengths that packets have on the scenario's link
/// instead of the kernel's. Its `overhead` is what the link layer adds to the kernel's count of a packet. One that only
/// adds has no entries.
pub(super) fn size_table(link: Encapsulation) -> String {
    let more = i64::from(link.overhead_bytes) - i64::from(ETHERNET_HEADER_BYTES);
    let layer = if link.cells == Cells::Atm { "atm" } else { "ethernet" };
    if !link.only_adds() {
        let (mtu, mpu) = (SIZES - 1, link.mpu_bytes);
        return format!(" stab mtu {mtu} tsize {SIZES} mpu {mpu} overhead {more} linklayer {layer}");
    }
    match more {
        0 => String::new(),
        more => format!(" stab overhead {more} linklayer {layer}"),
    }
}
