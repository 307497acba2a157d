//! What a live test observed.
//!
//! Times are integer nanoseconds on the client's clock, whose origin is arbitrary; times of the server are mapped to it,
//! to within some tens of milliseconds. Sizes are bytes, rates bit/s. Unknown fields are ignored; missing lists are
//! empty, and missing values unknown.

use serde::{Deserialize, Serialize};

/// Everything that the two programs of a live test observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observations {
    /// The phases, in any order; a kind may occur several times.
    pub phases: Vec<Phase>,
    /// The floods after the load, at most one in each direction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub floods: Vec<Flood>,
    /// The machines at the two ends.
    pub ends: Ends,
    /// How the test was made.
    pub parameters: Parameters,
}

/// The machines at the two ends of the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ends {
    /// The machine whose connection is tested.
    pub client: End,
    /// The other one.
    pub server: End,
}

/// How the test was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// Time between two echoes.
    pub probe_interval_ns: Option<i64>,
    /// The congestion control of the load, by its name in Linux.
    pub congestion: Option<String>,
    /// The size of a full IP packet; 1500 bytes if missing.
    pub mtu_bytes: Option<u32>,
    /// By how much the stamps of the client's packets may be wrong for a while, if it is a program that the kernel does not always
    /// run in time, such as a browser; missing: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamp_error_ns: Option<i64>,
    /// The protocol of a server that is not bufferscope's own; missing: it is. Such a server stamps no probes and sends no
    /// records: handshakes of new TCP connections take the place of echoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// How responsiveness was measured, if the test used that protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responsiveness: Option<Responsiveness>,
}

/// The protocols of servers other than bufferscope's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Responsiveness under working conditions (draft-ietf-ippm-responsiveness).
    Responsiveness,
    /// ndt7 of Measurement Lab.
    Ndt7,
}

/// The parameters of a test of responsiveness, by their names in draft-ietf-ippm-responsiveness-09.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Responsiveness {
    /// Moving average distance: the number of intervals.
    pub mad: u32,
    /// Interval duration.
    pub id_ns: i64,
    /// Trimmed mean percentage: the part of the probes that counts, the fastest first.
    pub tmp: f64,
    /// Standard deviation tolerance.
    pub sdt: f64,
    /// Initial number of concurrent connections ...
    pub inp: u32,
    /// ... number of connections that are added in an interval ...
    pub inc: u32,
    /// ... and the most of them.
    pub mnp: u32,
    /// The most probes per second.
    pub mps: u32,
    /// The part of the measured capacity that probes may use.
    pub ptc: f64,
}

impl Responsiveness {
    /// The defaults of the draft, with another interval duration.
    pub const fn with_interval(id_ns: i64) -> Self {
        Self { mad: 4, id_ns, tmp: 0.95, sdt: 0.05, inp: 1, inc: 1, mnp: 16, mps: 100, ptc: 0.05 }
    }
}

/// The medium of an end's first link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Wired Ethernet.
    Ethernet,
    /// Wi-Fi.
    Wifi,
    /// This machine itself.
    Loopback,
    /// A device without hardware, such as veth or a bridge.
    Virtual,
    /// A tunnel or VPN; the hops are those of the tunnel.
    Tunnel,
    /// A modem for a cellular network.
    Cellular,
    /// Not known, or a kind that is not listed here.
    #[default]
    #[serde(other)]
    Unknown,
}

/// One end of the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// The medium of the first link.
    pub link: LinkKind,
    /// The rate of the first link, as the driver reports it.
    pub link_bps: Option<u64>,
    /// The throughput that the Wi-Fi driver expects (nl80211).
    pub expected_wifi_bps: Option<u64>,
    /// The root queueing discipline, such as `fq_codel`.
    pub qdisc: Option<String>,
    /// Slots of the transmit ring, in packets.
    pub ring_packets: Option<u32>,
    /// Whether byte queue limits (BQL) limit the ring.
    pub bql: Option<bool>,
    /// Whether the driver stamps packets when it takes them (`software-transmit`).
    pub software_stamps: bool,
    /// The number of links to the other end, as this end's ladder counted them.
    pub hops_to_other: Option<u8>,
    /// The names of what this end could not find out.
    pub unknown: Vec<String>,
}

