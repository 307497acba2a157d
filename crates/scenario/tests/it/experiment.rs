//! Experiments as users write them, from file to points and expectations.

use crate::common::{LAB, lab_unswept, lab_with};
use bufferscope_scenario::{
    Band, Cells, Choke, Comparison, Congestion, Encapsulation, Experiment, FlowRed, Limit, Measured, Pfifo, PingTiming,
    PingTraffic, Port, Qdisc, RateSchedule, Red, Scenario, Sending, Sfq, SojournDetail, Table, TcpTraffic, Traffic,
    TrafficKind, WifiQueueing,
};

fn load(text: &str) -> Experiment {
    Experiment::parse(text, "lab.toml", &[]).unwrap()
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
    let experiment = load(&LAB);
    let scenario = &experiment.points()[2].scenario;
    assert_eq!((scenario.duration_ns, scenario.warmup_ns), (60_000_000_000, 0));
    assert_eq!((scenario.sample_interval_ns, scenario.sojourns), (10_000_000, SojournDetail::Histogram));
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["h1", "r1", "h2"], "in order of first appearance");
    let bottleneck = Port {
        rate: RateSchedule::constant(10_000_000),
        delay_ns: 5_000_000,
        encapsulation: Encapsulation::adding(14),
        queue: Qdisc::Pfifo(Pfifo { limit_packets: 200 }),
        ring: None,
        variation: None,
        boost: None,
        stacked: None,
        faults: None,
    };
    assert_eq!(scenario.links[1].ends, [1, 2]);
    assert_eq!(scenario.links[1].forward, bottleneck);
    assert_eq!(scenario.links[1].reverse, bottleneck);
    assert_eq!(scenario.links[0].forward.rate, None);
    let [bulk, ping] = scenario.traffic.as_slice() else { panic!("two entries") };
    assert_eq!((bulk.from, bulk.to, bulk.start_ns, bulk.stop_ns), (0, 2, 0, 60_000_000_000));
    let sending =
        Sending { congestion: Congestion::Reno, window_packets: None, target_ns: None, ecn: false, pacing: false };
    let reno = TcpTraffic { flows: 1, stagger_ns: 0, bytes: None, transfers: 1, rate_bps: None, on_off: None, sending };
    assert_eq!(bulk.kind, TrafficKind::Tcp(reno));
    let probe = PingTraffic {
        interval_ns: 100_000_000,
        payload_bytes: 56,
        timeout_ns: 60_000_000_000,
        timing: PingTiming::Exact,
    };
    assert_eq!(ping.kind, TrafficKind::Ping(probe));
}

fn with_keys(keys: &str) -> Scenario {
    load(&lab_unswept().replace("duration =", &format!("{keys}\nduration ="))).points()[0].scenario.clone()
}

#[test]
fn each_sampled_table_may_have_its_own_interval() {
    let intervals = |keys| [Table::Queues, Table::Flows].map(|table| with_keys(keys).sampled_every_ns(table));
    assert_eq!(intervals(""), [Some(10_000_000); 2]);
    assert_eq!(intervals("sample = '20ms'"), [Some(20_000_000); 2]);
    assert_eq!(intervals("sample = { flows = '1s' }"), [Some(10_000_000), Some(1_000_000_000)]);
    assert_eq!(intervals("sample = { queues = '1ms' }"), [Some(1_000_000), Some(10_000_000)]);
    assert_eq!(intervals("sample = { flows = '1s' }\nrecord = ['queues']"), [Some(10_000_000), None]);
    assert_eq!(with_keys("sample = { queues = '20ms', flows = '20ms' }"), with_keys("sample = '20ms'"));
}

/// The scenario's JSON says what is recorded only if that is not everything, so the default changes no earlier run.
#[test]
fn tables_are_recorded_unless_they_are_left_out() {
    let json = |keys| serde_json::to_value(with_keys(keys)).unwrap();
    assert_eq!(json("").get("record"), None);
    assert_eq!(json("").get("flows_interval_ns"), None);
    assert_eq!(json("record = ['queues', 'probes']")["record"], serde_json::json!(["probes", "queues"]));
    let scenario = with_keys("record = ['queues', 'probes']\nsample = { flows = '1s' }");
    assert_eq!(serde_json::from_value::<Scenario>(serde_json::to_value(&scenario).unwrap()).unwrap(), scenario);
}

