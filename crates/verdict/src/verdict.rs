//! The verdict: what [`judge`](crate::judge) returns. Delays are integer nanoseconds, rates bit/s, sizes bytes,
//! probabilities and shares from 0 to 1.

use serde::{Deserialize, Serialize};

use crate::input::{Direction, EndName, PhaseKind};

/// The verdict about a live test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The idle path.
    pub idle: Idle,
    /// The loaded phases, in the order of their beginning.
    pub phases: Vec<PhaseVerdict>,
    /// What floods have shown; empty without a flood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst_cases: Vec<WorstCase>,
    /// The worst grade of the phases; missing if no phase has one.
    pub grade: Option<Grade>,
    /// How grades are given.
    pub grade_table: GradeTable,
    /// For a person at home: speed, delay, which queue, how sure, and what to do.
    pub sentences: [String; 5],
    /// What limits the verdict.
    pub warnings: Vec<String>,
    /// The facts that the verdict rests on.
    pub evidence: Vec<Fact>,
}

/// The worst case of the longest buffer in a direction, from a flood.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstCase {
    /// The direction.
    pub direction: Direction,
    /// The largest standing delay over the idle median: the median of the worst quarter of a second.
    pub delay_ns: i64,
    /// The rate at which packets arrived meanwhile, headers included; missing: too few counts.
    pub rate_bps: Option<u64>,
    /// Delay x rate.
    pub bytes: Option<u64>,
    /// The part of the flood that was lost.
    pub loss: f64,
    /// Whether the buffer was full: the delay had stopped growing, and packets were lost. Otherwise it may be larger.
    pub full: bool,
}

/// What the idle path looks like, and what counts as a rise of its delay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// The round-trip time of the idle path.
    pub rtt: Spread,
    /// The median absolute deviation of the round-trip time.
    pub mad_ns: Option<i64>,
    /// How much of the idle delay is a queue that comes and goes without our load.
    pub queue_ns: Option<i64>,
    /// How fast the server's clock runs compared with the client's, in parts per million; missing if the changes of the one-way
    /// delays cannot be used.
    pub drift_ppm: Option<f64>,
    /// The uncertainty of one-way changes under load that comes from the drift.
    pub drift_error_ns: Option<i64>,
}

/// A distribution of delays. Percentiles are linearly interpolated; lost probes count as infinitely long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The number of probes.
    pub count: u64,
    /// Those that were lost.
    pub lost: u64,
    /// The median.
    pub p50_ns: Option<i64>,
    /// The 95th percentile.
    pub p95_ns: Option<i64>,
    /// The 99th percentile.
    pub p99_ns: Option<i64>,
    /// The longest delay of a probe that was not lost.
    pub max_ns: Option<i64>,
    /// Whether a percentile is missing because it falls among the lost probes: it is longer than `max_ns`.
    pub censored: bool,
}

/// The verdict about one loaded phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseVerdict {
    /// Which phase.
    pub kind: PhaseKind,
    /// When it began, as in the observations.
    pub start_ns: i64,
    /// Its numbers.
    pub numbers: Numbers,
    /// What happened.
    pub outcome: Outcome,
    /// In which queue the delay is: one entry per direction with a queue. Empty unless the outcome is `queue`.
    #[serde(rename = "where")]
    pub locations: Vec<Where>,
    /// The send buffers in which the load's own data waits noticeably before it enters the network. They delay only what the
    /// same program sends, so they are not a part of the outcome.
    pub send_buffers: Vec<Answer>,
    /// The hops of both ladders, with their rise.
    pub hops: Vec<Hop>,
    /// Delays in the ends, from transmit timestamps.
    pub stages: Vec<StageNumbers>,
    /// The grade; missing if the delay under load is not known.
    pub grade: Option<Grade>,
    /// Responsiveness.
    pub rpm: Rpm,
}

/// The numbers of one loaded phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// The median round-trip time of the idle path.
    pub idle_p50_ns: Option<i64>,
    /// The round-trip time under load.
    pub loaded: Spread,
    /// The round-trip time under load minus the idle median.
    pub added: Spread,
    /// What counts as a rise in this phase.
    pub threshold_ns: Option<i64>,
    /// Each direction.
    pub directions: Vec<DirectionNumbers>,
    /// Whether goodput and delay had levelled off at the end, as observed.
    pub levelled: Option<bool>,
}

