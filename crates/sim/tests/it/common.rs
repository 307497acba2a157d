//! Helpers for tests of whole runs: a scenario from text, a run into memory, and its tables as plain columns.

use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use bufferscope_records::{MemorySink, Recorder, Table};
use bufferscope_scenario::{Experiment, Scenario};
use bufferscope_sim::Summary;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// The only point of an experiment.
pub(crate) fn scenario(text: &str) -> Scenario {
    scenario_with(text, &[])
}

fn scenario_with(text: &str, overrides: &[String]) -> Scenario {
    let experiment = Experiment::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(experiment.points().len(), 1, "these tests do not sweep");
    experiment.points()[0].scenario.clone()
}

/// h1 - r1 - h2, the second link with the given rate and queue, 5 ms each way on each link; `rest` is traffic.
pub(crate) fn dumbbell(duration: &str, bottleneck: &str, rest: &str) -> Scenario {
    dumbbell_of("5ms", duration, bottleneck, rest)
}

/// The same with this delay on the second link.
pub(crate) fn dumbbell_of(delay: &str, duration: &str, bottleneck: &str, rest: &str) -> Scenario {
    let text = include_str!("../../../../scripts/agreement/dumbbell.toml");
    let network = text.split("[[traffic]]").next().unwrap_or_default();
    let is_given = |line: &&str| line.starts_with("rate = ") || line.starts_with("queue = ");
    let lines: Vec<&str> = network.lines().filter(|line| !is_given(line)).collect();
    let changes =
        [format!("duration={duration}"), "link.access.delay=5ms".to_owned(), format!("link.bottleneck.delay={delay}")];
    scenario_with(&format!("{}\n{bottleneck}\n{rest}", lines.join("\n")), &changes)
}

/// A bulk flow from h1 to h2.
pub(crate) const BULK: &str = r#"
    [[traffic]]
    name = "bulk"
    kind = "tcp"
    from = "h1"
    to = "h2"
"#;

/// A page of 50 kB every 400 ms, from h1 to h2.
pub(crate) const WEB: &str = r#"
    [[traffic]]
    name = "web"
    kind = "web"
    from = "h1"
    to = "h2"
    interval = "400ms"
    bytes = "50000b"
"#;

/// A ping from h1 to h2.
pub(crate) const PING: &str = r#"
    [[traffic]]
    name = "ping"
    kind = "ping"
    from = "h1"
    to = "h2"
"#;

/// Runs to the end, checks that no packet has vanished, and returns everything there is.
pub(crate) fn run(scenario: &Scenario, seed: u64) -> Summary<MemorySink> {
    let recorder = Recorder::new(MemorySink::default());
    let summary = bufferscope_sim::run(scenario, seed, recorder, &mut |_| ControlFlow::Continue(()))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_conserving(&summary);
    summary
}

/// The most segments that a packet has.
pub(crate) fn most_segments(scenario: &Scenario) -> u64 {
    scenario.nodes.iter().map(|node| u64::from(node.tcp.gso_max_segs)).max().unwrap_or(1)
}

/// Checks that sent = delivered + dropped + still there, for every port, every flow, and the network as a whole.
pub(crate) fn assert_conserving<O>(summary: &Summary<O>) {
    for port in &summary.ports {
        assert_eq!(port.arrived, port.dropped + port.queued + port.sent, "{port:?}");
        assert_eq!(port.sent, port.in_ring + port.in_flight + port.delivered, "{port:?}");
    }
    for flow in &summary.flows {
        assert_eq!(flow.sent, flow.delivered + flow.dropped + flow.under_way, "{flow:?}");
    }
    let of_ports = |count: fn(&bufferscope_sim::PortPackets) -> u64| summary.ports.iter().map(count).sum::<u64>();
    let of_flows = |count: fn(&bufferscope_sim::FlowPackets) -> u64| summary.flows.iter().map(count).sum::<u64>();
    assert_eq!(of_ports(|port| port.dropped), of_flows(|flow| flow.dropped));
    assert_eq!(of_ports(|port| port.queued + port.in_ring + port.in_flight), of_flows(|flow| flow.under_way));
    assert_eq!(of_ports(|port| port.delivered), summary.hops);
}