/// A day of samples every 100 us would be too many rows, if they were recorded.
#[test]
fn what_is_not_recorded_may_be_sampled_at_any_interval() {
    let text = lab_unswept()
        .replace("60s", "86400s")
        .replace("duration =", "sample = '100us'\nrecord = ['probes']\nduration =");
    assert!(load(&text).points()[0].scenario.sampled_every_ns(Table::Flows).is_none());
}

#[test]
fn each_swept_value_is_a_point() {
    let experiment = load(&LAB);
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
    let experiment = load(&LAB);
    let [expectation] = experiment.expectations() else { panic!("one expectation") };
    assert_eq!(expectation.metric, "rtt.max_ms");
    assert_eq!(expectation.band, Band { low: 245.0, high: 320.0 });
    assert_eq!(expectation.comparisons, [Comparison { point: 2, relative_to: None, shown_by: None }]);
    assert!(expectation.applies());
}

#[test]
fn a_comparison_replaces_labels_and_keeps_the_others() {
    let text = lab_with("[sweep]\n", "[sweep]\n\"traffic.bulk.flows\" = [1, 30]\n");
    let text = text.replace("band =", "relative_to = { \"link.bottleneck.queue.limit\" = \"50p\" }\nband =");
    let experiment = load(&text);
    let expected =
        [(2, 0), (5, 3)].map(|(point, other)| Comparison { point, relative_to: Some(other), shown_by: None });
    assert_eq!(experiment.expectations()[0].comparisons, expected);
}

#[test]
fn a_cause_is_shown_at_the_point_with_other_labels() {
    let text = lab_with("[sweep]\n", "[sweep]\n\"tcp.gso_max_segs\" = { on = 45, off = 1 }\n")
        .replace("where = { ", "where = { \"tcp.gso_max_segs\" = \"on\", ")
        .replace("band =", "relative_to = { \"link.bottleneck.queue.limit\" = \"50p\" }\nband =");
    let text = text + "differs = \"A slot holds several segments.\"\nshown_by = { \"tcp.gso_max_segs\" = \"off\" }\n";
    let shown_by = Some(Measured { point: 5, relative_to: Some(3) });
    let experiment = load(&text);
    assert_eq!(experiment.expectations()[0].comparisons, [Comparison { point: 2, relative_to: Some(0), shown_by }]);
}

#[test]
fn an_expectation_without_labels_is_about_every_point() {
    let text = lab_with("where = { \"link.bottleneck.queue.limit\" = \"200p\" }\n", "");
    let points: Vec<usize> = load(&text).expectations()[0].comparisons.iter().map(|c| c.point).collect();
    assert_eq!(points, [0, 1, 2]);
}

#[test]
fn a_label_is_the_value_as_it_is_written() {
    let text = lab_unswept()
        + "[sweep]\n\"traffic.bulk.ecn\" = [true, false]\n[[expect]]\nmetric = \"rtt.mean_ms\"\nsays = \"little\"\n\
           band = [0, inf]\nwhere = { \"traffic.bulk.ecn\" = false }\n";
    let experiment = load(&text);
    assert_eq!(experiment.points()[0].values[0].1, "true");
    assert_eq!(experiment.expectations()[0].comparisons, [Comparison { point: 1, relative_to: None, shown_by: None }]);
    let json = serde_json::to_value(experiment.expectations()).unwrap();
    assert_eq!(json[0]["band"], serde_json::json!([0.0, null]), "JSON has no infinity");
    assert_eq!(json[0]["where"], serde_json::json!({ "traffic.bulk.ecn": "false" }));
}

#[test]
fn a_band_includes_its_ends() {
    let band = load(&LAB).expectations()[0].band;
    assert!(band.contains(245.0) && band.contains(320.0));
    assert!(!band.contains(244.9) && !band.contains(320.1) && !band.contains(f64::NAN));
}