/// The numbers of one direction in one loaded phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionNumbers {
    /// The direction.
    pub direction: Direction,
    /// Whether our load goes in this direction.
    pub loaded: bool,
    /// The change of the one-way delay over the idle median; empty if one-way changes cannot be used.
    pub added: Spread,
    /// The part of the echoes that was lost in this direction; missing if losses could not be assigned.
    pub loss: Option<f64>,
    /// What counts as a rise in this direction.
    pub threshold_ns: Option<i64>,
    /// Whether the delay rose.
    pub rises: bool,
    /// From the beginning of the load until the delay reached 80 % of its later median; missing without a rise.
    pub fill_ns: Option<i64>,
    /// The goodput; missing if the direction is not loaded or was not counted.
    pub goodput: Option<Goodput>,
    /// The standing queue; missing without a rise.
    pub buffer: Option<Buffer>,
    /// What the load's own connections say.
    pub load: Option<Load>,
}

/// Goodput at the receiver, over the phase without its first fifth (at most 2 s).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// Its mean.
    pub mean_bps: u64,
    /// The lower decile of its values in bins of 1 s.
    pub p10_bps: Option<u64>,
    /// The coefficient of variation of these values.
    pub variation: Option<f64>,
}

/// The part of a buffer that the load keeps filled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// The standing delay: the median of the added delay after the buffer has filled.
    pub delay_ns: i64,
    /// Delay x goodput x `header_factor`; missing without goodput.
    pub bytes: Option<u64>,
    /// The size of an IP packet per byte of goodput.
    pub header_factor: f64,
}

/// What the load's own connections in one direction say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The number of connections.
    pub flows: u64,
    /// The median of their smoothed round-trip times minus that of the unloaded path.
    pub rtt_rise_ns: Option<i64>,
    /// Retransmitted segments per segment acknowledged.
    pub retransmits: Option<f64>,
    /// Segments acknowledged with a congestion mark per segment acknowledged.
    pub marks: Option<f64>,
    /// The part of the busy time in which the receiver's window was the limit.
    pub rwnd_limited: Option<f64>,
    /// The part of the busy time in which the send buffer was the limit.
    pub sndbuf_limited: Option<f64>,
    /// The part of the time in which the connections had data to send.
    pub busy: Option<f64>,
}

/// What happened in a loaded phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The outcome.
    pub kind: OutcomeKind,
    /// Why, for `not_filled`.
    pub limit: Option<Limit>,
    /// The same in words.
    pub text: String,
}

/// The outcomes of a loaded phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// The load makes a queue grow that delays everyone.
    Queue,
    /// The load waits in a queue of its own, or its queue is kept short: probes stay as fast as on the idle path.
    Managed,
    /// The load did not fill the path.
    NotFilled,
    /// Someone else's traffic causes the delay.
    OtherTraffic,
    /// The packets took another path under load.
    PathChanged,
    /// The load filled the path, and the delay did not rise.
    Clean,
    /// The observations do not suffice.
    CannotTell,
}

/// Why the load did not fill the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The receiver's window.
    ReceiveWindow,
    /// The sender's send buffer, or its program.
    Sender,
    /// A processor of one of the ends.
    Cpu,
    /// Losses without delay: a policer, a very short queue or a lossy link.
    Policer,
    /// A congestion control that keeps queues short.
    LowDelayControl,
    /// Not known.
    Unknown,
}

/// In which queue the delay of one direction is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Where {
    /// The direction.
    pub direction: Direction,
    /// All candidates in the order of the path from the client, with the probability that the largest part of the delay is
    /// there. The probabilities add up to 1.
    pub posterior: Vec<Candidate>,
    /// The answer.
    pub answer: Answer,
    /// A second queue, if there is one; `share` is its part of the delay.
    pub second: Option<Answer>,
}

/// A location and its probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The location.
    pub location: Location,
    /// Its probability.
    pub probability: f64,
}

