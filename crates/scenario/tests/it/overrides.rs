//! `--set PATH=VALUE`.

use crate::common::{LAB, lab_unswept, lab_with, set};
use bufferscope_scenario::{
    Cells, Codel, Congestion, Encapsulation, Experiment, Pfifo, Qdisc, Scenario, Table, TrafficKind,
};

fn points<const N: usize>(text: &str, overrides: [&str; N]) -> Vec<Scenario> {
    let experiment = Experiment::parse(text, "lab.toml", &set(overrides)).unwrap();
    experiment.points().iter().map(|point| point.scenario.clone()).collect()
}

fn only<const N: usize>(overrides: [&str; N]) -> Scenario {
    points(&lab_unswept(), overrides).pop().unwrap()
}

fn bottleneck(scenario: &Scenario) -> &Qdisc {
    &scenario.links[1].forward.queue
}

fn rate(scenario: &Scenario) -> Vec<(u64, u64)> {
    let steps = scenario.links[1].forward.rate.as_ref().unwrap().steps();
    steps.iter().map(|step| (step.from_ns, step.bits_per_second)).collect()
}

#[test]
fn a_value_needs_no_quotes() {
    assert_eq!(rate(&only(["link.bottleneck.rate=2mbit"])), [(0, 2_000_000)]);
    assert_eq!(rate(&only([" link.bottleneck.rate = 2mbit "])), [(0, 2_000_000)]);
    assert_eq!(rate(&only(["link.bottleneck.rate=\"2mbit\""])), [(0, 2_000_000)]);
}

#[test]
fn a_value_may_be_any_toml() {
    let schedule = "link.bottleneck.rate=[[\"0s\", \"100mbit\"], [\"10s\", \"1mbit\"]]";
    assert_eq!(rate(&only([schedule])), [(0, 100_000_000), (10_000_000_000, 1_000_000)]);
    let TrafficKind::Tcp(bulk) = &only(["traffic.bulk.flows=30"]).traffic[0].kind else { panic!("tcp") };
    assert_eq!(bulk.flows, 30);
}

#[test]
fn a_table_replaces_a_table() {
    let defaults = Codel {
        limit_packets: 1000,
        target_ns: 5_000_000,
        interval_ns: 100_000_000,
        ecn: false,
        ce_threshold_ns: None,
    };
    assert_eq!(bottleneck(&only(["link.bottleneck.queue={qdisc=\"codel\"}"])), &Qdisc::Codel(defaults.clone()));
    let one_way = only(["link.bottleneck.reverse.queue.qdisc=codel"]);
    assert_eq!(one_way.links[1].reverse.queue, Qdisc::Codel(defaults));
    assert_eq!(bottleneck(&one_way), &Qdisc::Pfifo(Pfifo { limit_packets: 100 }));
}

#[test]
fn a_key_that_the_file_leaves_out_is_added() {
    let scenario = only(["traffic.bulk.stop=30s", "link.access.overhead=38b"]);
    assert_eq!(scenario.traffic[0].stop_ns, 30_000_000_000);
    assert_eq!(scenario.links[0].reverse.encapsulation, Encapsulation::adding(38));
    let scenario = only(["link.access.overhead=docsis", "link.bottleneck.reverse.overhead={bytes=40, atm=\"atm\"}"]);
    let docsis = Encapsulation { overhead_bytes: 18, mpu_bytes: 64, cells: Cells::None };
    assert_eq!(scenario.links[0].forward.encapsulation, docsis);
    let atm = Encapsulation { overhead_bytes: 40, mpu_bytes: 0, cells: Cells::Atm };
    assert_eq!(scenario.links[1].reverse.encapsulation, atm);
    assert_eq!(scenario.links[1].forward.encapsulation, Encapsulation::adding(14));
}

#[test]
fn one_table_may_get_another_interval() {
    let intervals = |text: &str| {
        let scenario = points(text, ["sample.flows=1s"]).pop().unwrap();
        [Table::Queues, Table::Flows].map(|table| scenario.sampled_every_ns(table).unwrap() / 1_000_000)
    };
    assert_eq!(intervals(&lab_unswept()), [10, 1000]);
    for keys in ["sample = \"50ms\"", "sample = { queues = \"50ms\" }"] {
        assert_eq!(intervals(&lab_unswept().replace("duration =", &format!("{keys}\nduration ="))), [50, 1000]);
    }
}

