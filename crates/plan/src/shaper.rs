//! A port's rate: an HTB class with the port's queueing discipline as its leaf, and the changes of the rate over time.

use bufferscope_scenario::{Port, RateStep, Scenario};

use super::network::node_device;
use super::{Plan, PlanError, RateChange, ShapedPort, qdisc, units};

/// What the kernel counts of a packet on a veth device beyond its IP header and payload: the Ethernet header.
const KERNEL_OVERHEAD_BYTES: i64 = 14;
/// A full Ethernet frame as the kernel counts it.
const FRAME_BYTES: u64 = 1514;
/// The wire may catch up on this much time when the kernel wakes late; a burst after an idle time is no longer than this.
const CATCH_UP_NS: u64 = 250_000;
/// `sch_htb`'s handle minor of the leaf: see [`LEAF_HANDLE`].
const LEAF: &str = "10:";

/// Handle of every port's own queueing discipline (`10:0`), by which its statistics are found.
pub const LEAF_HANDLE: u32 = 0x10 << 16;

/// Adds every port that has a rate.
pub(super) fn add(scenario: &Scenario, plan: &mut Plan) -> Result<(), PlanError> {
    for (index, link) in scenario.links.iter().enumerate() {
        let names = link.port_names(&scenario.nodes);
        for (side, (port, name)) in [&link.forward, &link.reverse].into_iter().zip(names).enumerate() {
            add_port(scenario, plan, port, (index, side), name)?;
        }
    }
    plan.rate_changes.sort_by_key(|change| change.at_ns);
    Ok(())
}

fn add_port(
    scenario: &Scenario,
    plan: &mut Plan,
    port: &Port,
    place: (usize, usize),
    name: String,
) -> Result<(), PlanError> {
    let Some([first, later @ ..]) = port.rate.as_ref().map(|rate| rate.steps()) else { return Ok(()) };
    let device = node_device(scenario, place.0, place.1);
    let leaf = qdisc::arguments(&port.queue, &name)?;
    let on = &device.name;
    plan.namespaces[device.namespace].tc.extend([
        format!("qdisc add dev {on} root handle 1:{} htb default 1", size_table(port.overhead_bytes)),
        format!("class add {}", class(on, first)),
        format!("qdisc add dev {on} parent 1:1 handle {LEAF} {leaf}"),
    ]);
    plan.rate_changes.extend(later.iter().map(|step| RateChange {
        at_ns: step.from_ns,
        namespace: device.namespace,
        tc: format!("class change {}", class(on, step)),
    }));
    plan.ports.push(ShapedPort { name, node: device.namespace as u16, device: device.name, place });
    Ok(())
}

/// `quantum` is of no effect on a lone class; it is set because the kernel complains about the one it would choose.
fn class(device: &str, step: &RateStep) -> String {
    let rate = units::rate(step.bits_per_second);
    let burst = FRAME_BYTES.max((u128::from(step.bits_per_second) * u128::from(CATCH_UP_NS) / 8_000_000_000) as u64);
    format!("dev {device} parent 1: classid 1:1 htb rate {rate} burst {burst}b cburst {burst}b quantum {FRAME_BYTES}")
}

/// A size table makes shaper, queue limits and statistics alike count the scenario's overhead instead of the kernel's.
fn size_table(overhead_bytes: u32) -> String {
    match i64::from(overhead_bytes) - KERNEL_OVERHEAD_BYTES {
        0 => String::new(),
        more => format!(" stab overhead {more} linklayer ethernet"),
    }
}
