//! From the file's tables to the [`Scenario`] that an engine runs. Names become indices, and defaults that depend on
//! other keys are filled in. Keys that are valid separately but not together are refused. (The checker ensures that
//! names are unique: otherwise key paths would be ambiguous.)

mod inheritance;
pub(crate) mod limits;
mod links;
mod nodes;
mod overhead;
mod reachability;
mod ring;
mod traffic;
mod varying;
mod wifi;
mod wire;

use crate::error::{Problem, Problems, quote};
use crate::file::{Setup, Sojourns};
use crate::files::Traces;
use crate::model::{Scenario, SojournDetail, Table};
use crate::qdisc::packet_match;
use crate::units::TIME;
pub(crate) use inheritance::inherit_tcp;
use nodes::Nodes;

/// The scenario of a set-up whose keys were checked one by one.
pub(crate) fn resolve(setup: &Setup, traces: &Traces<'_>) -> Result<Scenario, Problems> {
    let mut problems = Problems::default();
    check_times(setup, &mut problems);
    check_record(setup, &mut problems);
    let nodes = Nodes::new(&setup.link, &setup.host, &setup.tcp, &mut problems);
    let mut links = links::resolve(&setup.link, &nodes, traces, &mut problems);
    let traffic = traffic::resolve(setup, &nodes, &mut problems);
    let wifi = if problems.is_empty() { wifi::resolve(setup, &nodes, &mut links, &mut problems) } else { Vec::new() };
    if !problems.is_empty() {
        return Err(problems);
    }
    packet_match::bind(&mut links, &traffic, &mut problems);
    let sample = setup.sample.intervals();
    let scenario = Scenario {
        duration_ns: setup.duration.get(),
        warmup_ns: setup.warmup.get(),
        sample_interval_ns: sample.queues.get(),
        flows_interval_ns: (sample.flows != sample.queues).then(|| sample.flows.get()),
        record: setup.record.iter().copied().collect(),
        sojourns: match setup.sojourns {
            Sojourns::Histogram => SojournDetail::Histogram,
            Sojourns::Packets => SojournDetail::Packets,
        },
        nodes: nodes.into_models(&setup.host, &setup.tcp),
        links,
        wifi,
        traffic,
    };
    reachability::check(&scenario, &mut problems);
    wifi::check_segments(&scenario, &mut problems);
    limits::check(&scenario, setup.sample, &mut problems);
    if problems.is_empty() { Ok(scenario) } else { Err(problems) }
}

fn check_times(setup: &Setup, problems: &mut Problems) {
    let duration = setup.duration.get();
    if setup.warmup.get() >= duration {
        let allowed = format!("a time before the end, duration = {}", setup.duration);
        problems.add(|| Problem::new("warmup", setup.warmup.to_string(), allowed));
    }
    let sample = setup.sample.intervals();
    for (table, interval) in [(Table::Queues, sample.queues), (Table::Flows, sample.flows)] {
        if interval.get() > duration {
            let allowed = format!("a time of at most duration = {}", TIME.display(duration));
            problems.add(|| Problem::new(setup.sample.path(table), interval.to_string(), allowed));
        }
    }
}

fn check_record(setup: &Setup, problems: &mut Problems) {
    for (i, table) in setup.record.iter().enumerate() {
        if setup.record[..i].contains(table) {
            let found = format!("{} twice", quote(table.name()));
            problems.add(|| Problem::new("record", found, "each table once"));
        }
        if !Table::RECORDED.contains(table) {
            let allowed = Table::RECORDED.map(Table::name).join(", ");
            let allowed = format!("{allowed}; this table is of captures");
            problems.add(|| Problem::new("record", quote(table.name()), allowed));
        }
    }
}
