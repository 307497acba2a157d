//! Writes a scenario as an experiment file from which it could have been loaded.

use toml::{Table, Value};

use crate::model::{
    self, ByteLimits, Completion, Encapsulation, Faults, Node, Outages, Port, Ring, Scenario, SojournDetail, Traffic,
    Variation, Walk,
};
use crate::qdisc::Loss;
use crate::units::{PACKETS, RATE, SIZE, TIME};

/// The text of an experiment whose only point is this scenario. With it, one can run by hand what a property test
/// found. Every key is written, even if it has its default value.
pub fn experiment_text(scenario: &Scenario) -> String {
    let links = scenario.links.iter().map(|link| {
        let name = |index: u16| Value::from(scenario.nodes[usize::from(index)].name.as_str());
        table([
            ("name", Value::from(link.name.as_str())),
            ("ends", Value::Array(link.ends.map(name).to_vec())),
            ("forward", port(&link.forward)),
            ("reverse", port(&link.reverse)),
        ])
    });
    let queues = time(scenario.sample_interval_ns);
    let sample = match scenario.flows_interval_ns {
        None => queues,
        Some(flows_ns) => table([("queues", queues), ("flows", time(flows_ns))]),
    };
    let sojourns = match scenario.sojourns {
        SojournDetail::Histogram => "histogram",
        SojournDetail::Packets => "packets",
    };
    let file = keys([
        ("title", Value::from("A scenario")),
        ("duration", time(scenario.duration_ns)),
        ("warmup", time(scenario.warmup_ns)),
        ("sample", sample),
        ("record", Value::from(scenario.record.iter().map(model::Table::name).collect::<Vec<_>>())),
        ("sojourns", Value::from(sojourns)),
        ("link", Value::Array(links.collect())),
        ("host", Value::Array(scenario.nodes.iter().map(host).collect())),
        ("traffic", Value::Array(scenario.traffic.iter().map(|entry| traffic(entry, &scenario.nodes)).collect())),
    ]);
    file.to_string()
}

pub(crate) fn keys<'a>(keys: impl IntoIterator<Item = (&'a str, Value)>) -> Table {
    keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

pub(crate) fn table<'a>(all: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Table(keys(all))
}

pub(crate) fn time(ns: u64) -> Value {
    Value::from(TIME.display(ns))
}

pub(crate) fn size(bytes: impl Into<u64>) -> Value {
    Value::from(SIZE.display(bytes.into()))
}

pub(crate) fn rate(bits_per_second: u64) -> Value {
    Value::from(RATE.display(bits_per_second))
}

pub(crate) fn packets(number: u32) -> Value {
    Value::from(PACKETS.display(number.into()))
}

pub(crate) fn number(number: u32) -> Value {
    Value::from(i64::from(number))
}

fn overhead(link: Encapsulation) -> Value {
    if link.only_adds() {
        return size(link.overhead_bytes);
    }
    table([
        ("bytes", size(link.overhead_bytes)),
        ("mpu", size(link.mpu_bytes)),
        ("atm", Value::from(link.cells.word())),
    ])
}

fn port(port: &Port) -> Value {
    let mut keys = Table::new();
    keys.insert("delay".to_owned(), time(port.delay_ns));
    keys.insert("overhead".to_owned(), overhead(port.encapsulation));
    if let Some(faults) = &port.faults {
        keys.insert("wire".to_owned(), wire(faults));
    }
    if let Some(schedule) = &port.rate {
        let steps = schedule.steps().iter();
        let steps = steps.map(|step| Value::Array(vec![time(step.from_ns), rate(step.bits_per_second)]));
        let rate = match &port.variation {
            None => Value::Array(steps.collect()),
            Some(Variation::Trace { file, .. }) => table([("trace", Value::from(file.as_str()))]),
            Some(Variation::Walk(Walk { preset: Some(preset), .. })) => {
                table([("preset", Value::try_from(preset).expect("a preset is a word"))])
            }
            Some(Variation::Walk(walk)) => table([("walk", self::walk(walk))]),
        };
        keys.insert("rate".to_owned(), rate);
        keys.insert("queue".to_owned(), Value::Table(port.queue.written()));
        if let Some(boost) = &port.boost {
            keys.insert(
                "boost".to_owned(),
                table([("rate", self::rate(boost.rate_bps)), ("bytes", size(boost.bytes))]),
            );
        }
        if let Some(ring) = &port.ring {
            keys.insert("ring".to_owned(), self::ring(ring));
        }
        if let Some(stacked) = &port.stacked {
            keys.insert("stacked".to_owned(), table([("queue", Value::Table(stacked.written()))]));
        }
    }
    Value::Table(keys)
}

