//! The resolved scenario: what an engine runs.
//!
//! Every number is plain and has its unit in its name, every default is filled in, and every name has become an index
//! that is known to exist. An engine never sees a string that still has to be parsed. A [`Scenario`] is obtained by
//! loading an experiment file (see [`crate::Experiment`]), which refuses everything that is impossible. An engine in a
//! separate process reads it back from the JSON that it serialises to.

mod encapsulation;
mod ring;
#[cfg(not(target_family = "wasm"))]
mod schema;
mod tables;
mod varying;
mod wifi;
mod wire;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::link::boost::Boost;
use crate::qdisc::{Netem, Qdisc};
use crate::traffic::TrafficKind;

pub use self::encapsulation::Encapsulation;
pub use self::ring::{Accounting, ByteLimits, Completion, Ring};
#[cfg(not(target_family = "wasm"))]
pub use self::schema::scenario_schema;
pub use self::tables::{Table, Tables};
pub use self::varying::{Cellular, Outages, Variation, Walk};
pub use self::wifi::{Aggregate, Station, Wifi, WifiQueueing};
pub use self::wire::Faults;

/// Index of a node in [`Scenario::nodes`].
pub type NodeIndex = u16;
/// Index of a link in [`Scenario::links`].
pub type LinkIndex = u16;

/// Time between two samples of the flow queues, at least: the kernel answers with a message for each of them.
const FLOW_QUEUES_EVERY_NS: u64 = 100_000_000;

/// A network with its traffic, a *point* of an experiment: what an engine runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// Length of the run. Traffic stops at this time, but outstanding probes may still be answered until their timeout.
    pub duration_ns: u64,
    /// Metrics ignore what happened before this time.
    pub warmup_ns: u64,
    /// Time between two samples of `queues`, and of `flows` unless `flows_interval_ns` says otherwise. Flow queues are
    /// sampled with every n-th sample of `queues`, 100 ms or more apart.
    pub sample_interval_ns: u64,
    /// Time between two samples of `flows`, if it is not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows_interval_ns: Option<u64>,
    /// The tables that are recorded. The others stay empty, and nothing is sampled for them.
    #[serde(default, skip_serializing_if = "Tables::are_default")]
    pub record: Tables,
    /// How much of the `sojourns` table is kept.
    pub sojourns: SojournDetail,
    /// Hosts and routers, in order of first appearance in the file's links.
    pub nodes: Vec<Node>,
    /// Links, in the file's order.
    pub links: Vec<Link>,
    /// Links that share one radio channel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wifi: Vec<Wifi>,
    /// Traffic, in the file's order.
    pub traffic: Vec<Traffic>,
}

impl Scenario {
    /// The most reordering on any path: how much later a packet may arrive than one of the same flow that was sent
    /// after it.
    pub fn delay_spread_ns(&self) -> u64 {
        self.ports().map(Port::delay_spread_ns).fold(0, u64::saturating_add)
    }

    /// Time between two samples of a table; `None` if the table is not recorded, or is not made of samples.
    pub fn sampled_every_ns(&self, table: Table) -> Option<u64> {
        let interval_ns = match table {
            Table::Queues => self.sample_interval_ns,
            Table::FlowQueues => FLOW_QUEUES_EVERY_NS.next_multiple_of(self.sample_interval_ns),
            Table::Flows => self.flows_interval_ns.unwrap_or(self.sample_interval_ns),
            Table::Probes
            | Table::Drops
            | Table::Transfers
            | Table::Sojourns
            | Table::Capacity
            | Table::Estimates
            | Table::RoundTrips
            | Table::Retransmissions
            | Table::OneWay
            | Table::Hops
            | Table::Stages => {
                return None;
            }
        };
        self.record.contains(table).then_some(interval_ns)
    }
}

/// Whether sojourn times are summarised or kept one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SojournDetail {
    /// A histogram with 0.1 % wide buckets for each port layer and second.
    Histogram,
    /// One row per packet.
    Packets,
}

/// A host or router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// The name by which links and traffic refer to it.
    pub name: String,
    /// The TCP settings of connections that end here (sysctls on Linux).
    pub tcp: TcpSettings,
}

