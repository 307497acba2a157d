//! A port's rate: a class of a shaper with the port's queueing discipline as its leaf, and the changes of the rate over
//! time.
//! A port with a ring has only the discipline: its network card implements the rate.

use bufferscope_scenario::sizes::FRAME_BYTES;
use bufferscope_scenario::{Boost, PfifoFast, Port, Qdisc, RateSchedule, RateStep, Scenario};

use super::network::node_device;
use super::{
    Cable, Clock, DelayBy, Device, InnerQdisc, Kernel, Parameters, Plan, PlanError, PortRing, RateChange, ShapedPort,
    Wire, qdisc, ring, units, wire,
};

/// The fastest rate that `tc` passes to HFSC: 32 bits of bytes per second.
const FASTEST_HFSC_BPS: u64 = 8 * u32::MAX as u64;
/// The longest time for which HTB counts the tokens that arrive after a packet: `mbuffer` of `net/sched/sch_htb.c`.
const LONGEST_REFILL_S: u64 = 60;
/// Handle of every port's own queueing discipline (`10:0`), by which its statistics are found. Disciplines inside it have
/// the following ones.
pub const LEAF_HANDLE: u32 = 0x10 << 16;

/// How a port's rate is enforced: the next packet leaves when the transmission of the last one is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shaper {
    /// A class with an upper limit (`sch_hfsc`). While packets wait, it keeps to the schedule that began with the first of
    /// them, however late the kernel wakes, and it never sends ahead of it. But a change of the rate moves the beginning
    /// of the schedule to that instant: the packet that is being transmitted no longer counts. And the schedule goes on
    /// while a discipline holds its packets back, so that afterwards it may send faster than the rate for as long.
    Hfsc,
    /// A token bucket (`sch_htb`) that holds this much time, in ns. It limits how much the bucket may catch up when the
    /// kernel wakes late, and how far it is ahead after an idle time. A whole packet would be too much: the queue would
    /// always be one packet shorter than in reality.
    Htb { catch_up_ns: u64 },
    /// The same with a second bucket: the first is the boost's, and the second sends at the boost's rate.
    BoostedHtb { catch_up_ns: u64, boost: Boost },
}

impl Shaper {
    fn new(port: &Port, rate: &RateSchedule, clock: Clock) -> Self {
        let catch_up_ns = match clock {
            Clock::Virtual => 10_000,
            Clock::Real => 250_000,
        };
        let holds_back = port.queue.all().iter().any(|qdisc| qdisc.kind().holds_back);
        match (clock, rate.steps(), port.boost) {
            (_, _, Some(boost)) => Self::BoostedHtb { catch_up_ns, boost },
            (Clock::Virtual, [only], None) if only.bits_per_second <= FASTEST_HFSC_BPS && !holds_back => Self::Hfsc,
            _ => Self::Htb { catch_up_ns },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Hfsc => "hfsc",
            Self::Htb { .. } | Self::BoostedHtb { .. } => "htb",
        }
    }

    /// The arguments of its only class.
    fn class(self, device: &str, step: &RateStep) -> String {
        let rate = units::rate(step.bits_per_second);
        let class = format!("dev {device} parent 1: classid 1:1 {}", self.name());
        match self {
            Self::Hfsc => format!("{class} ls rate {rate} ul rate {rate}"),
            // `quantum` has no effect on a lone class; it is set because the kernel complains about its own default.
            Self::Htb { catch_up_ns } => {
                let burst = burst_bytes(step.bits_per_second, catch_up_ns);
                format!("{class} rate {rate} burst {burst}b cburst {burst}b quantum {FRAME_BYTES}")
            }
            Self::BoostedHtb { catch_up_ns, boost: Boost { rate_bps, bytes } } => {
                let (ceil, cburst) = (units::rate(rate_bps), burst_bytes(rate_bps, catch_up_ns));
                format!("{class} rate {rate} burst {bytes}b ceil {ceil} cburst {cburst}b quantum {FRAME_BYTES}")
            }
        }
    }
}

/// The bytes sent in a time.
fn burst_bytes(bits_per_second: u64, ns: u64) -> u128 {
    (u128::from(bits_per_second) * u128::from(ns)).div_ceil(8_000_000_000)
}

/// Refuses a bucket that HTB can't fill.
fn check_boost(port: &Port, name: &str) -> Result<(), PlanError> {
    let (Some(boost), Some(rate)) = (port.boost, &port.rate) else { return Ok(()) };
    let most = LONGEST_REFILL_S * rate.at(0) / 8;
    if boost.bytes > most {
        let (location, value) = (name.to_owned(), boost.bytes);
        return Err(PlanError::TooLarge { location, what: "boost.bytes", value, holder: "sch_htb", most });
    }
    Ok(())
}

/// Adds every port that has a rate.
pub(super) fn add(scenario: &Scenario, plan: &mut Plan, kernel: Kernel) -> Result<(), PlanError> {
    for (index, link) in scenario.links.iter().enumerate() {
        let names = link.port_names(&scenario.nodes);
        for (side, (port, name)) in link.ports().into_iter().zip(names).enumerate() {
            add_port(scenario, plan, port, (index, side), name, kernel)?;
        }
    }
    plan.rate_changes.sort_by_key(|change| change.at_ns);
    Ok(())
}

