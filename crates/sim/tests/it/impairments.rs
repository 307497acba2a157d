//! Whole runs over random trees whose ports lose, duplicate, corrupt, reorder and delay packets: invariants that hold
//! on any path, and what TCP must achieve on a tolerable one.

use std::collections::HashSet;
use std::fmt::Write;

use crate::common::{
    MS, PING, SECOND, dumbbell, most_segments, numbers, numbers_where, optional, run, scenario, words,
};
use bufferscope_records::{MemorySink, Table};
use bufferscope_scenario::{Distribution, Kind, Loss, Netem, Qdisc, Reorder, Scenario};
use bufferscope_sim::Summary;
use proptest::prelude::*;
use proptest::sample::select;

const CONTROLS: [&str; 5] = ["reno", "cubic", "dctcp", "bbr", "vegas"];

/// A tree of nodes in which every node but the first has a link to one before it, and traffic between any of them.
#[derive(Clone, Debug)]
struct Tree {
    /// For each link the end that is nearer to the first node, the delay in ms, and the rate in Mbit/s.
    links: Vec<(usize, u64, u64)>,
    traffic: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    from: usize,
    to: usize,
    kind: Traffic,
}

#[derive(Clone, Debug)]
enum Traffic {
    /// Files over connections one after the other, with a congestion control, and ECN or not.
    Files {
        bytes: u64,
        flows: u32,
        control: &'static str,
        ecn: bool,
    },
    Ping,
    Udp,
    Dns,
}

fn files() -> BoxedStrategy<Traffic> {
    let file = (1..300_000_u64, 1..=3_u32, select(&CONTROLS[..]), any::<bool>());
    file.prop_map(|(bytes, flows, control, ecn)| Traffic::Files { bytes, flows, control, ecn }).boxed()
}

fn any_traffic() -> BoxedStrategy<Traffic> {
    prop_oneof![3 => files(), 1 => Just(Traffic::Ping), 1 => Just(Traffic::Udp), 1 => Just(Traffic::Dns)].boxed()
}

fn tree(kind: BoxedStrategy<Traffic>) -> impl Strategy<Value = Tree> {
    let link = (any::<usize>(), 0..30_u64, 1..20_u64);
    let traffic = prop::collection::vec((any::<usize>(), any::<usize>(), kind), 1..=4);
    (prop::collection::vec(link, 1..=5), traffic).prop_map(|(links, traffic)| {
        let nodes = links.len() + 1;
        let entry = |(from, distance, kind): (usize, usize, Traffic)| {
            let from = from % nodes;
            Entry { from, to: (from + 1 + distance % (nodes - 1)) % nodes, kind }
        };
        Tree {
            links: (1..).zip(links).map(|(node, (parent, delay, rate))| (parent % node, delay, rate)).collect(),
            traffic: traffic.into_iter().map(entry).collect(),
        }
    })
}

impl Tree {
    /// The scenario with a duration of this many seconds, with these disciplines at its ports.
    fn scenario(&self, seconds: u64, queues: &[Qdisc]) -> Scenario {
        let mut text = format!("title = 'Impairments'\nduration = '{seconds}s'\nsample = '50ms'\n");
        for (node, (parent, delay, rate)) in (1..).zip(&self.links) {
            let ends = format!("['n{parent}', 'n{node}']");
            writeln!(text, "[[link]]\nname = 'l{node}'\nends = {ends}\ndelay = '{delay}ms'\nrate = '{rate}mbit'")
                .unwrap();
        }
        for (number, Entry { from, to, kind }) in self.traffic.iter().enumerate() {
            let keys = match kind {
                Traffic::Files { bytes, flows, control, ecn } => {
                    format!("kind = 'tcp'\nbytes = '{bytes}b'\nflows = {flows}\ncongestion = '{control}'\necn = {ecn}")
                }
                Traffic::Ping => "kind = 'ping'\ninterval = '50ms'".to_owned(),
                Traffic::Udp => "kind = 'udp'\nrate = '300kbit'".to_owned(),
                Traffic::Dns => "kind = 'dns'\ninterval = '100ms'".to_owned(),
            };
            writeln!(text, "[[traffic]]\nname = 't{number}'\nfrom = 'n{from}'\nto = 'n{to}'\n{keys}").unwrap();
        }
        let mut scenario = scenario(&text);
        let ports = scenario.links.iter_mut().flat_map(|link| [&mut link.forward, &mut link.reverse]);
        for (port, queue) in ports.zip(queues) {
            port.queue.clone_from(queue);
        }
        scenario
    }
}

