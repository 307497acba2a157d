//! Nodes, cables, addresses, and the namespaces of the wires.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use bufferscope_scenario::{Link, Netem, Scenario};

use super::{Cable, Cards, Delay, DelayBy, Device, Kernel, Namespace, Plan, PlanError, offload, ring, wire};

/// Longest device name: `IFNAMSIZ` minus the terminating zero.
const DEVICE_NAME_BYTES: usize = 15;
/// Each link has a /30 of 10.0.0.0/8.
const MOST_LINKS: usize = 1 << 22;

/// Creates all links and gives the nodes their addresses.
pub(super) fn lay(scenario: &Scenario, kernel: Kernel) -> Result<Plan, PlanError> {
    if scenario.links.len() > MOST_LINKS {
        return Err(PlanError::Malformed(format!("more than {MOST_LINKS} links")));
    }
    let mut names = Names::default();
    let namespaces = scenario.nodes.iter().enumerate().map(|(i, node)| Namespace {
        name: names.choose(&node.name, || format!("node{i}")),
        ip: vec!["link set lo up".into()],
        ..Namespace::default()
    });
    let mut plan = Plan {
        namespaces: namespaces.collect(),
        cables: Vec::new(),
        addresses: node_addresses(scenario),
        delays: Vec::new(),
        ports: Vec::new(),
        rate_changes: Vec::new(),
        segmentation: offload::is_wanted(scenario),
    };
    for (index, link) in scenario.links.iter().enumerate() {
        let ends = [0, 1].map(|side| node_device(scenario, index, side));
        lay_link(&mut plan, &mut names, index, link, ends, kernel);
        address_ends(&mut plan, scenario, index);
    }
    Ok(plan)
}

/// The device of a link on one of its two nodes.
pub(super) fn node_device(scenario: &Scenario, link: usize, side: usize) -> Device {
    let ends = scenario.links[link].ends.map(usize::from);
    Device {
        namespace: ends[side],
        name: towards(&scenario.nodes[ends[1 - side]].name, || format!("link{link}")),
        mac: mac(link, NamespaceKind::Node, side),
    }
}

/// The device of each end of each link, in the scenario's order of links, that of the forward direction's sender first.
/// The device with index `i` sends what leaves through the port `i`.
pub fn link_devices(scenario: &Scenario) -> impl Iterator<Item = Device> {
    (0..scenario.links.len()).flat_map(|link| [0, 1].map(|side| node_device(scenario, link, side)))
}

/// The address of one end of a link.
pub(super) fn end_address(link: usize, side: usize) -> Ipv4Addr {
    let network = u32::from(Ipv4Addr::new(10, 0, 0, 0)) + 4 * link as u32;
    Ipv4Addr::from(network + 1 + side as u32)
}

fn lay_link(plan: &mut Plan, names: &mut Names, index: usize, link: &Link, [a, b]: [Device; 2], kernel: Kernel) {
    let wires = wire::of_link(link);
    let wires_ns = [ring::wire_ns(&link.forward), ring::wire_ns(&link.reverse)];
    if !wire::is_needed(link) {
        lay_cable(plan, [a, b], wires_ns);
        return;
    }
    let namespace = plan.namespaces.len();
    let facing = |side: usize, node: usize| Device {
        namespace,
        name: towards(&plan.namespaces[node].name, || format!("end{side}")),
        mac: mac(index, NamespaceKind::Delay, side),
    };
    let [to_a, to_b] = [facing(0, a.namespace), facing(1, b.namespace)];
    let delay = Delay { link: index, namespace, devices: [to_a.name.clone(), to_b.name.clone()], wires };
    let name = names.choose(&format!("delay-{}", link.name), || format!("delay{index}"));
    plan.namespaces.push(delay_namespace(name, &delay, &wire::faults(link), kernel));
    lay_cable(plan, [a, to_a], [wires_ns[0], None]);
    lay_cable(plan, [to_b, b], [None, wires_ns[1]]);
    plan.delays.push(delay);
}

/// A veth pair, or two cards if one of the ends has a wire of its own.
fn lay_cable(plan: &mut Plan, ends: [Device; 2], wire_ns: [Option<u64>; 2]) {
    let number = plan.cards().count();
    let cards = (wire_ns != [None, None]).then_some(Cards { number, wire_ns });
    plan.cables.push(Cable { ends, cards });
}