fn add_port(
    scenario: &Scenario,
    plan: &mut Plan,
    port: &Port,
    link_direction: (usize, usize),
    name: String,
    kernel: Kernel,
) -> Result<(), PlanError> {
    let Some(rate) = &port.rate else { return Ok(()) };
    let [first, later @ ..] = rate.steps() else { return Ok(()) };
    check_boost(port, &name)?;
    let device = node_device(scenario, link_direction.0, link_direction.1);
    let rate_bps = port.boost.map_or(first.bits_per_second, |boost| boost.rate_bps);
    let (on, node) = (&device.name, device.namespace as u16);
    plan.namespaces[device.namespace].ip.extend(txqueuelen(port, on));
    let table = wire::size_table(port.encapsulation);
    if let Some(ring) = port_ring(plan, port, &device) {
        let inner = attach(plan, port, &device, (&name, "root", &table))?;
        plan.ports.push(ShapedPort {
            name,
            node,
            device: device.name,
            link_direction,
            rate_bps,
            inner,
            ring: Some(ring),
        });
        return Ok(());
    }
    let shaper = Shaper::new(port, rate, kernel.clock);
    plan.namespaces[device.namespace].tc.extend([
        format!("qdisc add dev {on} root handle 1:{table} {} default 1", shaper.name()),
        format!("class add {}", shaper.class(on, first)),
    ]);
    let inner = attach(plan, port, &device, (&name, "parent 1:1", ""))?;
    plan.rate_changes.extend(rate_changes(plan, link_direction, &device, kernel, shaper, later));
    plan.ports.push(ShapedPort { name, node, device: device.name, link_direction, rate_bps, inner, ring: None });
    Ok(())
}

/// Sets the length of a device's queue where a discipline takes it from there.
fn txqueuelen(port: &Port, device: &str) -> Option<String> {
    let bands = port.queue.all().into_iter().find_map(|qdisc| match qdisc {
        Qdisc::PfifoFast(pfifo_fast) => Some(pfifo_fast.band_packets),
        _ => None,
    });
    let unusual = bands.filter(|packets| *packets != PfifoFast::USUAL_PACKETS)?;
    Some(format!("link set dev {device} txqueuelen {unusual}"))
}

/// Attaches a port's discipline at a parent. Returns the disciplines inside it.
fn attach(
    plan: &mut Plan,
    port: &Port,
    device: &Device,
    (name, parent, table): (&str, &str, &str),
) -> Result<Vec<InnerQdisc>, PlanError> {
    let mut attaching = qdisc::Attaching::new(&device.name, name);
    attaching.attach(&port.queue, 0, parent, table)?;
    let namespace = &mut plan.namespaces[device.namespace];
    let before = namespace.tc.len();
    namespace.tc.extend(attaching.lines);
    namespace
        .parameters
        .extend(attaching.parameters.into_iter().map(|own| Parameters { command: before + own.command, ..own }));
    Ok(attaching.attached.split_off(1))
}

/// The changes of the rate of the port that is added next. Each changes the wire first, so that its new rate is in force
/// when a packet leaves the queue at the new rate.
fn rate_changes(
    plan: &Plan,
    link_direction: (usize, usize),
    device: &Device,
    kernel: Kernel,
    shaper: Shaper,
    later: &[RateStep],
) -> Vec<RateChange> {
    let Some(index) = plan.delays.iter().position(|delay| delay.link == link_direction.0) else { return Vec::new() };
    let (delay, side) = (&plan.delays[index], 1 - link_direction.1);
    let netem = |step: &RateStep| {
        let wire = Wire { rate_bps: Some(step.bits_per_second), ..delay.wires[side] };
        let wire = wire::netem(wire, kernel.clock);
        (delay.namespace, format!("qdisc change dev {} {wire}", delay.devices[side]))
    };
    let port = plan.ports.len();
    let change = |step: &RateStep| RateChange {
        at_ns: step.from_ns,
        port,
        rate_bps: step.bits_per_second,
        wire: (index, side),
        commands: (kernel.delay_by == DelayBy::Netem)
            .then(|| netem(step))
            .into_iter()
            .chain([(device.namespace, format!("class change {}", shaper.class(&device.name, step)))])
            .collect(),
    };
    later.iter().map(change).collect()
}

/// The ring of the card that is a port's device.
fn port_ring(plan: &Plan, port: &Port, device: &Device) -> Option<PortRing> {
    let found = port.ring?;
    let sends = |cable: &Cable| Some((cable.cards?.number, cable.ends.iter().position(|end| end == device)?));
    let card = plan.cables.iter().find_map(sends)?;
    let frame_bytes = ring::frame_bytes(port);
    Some(PortRing { size_packets: found.size_packets, bql: found.bql, card, frame_bytes })
}
