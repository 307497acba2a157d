//! Entries that become several, and the ports of servers.

use crate::common::lab_unswept;
use bufferscope_scenario::{
    Congestion, Experiment, Match, PingTiming, Qdisc, Scenario, Traffic, TrafficKind, Transport,
};

const SECOND: u64 = 1_000_000_000;

/// The lab with these entries of traffic besides its own `bulk` and `ping`.
fn with(traffic: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let text = format!("{}\n{traffic}", lab_unswept());
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    match Experiment::parse(&text, "lab.toml", &overrides) {
        Ok(experiment) => Ok(experiment.points()[0].scenario.clone()),
        Err(error) => Err(error.to_string()),
    }
}

fn test_of(kind: &str, keys: &str) -> String {
    format!("[[traffic]]\nname = \"t\"\nkind = \"{kind}\"\nfrom = \"h1\"\nto = \"h2\"\n{keys}")
}

/// What the entry `t` became.
fn parts(kind: &str, keys: &str) -> Vec<Traffic> {
    with(&test_of(kind, keys), &[]).unwrap().traffic.split_off(2)
}

/// `name from>to` and the mark, in the order of the traffic.
fn summaries(parts: &[Traffic]) -> Vec<String> {
    parts.iter().map(|part| format!("{} {}>{} {}", part.name, part.from, part.to, part.dscp)).collect()
}

