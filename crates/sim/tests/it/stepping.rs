//! Runs in steps equal runs without steps, and changes between the steps have the same consequences as on Linux.

use std::ops::{ControlFlow, Range};

use crate::common::{MS, SECOND, assert_conserving, numbers, numbers_where, run, words};
use bufferscope_records::{MemorySink, Recorder, Table};
use bufferscope_scenario::testing::arbitrary_scenario;
use bufferscope_scenario::{Experiment, Port, RateSchedule, Scenario};
use bufferscope_sim::{Change, PortState, Progress, SimError, Simulation, State, Summary};
use proptest::prelude::*;

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn begin(scenario: &Scenario, seed: u64) -> Simulation<MemorySink> {
    let recorder = Recorder::new(MemorySink::default());
    Simulation::new(scenario.clone(), seed, recorder).unwrap_or_else(|error| panic!("{error}"))
}

fn finish(simulation: Simulation<MemorySink>) -> Summary<MemorySink> {
    let summary = simulation.finish(&mut go_on).unwrap_or_else(|error| panic!("{error}"));
    assert_conserving(&summary);
    summary
}

fn assert_same(a: &Summary<MemorySink>, b: &Summary<MemorySink>) {
    for table in Table::ALL {
        assert_eq!(a.output.batches(table), b.output.batches(table), "{table}");
    }
    let totals = |summary: &Summary<MemorySink>| {
        (summary.events, summary.hops, summary.ended_ns, summary.ports.clone(), summary.flows.clone())
    };
    assert_eq!(totals(a), totals(b));
}

/// A run of an experiment with one point, which is changed by overrides (`PATH=VALUE`).
struct Lab {
    experiment: Experiment,
    set: Vec<String>,
    simulation: Simulation<MemorySink>,
}

