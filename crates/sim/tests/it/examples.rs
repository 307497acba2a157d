//! Checks that the documentation's examples of streams show what they claim to show.

use std::fs;
use std::path::Path;

use crate::common::{SECOND, optional, run, words};
use bufferscope_records::{MemorySink, Table};
use bufferscope_scenario::{Experiment, Scenario};

fn example(name: &str) -> Experiment {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)).unwrap();
    Experiment::parse(&text, name, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The durations, in seconds, of the finished transfers that an entry of traffic began in a period of time.
fn took_s(sink: &MemorySink, traffic: &str, begun_s: std::ops::Range<u64>) -> Vec<f64> {
    let starts = optional(sink, Table::Transfers, "started_ns");
    let ends = optional(sink, Table::Transfers, "finished_ns");
    let names = words(sink, Table::Transfers, "traffic");
    let rows = names.iter().zip(starts.into_iter().zip(ends)).filter(|(name, _)| *name == traffic);
    let begun = rows.filter(|(_, (start, _))| begun_s.contains(&(start.unwrap() / SECOND)));
    begun.filter_map(|(_, (start, end))| Some((end? - start?) as f64 / SECOND as f64)).collect()
}

#[test]
fn in_the_household_pages_wait_for_the_downloads_unless_codel_keeps_the_queue_short() {
    let means: Vec<f64> = example("household.toml")
        .points()
        .iter()
        .map(|point| {
            // While the downloads go on.
            let pages = took_s(&run(&point.scenario, 1).output, "browser", 15..40);
            assert_eq!(pages.len(), 5);
            pages.iter().sum::<f64>() / pages.len() as f64
        })
        .collect();
    let [alone, alone_codel, bloated, managed] = means[..] else { panic!("{means:?}") };
    assert!(bloated > 2.0 * alone, "{means:?}");
    assert!(managed < bloated / 2.0, "{means:?}");
    assert!(alone_codel < bloated, "{means:?}");
}

/// 10 Mbit/s for 12 files of 1 MB instead of 100 Mbit/s for 30 of 32 MB: the same in small.
#[test]
fn concurrent_downloads_share_the_link_and_each_has_its_row() {
    let experiment = example("downloads.toml");
    let mut scenario: Scenario = experiment.points()[0].scenario.clone();
    for traffic in &mut scenario.traffic {
        if let bufferscope_scenario::TrafficKind::Tcp(tcp) = &mut traffic.kind {
            assert_eq!((tcp.flows, tcp.bytes, tcp.transfers), (10, Some(32 << 20), 1));
            (tcp.flows, tcp.bytes) = (4, Some(1 << 20));
        }
    }
    let port = &mut scenario.links[0].forward;
    port.rate = bufferscope_scenario::RateSchedule::constant(10_000_000);
    let sink = run(&scenario, 1).output;
    let took: Vec<f64> = ["from-a", "from-b", "from-c"].iter().flat_map(|name| took_s(&sink, name, 0..120)).collect();
    assert_eq!(took.len(), 12);
    // 12 MiB of payload at 10 Mbit/s of frames are 10.5 s, shared until the end.
    let last = took.iter().copied().fold(0.0, f64::max);
    assert!((10.5..12.5).contains(&last), "{last} s");
}
