//! Turns a scenario into the commands that build its network. Nothing is executed here, so the commands can be printed,
//! reviewed and tested.
//!
//! Every node becomes a network namespace and every link a veth pair between two of them. The properties of a link are
//! implemented separately:
//!
//! - The *rate* of a port is an HTB class on the sending node's device, with the port's queueing discipline as its
//!   leaf: packets that wait for the wire are in that leaf and nowhere else. HTB takes a packet from the leaf when the
//!   wire is free, and passes it on when its transmission begins. So the packet that is being sent does not count
//!   towards the leaf's limit, as with a real interface.
//! - The *wire* is implemented in a namespace of its own, through which the link then passes. It sends one packet after
//!   the other: it holds each packet for the time that its bits take at the port's rate, and then for the propagation
//!   delay. A delay in the shaper's own qdisc would overlap the queueing and count delayed packets towards the queue's
//!   limit.
//!
//! - A port with a *ring* has neither a shaper nor a veth device: it sends through a virtual machine's network card,
//!   see [`Cards`].
//!
//! Nothing is resolved at run time: neighbours are permanent and IPv6 is off, so the only packets are those of the
//! traffic.

mod hosts;
mod links;
mod network;
mod offload;
mod qdisc;
mod ring;
mod routes;
mod script;
mod shaper;
mod sysctl;
mod traffic;
mod units;
mod wire;

use std::net::Ipv4Addr;

use bufferscope_scenario::{Dualpi2, Encapsulation, NodeIndex, Scenario, Unreachable};

pub use network::{hardware_address, link_devices, node_addresses};
pub use qdisc::{module, needed as needed_qdiscs, own_arguments as qdisc_arguments};
pub use ring::{Cards, PortRing};
pub use script::Script;
pub use shaper::LEAF_HANDLE;
pub use sysctl::{SYN_LINEAR_TIMEOUTS, is_optional};
pub use traffic::check;
pub use wire::FAULTS_HANDLE;

/// What implements the propagation delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayBy {
    /// The kernel's `sch_netem`, on a bridge in the delay namespace.
    Netem,
    /// This program, which relays between the two devices of the delay namespace.
    Relay,
}

/// The clock of the kernel that carries the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The machine's own clock. Its timers are late when the machine is busy.
    Real,
    /// A guest's virtual clock, which advances with the guest's instructions. Its timers are on time.
    Virtual,
}

/// What the plan of a network depends on besides the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// What delays the packets.
    pub delay_by: DelayBy,
    /// The clock of its timers.
    pub clock: Clock,
}

impl Kernel {
    /// A kernel that runs the scenario's `tc` commands on a machine's own clock.
    pub const USUAL: Self = Self { delay_by: DelayBy::Netem, clock: Clock::Real };
}

/// How to build a scenario's network.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The nodes in the scenario's order (so that a [`NodeIndex`] is an index), then the delay namespaces.
    pub namespaces: Vec<Namespace>,
    /// The cables, which are created first.
    pub cables: Vec<Cable>,
    /// The address at which each node is reached.
    pub addresses: Vec<Ipv4Addr>,
    /// The wires.
    pub delays: Vec<Delay>,
    /// The ports that have a rate, in the scenario's order of links, forward first.
    pub ports: Vec<ShapedPort>,
    /// The changes of rates while the experiment runs, in order of time.
    pub rate_changes: Vec<RateChange>,
    /// Whether segmentation offload stays on. Hosts then send packets of several segments, which stay whole; only
    /// receive offload (the joining of arriving packets) is turned off.
    pub segmentation: bool,
}

/// A network namespace and what is set up inside it, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its name: that of the node, if it can be a file name.
    pub name: String,
    /// Settings under `/proc/sys`, dotted as `sysctl` wants them.
    pub sysctls: Vec<(&'static str, String)>,
    /// Arguments of `ip`, one command a line.
    pub ip: Vec<String>,
    /// Its devices, on which every offload that changes packets is turned off, except for [`Plan::segmentation`].
    pub devices: Vec<String>,
    /// Arguments of `tc`, one command a line.
    pub tc: Vec<String>,
    /// The parameters that these commands leave out.
    pub parameters: Vec<Parameters>,
}

