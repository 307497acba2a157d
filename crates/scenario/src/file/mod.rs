//! The experiment file as written: one struct per table, one field per key.
//!
//! Keys, their documentation (the doc comments), examples, bounds (the types) and defaults ([`defaults`]) are declared
//! here and nowhere else, except those of queueing disciplines, of traffic, and of some parts of links, which are in
//! [`crate::qdisc`], [`crate::traffic`] and [`crate::link`]. The JSON Schema is derived from these structs, and the
//! checker that writes the error messages ([`crate::check`]) checks documents against that schema. So editors and the
//! loader accept the same files.

mod defaults;
mod expect;
mod host;
mod link;
mod overhead;
mod population;
mod recording;
mod ring;
mod sweep;
mod varying;
mod wifi;
mod wire;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(crate) use expect::{Expect, Label};
pub(crate) use host::{Host, HostTcp};
pub(crate) use link::{Link, PortSettings, Rate, RateSetting};
pub(crate) use overhead::{Overhead, OverheadKeys};
pub(crate) use population::{Between, Choice, Distribution, Drawn, Population};
pub(crate) use recording::Sample;
pub(crate) use ring::{Bql, ByteLimits, Completion, Ring};
pub(crate) use sweep::SweepValues;
pub(crate) use varying::{Varying, WalkKeys};
pub(crate) use wifi::{Aggregate, Queueing, Wifi};
pub(crate) use wire::Wire;

use crate::model::Table;
use crate::quantity::{Quantity, Times};
use crate::text::{Line, Name, Text};
use crate::traffic::TrafficKeys;
use crate::units::{HOUR, MS, US};

/// A length of simulated time.
pub(crate) type Duration = Quantity<Times, MS, { 24 * HOUR }>;
/// A moment of the run.
pub(crate) type Moment = Quantity<Times, 0, { 24 * HOUR }>;
/// Time between two events.
pub(crate) type Interval = Quantity<Times, { 100 * US }, { 24 * HOUR }>;

// Used only for the schema of the whole file: its three parts are read one by one.
/// An experiment: what is tested, what is varied, and what the document it comes from says about the outcome.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "bufferscope experiment", rename = "Experiment")]
#[expect(dead_code, reason = "never built")]
pub(crate) struct File {
    #[schemars(flatten)]
    about: About,
    #[schemars(flatten)]
    setup: Setup,
    #[schemars(flatten)]
    study: Study,
}

/// The keys that describe the experiment and don't change what happens in it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct About {
    /// What the experiment shows, in one line.
    #[schemars(example = &"Reproducing bufferbloat: tail drop, three queue sizes")]
    pub(crate) title: Line,
    /// The document that it reproduces.
    pub(crate) source: Option<Line>,
    /// A short name for that document, by which experiments are grouped. Default: as `source`.
    #[schemars(example = &"UCAS lab 2")]
    pub(crate) document: Option<Line>,
    /// The method and its purpose, in a few sentences.
    pub(crate) description: Option<Text>,
    /// The figures of its report, by name.
    #[serde(default)]
    #[schemars(example = json!(["queue_length", "rtt", "cwnd"]))]
    pub(crate) figures: Vec<Name>,
    /// Remarks for the report, in Markdown.
    pub(crate) notes: Option<Text>,
    /// Number of runs of each point, with successive seeds, unless the command line sets it.
    #[serde(default = "defaults::repeat")]
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) repeat: u32,
}

/// The keys that say what is tested.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Setup {
    /// Length of the run, in simulated time.
    #[schemars(example = &"60s")]
    pub(crate) duration: Duration,
    /// Metrics ignore everything before this time.
    #[serde(default = "defaults::warmup")]
    pub(crate) warmup: Moment,
    /// Time between two samples of the flows and the queues, or a table with one time for each.
    #[serde(default = "defaults::sample")]
    #[schemars(example = json!({ "queues": "10ms", "flows": "1s" }))]
    pub(crate) sample: Sample,
    /// The tables to record. The others stay empty. Without `flows`, a run with many flows is several times faster.
    /// Metrics and figures that need a missing table say so.
    #[serde(default = "defaults::record")]
    #[schemars(length(min = 1), example = json!(["probes", "queues", "drops"]))]
    pub(crate) record: Vec<Table>,
    /// How to record the time that packets spend in queues.
    #[serde(default)]
    pub(crate) sojourns: Sojourns,
    /// The links of the network. They also define its nodes.
    #[schemars(length(min = 1))]
    pub(crate) link: Vec<Link>,
    /// Links that share one radio channel.
    #[serde(default)]
    pub(crate) wifi: Vec<Wifi>,
    /// TCP settings of all hosts. Those of a `[[host]]` take precedence.
    #[serde(default)]
    pub(crate) tcp: HostTcp,
    /// Settings of single hosts. A host without its own settings needs no entry.
    #[serde(default)]
    pub(crate) host: Vec<Host>,
    /// The traffic sources.
    #[schemars(length(min = 1))]
    pub(crate) traffic: Vec<TrafficKeys>,
}

/// The keys that make a study of one set-up.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Study {
    /// What to vary: each key is the path of another key, and its value lists the values to try. Every combination is a
    /// point. The first key varies slowest.
    #[serde(default)]
    #[schemars(example = json!({ "link.bottleneck.queue.limit": ["50p", "100p", "200p"] }))]
    pub(crate) sweep: IndexMap<String, SweepValues>,
    /// Distributions from which values are drawn: each point is run once for each member of the population.
    pub(crate) population: Option<Population>,
    /// What the source reports, to be compared with the measurements.
    #[serde(default)]
    pub(crate) expect: Vec<Expect>,
}

/// How much of the sojourn times is recorded.
#[derive(Clone, Copy, Debug, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sojourns {
    /// A histogram per second and port, with buckets 0.1 % wide.
    #[default]
    Histogram,
    /// Every packet.
    Packets,
}