/// As many disciplines as the largest tree has ports: any netem, or anything else.
fn any_impairments() -> impl Strategy<Value = Vec<Qdisc>> {
    prop::collection::vec(prop_oneof![2 => Qdisc::any_named("netem"), 1 => Qdisc::any().boxed()], 10)
}

/// The same, but with each port a path that TCP gets through in time: few packets are lost, but many may be duplicated, or
/// overtake others.
fn bearable_impairments() -> impl Strategy<Value = Vec<Qdisc>> {
    let part = |most: u32| (1..=most).prop_map(|part| f64::from(part) / 1000.0);
    let loss =
        prop::option::of((part(30), part(500)).prop_map(|(loss, correlation)| Loss::Random([loss, correlation])));
    let duplicate = prop::option::of((part(500), part(500)).prop_map(|(part, correlation)| [part, correlation]));
    let corrupt = prop::option::of((part(20), part(500)).prop_map(|(part, correlation)| [part, correlation]));
    let reorder =
        prop::option::of((part(500), part(500), 1..5_u32).prop_map(|(probability, correlation, gap)| Reorder {
            probability,
            correlation,
            gap,
        }));
    let times = (1..=20_u64, 0..=20_u64, select(vec![Distribution::Uniform, Distribution::Normal]));
    let netem = (loss, duplicate, corrupt, reorder, times).prop_map(
        |(loss, duplicate, corrupt, reorder, (delay, jitter, distribution))| {
            Qdisc::Netem(Netem {
                limit_packets: 1000,
                delay_ns: delay * MS,
                jitter_ns: jitter * MS,
                correlation: 0.0,
                distribution,
                loss,
                ecn: false,
                duplicate,
                corrupt,
                reorder,
                rate: None,
                slot: None,
                inner: None,
            })
        },
    );
    prop::collection::vec(prop_oneof![3 => netem, 1 => Just(Qdisc::default())], 10)
}

/// The rows of each table agree with one another and with the totals.
fn assert_consistent(scenario: &Scenario, summary: &Summary<MemorySink>) {
    let sink = &summary.output;
    for table in [Table::Queues, Table::Flows, Table::Drops, Table::Sojourns] {
        assert!(numbers(sink, table, "t_ns").is_sorted(), "{table}");
        assert!(numbers(sink, table, "t_ns").iter().all(|t_ns| *t_ns <= summary.ended_ns), "{table}");
    }
    assert_ports_consistent(scenario, summary);
    assert_transfers_consistent(scenario, summary);
    assert_probes_consistent(scenario, summary);
}

fn assert_ports_consistent(scenario: &Scenario, summary: &Summary<MemorySink>) {
    let sink = &summary.output;
    let marks = |reason: &str| {
        let reasons = Qdisc::KINDS.iter().flat_map(|kind: &Kind| kind.reasons);
        reasons.filter(|known| known.word == reason).any(|known| known.marks)
    };
    let (ports, reasons) = (words(sink, Table::Drops, "port"), words(sink, Table::Drops, "reason"));
    for port in &summary.ports {
        let name = port.port.as_str();
        let of_port = |marked: bool| {
            let rows = ports.iter().zip(&reasons).filter(|row| row.0 == name);
            rows.filter(|row| marks(row.1) == marked).count() as u64
        };
        assert_eq!([of_port(false), of_port(true)], [port.dropped, port.marked], "{name}: a row for each");
        let column = |column| numbers_where(sink, Table::Queues, column, ("port", name));
        let most_sent = port.sent * most_segments(scenario);
        for (counter, end) in [("dropped", port.dropped), ("marked", port.marked), ("sent_packets", most_sent)] {
            let counts = column(counter);
            assert!(counts.is_sorted() && *counts.last().unwrap() <= end, "{name}: {counter}");
        }
        assert!(column("sent_bytes").is_sorted(), "{name}");
        let waiting = column("packets").into_iter().zip(column("bytes"));
        assert!(waiting.into_iter().all(|(packets, bytes)| (packets == 0) == (bytes == 0)), "{name}");
    }
}

