//! Experiments as users write them, from file to points and expectations.

mod common;

use bufferscope_scenario::{
    Band, Comparison, Congestion, Experiment, Pfifo, PingTraffic, Port, Qdisc, RateSchedule, SojournDetail, TcpTraffic,
    TrafficKind,
};
use common::{LAB, lab_unswept, lab_with, set};

fn load(text: &str) -> Experiment {
    Experiment::parse(text, "lab.toml", &[]).unwrap()
}

fn load_with<const N: usize>(text: &str, overrides: [&str; N]) -> Experiment {
    Experiment::parse(text, "lab.toml", &set(overrides)).unwrap()
}

fn limits(experiment: &Experiment) -> Vec<u32> {
    let limit = |queue: &Qdisc| match queue {
        Qdisc::Pfifo(pfifo) => pfifo.limit_packets,
        other => panic!("not a pfifo: {other:?}"),
    };
    experiment.points().iter().map(|point| limit(&point.scenario.links[1].forward.queue)).collect()
}

const LIMIT: &str = "link.bottleneck.queue.limit";

#[test]
fn the_labs_file_becomes_the_labs_network() {
    let experiment = load(LAB);
    let scenario = &experiment.points()[2].scenario;
    assert_eq!((scenario.duration_ns, scenario.warmup_ns), (60_000_000_000, 0));
    assert_eq!((scenario.sample_interval_ns, scenario.sojourns), (10_000_000, SojournDetail::Histogram));
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["h1", "r1", "h2"], "in order of first appearance");
    let bottleneck = Port {
        rate: RateSchedule::constant(10_000_000),
        delay_ns: 5_000_000,
        overhead_bytes: 14,
        queue: Qdisc::Pfifo(Pfifo { limit_packets: 200 }),
    };
    assert_eq!(scenario.links[1].ends, [1, 2]);
    assert_eq!(scenario.links[1].forward, bottleneck);
    assert_eq!(scenario.links[1].reverse, bottleneck);
    assert_eq!(scenario.links[0].forward.rate, None);
    let [bulk, ping] = scenario.traffic.as_slice() else { panic!("two entries") };
    assert_eq!((bulk.from, bulk.to, bulk.start_ns, bulk.stop_ns), (0, 2, 0, 60_000_000_000));
    let reno = TcpTraffic { flows: 1, bytes: None, congestion: Congestion::Reno, ecn: false };
    assert_eq!(bulk.kind, TrafficKind::Tcp(reno));
    let probe = PingTraffic { interval_ns: 100_000_000, payload_bytes: 56, timeout_ns: 60_000_000_000 };
    assert_eq!(ping.kind, TrafficKind::Ping(probe));
}

#[test]
fn each_swept_value_is_a_point() {
    let experiment = load(LAB);
    assert_eq!(limits(&experiment), [50, 100, 200]);
    assert_eq!(experiment.points()[0].values, [(LIMIT.to_owned(), "50p".to_owned())]);
    assert_eq!(experiment.document().sweep[LIMIT], ["50p", "100p", "200p"]);
}

#[test]
fn without_a_sweep_there_is_one_point() {
    let experiment = load(&lab_unswept());
    assert_eq!(limits(&experiment), [100]);
    assert_eq!(experiment.points()[0].values, []);
}

#[test]
fn the_first_swept_key_varies_slowest() {
    let text = lab_with("[sweep]\n", "[sweep]\n\"traffic.bulk.flows\" = [1, 30]\n");
    let points: Vec<String> =
        load(&text).points().iter().map(|p| format!("{}/{}", p.values[0].1, p.values[1].1)).collect();
    assert_eq!(points, ["1/50p", "1/100p", "1/200p", "30/50p", "30/100p", "30/200p"]);
}

#[test]
fn an_expectation_names_its_points() {
    let experiment = load(LAB);
    let [expectation] = experiment.expectations() else { panic!("one expectation") };
    assert_eq!(expectation.metric, "rtt.max_ms");
    assert_eq!(expectation.band, Band { low: 245.0, high: 320.0 });
    assert_eq!(expectation.comparisons, [Comparison { point: 2, relative_to: None }]);
    assert!(expectation.applies());
}

#[test]
fn an_override_of_a_swept_key_ends_its_sweep_and_the_sources_claims() {
    let experiment = load_with(LAB, ["link.bottleneck.queue.limit=70p"]);
    assert_eq!(limits(&experiment), [70]);
    assert!(experiment.document().sweep.is_empty());
    let [expectation] = experiment.expectations() else { panic!("still listed") };
    assert!(!expectation.applies());
    assert_eq!(expectation.comparisons, []);
}