/// The parameters of a discipline that is newer than many an iproute2, whose `tc` then passes on the discipline's name
/// but no parameters. `tc` creates it without them, and the agent sets them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Index in [`Namespace::tc`] of the command that creates the discipline.
    pub command: usize,
    /// Its device.
    pub device: String,
    /// Its handle.
    pub handle: u32,
    /// Its parameters.
    pub dualpi2: Dualpi2,
    /// What a `tc` that knows the discipline takes at the end of the command. Empty if all have the kernel's defaults.
    pub arguments: String,
}

/// A veth pair, or two network cards of the machine that face each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Its two devices.
    pub ends: [Device; 2],
    /// The cards; `None` for a veth pair.
    pub cards: Option<Cards>,
}

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Index of its namespace.
    pub namespace: usize,
    /// Its name there.
    pub name: String,
    /// Its hardware address.
    pub mac: String,
}

/// A link's two wires, one per direction. A packet passes through a wire after it was taken from its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Index of the link in the scenario.
    pub link: usize,
    /// Index of its namespace.
    pub namespace: usize,
    /// The device facing each end of the link.
    pub devices: [String; 2],
    /// The wire that a packet passes through before it leaves through each of the two devices.
    pub wires: [Wire; 2],
}

/// One direction of a link: packets are sent one after the other, and each then propagates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The rate in bits per second with which the experiment begins; `None` for a wire on which sending takes no time.
    pub rate_bps: Option<u64>,
    /// The overhead of the link layer.
    pub encapsulation: Encapsulation,
    /// The propagation delay.
    pub delay_ns: u64,
}

/// A port with a rate, and where its queue can be read.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapedPort {
    /// `r1>h2`.
    pub name: String,
    /// The sending node.
    pub node: NodeIndex,
    /// The device in that node's namespace.
    pub device: String,
    /// Link and direction (0 forward, 1 reverse) in the scenario.
    pub link_direction: (usize, usize),
    /// The rate in bits per second with which the experiment begins.
    pub rate_bps: u64,
    /// The disciplines inside its queueing discipline, each before those inside it in turn.
    pub inner: Vec<InnerQdisc>,
    /// Its ring, if it has one.
    pub ring: Option<PortRing>,
}

/// A queueing discipline inside another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerQdisc {
    /// Its handle.
    pub handle: u32,
    /// Its parent: 0 for the port's own discipline, or the number, counted from 1, in [`ShapedPort::inner`].
    pub parent: usize,
}

/// A change of a port's rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateChange {
    /// When.
    pub at_ns: u64,
    /// The index of the port in [`Plan::ports`].
    pub port: usize,
    /// The new rate.
    pub rate_bps: u64,
    /// The wire whose rate changes: the index of its [`Delay`], and which of the two wires there.
    pub wire: (usize, usize),
    /// How to make the change: indices of namespaces, and arguments of `tc`.
    pub commands: Vec<(usize, String)>,
}