/// A file ends after it began, as large as it was, and no connection has delivered more than its file.
fn assert_transfers_consistent(scenario: &Scenario, summary: &Summary<MemorySink>) {
    let sink = &summary.output;
    let started = numbers(sink, Table::Transfers, "started_ns");
    for (start_ns, end_ns) in started.iter().zip(optional(sink, Table::Transfers, "finished_ns")) {
        assert!(end_ns.is_none_or(|end_ns| end_ns > *start_ns), "{start_ns} to {end_ns:?}");
    }
    for traffic in &scenario.traffic {
        let bufferscope_scenario::TrafficKind::Tcp(tcp) = &traffic.kind else { continue };
        let bytes = tcp.bytes.unwrap();
        let sizes = numbers_where(sink, Table::Transfers, "bytes", ("traffic", &traffic.name));
        assert_eq!(sizes, vec![bytes; tcp.flows as usize]);
        for flow in 1..=tcp.flows {
            let delivered =
                numbers_where(sink, Table::Flows, "delivered_bytes", ("flow", &format!("{}/{flow}", traffic.name)));
            assert!(delivered.is_sorted() && delivered.iter().all(|delivered| *delivered <= bytes), "{delivered:?}");
        }
    }
}

/// Each probe has one row, though it, or its answer, may have arrived several times.
fn assert_probes_consistent(scenario: &Scenario, summary: &Summary<MemorySink>) {
    let sink = &summary.output;
    let names = words(sink, Table::Probes, "probe");
    let probes: Vec<(&String, u64)> = names.iter().zip(numbers(sink, Table::Probes, "seq")).collect();
    assert_eq!(probes.iter().collect::<HashSet<_>>().len(), probes.len(), "a probe has two rows");
    let least_ns = scenario.links.iter().map(|link| link.forward.delay_ns + link.reverse.delay_ns).min().unwrap();
    let rtts = optional(sink, Table::Probes, "rtt_ns");
    assert!(rtts.iter().flatten().all(|rtt_ns| *rtt_ns >= least_ns), "a round trip takes at least one link's");
}

/// One bit of each request is flipped, in its 98 bytes of Ethernet, IP and ICMP. If it is one of the 6 bytes of the
/// source address, the request is answered. No queue drops any.
#[test]
fn a_corrupted_request_is_answered_only_if_its_checksum_is_right() {
    let link = "rate = '10mbit'\nforward = { queue = { qdisc = 'netem', corrupt = 1.0 } }";
    let summary = run(&dumbbell("60s", link, &format!("{PING}interval = '20ms'")), 1);
    let rtts = optional(&summary.output, Table::Probes, "rtt_ns");
    let answered = rtts.iter().flatten().count();
    assert_eq!(rtts.len(), 3000);
    // 184 expected, with a deviation of 13.
    assert!((130..=240).contains(&answered), "{answered} of 3000 answered");
    assert_eq!(summary.output.rows(Table::Drops), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_happens_to_packets_the_accounts_agree(
        tree in tree(any_traffic()),
        queues in any_impairments(),
        seed: u64,
    ) {
        let scenario = tree.scenario(3, &queues);
        // That packets are conserved is checked by `run`.
        assert_consistent(&scenario, &run(&scenario, seed));
    }

    /// A file is recorded as finished when its receiver has all its bytes in order. Ten minutes are more than the timeouts
    /// of packets of which at most 5 % are lost, or discarded because they are corrupt, for each of ten ports.
    #[test]
    fn tcp_delivers_every_file_over_bearable_paths(
        tree in tree(files()),
        queues in bearable_impairments(),
        seed: u64,
    ) {
        let scenario = Scenario { sample_interval_ns: SECOND, ..tree.scenario(600, &queues) };
        let summary = run(&scenario, seed);
        assert_consistent(&scenario, &summary);
        let finished = optional(&summary.output, Table::Transfers, "finished_ns");
        assert!(finished.iter().all(Option::is_some), "{finished:?}");
        assert!(summary.flows.iter().all(|flow| flow.under_way == 0), "nothing is left");
    }
}