/// A part of the test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// Before the load.
    #[default]
    Idle,
    /// Load from the server to the client.
    Download,
    /// Load from the client to the server.
    Upload,
    /// Load in both directions.
    Both,
    /// After the load.
    CoolDown,
}

/// From the client to the server, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndName {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// One phase and what was observed in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phase {
    /// Which part of the test.
    pub kind: PhaseKind,
    /// When its load began.
    pub start_ns: i64,
    /// When its load ended.
    pub end_ns: i64,
    /// Whether goodput and delay had levelled off at the end; missing: not checked.
    pub levelled: Option<bool>,
    /// Why its load failed: there was less load than the test needs, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_failure: Option<String>,
    /// Probes through the whole path and back, in both directions.
    pub echoes: Vec<Echo>,
    /// Probes over TCP.
    pub tcp_probes: Vec<TcpProbe>,
    /// Probes with a limited TTL.
    pub ladder: Vec<LadderProbe>,
    /// SYNs of TCP with a limited TTL, from the client.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcp_ladder: Vec<LadderProbe>,
    /// Delays in the ends, from the kernels' transmit timestamps.
    pub stages: Vec<StageDelay>,
    /// The load's connections, from `TCP_INFO` at their senders.
    pub flows: Vec<FlowSample>,
    /// What the receivers of the load have received.
    pub goodput: Vec<GoodputSample>,
    /// The state of the ends.
    pub local: Vec<LocalSample>,
}

/// UDP packets in one direction whose rate grew beyond that of the path, so that its longest buffer filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flood {
    /// Their direction.
    pub direction: Direction,
    /// The highest rate, headers included.
    pub peak_bps: u64,
    /// When it began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// Packets that were sent; downwards: up to the last one that arrived.
    pub sent_packets: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// The echoes in the meantime: when each was sent, and its round-trip time; missing: no reply came.
    pub rtts: Vec<(i64, Option<i64>)>,
    /// Bytes that had arrived by these times, headers included.
    pub received: Vec<(i64, u64)>,
}

/// A UDP echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Echo {
    /// When the client sent it.
    pub t_ns: i64,
    /// Its round-trip time; missing: no reply came.
    pub rtt_ns: Option<i64>,
    /// When the server received it, by the server's clock, minus when it was sent, by the client's: only its changes mean
    /// something.
    pub up_ns: Option<i64>,
    /// When the client received the reply, by the client's clock, minus when the server sent it, by the server's.
    pub down_ns: Option<i64>,
    /// The direction in which it was lost, if it was.
    pub lost: Option<Lost>,
}

/// The direction in which an echo was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// The server never received it.
    Up,
    /// The server replied, and the client did not receive the reply.
    Down,
    /// One of the two.
    Unknown,
}

/// A probe over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpProbe {
    /// When it began.
    pub t_ns: i64,
    /// What it measures.
    pub kind: TcpProbeKind,
    /// The direction of the load connection that a `self` probe uses.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// How long it took; missing: it failed.
    #[serde(default)]
    pub rtt_ns: Option<i64>,
}

/// What a probe over TCP measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpProbeKind {
    /// The handshake of a new connection.
    Connect,
    /// The handshake of TLS on a new connection, per round trip that it takes.
    Tls,
    /// A request and its reply on a new connection.
    Exchange,
    /// A request and its reply on a connection of the load.
    #[serde(rename = "self")]
    OnLoad,
}

/// The answer to a probe with a limited TTL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LadderProbe {
    /// When it was sent.
    pub t_ns: i64,
    /// The end that sent it.
    pub end: EndName,
    /// Its TTL: the hop that answered it, counted from that end.
    pub ttl: u8,
    /// The address of the hop.
    #[serde(default)]
    pub address: Option<String>,
    /// The time until the answer; missing: no answer.
    #[serde(default)]
    pub rtt_ns: Option<i64>,
    /// What answered.
    pub kind: AnswerKind,
    /// Whether the answer has MPLS labels.
    #[serde(default)]
    pub mpls: bool,
}

/// What answered a probe with a limited TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// ICMP *time exceeded* of the hop.
    Exceeded,
    /// The hop's reply to a probe to its own address.
    Echo,
    /// ICMP *destination unreachable*.
    Unreachable,
    /// The other end: the TTL sufficed.
    Destination,
    /// The reply of the modem behind the router to a probe to its own address. A bridge is no hop; `ttl` is the number of its link.
    Modem,
}