/// A column of numbers, nulls as `None`.
pub(crate) fn optional(sink: &MemorySink, table: Table, column: &str) -> Vec<Option<u64>> {
    each(sink, table, column, |batch| {
        batch.as_primitive::<Int64Type>().iter().map(|value| value.map(|v| u64::try_from(v).unwrap())).collect()
    })
}

/// A column of numbers without nulls.
pub(crate) fn numbers(sink: &MemorySink, table: Table, column: &str) -> Vec<u64> {
    optional(sink, table, column).into_iter().map(|value| value.expect("no nulls in this column")).collect()
}

/// A column of words.
pub(crate) fn words(sink: &MemorySink, table: Table, column: &str) -> Vec<String> {
    each(sink, table, column, |batch| {
        batch.as_string::<i32>().iter().map(|value| value.expect("no nulls").to_owned()).collect()
    })
}

/// The rows of a column of numbers where another column says `word`.
pub(crate) fn numbers_where(sink: &MemorySink, table: Table, column: &str, (key, word): (&str, &str)) -> Vec<u64> {
    let selected = words(sink, table, key).into_iter().map(|found| found == word);
    numbers(sink, table, column).into_iter().zip(selected).filter(|row| row.1).map(|row| row.0).collect()
}

/// The rows of a column of numbers about one layer of a port.
pub(crate) fn numbers_of_layer(
    sink: &MemorySink,
    table: Table,
    column: &str,
    (port, layer): (&str, &str),
) -> Vec<Option<u64>> {
    let found = words(sink, table, "port").into_iter().zip(words(sink, table, "layer"));
    let selected = found.map(|row| (row.0.as_str(), row.1.as_str()) == (port, layer));
    optional(sink, table, column).into_iter().zip(selected).filter(|row| row.1).map(|row| row.0).collect()
}

/// The median time in microseconds that pings waited in queues, without the first ones, on a path of this round-trip time.
pub(crate) fn median_wait_us(sink: &MemorySink, path_ns: u64, first: usize) -> u64 {
    let rtts = optional(sink, Table::Probes, "rtt_ns");
    let mut waits: Vec<u64> = rtts.into_iter().skip(first).flatten().map(|rtt| (rtt - path_ns) / 1000).collect();
    waits.sort_unstable();
    waits[waits.len() / 2]
}

/// The payload that a flow delivered from this time on, in bits per second.
pub(crate) fn payload_bps(sink: &MemorySink, flow: &str, from_ns: u64) -> u64 {
    let row = ("flow", flow);
    let times = numbers_where(sink, Table::Flows, "t_ns", row);
    let delivered = numbers_where(sink, Table::Flows, "delivered_bytes", row);
    let first = times.iter().position(|&t_ns| t_ns >= from_ns).expect("samples");
    let last = times.len() - 1;
    (delivered[last] - delivered[first]) * 8 * SECOND / (times[last] - times[first])
}

/// The different reasons for which packets were dropped or marked after this time, sorted.
pub(crate) fn reasons_after(sink: &MemorySink, after_ns: u64) -> Vec<String> {
    let all = numbers(sink, Table::Drops, "t_ns").into_iter().zip(words(sink, Table::Drops, "reason"));
    let mut reasons: Vec<String> = all.filter(|(t_ns, _)| *t_ns > after_ns).map(|(_, reason)| reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
}

fn each<T>(sink: &MemorySink, table: Table, column: &str, values: impl Fn(&dyn Array) -> Vec<T>) -> Vec<T> {
    let column = |batch: &RecordBatch| {
        batch.column_by_name(column).unwrap_or_else(|| panic!("{table} has no column {column}")).clone()
    };
    sink.batches(table).iter().flat_map(|batch| values(&column(batch))).collect()
}