/// `flent/tests/rrul.conf`: four uploads and four downloads with the marks CS0, CS1, CS5 and EF, probes over UDP with EF,
/// CS1 and none, and an ICMP ping.
#[test]
fn rrul_is_flents() {
    let parts = parts("rrul", "");
    assert_eq!(
        summaries(&parts),
        [
            "t.up.be 0>2 0",
            "t.up.bk 0>2 8",
            "t.up.cs5 0>2 40",
            "t.up.ef 0>2 46",
            "t.down.be 2>0 0",
            "t.down.bk 2>0 8",
            "t.down.cs5 2>0 40",
            "t.down.ef 2>0 46",
            "t.udp.ef 0>2 46",
            "t.udp.bk 0>2 8",
            "t.udp.be 0>2 0",
            "t.ping 0>2 0",
        ]
    );
    for part in &parts {
        assert_eq!(part.entry(), "t");
        let seconds = [part.start_ns, part.stop_ns].map(|ns| ns / SECOND);
        match &part.kind {
            TrafficKind::Tcp(tcp) => {
                assert_eq!(seconds, [5, 55], "five seconds after the probes start and before they stop");
                assert_eq!((tcp.flows, tcp.bytes, tcp.rate_bps, tcp.on_off), (1, None, None, None));
            }
            TrafficKind::Irtt(irtt) => {
                assert_eq!(seconds, [0, 60]);
                assert_eq!((irtt.interval_ns, irtt.payload_bytes), (SECOND / 5, 60));
            }
            TrafficKind::Ping(ping) => {
                assert_eq!(seconds, [0, 60]);
                assert_eq!((ping.interval_ns, ping.payload_bytes, ping.timing), (SECOND / 5, 56, PingTiming::Exact));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// `flent/tests/rrul_be.conf`.
#[test]
fn rrul_be_has_as_many_parts_without_marks() {
    let names = ["be", "be2", "be3", "be4"];
    let expected: Vec<String> = names
        .map(|name| format!("t.up.{name} 0>2 0"))
        .into_iter()
        .chain(names.map(|name| format!("t.down.{name} 2>0 0")))
        .chain(["be1", "be2", "be3"].map(|name| format!("t.udp.{name} 0>2 0")))
        .chain(["t.ping 0>2 0".to_owned()])
        .collect();
    assert_eq!(summaries(&parts("rrul_be", "")), expected);
}

#[test]
fn the_other_tests_are_flents_too() {
    assert_eq!(summaries(&parts("tcp_bidirectional", "")), ["t.down 2>0 0", "t.up 0>2 0", "t.ping 0>2 0"]);
    for (kind, expected) in [("tcp_ndown", "t.down 2>0 0"), ("tcp_nup", "t.up 0>2 0")] {
        let parts = parts(kind, "flows = 12");
        assert_eq!(summaries(&parts), [expected, "t.ping 0>2 0"]);
        assert!(matches!(&parts[0].kind, TrafficKind::Tcp(tcp) if tcp.flows == 12));
    }
}

#[test]
fn a_tests_keys_hold_for_all_of_its_parts_and_can_be_overridden() {
    let keys = "start = \"10s\"\nstop = \"40s\"\ndelay = \"3s\"\ninterval = \"50ms\"\ncongestion = \"bbr\"\necn = true";
    let set = ["traffic.t.stop=30s", "traffic.t.congestion=vegas"];
    let scenario = with(&test_of("rrul", keys), &set).unwrap();
    for part in &scenario.traffic[2..] {
        let seconds = [part.start_ns, part.stop_ns].map(|ns| ns / SECOND);
        match &part.kind {
            TrafficKind::Tcp(tcp) => {
                assert_eq!((seconds, tcp.sending.congestion, tcp.sending.ecn), ([13, 27], Congestion::Vegas, true));
            }
            TrafficKind::Irtt(irtt) => assert_eq!((seconds, irtt.interval_ns), ([10, 30], SECOND / 20)),
            TrafficKind::Ping(ping) => assert_eq!((seconds, ping.interval_ns), ([10, 30], SECOND / 20)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn each_direction_has_the_congestion_control_of_the_host_that_sends() {
    let host = "[[host]]\nname = \"h2\"\ntcp = { congestion = \"westwood\" }\n";
    let scenario = with(&format!("{}\n{host}", test_of("tcp_bidirectional", "")), &[]).unwrap();
    let of = |part: &Traffic| part.kind.sending().unwrap().congestion;
    assert_eq!([2, 3].map(|index| of(&scenario.traffic[index])), [Congestion::Westwood, Congestion::Cubic]);
}

/// A problem of a part is one of the entry in the file, and is reported once.
#[test]
fn problems_name_the_entry() {
    let none = "[[traffic]]\nname = \"t\"\nkind = \"rrul\"\nfrom = \"h1\"\nto = \"h7\"";
    for (traffic, set, expected) in [
        (test_of("rrul", "delay = \"30s\""), &[][..], "traffic.t.delay: found 30s at both ends of 60s; allowed: less"),
        (
            test_of("rrul", ""),
            &["traffic.t.stop=8s"][..],
            "traffic.t.delay: found 5s at both ends of 8s; allowed: less",
        ),
        (
            test_of("rrul", "interval = \"100us\""),
            &["duration=7200s"][..],
            "traffic.t.interval: found an interval that makes 72",
        ),
        (test_of("rrul", "congestion = \"window\""), &[][..], "traffic.t.window: missing"),
        (
            test_of("tcp_nup", "flows = 10000"),
            &["sample=1s"][..],
            "traffic: found 10001 flows in all; allowed: at most 10000",
        ),
        (test_of("rrul", "dscp = \"ef\""), &[][..], "traffic.t.dscp: found an unknown key"),
        (none.to_owned(), &[][..], "traffic.t.to: found \"h7\""),
    ] {
        let error = with(&traffic, set).unwrap_err();
        assert!(error.starts_with(&format!("lab.toml: {expected}")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// A dot would make a name that parts of an entry may have.
#[test]
fn no_entry_may_have_the_name_of_a_part() {
    let error = with(&test_of("tcp", "").replace("\"t\"", "\"t.up\""), &[]).unwrap_err();
    assert!(error.contains("allowed: a name"), "{error}");
}

const SERVERS: &str = r#"
[[traffic]]
name = "a"
kind = "tcp"
from = "h1"
to = "h2"
port = 5001

[[traffic]]
name = "b"
kind = "udp"
rate = "1mbit"
from = "h1"
to = "h2"
port = 5001

[[traffic]]
name = "c"
kind = "web"
bytes = 1000
from = "h1"
to = "h2"
port = 5001

[[traffic]]
name = "d"
kind = "irtt"
from = "h1"
to = "h2"
"#;

/// `bulk` would get 5001, which `a` has on the same host, and `ping` has no port.
#[test]
fn servers_without_a_port_get_the_next_that_is_free() {
    let scenario = with(SERVERS, &[]).unwrap();
    let names: Vec<&str> = scenario.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
    assert_eq!(names, ["bulk", "ping", "a", "b", "c", "d"]);
    assert_eq!(scenario.server_ports(), [5002, 0, 5001, 5001, 5001, 5006]);
    let of = |index: usize| (scenario.traffic[index].transport(), scenario.traffic[index].server());
    assert_eq!([2, 3, 4].map(of), [(Some(Transport::Tcp), 2), (Some(Transport::Udp), 2), (Some(Transport::Tcp), 0)]);
}

/// The ports of all parts of an entry, and 0 for ICMP.
#[test]
fn a_filter_by_traffic_has_the_ports_of_its_servers() {
    let queue = |filter: &str| {
        let prio = format!("qdisc = \"prio\", filter = [{{ {filter}, band = 0 }}]");
        let queue =
            format!("{{ qdisc = \"tbf\", rate = \"1mbit\", burst = \"9kb\", latency = \"1s\", inner = {{ {prio} }} }}");
        with(SERVERS, &[&format!("link.bottleneck.queue={queue}")])
    };
    let chosen = |traffic: &str| {
        let scenario = queue(&format!("traffic = \"{traffic}\"")).unwrap();
        let bottleneck = scenario.links.iter().find(|link| link.name == "bottleneck").unwrap();
        let Qdisc::Prio(prio) = bottleneck.forward.queue.all()[1].clone() else { panic!("tbf holds prio") };
        prio.filters[0].chosen.clone()
    };
    assert_eq!(chosen("bulk"), Match::Ports(vec![5002]));
    assert_eq!(chosen("ping"), Match::Ports(vec![0]));
    assert_eq!(chosen("d"), Match::Ports(vec![5006]));
    let error = queue("traffic = \"bulks\"").unwrap_err();
    let expected = "lab.toml: link.bottleneck.queue.inner.filter[1].traffic: found \"bulks\", which names no [[traffic]] entry; allowed: ";
    assert!(error.starts_with(expected) && error.contains("did you mean"), "{error}");
    let scenario = with(
        &test_of("rrul", ""),
        &["link.bottleneck.queue={ qdisc = \"prio\", filter = [{ traffic = \"t\", band = 0 }] }"],
    );
    let scenario = scenario.unwrap();
    let Qdisc::Prio(prio) = &scenario.links.last().unwrap().forward.queue else { panic!("it is a prio") };
    let Match::Ports(ports) = &prio.filters[0].chosen else { panic!("it has ports") };
    assert_eq!((ports[0], ports.len()), (0, 12));
}

#[test]
fn two_servers_at_one_port_of_a_node_are_refused() {
    let error = with(SERVERS, &["traffic.d.port=5001"]).unwrap_err();
    let expected = "lab.toml: traffic.d.port: found 5001, a port that the same node already uses for traffic.b; allowed: a different port";
    assert!(error.starts_with(expected), "{error}");
    for (port, allowed) in [("0", "from 1 to 19999"), ("20000", "from 1 to 19999")] {
        let error = with(SERVERS, &[&format!("traffic.d.port={port}")]).unwrap_err();
        assert!(error.contains(allowed), "{error}");
    }
    let error = with(SERVERS, &["traffic.ping.port=7"]).unwrap_err();
    assert!(error.contains("traffic.ping.port: found an unknown key"), "{error}");
}