impl Lab {
    fn new(text: &str) -> Self {
        let experiment = Experiment::parse(text, "lab.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        let simulation = begin(&experiment.points()[0].scenario, 1);
        Self { experiment, set: Vec::new(), simulation }
    }

    /// A link of 1 Mbit/s, and datagrams of 10,000 bits with frame and all: one takes 10 ms. Two arrive in that time.
    fn overloaded(queue: &str) -> Self {
        Self::new(&format!(
            r#"
            title = "Twice as much as the link takes"
            duration = "10s"
            sojourns = "packets"
            link = [{{ name = "line", ends = ["h1", "h2"], rate = "1mbit", delay = "5ms", queue = {{ {queue} }} }}]
            traffic = [{{ name = "load", kind = "udp", from = "h1", to = "h2", size = "1208b", rate = "1933kbit" }}]
            "#
        ))
    }

    fn advance(&mut self, until_ns: u64) -> State {
        self.simulation.advance(until_ns, &mut go_on).unwrap_or_else(|error| panic!("{error}"));
        self.simulation.state()
    }

    fn try_set(&mut self, change: &str) -> Result<(), SimError> {
        let mut set = [&self.set[..], &[change.to_owned()]].concat();
        let changed = self.experiment.changed(0, None, &mut set).unwrap_or_else(|error| panic!("{error}"));
        self.simulation.change(changed, vec![change.to_owned()])?;
        self.set = set;
        Ok(())
    }

    /// Changes a key, and returns the state at the same time.
    fn set(&mut self, change: &str) -> State {
        self.try_set(change).unwrap_or_else(|error| panic!("{error}"));
        self.simulation.state()
    }
}

/// The first port: of `h1`, towards `h2`.
fn port(state: &State) -> &PortState {
    &state.ports[0]
}

/// When packets left the first port's queue.
fn departures(summary: &Summary<MemorySink>) -> Vec<u64> {
    numbers_where(&summary.output, Table::Sojourns, "t_ns", ("port", "h1>h2"))
}

fn gaps(times: &[u64]) -> Vec<u64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The reasons of the drops at a time.
fn reasons_at(summary: &Summary<MemorySink>, t_ns: u64) -> Vec<String> {
    reasons_of(summary, t_ns..t_ns + 1)
}

/// The reasons of the drops within some time.
fn reasons_of(summary: &Summary<MemorySink>, times: Range<u64>) -> Vec<String> {
    let reasons = words(&summary.output, Table::Drops, "reason").into_iter();
    let drops = reasons.zip(numbers(&summary.output, Table::Drops, "t_ns"));
    drops.filter(|drop| times.contains(&drop.1)).map(|drop| drop.0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_run_in_steps_is_the_run_without_steps(
        scenario in arbitrary_scenario(),
        cuts in prop::collection::vec(0.0..=1.0_f64, 0..20),
        seed in 0..3_u64,
    ) {
        let whole = run(&scenario, seed);
        let mut simulation = begin(&scenario, seed);
        let mut times: Vec<u64> = cuts.iter().map(|cut| (scenario.duration_ns as f64 * cut) as u64).collect();
        // Also times at which samples are due and seconds end.
        times.extend(cuts.iter().map(|cut| (scenario.duration_ns as f64 * cut) as u64 / (50 * MS) * 50 * MS));
        times.sort_unstable();
        for until_ns in times {
            simulation.advance(until_ns, &mut go_on).unwrap();
            prop_assert_eq!(simulation.now_ns(), until_ns);
            // Looking at the state changes nothing.
            let queued = simulation.state().ports.iter().map(|port| port.packets.queued).sum::<u64>();
            let known = simulation.state().ports.iter().map(|port| port.packets.arrived).sum::<u64>();
            prop_assert!(queued <= known);
            simulation.recorder().pending(Table::Queues);
        }
        assert_same(&finish(simulation), &whole);
    }

    #[test]
    fn a_change_at_the_beginning_gives_the_run_of_the_changed_scenario(
        scenario in arbitrary_scenario(),
        other in arbitrary_scenario(),
    ) {
        let changed = mixed(&scenario, &other);
        let mut simulation = begin(&with_one_traffic(&scenario), 1);
        simulation.change(changed.clone(), vec![]).unwrap();
        assert_same(&finish(simulation), &run(&changed, 1));
    }

    #[test]
    fn changes_lose_no_packet_and_repeat_exactly(
        scenario in arbitrary_scenario(),
        others in prop::collection::vec((arbitrary_scenario(), 0.0..=1.0_f64), 1..4),
    ) {
        let changed = || {
            let mut simulation = begin(&with_one_traffic(&scenario), 1);
            let mut times: Vec<u64> = others.iter().map(|(_, at)| (scenario.duration_ns as f64 * at) as u64).collect();
            times.sort_unstable();
            for ((other, _), at_ns) in others.iter().zip(times) {
                simulation.advance(at_ns, &mut go_on).unwrap();
                if let Err(error) = simulation.change(mixed(&scenario, other), vec![]) {
                    assert!(error.to_string().ends_with("traffic that is added now must stop later"), "{error}");
                }
            }
            finish(simulation)
        };
        assert_same(&changed(), &changed());
    }

    #[test]
    fn traffic_that_stops_begins_nothing_more(scenario in arbitrary_scenario(), at in 0.01..=1.0_f64) {
        let now_ns = (scenario.duration_ns as f64 * at) as u64;
        let mut simulation = begin(&scenario, 1);
        simulation.advance(now_ns, &mut go_on).unwrap();
        let mut stopped = scenario.clone();
        for traffic in stopped.traffic.iter_mut().filter(|traffic| traffic.stop_ns > now_ns) {
            traffic.stop_ns = now_ns.max(traffic.start_ns);
        }
        simulation.change(stopped, vec![]).unwrap();
        let (now, at_all) = (finish(simulation), run(&scenario, 1));
        for (table, column) in [(Table::Probes, "sent_ns"), (Table::Transfers, "started_ns")] {
            let begun = |summary: &Summary<MemorySink>| numbers(&summary.output, table, column);
            prop_assert!(begun(&now).iter().all(|&begun_ns| begun_ns < now_ns));
            let before = |times: Vec<u64>| times.into_iter().filter(|&begun_ns| begun_ns < now_ns).count();
            prop_assert_eq!(before(begun(&now)), before(begun(&at_all)));
        }
    }
}

fn with_one_traffic(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.traffic.truncate(1);
    scenario
}

/// A scenario with the rates, delays and queues of another, as far as both have them.
fn mixed(scenario: &Scenario, other: &Scenario) -> Scenario {
    let mut changed = scenario.clone();
    let change = |port: &mut Port, other: &Port| {
        if port.rate.is_some() && other.rate.is_some() {
            port.rate.clone_from(&other.rate);
        }
        port.delay_ns = other.delay_ns;
        port.queue = other.queue.clone();
    };
    for (link, other) in changed.links.iter_mut().zip(&other.links) {
        change(&mut link.forward, &other.forward);
        change(&mut link.reverse, &other.reverse);
    }
    changed
}

#[test]
fn what_happens_at_the_end_of_a_step_is_left_to_the_next() {
    let mut lab = Lab::overloaded("qdisc = 'pfifo', limit = '50p'");
    let samples = |lab: &Lab| {
        let recorder = lab.simulation.recorder();
        recorder.sink().rows(Table::Queues) + recorder.pending(Table::Queues).num_rows()
    };
    lab.advance(0);
    assert_eq!(samples(&lab), 0);
    lab.advance(1);
    assert_eq!(samples(&lab), 2, "each port is sampled at time 0");
    lab.advance(100 * MS);
    let before = samples(&lab);
    lab.advance(100 * MS + 1);
    assert_eq!(samples(&lab), before + 2, "and at 100 ms");
}

#[test]
fn a_rate_applies_to_the_next_frame() {
    let mut lab = Lab::overloaded("qdisc = 'pfifo', limit = '1000p'");
    lab.advance(2 * SECOND);
    let state = lab.set("link.line.rate=10mbit");
    assert_eq!(port(&state).rate_bps, Some(10_000_000));
    lab.advance(2 * SECOND + 100 * MS);
    lab.set("link.line.rate=2mbit");
    let waiting = port(&lab.simulation.state()).packets.queued;
    assert_eq!(
        lab.simulation.scenario().links[0].forward.rate,
        RateSchedule::new(vec![
            bufferscope_scenario::RateStep { from_ns: 0, bits_per_second: 1_000_000 },
            bufferscope_scenario::RateStep { from_ns: 2 * SECOND, bits_per_second: 10_000_000 },
            bufferscope_scenario::RateStep { from_ns: 2 * SECOND + 100 * MS, bits_per_second: 2_000_000 },
        ])
    );
    // In two seconds, twice as much has arrived as has left: 200 packets wait. In the next 100 ms, 100 leave and 20
    // arrive.
    assert!((115..125).contains(&waiting), "{waiting}");
    let summary = finish(lab.simulation);
    let departures = departures(&summary);
    // The frame that is on the wire at the change is finished at the old rate. So the gap before the change is the last
    // one of the old length.
    let before = departures.iter().take_while(|&&t_ns| t_ns < 2 * SECOND).count();
    assert!(gaps(&departures[1..=before]).iter().all(|&gap_ns| gap_ns == 10 * MS));
    let fast = departures.iter().filter(|&&t_ns| (2 * SECOND..2 * SECOND + 100 * MS).contains(&t_ns)).count();
    assert!((90..=100).contains(&fast), "{fast}");
    assert!(gaps(&departures[before..before + fast]).iter().all(|&gap_ns| gap_ns == MS));
    assert!(gaps(&departures[before + fast..]).iter().take(50).all(|&gap_ns| gap_ns == 5 * MS));
}

#[test]
fn a_delay_applies_to_the_next_packet_and_reorders_nothing() {
    let text = r#"
        title = "A ping over a link that becomes short"
        duration = "2s"
        link = [{ name = "line", ends = ["h1", "h2"], delay = "300ms" }]
        traffic = [{ name = "ping", kind = "ping", from = "h1", to = "h2", interval = "100ms" }]
    "#;
    let mut lab = Lab::new(text);
    lab.advance(SECOND - 50 * MS);
    lab.set("link.line.delay=1ms");
    let summary = finish(lab.simulation);
    let rtts_ms: Vec<u64> = numbers(&summary.output, Table::Probes, "rtt_ns").iter().map(|rtt| rtt / MS).collect();
    // Requests leave every 100 ms, the last with the long way out at 900 ms; it arrives at 1200 ms, and no later one
    // arrives before it. Answers are sent from 300 ms on; the last with the long way back at 900 ms, arriving at 1200.
    // So the request of 600 ms is answered at 900 ms over the long way, that of 700 ms at 1000 ms over the short one,
    // but not before 1200 ms.
    assert_eq!(rtts_ms[..7], [600, 600, 600, 600, 600, 600, 600]);
    assert_eq!(rtts_ms[7..14], [500, 400, 301, 201, 101, 2, 2]);
}

#[test]
fn a_fifo_keeps_the_packets_over_a_lowered_limit() {
    for (queue, lower) in [
        ("qdisc = 'pfifo', limit = '50p'", "link.line.queue.limit=10p"),
        ("qdisc = 'bfifo', limit = '62500b'", "link.line.queue.limit=12500b"),
    ] {
        let mut lab = Lab::overloaded(queue);
        lab.advance(2 * SECOND);
        assert_eq!(port(&lab.set(lower)).packets.queued, 50, "they stay");
        // One leaves every 10 ms, and none is accepted before nine are left.
        assert_eq!(port(&lab.advance(2 * SECOND + 200 * MS)).packets.queued, 30);
        assert!([9, 10].contains(&port(&lab.advance(3 * SECOND)).packets.queued));
        assert_eq!(reasons_at(&finish(lab.simulation), 2 * SECOND), [""; 0]);
    }
}

#[test]
fn pfifo_head_drop_makes_room_for_one_packet_at_a_time_over_a_lowered_limit() {
    let mut lab = Lab::overloaded("qdisc = 'pfifo_head_drop', limit = '50p'");
    lab.advance(2 * SECOND);
    assert_eq!(port(&lab.set("link.line.queue.limit=10p")).packets.queued, 50);
    // Each arriving packet replaces another; only those that are sent make the queue shorter.
    assert_eq!(port(&lab.advance(2 * SECOND + 200 * MS)).packets.queued, 30);
}

#[test]
fn codel_drops_what_is_over_a_lowered_limit_from_its_head() {
    let queue = "qdisc = 'codel', limit = '50p', target = '10s', interval = '20s'";
    let mut lab = Lab::overloaded(queue);
    let before = lab.advance(2 * SECOND);
    assert_eq!(port(&before).packets.queued, 50);
    let after = lab.set("link.line.queue.limit=10p");
    assert_eq!(port(&after).packets.queued, 10);
    assert_eq!(port(&after).packets.dropped, port(&before).packets.dropped + 40);
    lab.advance(2 * SECOND + 20 * MS);
    let summary = finish(lab.simulation);
    assert_eq!(reasons_at(&summary, 2 * SECOND), ["overlimit"; 40]);
    // The oldest are gone: the next packets to leave are the newest ten, none of which has waited for 200 ms.
    let left = departures(&summary);
    let sojourns = numbers_where(&summary.output, Table::Sojourns, "sojourn_ns", ("port", "h1>h2"));
    let next = left.iter().position(|&t_ns| t_ns >= 2 * SECOND).unwrap();
    assert!(sojourns[next - 1] > 450 * MS && sojourns[next] < 200 * MS);
}

#[test]
fn a_parameter_of_codel_that_changes_leaves_its_queue_alone() {
    let mut lab = Lab::overloaded("qdisc = 'codel', limit = '1000p', target = '10s', interval = '20s'");
    let before = lab.advance(2 * SECOND);
    let after = lab.set("link.line.queue.target=5ms");
    assert_eq!(port(&after).packets, port(&before).packets);
    lab.set("link.line.queue.interval=100ms");
    let later = lab.advance(4 * SECOND);
    assert!(port(&later).packets.dropped > 0, "now it finds the delay too long");
}

#[test]
fn red_drops_what_waits_when_a_parameter_changes_and_forgets_its_average() {
    let red =
        "qdisc = 'red', limit = '1mb', min = '100kb', max = '300kb', avpkt = 1250, burst = 140, bandwidth = '1mbit'";
    let mut lab = Lab::overloaded(red);
    let before = lab.advance(2 * SECOND);
    let waiting = port(&before).packets.queued;
    assert!(waiting > 60, "{waiting}");
    let after = lab.set("link.line.queue.probability=0.5");
    assert_eq!(port(&after).packets.queued, 0);
    assert_eq!(reasons_at(&finish(lab.simulation), 2 * SECOND), vec!["purged"; waiting as usize]);
}

#[test]
fn another_discipline_begins_empty() {
    let mut lab = Lab::overloaded("qdisc = 'pfifo', limit = '50p'");
    let before = lab.advance(2 * SECOND);
    let after = lab.set("link.line.queue={ qdisc = 'codel', limit = '50p' }");
    assert_eq!(port(&after).qdisc, Some("codel"));
    assert_eq!((port(&after).packets.queued, port(&after).queued_bytes), (0, 0));
    assert_eq!(port(&after).packets.dropped, port(&before).packets.dropped + 50);
    // The frame on the wire is finished; the next to arrive waits no longer than for that.
    let later = lab.advance(2 * SECOND + 50 * MS);
    assert_eq!(port(&later).packets.sent, port(&before).packets.sent + 5);
    assert_eq!(reasons_at(&finish(lab.simulation), 2 * SECOND), ["purged"; 50]);
}

const FLOWS: &str = r#"
    title = "Flows that come and go"
    duration = "20s"
    link = [{ name = "line", ends = ["h1", "h2"], rate = "10mbit", delay = "5ms" }]
    traffic = [
      { name = "bulk", kind = "tcp", from = "h1", to = "h2" },
      { name = "file", kind = "tcp", from = "h1", to = "h2", bytes = "100mb", start = "15s" },
    ]
"#;

#[test]
fn disciplines_with_timers_replace_others_and_are_replaced() {
    let mut lab = Lab::overloaded("qdisc = 'pfifo', limit = '50p'");
    lab.advance(2 * SECOND);
    let state = lab.set("link.line.queue={qdisc='tbf', rate='500kbit', burst='2500b', limit='100000b'}");
    assert_eq!(port(&state).qdisc, Some("tbf"));
    // The bucket holds two packets, which leave as fast as the link takes them. Then one leaves every 20 ms.
    lab.advance(4 * SECOND);
    lab.set("link.line.queue={qdisc='pie', limit='1000p'}");
    lab.advance(8 * SECOND);
    lab.set("link.line.queue={qdisc='pfifo', limit='50p'}");
    let summary = finish(lab.simulation);
    let departures = departures(&summary);
    let between = |from_s: u64, to_s: u64| {
        let inside = |t_ns: &&u64| (from_s * SECOND..to_s * SECOND).contains(*t_ns);
        departures.iter().filter(inside).count()
    };
    assert!((99..=102).contains(&between(2, 4)), "{}", between(2, 4));
    assert!((198..=201).contains(&between(6, 8)), "the link sets the pace again: {}", between(6, 8));
    // Half of what arrives is too much. Without its timer, pie would never drop anything but at its limit.
    let drops = reasons_of(&summary, 4 * SECOND..8 * SECOND);
    assert!(drops.iter().filter(|reason| *reason == "pie").count() > 100, "{drops:?}");
    assert!(reasons_of(&summary, 8 * SECOND + 1..10 * SECOND).iter().all(|reason| reason == "overlimit"));
}

#[test]
fn capacity_has_the_rates_that_the_link_had() {
    let mut lab = Lab::overloaded("qdisc = 'pfifo', limit = '50p'");
    lab.advance(2 * SECOND + 3);
    lab.set("link.line.forward.rate=[['0s', '10mbit'], ['5s', '3mbit']]");
    lab.advance(4 * SECOND);
    lab.set("link.line.forward.rate=2mbit");
    let output = finish(lab.simulation).output;
    let of = |port| ["t_ns", "rate_bps"].map(|column| numbers_where(&output, Table::Capacity, column, ("port", port)));
    let changed = vec![0, 2 * SECOND + 3, 4 * SECOND];
    assert_eq!(of("h1>h2"), [changed, vec![1_000_000, 10_000_000, 2_000_000]], "the step at 5 s never came");
    assert_eq!(of("h2>h1"), [[0], [1_000_000]]);
}

fn flows(state: &State) -> Vec<&str> {
    state.flows.iter().map(|flow| flow.flow.as_str()).collect()
}

#[test]
fn flows_are_added_and_the_newest_end_first() {
    let mut lab = Lab::new(FLOWS);
    assert_eq!(flows(&lab.advance(2 * SECOND)), ["bulk/1"]);
    lab.set("traffic.bulk.flows=3");
    assert_eq!(flows(&lab.advance(3 * SECOND)), ["bulk/1", "bulk/2", "bulk/3"]);
    lab.set("traffic.bulk.flows=5");
    // They would begin within a millisecond from now on: those that have not begun are the first to go.
    lab.set("traffic.bulk.flows=2");
    assert_eq!(flows(&lab.advance(6 * SECOND)), ["bulk/1", "bulk/2"]);
    let state = lab.set("traffic.bulk.stop=6s");
    assert_eq!(flows(&state), ["bulk/1", "bulk/2"], "they send what they have begun");
    assert_eq!(flows(&lab.advance(10 * SECOND)), [""; 0]);
    assert_eq!(flows(&lab.advance(16 * SECOND)), ["file/1"]);
    let summary = finish(lab.simulation);
    let names: Vec<&str> = summary.flows.iter().map(|flow| flow.flow.as_str()).collect();
    assert_eq!(names, ["bulk/1", "bulk/2", "bulk/3", "file/1"]);
    let at = |t_ns, set: &str| Change { t_ns, set: vec![set.to_owned()] };
    assert_eq!(
        summary.changes,
        [
            at(2 * SECOND, "traffic.bulk.flows=3"),
            at(3 * SECOND, "traffic.bulk.flows=5"),
            at(3 * SECOND, "traffic.bulk.flows=2"),
            at(6 * SECOND, "traffic.bulk.stop=6s"),
        ]
    );
}

#[test]
fn traffic_is_added_while_other_traffic_goes_on() {
    let mut lab = Lab::new(FLOWS);
    lab.advance(5 * SECOND);
    lab.set("traffic.ping={ kind = 'ping', from = 'h2', to = 'h1', interval = '100ms' }");
    lab.set("traffic.load={ kind = 'udp', from = 'h1', to = 'h2', rate = '1mbit', size = '1250b', flows = 2, start = '7s' }");
    lab.advance(6 * SECOND);
    lab.set("traffic.more={ kind = 'tcp', from = 'h2', to = 'h1', flows = 2 }");
    lab.set("traffic.ping.stop=8s");
    assert_eq!(flows(&lab.advance(8 * SECOND)), ["bulk/1", "more/1", "more/2", "load/1", "load/2"]);
    let starts: Vec<u64> = lab.simulation.scenario().traffic.iter().map(|traffic| traffic.start_ns / SECOND).collect();
    assert_eq!(starts, [0, 15, 5, 7, 6]);
    let summary = finish(lab.simulation);
    // From 5 s on, one request every 100 ms for three seconds.
    let sent = numbers(&summary.output, Table::Probes, "sent_ns");
    assert_eq!(sent.len(), 30);
    assert!(sent.iter().zip(0..).all(|(sent_ns, seq)| (sent_ns - 5 * SECOND) / (100 * MS) == seq));
    // 1 Mbit/s are 100 datagrams a second, for 13 s.
    let udp = summary.flows.iter().find(|flow| flow.flow == "load/2").unwrap();
    assert!((1299..=1301).contains(&udp.sent), "{udp:?}");
    let names: Vec<&str> = summary.flows.iter().map(|flow| flow.flow.as_str()).collect();
    assert_eq!(names, ["bulk/1", "file/1", "ping/1", "load/1", "load/2", "more/1", "more/2"]);
    let sampled = words(&summary.output, Table::Flows, "flow");
    assert!(["bulk/1", "file/1", "load/1", "more/2"].iter().all(|flow| sampled.iter().any(|name| name == flow)));
}

#[test]
fn impossible_changes_of_a_running_network_are_refused_by_name() {
    let mut lab = Lab::new(FLOWS);
    lab.advance(10 * SECOND);
    lab.set("traffic.bulk.stop=10s");
    for (change, key) in [
        ("duration=30s", "duration"),
        ("sample=1s", "sample"),
        ("sojourns=packets", "sojourns"),
        ("record=['queues']", "record"),
        ("tcp.gso_max_segs=4", "host"),
        ("link.line.ends=['h2', 'h1']", "link"),
        ("link.line.overhead=30b", "link.line.overhead"),
        ("traffic.file.dscp=46", "traffic.file.dscp"),
        ("traffic.file.start=16s", "traffic.file.start"),
        ("traffic.file.congestion=reno", "traffic.file"),
        ("traffic.file.flows=2", "traffic.file"),
        ("traffic.bulk.flows=2", "traffic.bulk.stop"),
        ("traffic.bulk.stop=20s", "traffic.bulk.stop"),
        ("traffic.new={ kind = 'ping', from = 'h1', to = 'h2', stop = '10s' }", "traffic.new.stop"),
    ] {
        let before = lab.simulation.state();
        let error = lab.try_set(change).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{key}: not possible in a running simulation; ")), "{error}");
        assert_eq!(lab.simulation.state(), before);
    }
    assert_eq!(finish(lab.simulation).changes.len(), 1, "what is refused is not listed");
}

#[test]
fn time_goes_neither_back_nor_beyond_the_duration() {
    let mut lab = Lab::new(FLOWS);
    lab.advance(5 * SECOND);
    for (until_ns, words) in [(SECOND, "1 s"), (20 * SECOND + 1, "20.000000001 s"), (u64::MAX, "18446744073.709553 s")]
    {
        let error = lab.simulation.advance(until_ns, &mut go_on).unwrap_err().to_string();
        assert_eq!(error, format!("can't advance to {words}: the simulation is at 5 s, and its duration is 20 s"));
    }
    assert_eq!(lab.simulation.now_ns(), 5 * SECOND);
    lab.advance(20 * SECOND);
}

#[test]
fn a_simulation_that_was_interrupted_goes_no_further_but_can_be_looked_at() {
    let mut lab = Lab::new(FLOWS);
    let outcome = lab.simulation.advance(20 * SECOND, &mut |_| ControlFlow::Break(()));
    assert!(matches!(outcome, Err(SimError::Interrupted)));
    assert!(lab.simulation.now_ns() < 20 * SECOND);
    assert_eq!(lab.simulation.state().ports.len(), 2);
    assert!(matches!(lab.simulation.advance(20 * SECOND, &mut go_on), Err(SimError::Interrupted)));
    assert!(matches!(lab.try_set("link.line.rate=1mbit"), Err(SimError::Interrupted)));
    assert!(matches!(lab.simulation.finish(&mut go_on), Err(SimError::Interrupted)));
}