#[test]
fn the_tables_that_are_recorded_may_be_chosen() {
    let record = only(["record=[\"queues\",\"probes\"]"]).record;
    assert_eq!(record.iter().collect::<Vec<_>>(), [Table::Probes, Table::Queues]);
}

#[test]
fn a_host_without_an_entry_gets_one() {
    let scenario = only(["host.h2.tcp.rmem_max=1mb"]);
    assert_eq!(scenario.nodes[2].tcp.rmem_max_bytes, 1 << 20);
    assert_eq!(scenario.nodes[0].tcp.rmem_max_bytes, 6 << 20);
    let both = only(["host.h2.tcp.rmem_max=1mb", "host.h1.tcp.rmem_max=2mb", "host.h2.tcp.initial_window=3"]);
    assert_eq!(both.nodes[0].tcp.rmem_max_bytes, 2 << 20);
    assert_eq!((both.nodes[2].tcp.rmem_max_bytes, both.nodes[2].tcp.initial_window_packets), (1 << 20, 3));
}

#[test]
fn the_last_one_wins() {
    let scenario = only(["traffic.bulk.congestion=cubic", "traffic.bulk.congestion=reno"]);
    let TrafficKind::Tcp(bulk) = &scenario.traffic[0].kind else { panic!("tcp") };
    assert_eq!(bulk.sending.congestion, Congestion::Reno);
}

#[test]
fn a_swept_key_that_is_set_is_no_longer_swept() {
    let scenarios = points(&LAB, ["link.bottleneck.queue.limit=70p"]);
    assert_eq!(scenarios.iter().map(bottleneck).collect::<Vec<_>>(), [&Qdisc::Pfifo(Pfifo { limit_packets: 70 })]);
}

#[test]
fn nor_is_a_key_inside_a_table_that_is_set() {
    let scenarios = points(&LAB, ["link.bottleneck.queue={qdisc=\"pfifo\", limit=70}"]);
    assert_eq!(scenarios.iter().map(bottleneck).collect::<Vec<_>>(), [&Qdisc::Pfifo(Pfifo { limit_packets: 70 })]);
}