/// A delay in one of the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageDelay {
    /// When the packet entered the stage.
    pub t_ns: i64,
    /// The end.
    pub end: EndName,
    /// The stage.
    pub stage: Stage,
    /// How long the packet was in it.
    pub delay_ns: i64,
}

/// A part of an end that delays packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From a write on a connection of the load to the queueing discipline: the socket's send buffer.
    SendBuffer,
    /// A probe's sojourn time in the queueing discipline.
    Qdisc,
    /// What the driver's ring holds, at the rate of the load. It is not stamped, but follows from byte queue limits.
    Driver,
}

/// A connection of the load at one time, from `TCP_INFO` at its sender; counters begin with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSample {
    /// When it was sampled.
    pub t_ns: i64,
    /// The direction of its data.
    pub direction: Direction,
    /// Its number.
    pub flow: u32,
    /// The smoothed round-trip time.
    #[serde(default)]
    pub srtt_ns: i64,
    /// The smallest round-trip time so far.
    #[serde(default)]
    pub min_rtt_ns: i64,
    /// The congestion window.
    #[serde(default)]
    pub cwnd_bytes: u64,
    /// Written and not yet sent.
    #[serde(default)]
    pub notsent_bytes: u64,
    /// Segments retransmitted so far.
    #[serde(default)]
    pub retransmits: u64,
    /// Bytes acknowledged so far.
    #[serde(default)]
    pub delivered_bytes: u64,
    /// Microseconds in which there was data to send or to be acknowledged ...
    #[serde(default)]
    pub busy_us: u64,
    /// ... those of them in which the receiver's window was the limit ...
    #[serde(default)]
    pub rwnd_limited_us: u64,
    /// ... and those in which the send buffer was.
    #[serde(default)]
    pub sndbuf_limited_us: u64,
    /// Segments acknowledged with a congestion mark so far.
    #[serde(default)]
    pub delivered_ce: u64,
}

/// What a receiver of the load has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoodputSample {
    /// When it was counted.
    pub t_ns: i64,
    /// The direction of the data.
    pub direction: Direction,
    /// Payload received so far on all connections; the origin is arbitrary.
    pub bytes: u64,
}

/// The state of an end at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalSample {
    /// When it was sampled.
    pub t_ns: i64,
    /// The end.
    pub end: EndName,
    /// The backlog of the queueing discipline.
    #[serde(default)]
    pub qdisc_bytes: Option<u64>,
    /// Packets that it has dropped so far.
    #[serde(default)]
    pub qdisc_drops: Option<u64>,
    /// Bytes in the ring (BQL's `inflight`).
    #[serde(default)]
    pub ring_bytes: Option<u64>,
    /// How busy the busiest processor is, from 0 to 1.
    #[serde(default)]
    pub cpu_busy: Option<f64>,
    /// The part of a processor that handles packets (softirq), from 0 to 1.
    #[serde(default)]
    pub softirq: Option<f64>,
}

impl Direction {
    /// The other direction.
    pub fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    /// The end that sends in this direction.
    pub fn sender(self) -> EndName {
        match self {
            Self::Up => EndName::Client,
            Self::Down => EndName::Server,
        }
    }
}

impl PhaseKind {
    /// Its name in JSON and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Download => "download",
            Self::Upload => "upload",
            Self::Both => "both",
            Self::CoolDown => "cool_down",
        }
    }

    /// Whether this direction is loaded in this phase.
    pub fn loads(self, direction: Direction) -> bool {
        self.loaded().contains(&direction)
    }

    /// The directions that are loaded in this phase.
    pub fn loaded(self) -> &'static [Direction] {
        match self {
            Self::Idle | Self::CoolDown => &[],
            Self::Download => &[Direction::Down],
            Self::Upload => &[Direction::Up],
            Self::Both => &[Direction::Down, Direction::Up],
        }
    }
}

impl Ends {
    /// One of the ends by its name.
    pub fn get(&self, name: EndName) -> &End {
        match name {
            EndName::Client => &self.client,
            EndName::Server => &self.server,
        }
    }
}