/// Loads: lists of traffic that join the file's own, in which an entry replaces the one of its name.
#[test]
fn the_traffic_is_swept_as_lists() {
    let entry = |load: &str, name: &str, more: &str| {
        format!("[[sweep.traffic.\"{load}\"]]\nname = \"{name}\"\nfrom = \"h1\"\nto = \"h2\"\n{more}\n")
    };
    let text = lab_unswept()
        + &entry("a call", "call", "kind = \"voip\"")
        + &entry("many flows", "bulk", "kind = \"tcp\"\nflows = 8")
        + &entry("many flows", "flood", "kind = \"udp\"\nrate = \"1mbit\"")
        + "[sweep]\n\"traffic.ping.interval\" = [\"10ms\"]\n";
    let experiment = load(&text);
    let names = |point: usize| -> Vec<&str> {
        experiment.points()[point].scenario.traffic.iter().map(|traffic| traffic.name.as_str()).collect()
    };
    assert_eq!(experiment.document().sweep["traffic"], ["a call", "many flows"]);
    assert_eq!(names(0), ["bulk", "ping", "call"]);
    assert_eq!(names(1), ["bulk", "ping", "flood"]);
    let flows =
        |point: usize| serde_json::to_value(&experiment.points()[point].scenario.traffic[0]).unwrap()["flows"].clone();
    assert_eq!((flows(0), flows(1)), (1.into(), 8.into()));
}

/// The lab's "mitigate": whole queues as named values. One of them is red with only `limit 1000000 avpkt 1000`.
#[test]
fn red_gets_what_tc_derives() {
    let text = lab_unswept()
        + "[sweep.\"link.bottleneck.queue\"]\ntaildrop = { qdisc = \"pfifo\", limit = 1000 }\n\
           red = { qdisc = \"red\", limit = 1000000, avpkt = 1000 }\n\
           from_min = { qdisc = \"red\", limit = 1000000, avpkt = 1000, min = 30000 }\n\
           lab = { qdisc = \"red\", limit = 1000000, avpkt = 1000, min = 300000, max = 800000 }\n";
    let experiment = load(&text);
    let red = |point: usize| match &experiment.points()[point].scenario.links[1].forward.queue {
        Qdisc::Red(red) => red.clone(),
        other => panic!("not red: {other:?}"),
    };
    let lab = Red {
        limit_bytes: 1_000_000,
        min_bytes: 83_333,  // max / 3
        max_bytes: 250_000, // limit / 4
        avpkt_bytes: 1000,
        burst_packets: 138, // (2 min + max) / (3 avpkt)
        probability: 0.02,
        bandwidth_bps: 10_000_000,
        ecn: false,
        harddrop: false,
        nodrop: false,
        adaptive: false,
    };
    assert_eq!(red(1), lab);
    let burst_packets = (2 * 30_000 + 90_000) / 3000;
    assert_eq!(red(2), Red { min_bytes: 30_000, max_bytes: 90_000, burst_packets, ..lab.clone() });
    let burst_packets = (2 * 300_000 + 800_000) / 3000;
    assert_eq!(red(3), Red { min_bytes: 300_000, max_bytes: 800_000, burst_packets, ..lab });
}

/// The queue of the lab's bottleneck with these keys.
fn queue(keys: &str) -> Qdisc {
    let text = lab_unswept() + &format!("[sweep.\"link.bottleneck.queue\"]\nonly = {{ {keys} }}\n");
    load(&text).points()[0].scenario.links[1].forward.queue.clone()
}

/// `tc`'s and the kernel's defaults: of the limit come max, min and burst, in packets.
#[test]
fn choke_gets_what_tc_derives() {
    let choke = Choke {
        limit_packets: 1000,
        min_packets: 83,  // max / 3
        max_packets: 250, // limit / 4
        avpkt_bytes: 1000,
        burst_packets: 138, // (2 min + max) / 3
        probability: 0.02,
        bandwidth_bps: 10_000_000,
        ecn: false,
    };
    assert_eq!(queue("qdisc = 'choke', limit = '1000p', bandwidth = '10mbit'"), Qdisc::Choke(choke));
}

/// The defaults of sch_sfq, how it cuts numbers down, and what `tc` derives for RED.
#[test]
fn sfq_gets_what_tc_and_the_kernel_derive() {
    let default = Sfq {
        limit_packets: 127,
        depth_packets: 127,
        divisor: 1024,
        flows: 128,
        quantum_bytes: 1514,
        perturb_s: None,
        headdrop: false,
        red: None,
    };
    assert_eq!(queue("qdisc = 'sfq'"), Qdisc::Sfq(default.clone()));
    let fewer = Sfq { limit_packets: 50, flows: 50, ..default.clone() };
    assert_eq!(queue("qdisc = 'sfq', limit = '50p'"), Qdisc::Sfq(fewer));
    let small = Sfq { limit_packets: 64, depth_packets: 8, divisor: 8, flows: 8, ..default.clone() };
    assert_eq!(queue("qdisc = 'sfq', limit = '1000p', depth = '8p', divisor = 8"), Qdisc::Sfq(small));
    let red = FlowRed {
        limit_bytes: 120_000,
        min_bytes: 10_000, // max / 3
        max_bytes: 30_000, // redflowlimit / 4
        avpkt_bytes: 1000,
        burst_packets: 16, // (2 min + max) / (3 avpkt)
        probability: 0.02,
        ecn: false,
        harddrop: false,
    };
    let with_red = Sfq { perturb_s: Some(10), red: Some(red), ..default };
    assert_eq!(queue("qdisc = 'sfq', perturb = '10s', redflowlimit = 120000"), Qdisc::Sfq(with_red));
}