/// The smallest set of adjacent locations with a probability of at least 90 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// In words, with the probability.
    pub text: String,
    /// The locations.
    pub locations: Vec<Location>,
    /// Their probability.
    pub probability: f64,
    /// The part of the delay that is here; 1 if there is no second queue.
    pub share: f64,
}

/// Where packets may wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The kind of queue.
    pub place: Place,
    /// The direction of the packets.
    pub direction: Direction,
    /// The link that the queue sends onto, counted from the client.
    pub link: u8,
    /// The address of the hop that the queue belongs to, if it answered.
    pub address: Option<String>,
}

/// The kinds of queues on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The client's socket buffers.
    ClientSendBuffer,
    /// The client's queueing discipline.
    ClientQdisc,
    /// The client's driver, ring or radio.
    ClientDriver,
    /// Up: the first hop towards the Internet, or a modem bridged behind it.
    RouterUplink,
    /// Down: the first hop towards the client.
    RouterDownlink,
    /// Down: the second hop towards the client's line, or a modem bridged in front of the router.
    AccessDownlink,
    /// The modem that is bridged behind the router, if it answers at an address of its own.
    Modem,
    /// Another hop.
    Hop,
    /// Up: the last hop towards the server, or the server itself.
    LastHop,
    /// The server's driver or ring.
    ServerDriver,
    /// The server's queueing discipline.
    ServerQdisc,
    /// The server's socket buffers.
    ServerSendBuffer,
}

/// One hop of a ladder in a loaded phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// The end that the hop is counted from.
    pub end: EndName,
    /// Its number.
    pub ttl: u8,
    /// Its address.
    pub address: Option<String>,
    /// Answers on the idle path.
    pub idle_count: u64,
    /// Answers under load.
    pub loaded_count: u64,
    /// The median round-trip time of the idle path.
    pub idle_p50_ns: Option<i64>,
    /// The median round-trip time under load minus that.
    pub rise_ns: Option<i64>,
    /// Whether the location rests on this hop; if not, `note` says why.
    pub used: bool,
    /// Why the hop is not used.
    pub note: Option<String>,
}

/// Delays in a stage of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageNumbers {
    /// The end.
    pub end: EndName,
    /// The stage.
    pub stage: crate::input::Stage,
    /// The delays of this phase.
    pub delay: Spread,
}

/// A grade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Grade {
    /// The best.
    #[serde(rename = "A+")]
    APlus,
    /// Not noticeable.
    A,
    /// Noticeable in games.
    B,
    /// Noticeable in calls.
    C,
    /// Disturbs calls.
    D,
    /// The worst.
    F,
}

/// How grades are given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradeTable {
    /// The statistic that is graded.
    pub statistic: String,
    /// The grades and the delays below which they are given.
    pub steps: Vec<GradeStep>,
}

/// One line of the table of grades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradeStep {
    /// The grade.
    pub grade: Grade,
    /// It is given below this delay; missing: for all longer ones.
    pub below_ns: Option<i64>,
}

/// Responsiveness (draft-ietf-ippm-responsiveness). Without a test of that protocol, it is that of connections without TLS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rpm {
    /// Round trips per minute; missing with a `reason`.
    pub rpm: Option<f64>,
    /// The part that new connections measured.
    pub foreign: Option<f64>,
    /// The part that the load's connections measured.
    pub own: Option<f64>,
    /// How stable the measurement was.
    pub confidence: Option<Confidence>,
    /// Why there is no value.
    pub reason: Option<String>,
    /// The parameters.
    pub parameters: RpmParameters,
}

/// The parameters of responsiveness, by their names in the draft.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpmParameters {
    /// Moving average distance: the number of intervals.
    pub mad: u32,
    /// Interval duration.
    pub id_ns: i64,
    /// Trimmed mean percentage: the part of the probes that counts, the fastest first.
    pub tmp: f64,
    /// Standard deviation tolerance.
    pub sdt: f64,
}

/// How stable a measurement of responsiveness was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Too short.
    Low,
    /// Long enough, but not stable.
    Medium,
    /// Stable.
    High,
}

/// A fact that the verdict rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What was found.
    pub text: String,
    /// Its value with the unit.
    pub value: String,
}