/// A bridge between two devices, each of which holds back the packets that leave through it. For the relay, only the
/// devices.
fn delay_namespace(name: String, delay: &Delay, faults: &[Option<Netem>; 2], kernel: Kernel) -> Namespace {
    let mut namespace = Namespace { name, devices: delay.devices.to_vec(), ..Namespace::default() };
    if kernel.delay_by == DelayBy::Netem {
        namespace.ip.push("link add name bridge0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0".into());
        namespace.ip.push("link set bridge0 up".into());
        for ((device, wire), faults) in delay.devices.iter().zip(delay.wires).zip(faults) {
            namespace.ip.push(format!("link set dev {device} master bridge0"));
            if wire::holds(wire) {
                namespace.tc.push(format!("qdisc add dev {device} {}", wire::netem(wire, kernel.clock)));
            }
            if let Some(faults) = faults {
                let parent = if wire::holds(wire) { "parent 1:1" } else { "root" };
                let handle = wire::FAULTS_HANDLE >> 16;
                let netem = format!("{parent} handle {handle:x}: netem {}", faults.arguments());
                namespace.tc.push(format!("qdisc add dev {device} {netem}"));
            }
        }
    }
    namespace.ip.extend(delay.devices.iter().map(|device| format!("link set dev {device} up")));
    namespace
}

fn address_ends(plan: &mut Plan, scenario: &Scenario, link: usize) {
    for side in [0, 1] {
        let (own, other) = (node_device(scenario, link, side), node_device(scenario, link, 1 - side));
        let address = end_address(link, side);
        let most_segments = offload::most_segments(scenario, own.namespace);
        let namespace = &mut plan.namespaces[own.namespace];
        namespace.devices.push(own.name.clone());
        namespace.ip.extend([
            format!("link set dev {} gso_max_segs {most_segments}", own.name),
            format!("address add {address}/30 dev {}", own.name),
            format!("link set dev {} up", own.name),
            format!(
                "neighbour add {} lladdr {} dev {} nud permanent",
                end_address(link, 1 - side),
                other.mac,
                own.name
            ),
        ]);
    }
}

/// `to-h2`, if that can be a device's name.
fn towards(node: &str, fallback: impl Fn() -> String) -> String {
    let name = format!("to-{node}");
    if name.len() <= DEVICE_NAME_BYTES && plain(node) { name } else { fallback() }
}

#[derive(Clone, Copy)]
enum NamespaceKind {
    Node = 0,
    Delay = 1,
}

/// A locally administered address that encodes where the device is: the link's number, then whether it is on a node or
/// in a delay namespace, then the side.
fn mac(link: usize, kind: NamespaceKind, side: usize) -> String {
    mac_bytes(link, kind, side).map(|byte| format!("{byte:02x}")).join(":")
}

fn mac_bytes(link: usize, kind: NamespaceKind, side: usize) -> [u8; 6] {
    let [_, high, middle, low] = (link as u32).to_be_bytes();
    [2, 0, high, middle, low, (kind as u8) << 4 | side as u8]
}

/// The hardware address of the device at one end of a link, 0 or 1.
pub fn hardware_address(link: usize, side: usize) -> [u8; 6] {
    mac_bytes(link, NamespaceKind::Node, side)
}

/// The address at which each node is reached: that of its end of its first link.
pub fn node_addresses(scenario: &Scenario) -> Vec<Ipv4Addr> {
    let mut addresses = vec![Ipv4Addr::UNSPECIFIED; scenario.nodes.len()];
    for (link, ends) in scenario.links.iter().map(|link| link.ends).enumerate() {
        for (side, node) in ends.map(usize::from).into_iter().enumerate() {
            if addresses[node].is_unspecified() {
                addresses[node] = end_address(link, side);
            }
        }
    }
    addresses
}

fn plain(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !name.starts_with(['.', '-'])
}

/// Names of namespaces: distinct, and usable as file names.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn choose(&mut self, wanted: &str, fallback: impl Fn() -> String) -> String {
        let mut name = if plain(wanted) { wanted.to_owned() } else { fallback() };
        while !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}