/// `reverse` and `forward` contain only the differences; keys that they omit are those of the link.
#[test]
fn a_direction_overrides_the_link() {
    let text = lab_unswept()
        .replace("limit = \"100p\" }", "limit = \"100p\" }\nreverse = { rate = \"1mbit\", delay = \"9ms\" }");
    let experiment = load(&text);
    let scenario = &experiment.points()[0].scenario;
    let (forward, reverse) = (&scenario.links[1].forward, &scenario.links[1].reverse);
    assert_eq!((forward.rate.clone(), forward.delay_ns), (RateSchedule::constant(10_000_000), 5_000_000));
    assert_eq!((reverse.rate.clone(), reverse.delay_ns), (RateSchedule::constant(1_000_000), 9_000_000));
    assert_eq!((reverse.encapsulation.overhead_bytes, &reverse.queue), (14, &forward.queue));
}

/// 10 s at 10 Gbit/s are 8.3 million full-size packets each way: fewer than the 50 million that may be kept. Steps
/// count only as far as the run reaches.
#[test]
fn a_schedule_may_go_on_after_the_end() {
    let rate = r#"[["0s", "1mbit"], ["50s", "10gbit"], ["80000s", "400gbit"]]"#;
    let text = lab_unswept().replace("\"10mbit\"", rate).replace("duration =", "sojourns = \"packets\"\nduration =");
    let experiment = load(&text);
    assert_eq!(experiment.points()[0].scenario.links[1].forward.rate.as_ref().map(|rate| rate.steps().len()), Some(3));
}

#[test]
fn values_inside_a_swept_table_may_be_swept_too() {
    let text = lab_unswept()
        + "[sweep]\n\"link.bottleneck.queue.limit\" = [5, 6]\n\
           \"link.bottleneck.queue\" = { a = { qdisc = \"pfifo\" }, b = { qdisc = \"pfifo\", limit = 9 } }\n";
    assert_eq!(limits(&load(&text)), [5, 5, 6, 6], "the table first, then the key inside it");
}

#[test]
fn the_largest_sweep_loads() {
    let values: Vec<String> = (1..=10_000).map(|limit| format!("\"{limit}p\"")).collect();
    let text = lab_unswept() + "[sweep]\n\"link.bottleneck.queue.limit\" = [" + &values.join(",") + "]\n";
    assert_eq!(limits(&load(&text)), (1..=10_000).collect::<Vec<u32>>());
}

#[test]
fn a_host_sends_with_its_congestion_control_unless_the_traffic_names_one() {
    let text = r#"
        title = "Two hosts and a server"
        duration = "1s"
        link = [{ name = "line", ends = ["h1", "h2"], rate = "10mbit", delay = "1ms" }]
        host = [{ name = "h1", tcp = { congestion = "bbr" } }]
        traffic = [
          { name = "as-the-host", kind = "tcp", from = "h1", to = "h2" },
          { name = "its-own", kind = "tcp", from = "h1", to = "h2", congestion = "reno" },
          { name = "page", kind = "web", from = "h1", to = "h2", bytes = "1kb" },
          { name = "swarm", kind = "bittorrent", from = "h1", to = "h2" },
          { name = "back", kind = "tcp", from = "h2", to = "h1" },
        ]
    "#;
    let experiment = Experiment::parse(text, "hosts.toml", &[]).unwrap();
    let congestion = |traffic: &Traffic| match &traffic.kind {
        TrafficKind::Tcp(tcp) => tcp.sending.congestion,
        TrafficKind::Web(web) => web.sending.congestion,
        TrafficKind::Bittorrent(swarm) => swarm.sending.congestion,
        _ => panic!("none of these"),
    };
    let found: Vec<_> = experiment.points()[0].scenario.traffic.iter().map(congestion).collect();
    let [bbr, reno, ledbat, cubic] = [Congestion::Bbr, Congestion::Reno, Congestion::Ledbat, Congestion::Cubic];
    assert_eq!(found, [bbr, reno, bbr, ledbat, cubic]);
}