fn ring(ring: &Ring) -> Value {
    let bql = match ring.bql {
        None => Value::from(false),
        Some(ByteLimits::DEFAULT) => Value::from(true),
        Some(ByteLimits { hold_ns, min_bytes, max_bytes }) => {
            table([("hold_time", time(hold_ns)), ("min", size(min_bytes)), ("max", size(max_bytes))])
        }
    };
    let completion = match ring.completion {
        Completion::Packets(number) => packets(number),
        Completion::AfterNs(ns) => time(ns),
    };
    let accounting = Value::try_from(ring.accounting).expect("a word");
    table([("size", packets(ring.size_packets)), ("bql", bql), ("completion", completion), ("accounting", accounting)])
}

fn wire(faults: &Faults) -> Value {
    let mut keys = Table::new();
    let mut set = |key: &str, value: Value| keys.insert(key.to_owned(), value);
    match faults.loss {
        Some(Loss::Random([loss, correlation])) => {
            set("loss", loss.into());
            set("loss_correlation", correlation.into());
        }
        Some(Loss::Gemodel(parts)) => {
            let parts = ["p", "r", "1-h", "1-k"].into_iter().zip(parts.map(Value::from));
            set("gemodel", table(parts));
        }
        Some(Loss::State(_)) => unreachable!("no wire has these losses"),
        None => {}
    }
    if faults.jitter_ns > 0 {
        set("jitter", time(faults.jitter_ns));
        set("correlation", faults.correlation.into());
        set("distribution", format!("{:?}", faults.distribution).to_lowercase().into());
        set("keep_order", faults.keep_order.into());
    }
    if let Some(reorder) = &faults.reorder {
        set("reorder", reorder.probability.into());
        set("reorder_correlation", reorder.correlation.into());
        set("gap", i64::from(reorder.gap).into());
    }
    Value::Table(keys)
}

fn walk(walk: &Walk) -> Value {
    let keys = table([
        ("mean", rate(walk.mean_bps)),
        ("deviation", rate(walk.deviation_bps)),
        ("coherence", time(walk.coherence_ns)),
        ("max", rate(walk.max_bps)),
        ("every", time(walk.every_ns)),
    ]);
    let outages = |out: Outages| table([("every", time(out.every_ns)), ("lasts", time(out.lasts_ns))]);
    with(keys, "outages", walk.outages.map(outages))
}

fn host(node: &Node) -> Value {
    let keys = table([
        ("rmem_max", size(node.tcp.rmem_max_bytes)),
        ("rmem_default", size(node.tcp.rmem_default_bytes)),
        ("wmem_max", size(node.tcp.wmem_max_bytes)),
        ("wmem_default", size(node.tcp.wmem_default_bytes)),
        ("initial_window", number(node.tcp.initial_window_packets)),
        ("gso_max_segs", number(node.tcp.gso_max_segs)),
        ("min_tso_segs", number(node.tcp.min_tso_segs)),
        ("slow_start_after_idle", Value::from(node.tcp.slow_start_after_idle)),
        ("remember_ssthresh", Value::from(node.tcp.remember_ssthresh)),
        ("syn_linear_timeouts", number(node.tcp.syn_linear_timeouts)),
        ("pacing_ss_ratio", number(node.tcp.pacing_percent[0])),
        ("pacing_ca_ratio", number(node.tcp.pacing_percent[1])),
    ]);
    let tcp = with(keys, "notsent_lowat", node.tcp.notsent_lowat_bytes.map(size));
    table([("name", Value::from(node.name.as_str())), ("tcp", tcp)])
}

fn traffic(traffic: &Traffic, nodes: &[Node]) -> Value {
    let name = |index: u16| Value::from(nodes[usize::from(index)].name.as_str());
    let mut keys = table(traffic.kind.written());
    keys = with(keys, "name", Some(Value::from(traffic.name.as_str())));
    keys = with(keys, "from", Some(name(traffic.from)));
    keys = with(keys, "to", Some(name(traffic.to)));
    keys = with(keys, "start", Some(time(traffic.start_ns)));
    keys = with(keys, "stop", Some(time(traffic.stop_ns)));
    keys = with(keys, "port", traffic.port.map(|port| number(port.into())));
    with(keys, "dscp", Some(number(traffic.dscp.into())))
}

fn with(mut keys: Value, key: &str, value: Option<Value>) -> Value {
    if let (Value::Table(table), Some(value)) = (&mut keys, value) {
        table.insert(key.to_owned(), value);
    }
    keys
}