#[test]
fn a_key_inside_a_swept_table_is_set_at_every_point() {
    let queues =
        "[sweep.\"link.bottleneck.queue\"]\npfifo = { qdisc = \"pfifo\", limit = 5 }\ncodel = { qdisc = \"codel\" }\n";
    let scenarios = points(&(lab_unswept() + queues), ["link.bottleneck.queue.limit=70p"]);
    let limits: Vec<u32> = scenarios
        .iter()
        .map(|scenario| match bottleneck(scenario) {
            Qdisc::Pfifo(pfifo) => pfifo.limit_packets,
            Qdisc::Codel(codel) => codel.limit_packets,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(limits, [70, 70]);
}

#[test]
fn a_sweep_can_be_replaced_or_added() {
    assert_eq!(points(&LAB, ["sweep.link.bottleneck.queue.limit=[\"5p\", \"6p\"]"]).len(), 2);
    assert_eq!(points(&LAB, ["sweep.\"traffic.bulk.flows\"=[1, 10, 30]"]).len(), 9);
    assert_eq!(points(&lab_unswept(), ["sweep.duration=[\"5s\", \"10s\"]"])[1].duration_ns, 10_000_000_000);
}

#[test]
fn a_whole_sweep_is_set_key_by_key() {
    let error = Experiment::parse(&LAB, "lab.toml", &set(["sweep={duration=[\"5s\"]}"])).unwrap_err();
    assert!(error.to_string().contains("its keys are set one by one); allowed: sweep.PATH=[VALUE, VALUE]"), "{error}");
}

#[test]
fn whatever_changes_what_happens_ends_the_sources_claims() {
    for text in ["link.access.delay=6ms", "sample=20ms", "sweep.link.bottleneck.queue.limit=[\"200p\"]"] {
        let experiment = Experiment::parse(&LAB, "lab.toml", &set([text])).unwrap();
        let [expectation] = experiment.expectations() else { panic!("still listed") };
        assert!(!expectation.applies(), "{text}");
        assert!(expectation.comparisons.is_empty(), "{text}");
        let reason = expectation.not_applicable.as_deref();
        assert_eq!(reason, Some(format!("the source says nothing about --set {text}").as_str()));
    }
}

#[test]
fn a_new_title_changes_nothing_else() {
    let text = "title=For the lecture";
    let experiment = Experiment::parse(&LAB, "lab.toml", &set([text, "figures=[\"rtt_cdf\"]"])).unwrap();
    assert_eq!(experiment.document().title, "For the lecture");
    assert_eq!(experiment.document().figures, ["rtt_cdf"]);
    assert!(experiment.expectations()[0].applies());
}

/// The file must be sound by itself: an override can't hide a mistake in it.
#[test]
fn an_override_does_not_hide_a_mistake_in_the_file() {
    let text = lab_with("\"10mbit\"", "\"10mbits\"");
    let error = Experiment::parse(&text, "lab.toml", &set(["link.bottleneck.rate=2mbit"])).unwrap_err();
    assert!(error.to_string().contains("link.bottleneck.rate: found \"10mbits\""), "{error}");
}

#[test]
fn a_table_adds_or_replaces_a_traffic() {
    let added = only(["traffic.call={kind='voip', from='h1', to='h2'}", "traffic.call.start=3s"]);
    let names = |scenario: &Scenario| scenario.traffic.iter().map(|traffic| traffic.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&added), ["bulk", "ping", "call"]);
    assert_eq!(added.traffic[2].start_ns, 3_000_000_000);
    let replaced = only(["traffic.bulk={kind='ping', from='h2', to='h1'}"]);
    assert_eq!(names(&replaced), ["bulk", "ping"]);
    assert!(matches!(replaced.traffic[0].kind, TrafficKind::Ping(_)));
    for (change, words) in [
        ("traffic.call={kind='voip', from='h1', to='h9'}", "traffic.call.to"),
        (
            "traffic.call={kind='voip', name='x', from='h1', to='h2'}",
            "traffic.call.name: found a name, which the path already gives",
        ),
        ("traffic.call=3", "traffic.call: found no key of a [[traffic]] entry"),
        ("link.line={ends=['h1', 'h2']}", "link.line: found no key of a [[link]] entry"),
    ] {
        let error = Experiment::parse(&lab_unswept(), "lab.toml", &set([change])).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_point_is_changed_by_further_overrides() {
    let experiment = Experiment::parse(&LAB, "lab.toml", &set(["link.bottleneck.rate=3mbit"])).unwrap();
    let before = &experiment.points()[1].scenario;
    let mut later =
        set(["link.bottleneck.rate=1mbit", "traffic.bulk.flows=3", " link.bottleneck.rate = 2mbit"]).to_vec();
    let after = experiment.changed(1, None, &mut later).unwrap();
    assert_eq!(rate(&after), [(0, 2_000_000)]);
    assert_eq!(bottleneck(&after), bottleneck(before), "the swept value stays");
    assert_eq!(later, set(["traffic.bulk.flows=3", " link.bottleneck.rate = 2mbit"]), "the first rate is replaced");
    assert_eq!(&experiment.changed(1, None, &mut vec![]).unwrap(), before);
    let swept = experiment.changed(1, None, &mut set(["link.bottleneck.queue={qdisc='codel'}"]).to_vec()).unwrap();
    assert!(matches!(bottleneck(&swept), Qdisc::Codel(_)), "a swept value can be changed, too");
}

#[test]
fn a_point_is_not_changed_into_something_impossible() {
    let experiment = Experiment::parse(&LAB, "lab.toml", &[]).unwrap();
    for (change, words) in [
        ("link.bottleneck.rate=fast", "lab.toml: link.bottleneck.rate"),
        ("title=Other", "title=Other\" (no key of the network or its traffic)"),
        ("sweep.duration=['1s']", "(no key of the network or its traffic)"),
        ("link.bottleneck", "no ="),
    ] {
        let error = experiment.changed(0, None, &mut set([change]).to_vec()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