#[test]
fn hosts_have_the_common_settings_where_they_have_none_of_their_own() {
    let common = "tcp = { congestion = \"westwood\", gso_max_segs = 45, rmem_max = \"32mb\" }\nduration =";
    let text = lab_unswept().replace("duration =", common).replace("congestion = \"reno\"\n", "")
        + "[[host]]\nname = \"h2\"\ntcp = { gso_max_segs = 2 }\n";
    let experiment = load(&text);
    let scenario = &experiment.points()[0].scenario;
    let found: Vec<_> = scenario.nodes.iter().map(|node| (node.tcp.gso_max_segs, node.tcp.rmem_max_bytes)).collect();
    assert_eq!(found, [45, 45, 2].map(|segments| (segments, 32 << 20)));
    let TrafficKind::Tcp(bulk) = &scenario.traffic[0].kind else { panic!("no TCP") };
    assert_eq!(bulk.sending.congestion, Congestion::Westwood);
}

#[test]
fn a_host_may_have_only_what_others_have_too() {
    let text = lab_unswept() + "[[host]]\nname = \"h2\"\n[tcp]\nsyn_linear_timeouts = 4\n";
    let experiment = load(&text);
    assert!(experiment.points()[0].scenario.nodes.iter().all(|node| node.tcp.syn_linear_timeouts == 4));
}

/// An access point with two stations.
const WIFI: &str = r#"
    title = "Wi-Fi"
    duration = "10s"
    link = [
        { name = "fast", ends = ["ap", "f"], rate = "144.4mbit" },
        { name = "slow", ends = ["s", "ap"], forward.rate = "6mbit", reverse.rate = "7.2mbit", reverse.queue.qdisc = "sfq" },
    ]
    traffic = [{ name = "ping", kind = "ping", from = "f", to = "s" }]
    [[wifi]]
    name = "wlan"
    access_point = "ap"
    links = ["fast", "slow"]
"#;

#[test]
fn stations_have_the_queues_of_mac80211_unless_they_have_their_own() {
    let experiment = load(WIFI);
    let scenario = &experiment.points()[0].scenario;
    assert_eq!(scenario.wifi[0].queueing, WifiQueueing::Mac80211 { airtime_fairness: true });
    let queue = |port: &Port| match &port.queue {
        Qdisc::FqCodel(queue) => (queue.limit_packets, queue.target_ns / 1_000_000, queue.interval_ns / 1_000_000),
        other => panic!("{other:?}"),
    };
    let [fast, slow] = scenario.links.as_slice() else { panic!("two links") };
    // 8192 packets for all stations of an interface. Below 6 Mbit/s for each of two stations, a station is slow.
    assert_eq!([&fast.forward, &fast.reverse].map(queue), [(4096, 20, 100), (8192, 20, 100)]);
    assert_eq!(queue(&slow.forward), (8192, 50, 300));
    assert_eq!(slow.reverse.queue.kind().name, "sfq", "towards the station");
}

#[test]
fn an_old_driver_has_one_queue_for_all_stations() {
    let text = WIFI.replace(", reverse.queue.qdisc = \"sfq\"", ", forward.queue.qdisc = \"sfq\"")
        + "queueing = { kind = 'fifo', queue = { qdisc = 'codel' } }";
    let experiment = load(&text);
    let scenario = &experiment.points()[0].scenario;
    assert_eq!(scenario.wifi[0].queueing, WifiQueueing::Fifo { size_packets: 256 });
    let towards_stations = [&scenario.links[0].forward, &scenario.links[1].reverse];
    assert_eq!(towards_stations.map(|port| port.queue.kind().name), ["codel"; 2], "the same one");
    assert_eq!(scenario.links[1].forward.queue.kind().name, "sfq", "the station's own");
}

