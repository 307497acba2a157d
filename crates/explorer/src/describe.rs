//! What the page learns about an experiment, or why it is refused.

use bufferscope_scenario::{Experiment, ExperimentError, Limit, Link, Point, Port, Qdisc, Scenario, Traffic};
use serde::Serialize;

use crate::packets::{count, joined};
use crate::whereabouts::locate;

/// An experiment that can run. `explorer/src/core/protocol.ts` describes it.
#[derive(Clone, Debug, Serialize)]
pub struct Opened {
    title: String,
    description: Option<String>,
    points: Vec<PointWords>,
    point: usize,
    members: Option<u32>,
    duration_ns: u64,
    warmup_ns: u64,
    sample_interval_ns: u64,
    network: Network,
    traffic: Vec<TrafficWords>,
    flows: Vec<String>,
    notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct PointWords {
    label: String,
    /// Path and label of each swept key.
    values: Vec<(String, String)>,
}

#[derive(Clone, Debug, Serialize)]
struct Network {
    nodes: Vec<NodeWords>,
    links: Vec<LinkWords>,
    ports: Vec<PortWords>,
}

#[derive(Clone, Debug, Serialize)]
struct NodeWords {
    name: String,
}

#[derive(Clone, Debug, Serialize)]
struct LinkWords {
    name: String,
    ends: [String; 2],
}

#[derive(Clone, Debug, Serialize)]
struct PortWords {
    name: String,
    link: String,
    rate_bps: Option<u64>,
    rate_steps: Vec<RateWords>,
    rate_varies: bool,
    delay_ns: u64,
    qdisc: Option<&'static str>,
    queue: Option<Qdisc>,
    limit: Option<LimitWords>,
    limit_text: String,
    has_ring: bool,
    radio: bool,
    queue_of: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct RateWords {
    from_ns: u64,
    bps: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum LimitWords {
    Packets(u64),
    Bytes(u64),
}

#[derive(Clone, Debug, Serialize)]
struct TrafficWords {
    name: String,
    kind: String,
    from: String,
    to: String,
    count: u32,
    congestion_control: Option<&'static str>,
    start_ns: u64,
    stop_ns: u64,
}

/// Why an experiment, a change or the size of a run is refused.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Refusal {
    message: String,
    problems: Vec<ProblemWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct ProblemWords {
    path: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

impl Opened {
    pub(crate) fn new(experiment: &Experiment, index: usize, point: &Point, flows: Vec<String>) -> Self {
        let (document, scenario) = (experiment.document(), &point.scenario);
        let radio: Vec<u16> =
            scenario.wifi.iter().flat_map(|wifi| &wifi.stations).map(|station| station.link).collect();
        let ports =
            (0..).zip(&scenario.links).flat_map(|(number, link)| ports(scenario, link, radio.contains(&number)));
        let mut ports: Vec<PortWords> = ports.collect();
        for (port, first) in joined(scenario) {
            let name = ports[first as usize].name.clone();
            ports[port as usize].queue_of = Some(name);
        }
        let mut notes = experiment.notes();
        for note in &point.notes {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        Self {
            title: document.title.clone(),
            description: document.description.clone(),
            points: experiment.points().iter().map(PointWords::new).collect(),
            point: index,
            members: document.population.as_ref().map(|population| population.sessions),
            duration_ns: scenario.duration_ns,
            warmup_ns: scenario.warmup_ns,
            sample_interval_ns: scenario.sample_interval_ns,
            network: Network {
                nodes: scenario.nodes.iter().map(|node| NodeWords { name: node.name.clone() }).collect(),
                links: scenario.links.iter().map(|link| LinkWords::new(scenario, link)).collect(),
                ports,
            },
            traffic: scenario.traffic.iter().map(|traffic| TrafficWords::new(scenario, traffic)).collect(),
            flows,
            notes,
        }
    }
}

impl PointWords {
    fn new(point: &Point) -> Self {
        let label: Vec<&str> = point.values.iter().map(|(_, label)| label.as_str()).collect();
        Self { label: label.join(", "), values: point.values.clone() }
    }
}

impl LinkWords {
    fn new(scenario: &Scenario, link: &Link) -> Self {
        Self { name: link.name.clone(), ends: link.ends.map(|node| node_name(scenario, node)) }
    }
}

impl TrafficWords {
    fn new(scenario: &Scenario, traffic: &Traffic) -> Self {
        // The name of a kind of traffic is the one that it has in a scenario's JSON.
        let words = serde_json::to_value(&traffic.kind).expect("plain data is written as JSON");
        Self {
            name: traffic.name.clone(),
            kind: words["kind"].as_str().unwrap_or_default().to_owned(),
            from: node_name(scenario, traffic.from),
            to: node_name(scenario, traffic.to),
            count: count(&traffic.kind),
            congestion_control: traffic.kind.sending().map(|sending| sending.congestion.name()),
            start_ns: traffic.start_ns,
            stop_ns: traffic.stop_ns,
        }
    }
}

fn node_name(scenario: &Scenario, node: u16) -> String {
    scenario.nodes[usize::from(node)].name.clone()
}

fn ports(scenario: &Scenario, link: &Link, radio: bool) -> impl Iterator<Item = PortWords> {
    let names = link.port_names(&scenario.nodes).into_iter();
    names.zip(link.ports()).map(move |(name, port)| port_words(name, link.name.clone(), port, radio))
}

fn port_words(name: String, link: String, port: &Port, radio: bool) -> PortWords {
    let steps = port.rate.iter().flat_map(|rate| rate.steps());
    let rate_steps: Vec<RateWords> =
        steps.map(|step| RateWords { from_ns: step.from_ns, bps: step.bits_per_second }).collect();
    let queue = port.rate.is_some().then(|| port.queue.clone());
    let limit = queue.as_ref().map(|queue| match queue.limit() {
        Limit::Packets(packets) => LimitWords::Packets(packets),
        Limit::Bytes(bytes) => LimitWords::Bytes(bytes),
    });
    PortWords {
        name,
        link,
        rate_bps: rate_steps.first().map(|step| step.bps),
        rate_varies: port.variation.is_some() || rate_steps.len() > 1,
        rate_steps,
        delay_ns: port.delay_ns,
        qdisc: queue.as_ref().map(|queue| queue.kind().name),
        queue,
        limit_text: match limit {
            Some(LimitWords::Packets(1)) => "1 packet".to_owned(),
            Some(LimitWords::Packets(packets)) => format!("{packets} packets"),
            Some(LimitWords::Bytes(bytes)) => format!("{bytes} bytes"),
            None => String::new(),
        },
        limit,
        has_ring: port.ring.is_some(),
        radio,
        queue_of: None,
    }
}

impl Refusal {
    /// A refusal without problems of the file.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The problems of an experiment's file, of which this is the text.
    pub(crate) fn of_file(error: &ExperimentError, text: &str) -> Self {
        let problem = |problem: &bufferscope_scenario::Problem| {
            let position = match problem.set {
                None => locate(text, &problem.path),
                Some(_) => None,
            };
            ProblemWords {
                path: problem.path.clone(),
                message: problem.to_string(),
                hint: problem.hint.clone(),
                set: problem.set.clone(),
                line: position.map(|(line, _)| line),
                column: position.map(|(_, column)| column),
            }
        };
        let problems: Vec<ProblemWords> = error.problems().iter().map(problem).collect();
        let first = problems.first().cloned().unwrap_or_default();
        let message: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        Self { message: message.join("\n"), hint: first.hint, line: first.line, column: first.column, problems }
    }

    /// What is to be shown.
    pub fn message(&self) -> &str {
        &self.message
    }
}