/// The kernel cannot build the network that the scenario asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A value that Linux can't hold.
    #[error(
        "{location}: {what} {value} is more than Linux' {holder} can hold ({most}); use a smaller one, or --engine sim"
    )]
    TooLarge {
        /// Port or node.
        location: String,
        /// The quantity.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The part of the kernel that can't hold it.
        holder: &'static str,
        /// The largest value that it can hold.
        most: u64,
    },
    /// A time with a finer resolution than the kernel's.
    #[error(
        "{location}: {what} of {value_ns}ns is not a whole number of microseconds, as Linux' {holder} counts; \
             use a multiple of 1us, or --engine sim"
    )]
    TooFine {
        /// The port.
        location: String,
        /// The quantity.
        what: &'static str,
        /// Its value.
        value_ns: u64,
        /// The discipline that counts in microseconds.
        holder: &'static str,
    },
    /// A congestion control that only the simulator has.
    #[error("traffic `{traffic}`: no released Linux kernel has the congestion control {congestion}; use --engine sim")]
    Congestion {
        /// The entry of traffic.
        traffic: String,
        /// The control's name in experiment files.
        congestion: &'static str,
    },
    /// An interface on top of another, which only the simulator has.
    #[error("{port} has a stacked interface, and only the simulator has those: use --engine sim, or leave it out")]
    Stacked {
        /// The port.
        port: String,
    },
    /// A kind of traffic that only the simulator's hosts have.
    #[error("traffic `{traffic}`: the kernel engines do not implement {kind}; use --engine sim")]
    Traffic {
        /// The entry of traffic.
        traffic: String,
        /// Its kind.
        kind: &'static str,
    },
    /// A link layer of PTM, which only the simulator has.
    #[error(
        "the overhead of {port} is that of PTM, and Linux' size tables know only ATM's cells: \
             use a rate of 64/65 and atm = \"noatm\", or --engine sim"
    )]
    Ptm {
        /// The port.
        port: String,
    },
    /// A ring that no device can have.
    #[error("the ring of {port} {reason}")]
    Ring {
        /// The port.
        port: String,
        /// Why not, and what is possible.
        reason: String,
    },
    /// A radio channel, which no kernel has without radios.
    #[error(
        "wifi `{name}`: Linux' virtual radios (mac80211_hwsim) take no time to send, so packets never queue for them; \
             use --engine sim"
    )]
    Wifi {
        /// The network.
        name: String,
    },
    /// A link that only the simulator has.
    #[error("{port}: {what}; use --engine sim")]
    Link {
        /// The port.
        port: String,
        /// What Linux can't do.
        what: &'static str,
    },
    /// Segmentation offload where packets cannot stay whole up to the receiver.
    #[error("host `{node}`: tcp.gso_max_segs {reason}; leave it out, or use --engine sim")]
    Offload {
        /// The host.
        node: String,
        /// Why not.
        reason: &'static str,
    },
    /// Traffic between nodes that no links join.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// A scenario that the loader would have refused.
    #[error("not a scenario: {0}")]
    Malformed(String),
}

impl Plan {
    /// Plans a scenario's network.
    pub fn new(scenario: &Scenario, kernel: Kernel) -> Result<Self, PlanError> {
        check_indices(scenario)?;
        links::check(scenario, kernel.delay_by)?;
        if let Some(wifi) = scenario.wifi.first() {
            return Err(PlanError::Wifi { name: wifi.name.clone() });
        }
        if let Some((port, _)) = scenario.port_names().zip(scenario.ports()).find(|(_, port)| port.stacked.is_some()) {
            return Err(PlanError::Stacked { port });
        }
        ring::check(scenario)?;
        wire::check(scenario)?;
        offload::check(scenario, kernel.delay_by)?;
        let mut plan = network::lay(scenario, kernel)?;
        routes::add(scenario, &mut plan)?;
        sysctl::add(scenario, &mut plan);
        shaper::add(scenario, &mut plan, kernel)?;
        Ok(plan)
    }

    /// The `ip` command that creates a veth cable; `namespace` maps an index to the name of the namespace.
    pub fn cable_command(&self, cable: &Cable, namespace: impl Fn(usize) -> String) -> String {
        let [a, b] = &cable.ends;
        format!(
            "link add name {} address {} netns {} type veth peer name {} address {} netns {}",
            a.name,
            a.mac,
            namespace(a.namespace),
            b.name,
            b.mac,
            namespace(b.namespace)
        )
    }
}

/// Refuses indices that point nowhere. A scenario from the loader has none, but one from outside may.
fn check_indices(scenario: &Scenario) -> Result<(), PlanError> {
    let nodes = scenario.nodes.len();
    let known = |node: NodeIndex| usize::from(node) < nodes;
    for link in &scenario.links {
        if !link.ends.into_iter().all(known) || link.ends[0] == link.ends[1] {
            return Err(PlanError::Malformed(format!("link `{}` does not join two nodes", link.name)));
        }
    }
    for traffic in &scenario.traffic {
        if !known(traffic.from) || !known(traffic.to) || traffic.from == traffic.to {
            return Err(PlanError::Malformed(format!("traffic `{}` is not between two nodes", traffic.name)));
        }
    }
    Ok(())
}