/// The words are those of tc-cake(8), with its numbers.
#[test]
fn an_overhead_is_a_number_a_word_or_a_table() {
    let read = |overhead: &str| {
        let experiment = load(&lab_unswept().replace("\"10mbit\"", &format!("\"10mbit\"\noverhead = {overhead}")));
        let Encapsulation { overhead_bytes, mpu_bytes, cells } =
            experiment.points()[0].scenario.links[1].forward.encapsulation;
        (overhead_bytes, mpu_bytes, cells)
    };
    assert_eq!(read("38"), (38, 0, Cells::None));
    assert_eq!(read("\"0b\""), (0, 0, Cells::None));
    assert_eq!(read("\"docsis\""), (18, 64, Cells::None));
    assert_eq!(read("\"ethernet\""), (38, 84, Cells::None));
    assert_eq!(read("\"ipoa-vcmux\""), (8, 0, Cells::Atm));
    assert_eq!(read("\"pppoe-ptm\""), (30, 0, Cells::Ptm));
    assert_eq!(read("{ framing = [\"pppoe-ptm\", \"ether-vlan\"], atm = \"noatm\" }"), (34, 0, Cells::None));
    assert_eq!(read("{ framing = [\"docsis\"], bytes = 20 }"), (20, 64, Cells::None));
    assert_eq!(read("{ framing = \"docsis\" }"), (18, 64, Cells::None));
    assert_eq!(read("[\"docsis\", \"ether-vlan\"]"), (22, 64, Cells::None));
    assert_eq!(read("[\"pppoe-ptm\", \"noatm\"]"), (30, 0, Cells::None));
    assert_eq!(read("\"raw\""), (14, 0, Cells::None));
    assert_eq!(read("{ bytes = \"40b\", atm = \"atm\" }"), (40, 0, Cells::Atm));
    assert_eq!(read("{ mpu = 64 }"), (14, 64, Cells::None));
    assert_eq!(read("{}"), (14, 0, Cells::None));
}

/// `fifo_init`, `pfifo_fast_init`, `htb_init`, and the pfifo of a band or class that has no discipline (`qdisc_create_dflt`).
/// A full frame of Ethernet has 1514 bytes.
#[test]
fn what_a_discipline_leaves_to_the_device_is_its_txqueuelen() {
    let read = |queue: &str| {
        let keys = "\"10mbit\"\ntxqueuelen = 30\nreverse.txqueuelen = 40";
        let text = lab_unswept().replace("\"10mbit\"", keys);
        let experiment = load(&text.replace(r#"queue = { qdisc = "pfifo", limit = "100p" }"#, queue));
        let link = experiment.points()[0].scenario.links[1].clone();
        [link.forward.queue, link.reverse.queue]
    };
    let pfifo = |limit_packets| Qdisc::Pfifo(Pfifo { limit_packets });
    assert_eq!(read(""), [pfifo(30), pfifo(40)]);
    assert_eq!(read("queue.qdisc = \"pfifo\""), [pfifo(30), pfifo(40)]);
    assert_eq!(read("queue = { qdisc = \"pfifo\", limit = 7 }"), [pfifo(7), pfifo(7)]);
    let limits = |queue: &str| read(queue).map(|queue| queue.limit());
    assert_eq!(limits("queue.qdisc = \"bfifo\""), [30, 40].map(|packets| Limit::Bytes(packets * 1514)));
    assert_eq!(limits("queue.qdisc = \"pfifo_head_drop\""), [30, 40].map(Limit::Packets));
    assert_eq!(limits("queue.qdisc = \"pfifo_fast\""), [90, 120].map(Limit::Packets));
    assert_eq!(limits("queue.qdisc = \"codel\""), [1000, 1000].map(Limit::Packets));
    let prio = "queue = { qdisc = \"prio\", inner = [{ qdisc = \"pfifo\", limit = 5 }] }";
    assert_eq!(limits(prio), [5 + 2 * 30, 5 + 2 * 40].map(Limit::Packets));
    let classes = "all = { rate = \"8mbit\" }, a = { parent = \"all\", rate = \"1mbit\" }, b = { parent = \"all\", rate = \"1mbit\", inner = { qdisc = \"pfifo\" } }";
    let htb = format!("queue = {{ qdisc = \"htb\", default = \"a\", class = {{ {classes} }} }}");
    assert_eq!(limits(&htb), [3 * 30, 3 * 40].map(Limit::Packets), "two leaves, and what has no class");
    let tbf = "queue = { qdisc = \"tbf\", rate = \"1mbit\", burst = \"9kb\", limit = \"9kb\", inner = { qdisc = \"pfifo\" } }";
    assert_eq!(limits(tbf), [30, 40].map(Limit::Packets));
}