/// Settings of a host's TCP, named after Linux' sysctls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpSettings {
    /// Largest receive buffer that auto-tuning may reach (`net.ipv4.tcp_rmem[2]`); default 6 MiB.
    pub rmem_max_bytes: u64,
    /// Receive buffer a connection starts with (`net.ipv4.tcp_rmem[1]`); default 131072.
    pub rmem_default_bytes: u64,
    /// Largest send buffer that auto-tuning may reach (`net.ipv4.tcp_wmem[2]`); default 4 MiB.
    pub wmem_max_bytes: u64,
    /// Send buffer a connection starts with (`net.ipv4.tcp_wmem[1]`); default 16384.
    pub wmem_default_bytes: u64,
    /// The send buffer accepts more data only while less than this is unsent (`net.ipv4.tcp_notsent_lowat`); default:
    /// any amount.
    pub notsent_lowat_bytes: Option<u64>,
    /// Initial congestion window in segments (RFC 6928); default 10.
    pub initial_window_packets: u32,
    /// Maximum number of segments that leave the host as one packet, which stays whole up to the receiver; default 1.
    pub gso_max_segs: u32,
    /// Minimum number of segments in such a packet, if there are as many to send (`net.ipv4.tcp_min_tso_segs`); default 2.
    pub min_tso_segs: u32,
    /// Shrink windows after idle times and while they are not fully used (`net.ipv4.tcp_slow_start_after_idle`);
    /// default true.
    pub slow_start_after_idle: bool,
    /// Begin a connection with the slow-start threshold that the last connection to the same host ended with
    /// (`net.ipv4.tcp_no_ssthresh_metrics_save` = 0); default false.
    pub remember_ssthresh: bool,
    /// Number of SYN timeouts before the timeout starts to double (`net.ipv4.tcp_syn_linear_timeouts`); default 0.
    pub syn_linear_timeouts: u32,
    /// Pacing rate in per cent of one window per round trip, in slow start and above half of the threshold
    /// (`net.ipv4.tcp_pacing_ss_ratio`, `net.ipv4.tcp_pacing_ca_ratio`); default 200 and 120.
    pub pacing_percent: [u32; 2],
}

/// A link between two nodes. Each direction has its own port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The link's name in the file.
    pub name: String,
    /// Indices of the two nodes.
    pub ends: [NodeIndex; 2],
    /// The port from `ends[0]` to `ends[1]`.
    pub forward: Port,
    /// The port from `ends[1]` to `ends[0]`.
    pub reverse: Port,
}

impl Link {
    /// What a user should know about the disciplines of its ports, although all keys are valid.
    pub(crate) fn cautions(&self) -> impl Iterator<Item = String> {
        let ports = [("forward", &self.forward), ("reverse", &self.reverse)];
        ports.into_iter().filter(|(_, port)| port.rate.is_some()).flat_map(|(direction, port)| {
            let path = ["link", &self.name, direction, "queue"].join(".");
            let found: Vec<String> = port.queue.all().iter().filter_map(|qdisc| qdisc.caution(port)).collect();
            found.into_iter().map(move |caution| format!("{path}: {caution}"))
        })
    }
}

/// The sending side of one direction of a link: queueing discipline, ring, then wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PortSettings")]
pub struct Port {
    /// The wire's rate over time; `None`: packets pass without being serialised, so nothing ever queues.
    pub rate: Option<RateSchedule>,
    /// The random process or trace that the rate follows. If there is one, `rate` is constant and has the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<Variation>,
    /// Propagation delay after the last bit was sent.
    pub delay_ns: u64,
    /// The impairments of the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Faults>,
    /// The overhead of the link layer.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
    /// The queueing discipline; it has no effect where `rate` is `None`.
    pub queue: Qdisc,
    /// The driver's transmit ring, if there is one; always `None` where `rate` is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<Ring>,
    /// A higher rate until a bucket of tokens is empty; always `None` where `rate` is `None` or changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boost: Option<Boost>,
    /// The queueing discipline of an interface that is stacked on this one, if there is one; always `None` where `rate` is
    /// `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacked: Option<Qdisc>,
}

impl Port {
    /// The most reordering in the port: how much later a packet may leave it than one of the same flow that was sent
    /// after it. The distribution tables of netem end at four standard deviations.
    fn delay_spread_ns(&self) -> u64 {
        let wire = self.faults.map(|faults| faults.netem(self.delay_ns));
        let disciplines = self.queue.all().into_iter().chain(self.stacked.iter().flat_map(Qdisc::all));
        let netems = disciplines.filter_map(|qdisc| match qdisc {
            Qdisc::Netem(netem) => Some(netem),
            _ => None,
        });
        let overtakes = |netem: &&Netem| netem.reorder.is_some() || (netem.jitter_ns > 0 && netem.rate.is_none());
        let netems = netems.chain(&wire).filter(overtakes);
        netems
            .map(|netem| netem.delay_ns.saturating_add(netem.jitter_ns.saturating_mul(4)))
            .fold(0, u64::saturating_add)
    }
}

/// A wire's rate as a step function of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<RateStep>", into = "Vec<RateStep>")]
#[schemars(inline)]
pub struct RateSchedule {
    steps: Vec<RateStep>,
}

/// One step of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateStep {
    /// From this time on ...
    pub from_ns: u64,
    /// ... the wire sends this many bits a second (never zero).
    pub bits_per_second: u64,
}

