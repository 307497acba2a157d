//! The wire as arguments of `tc`: netem's `rate` sends one packet after the other, each for as long as its bits take,
//! and its `delay` starts when the last bit was sent.

use bufferscope_scenario::sizes::{DATAGRAM_HEADER_BYTES, ETHERNET_HEADER_BYTES};
use bufferscope_scenario::{Cells, Encapsulation, Link, Netem, Port, Qdisc, Scenario};

use super::{Clock, PlanError, Wire, units};

/// Nanoseconds of a microsecond.
const US: u64 = 1_000;

/// Packets that a netem may hold: enough for a second of 10 Gbit/s, so that a wire never becomes a queue that drops.
const LIMIT: u32 = 1_000_000;

/// Handle of the netem with a wire's impairments.
pub const FAULTS_HANDLE: u32 = 2 << 16;

/// Entries of a size table, one for each length from 1 on: enough for every packet that no offload made large.
const SIZES: u32 = 2048;

/// Refuses link layers for which `tc` has no size table, and times of netem that not every `tc` passes on: before iproute2
/// 6.9, its unit is a microsecond. The propagation delay is rounded instead.
pub(super) fn check(scenario: &Scenario) -> Result<(), PlanError> {
    scenario.port_names().zip(scenario.ports()).try_for_each(|(name, port)| {
        if port.rate.is_some() && port.encapsulation.cells == Cells::Ptm {
            return Err(PlanError::Ptm { port: name });
        }
        let mut times: Vec<_> = port.faults.iter().flat_map(|faults| faults.netem(0).times_ns()).collect();
        for qdisc in port.queue.all() {
            if let Qdisc::Netem(netem) = qdisc {
                times.extend(netem.times_ns());
            }
        }
        match times.into_iter().find(|(_, ns)| !ns.is_multiple_of(US)) {
            Some((what, value_ns)) => Err(PlanError::TooFine { location: name, what, value_ns, holder: "netem" }),
            None => Ok(()),
        }
    })
}

/// A link's wires, in the order of the ends that they lead to.
pub(super) fn of_link(link: &Link) -> [Wire; 2] {
    [of(&link.reverse), of(&link.forward)]
}

/// The wires of a link with impairments, in the same order.
pub(super) fn faults(link: &Link) -> [Option<Netem>; 2] {
    [&link.reverse, &link.forward].map(|port| port.faults.map(|faults| faults.netem(rounded(port.delay_ns))))
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
pub(super) fn netem(wire: Wire, clock: Clock) -> String {
    let slack = wire.rate_bps.filter(|_| clock == Clock::Virtual).and_then(|rate_bps| Slack::new(wire, rate_bps));
    let mut text = format!("root handle 1:{} netem limit {LIMIT}", size_table(wire.encapsulation));
    let delay_ns = rounded(wire.delay_ns).saturating_add(slack.map_or(0, |slack| slack.us * US));
    if delay_ns > 0 {
        text += &format!(" delay {}", units::time(delay_ns));
    }
    if let Some(rate_bps) = wire.rate_bps {
        text += &format!(" rate {}", units::rate(rate_bps));
    }
    if let Some(slack) = slack {
        text += &format!(" -{}", slack.bytes);
    }
    text
}

/// A propagation delay in whole microseconds.
fn rounded(delay_ns: u64) -> u64 {
    delay_ns.saturating_add(US / 2) / US * US
}

/// A part of each packet's transmission that netem counts as delay instead. A packet takes as long as before, but netem can
/// send the next one earlier by this time. The shaper in front of it keeps the rate: it sends late when the kernel was
/// busy, and catches up afterwards. A netem with exactly the shaper's rate would stay behind by the longest such
/// interruption until the port is idle. On a machine's own clock there is no slack: there, the shaper may be ahead, and
/// the wire must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slack {
    bytes: u32,
    /// The time of these bytes, in microseconds.
    us: u64,
}

impl Slack {
    /// At most the whole transmission of the smallest packet, because netem does not check that a length stays above 0. Of
    /// that and half of it, what is closest to a whole number of microseconds, the unit of `tc`. `None` where the
    /// smallest packet takes less than one.
    fn new(wire: Wire, rate_bps: u64) -> Option<Self> {
        let smallest = wire.encapsulation.frame_bytes(DATAGRAM_HEADER_BYTES);
        let time_ns = |bytes: u32| u64::from(bytes) * 8_000_000_000 / rate_bps;
        let error_ns = |bytes: &u32| {
            let past_ns = time_ns(*bytes) % US;
            past_ns.min(US - past_ns)
        };
        let bytes = (smallest.div_ceil(2)..=smallest).rev().min_by_key(error_ns)?;
        let us = (time_ns(bytes) + US / 2) / US;
        (us > 0).then_some(Self { bytes, us })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(encapsulation: Encapsulation, rate_bps: u64) -> String {
        netem(Wire { rate_bps: Some(rate_bps), encapsulation, delay_ns: 5_000_000 }, Clock::Virtual)
    }

    /// At 10 Mbit/s, 5 bytes take 4 us, at 100 Mbit/s, 25 bytes 2 us, and at 1 Gbit/s, no packet's headers take one. The
    /// smallest packet has 42 bytes with an Ethernet header, 64 on a DOCSIS link, and is one cell on an ATM link.
    #[test]
    fn a_guests_wire_can_catch_up_by_at_most_the_smallest_packet() {
        let ethernet = Encapsulation::adding(14);
        assert_eq!(wire(ethernet, 10_000_000), "root handle 1: netem limit 1000000 delay 5032us rate 10mbit -40");
        assert_eq!(wire(ethernet, 100_000_000), "root handle 1: netem limit 1000000 delay 5002us rate 100mbit -25");
        assert_eq!(wire(ethernet, 1_000_000_000), "root handle 1: netem limit 1000000 delay 5ms rate 1gbit");
        let arguments = |encapsulation| wire(encapsulation, 1_000_000).split_once(" delay ").unwrap().1.to_owned();
        assert_eq!(arguments(Encapsulation::adding(0)), "5224us rate 1mbit -28");
        assert_eq!(arguments(Encapsulation { mpu_bytes: 64, ..Encapsulation::adding(18) }), "5512us rate 1mbit -64");
        assert_eq!(arguments(Encapsulation { cells: Cells::Atm, ..ethernet }), "5424us rate 1mbit -53");
    }

    #[test]
    fn a_wire_on_a_machines_own_clock_sends_exactly_at_its_rate() {
        let wire = Wire { rate_bps: Some(10_000_000), encapsulation: Encapsulation::adding(14), delay_ns: 5_000_000 };
        assert_eq!(netem(wire, Clock::Real), "root handle 1: netem limit 1000000 delay 5ms rate 10mbit");
    }
}