/// One entry of the file's `[[traffic]]`, or one part of an entry that becomes several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Its name, which its flows, probes and transfers have in the records. The parts of an entry are called after it,
    /// with dots in between, such as `rrul.up.be`. No entry has a dot in its own name.
    pub name: String,
    /// Index of the node that sends the data (for `web` and `dns` the server; for `ping` and `irtt` the prober; for
    /// `netalyzr` the client; for `voip` the caller).
    pub from: NodeIndex,
    /// Index of the node that receives it.
    pub to: NodeIndex,
    /// When it begins.
    pub start_ns: u64,
    /// When it ends: no new data, probe or page is begun at or after this time.
    pub stop_ns: u64,
    /// Differentiated services code point of all its packets, in both directions (RFC 2474), from 0 to 63.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dscp: u8,
    /// The port of its server, if the file names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Its program and parameters.
    #[serde(flatten)]
    pub kind: TrafficKind,
}

impl Traffic {
    /// The name of the file's entry that it comes from.
    pub fn entry(&self) -> &str {
        self.name.split_once('.').map_or(&self.name, |(entry, _)| entry)
    }
}

/// For fields that are not written if they have their default value.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl RateSchedule {
    /// A schedule with a constant rate. `None` if the rate is zero.
    pub fn constant(bits_per_second: u64) -> Option<Self> {
        Self::new(vec![RateStep { from_ns: 0, bits_per_second }])
    }

    /// A schedule of steps; `None` unless it begins at 0, times strictly increase and no rate is zero.
    pub fn new(steps: Vec<RateStep>) -> Option<Self> {
        let starts_at_zero = steps.first().is_some_and(|s| s.from_ns == 0);
        let increasing = steps.windows(2).all(|w| w[0].from_ns < w[1].from_ns);
        let positive = steps.iter().all(|s| s.bits_per_second > 0);
        (starts_at_zero && increasing && positive).then_some(Self { steps })
    }

    /// The rate at a time, in bits per second.
    pub fn at(&self, now_ns: u64) -> u64 {
        self.steps.iter().rfind(|step| step.from_ns <= now_ns).expect("a step begins at 0").bits_per_second
    }

    /// Follows another schedule from `now_ns` on. The steps before that time stay.
    pub fn follow(&mut self, other: &Self, now_ns: u64) {
        let current = RateStep { from_ns: now_ns, bits_per_second: other.at(now_ns) };
        self.steps.truncate(self.steps.partition_point(|step| step.from_ns < now_ns));
        self.steps.push(current);
        self.steps.extend(other.steps.iter().filter(|step| step.from_ns > now_ns));
    }

    /// The steps, first at time 0, times strictly increasing.
    pub fn steps(&self) -> &[RateStep] {
        &self.steps
    }
}

impl TryFrom<Vec<RateStep>> for RateSchedule {
    type Error = &'static str;

    fn try_from(steps: Vec<RateStep>) -> Result<Self, Self::Error> {
        Self::new(steps).ok_or("a rate schedule begins at 0, its times increase and no rate is zero")
    }
}

impl From<RateSchedule> for Vec<RateStep> {
    fn from(schedule: RateSchedule) -> Self {
        schedule.steps
    }
}

impl Port {
    /// The highest rate at which it ever sends; `None` if it has no rate.
    pub fn fastest_bps(&self) -> Option<u64> {
        if let Some(variation) = &self.variation {
            return Some(variation.fastest_bps());
        }
        let steps = self.rate.as_ref()?.steps().iter().map(|step| step.bits_per_second);
        steps.chain(self.boost.map(|boost| boost.rate_bps)).max()
    }
}

impl Link {
    /// The names of its two ports, forward first: `r1>h2`, `h2>r1`.
    pub fn port_names(&self, nodes: &[Node]) -> [String; 2] {
        let name = |i: NodeIndex| &nodes[usize::from(i)].name;
        let [a, b] = self.ends;
        [format!("{}>{}", name(a), name(b)), format!("{}>{}", name(b), name(a))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(steps: &[(u64, u64)]) -> RateSchedule {
        let steps = steps.iter().map(|&(from_ns, bits_per_second)| RateStep { from_ns, bits_per_second });
        RateSchedule::new(steps.collect()).unwrap()
    }

    #[test]
    fn a_schedule_follows_another_from_a_time_on() {
        let (before, after) = (schedule(&[(0, 1), (10, 2), (20, 3)]), schedule(&[(0, 7), (15, 8), (30, 9)]));
        for (now_ns, expected) in [
            (0, schedule(&[(0, 7), (15, 8), (30, 9)])),
            (5, schedule(&[(0, 1), (5, 7), (15, 8), (30, 9)])),
            (10, schedule(&[(0, 1), (10, 7), (15, 8), (30, 9)])),
            (15, schedule(&[(0, 1), (10, 2), (15, 8), (30, 9)])),
            (40, schedule(&[(0, 1), (10, 2), (20, 3), (40, 9)])),
        ] {
            let mut followed = before.clone();
            followed.follow(&after, now_ns);
            assert_eq!(followed, expected, "from {now_ns} on");
        }
        assert_eq!([0, 9, 10, 25].map(|now_ns| before.at(now_ns)), [1, 1, 2, 3]);
    }
}
