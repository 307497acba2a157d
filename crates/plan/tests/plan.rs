//! The commands that build a network, as a reviewer reads them.

use bufferscope_plan::{Cards, Clock, DelayBy, Kernel, Namespace, Plan, PlanError, Script, check, is_optional};
use bufferscope_scenario::testing::{arbitrary_scenario, arbitrary_scenario_with_rings};
use bufferscope_scenario::{ByteLimits, Experiment, Scenario};
use proptest::prelude::*;

fn scenario(toml: &str) -> Scenario {
    let experiment = Experiment::parse(toml, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    experiment.points()[0].scenario.clone()
}

fn script(toml: &str) -> String {
    Script::new(&scenario(toml), &["A test".into()]).unwrap().to_string()
}

fn namespaces(toml: &str, delay_by: DelayBy) -> Vec<Namespace> {
    Plan::new(&scenario(toml), Kernel { delay_by, ..Kernel::USUAL }).unwrap().namespaces
}

fn error(toml: &str) -> PlanError {
    Plan::new(&scenario(toml), Kernel::USUAL).unwrap_err()
}

/// The network of the UCAS lab: a delay on both links, a rate on the second.
const LAB: &str = r#"
title = "Two links"
duration = "60s"
link = [
  { name = "access", ends = ["h1", "r1"], delay = "5ms" },
  { name = "bottleneck", ends = ["r1", "h2"], rate = "10mbit", delay = "5ms", queue = { qdisc = "pfifo", limit = "100p" } },
]
traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2", congestion = "reno" }]
"#;

#[test]
fn the_lab_as_a_script() {
    insta::assert_snapshot!(script(LAB));
}

/// A discipline inside others has the next handle; classes come before what is in them, and filters come last.
#[test]
fn disciplines_inside_others_become_classes_and_filters() {
    let queue = r#"{
        qdisc = "htb", default = "rest", filter = [{ dscp = "ef", class = "voice" }], class = {
            all = { rate = "8mbit" },
            voice = { parent = "all", rate = "1mbit", ceil = "8mbit", prio = 1, quantum = "3000b", inner = {
                qdisc = "prio", inner = [{ qdisc = "pfifo", limit = "10p" }, { qdisc = "codel" }],
                filter = [{ dscp = 1, band = 2 }, { port = 443, band = 0 }],
            } },
            rest = { parent = "all", rate = "7mbit", inner = { qdisc = "pfifo", limit = "20p" } },
        },
    }"#;
    let scenario = scenario(&LAB.replace(r#"{ qdisc = "pfifo", limit = "100p" }"#, queue));
    let plan = Plan::new(&scenario, Kernel::USUAL).unwrap();
    let port = plan.ports.iter().find(|port| port.name == "r1>h2").unwrap();
    let lines = plan.namespaces[usize::from(port.node)]
        .tc
        .iter()
        .filter(|line| line.contains(" 1") && line.contains(&port.device));
    let lines: Vec<&str> = lines.skip(2).map(|line| line.as_str()).collect();
    let on = &port.device;
    let expected = [
        format!("qdisc add dev {on} parent 1:1 handle 10: htb default 3 r2q 10 direct_qlen 1000"),
        format!("class add dev {on} parent 10: classid 10:1 htb rate 8mbit ceil 8mbit burst 1600 cburst 1600 prio 0"),
        format!(
            "class add dev {on} parent 10:1 classid 10:2 htb rate 1mbit ceil 8mbit burst 1600 cburst 1600 prio 1 quantum 3000"
        ),
        format!("class add dev {on} parent 10:1 classid 10:3 htb rate 7mbit ceil 7mbit burst 1600 cburst 1600 prio 0"),
        format!("qdisc add dev {on} parent 10:2 handle 11: prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
        format!("qdisc add dev {on} parent 11:1 handle 12: pfifo limit 10"),
        format!("qdisc add dev {on} parent 11:2 handle 13: codel limit 1000 target 5ms interval 100ms noecn"),
        format!("filter add dev {on} parent 11: protocol ip prio 1 u32 match ip dsfield 0x04 0xfc flowid 11:3"),
        format!(
            "filter add dev {on} parent 11: protocol ip prio 2 u32 match ip protocol 6 0xff match ip sport 443 0xffff flowid 11:1"
        ),
        format!(
            "filter add dev {on} parent 11: protocol ip prio 2 u32 match ip protocol 6 0xff match ip dport 443 0xffff flowid 11:1"
        ),
        format!(
            "filter add dev {on} parent 11: protocol ip prio 2 u32 match ip protocol 17 0xff match ip sport 443 0xffff flowid 11:1"
        ),
        format!(
            "filter add dev {on} parent 11: protocol ip prio 2 u32 match ip protocol 17 0xff match ip dport 443 0xffff flowid 11:1"
        ),
        format!("qdisc add dev {on} parent 10:3 handle 14: pfifo limit 20"),
        format!("filter add dev {on} parent 10: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 10:2"),
    ];
    assert_eq!(lines, expected);
    let inner: Vec<(u32, usize)> = port.inner.iter().map(|inner| (inner.handle >> 16, inner.parent)).collect();
    assert_eq!(inner, [(0x11, 0), (0x12, 1), (0x13, 1), (0x14, 0)]);
    let needed = bufferscope_plan::needed_qdiscs(&scenario);
    assert_eq!(needed.into_iter().collect::<Vec<_>>(), ["codel", "htb", "pfifo", "prio"]);
}

#[test]
fn the_lab_with_delays_by_the_relay_differs_in_the_delay_namespaces_only() {
    let (netem, relay) = (namespaces(LAB, DelayBy::Netem), namespaces(LAB, DelayBy::Relay));
    for (netem, relay) in netem.iter().zip(&relay) {
        if netem.name.starts_with("delay-") {
            assert!(netem.tc.iter().all(|line| line.contains(" netem ")), "{:?}", netem.tc);
            assert_eq!(relay.tc, [""; 0]);
            assert!(relay.ip.iter().all(|line| netem.ip.contains(line)), "{:?}", relay.ip);
        } else {
            assert_eq!(netem, relay);
        }
    }
}

/// Each direction has its own rate, queue and delay; there are ADSL's overhead, a rate that changes, and names that
/// can't be the names of devices.
#[test]
fn directions_overheads_schedules_and_names() {
    let toml = r#"
        title = "Asymmetric"
        duration = "60s"
        traffic = [{ name = "bulk", kind = "tcp", from = "a-very-long-host-name", to = "server" }]
        [[link]]
        name = "dsl"
        ends = ["a-very-long-host-name", "server"]
        overhead = "40b"
        forward = { rate = "1mbit", delay = "1500us", queue = { qdisc = "codel", target = "15ms", interval = "150ms", ecn = true } }
        reverse = { rate = [["0s", "100mbit"], ["10s", "10mbit"], ["20.5s", "1gbit"]], queue = { qdisc = "red", limit = "1000000b", avpkt = "1000b" } }
        [[host]]
        name = "server"
        tcp = { initial_window = 20, rmem_max = "1mb" }
    "#;
    insta::assert_snapshot!(script(toml));
}

/// Entries from 1 to 2048 bytes are exact. The kernel's count has 14 bytes of Ethernet already.
#[test]
fn cells_and_the_shortest_packet_become_a_size_table() {
    let lines = |overhead: &str| {
        let toml = LAB.replace("rate = \"10mbit\"", &format!("rate = \"10mbit\", overhead = {overhead}"));
        let plan = Plan::new(&scenario(&toml), Kernel::USUAL).unwrap();
        let lines = plan.namespaces.iter().flat_map(|namespace| &namespace.tc);
        let of_port = |line: &String| line.split_once(" stab ").map(|(_, table)| table.to_owned());
        let mut tables: Vec<String> = lines.filter_map(of_port).collect();
        tables.sort_unstable();
        tables
    };
    let shaper = "htb default 1";
    let wire = "netem limit 1000000 delay 5ms rate 10mbit";
    for (overhead, table) in [
        ("\"38b\"", "overhead 24 linklayer ethernet"),
        ("\"docsis\"", "mtu 2047 tsize 2048 mpu 64 overhead 4 linklayer ethernet"),
        ("\"pppoe-llcsnap\"", "mtu 2047 tsize 2048 mpu 0 overhead 26 linklayer atm"),
        ("\"ipoa-vcmux\"", "mtu 2047 tsize 2048 mpu 0 overhead -6 linklayer atm"),
    ] {
        let expected = [wire, shaper].map(|qdisc| format!("{table} {qdisc}"));
        assert_eq!(lines(overhead), [&expected[1], &expected[1], &expected[0], &expected[0]].map(String::clone));
    }
}

/// `tc` cannot say how long the bands of pfifo_fast are, and a pfifo is identified by its limit.
#[test]
fn only_the_bands_of_pfifo_fast_need_the_devices_own_length() {
    let lines = |queue: &str| {
        let toml = LAB.replace(r#"queue = { qdisc = "pfifo", limit = "100p" }"#, queue);
        let lines = script(&toml);
        let lines = lines.lines().filter(|line| line.contains("txqueuelen") || line.contains(" pfifo"));
        lines.map(|line| line.split_once(" dev ").unwrap().1.split_once(' ').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let pfifo_fast = "parent 1:1 handle 10: pfifo_fast";
    assert_eq!(lines("queue.qdisc = \"pfifo_fast\""), [pfifo_fast; 2]);
    let found = lines("txqueuelen = 50, queue.qdisc = \"pfifo_fast\"");
    assert_eq!(found.iter().filter(|line| line.as_str() == "txqueuelen 50").count(), 2, "{found:?}");
    assert_eq!(found.iter().filter(|line| line.as_str() == pfifo_fast).count(), 2, "{found:?}");
    assert_eq!(lines("txqueuelen = 50"), ["parent 1:1 handle 10: pfifo limit 50"; 2]);
}

#[test]
fn ptm_and_rings_on_cells_are_refused_by_name() {
    let ptm = LAB.replace("rate = \"10mbit\"", "rate = \"10mbit\", overhead = \"pppoe-ptm\"");
    let expected = "the overhead of r1>h2 is that of PTM, and Linux' size tables know only ATM's cells";
    assert!(error(&ptm).to_string().starts_with(expected), "{}", error(&ptm));
    let ring = "rate = \"10mbit\", ring = { size = \"256p\", bql = true }, overhead = \"docsis\"";
    let expected =
        "the ring of r1>h2 needs an overhead that only adds bytes: a network card has neither cells nor an mpu";
    assert_eq!(error(&LAB.replace("rate = \"10mbit\"", ring)).to_string(), expected);
}

#[test]
fn a_setting_that_older_kernels_lack_may_be_missing_only_where_they_do_the_same_anyway() {
    let asking = format!("{LAB}host = [{{ name = \"h1\", tcp = {{ syn_linear_timeouts = 4 }} }}]");
    let script = script(&asking);
    let settings: Vec<&str> = script.lines().filter(|line| line.contains("syn_linear")).map(str::trim).collect();
    let expected = [("h1", "-qw", 4), ("r1", "-eqw", 0), ("h2", "-eqw", 0)].map(|(host, flags, value)| {
        format!("ip netns exec {host} sysctl {flags} net.ipv4.tcp_syn_linear_timeouts='{value}'")
    });
    assert_eq!(settings, expected);
    assert!(is_optional("net.ipv6.conf.all.disable_ipv6", "1"));
    assert!(!is_optional("net.ipv4.ip_forward", "0"));
}

/// A `tc` older than dualpi2 passes on its name, but no parameters: the agent sets them. A script takes a `tc` that knows
/// them, unless all have the kernel's defaults.
#[test]
fn tc_creates_dualpi2_without_parameters_and_the_agent_sets_them() {
    let toml = |keys: &str| {
        let queue =
            format!("{{ qdisc = \"prio\", inner = [{{ qdisc = \"pfifo\" }}, {{ qdisc = \"dualpi2\"{keys} }}] }}");
        LAB.replace("{ qdisc = \"pfifo\", limit = \"100p\" }", &queue)
    };
    let created = |text: &str| text.lines().find(|line| line.contains(" dualpi2")).map(|line| line.trim().to_owned());
    let expected = "qdisc add dev to-h2 parent 10:2 handle 12: dualpi2";
    for (keys, arguments) in [("", None), (", any_ect = true", Some(" limit 10000 target 15ms "))] {
        let namespaces = namespaces(&toml(keys), DelayBy::Netem);
        let router = namespaces.iter().find(|namespace| namespace.name == "r1").unwrap();
        let [own] = &router.parameters[..] else { panic!("{router:?}") };
        assert_eq!(router.tc[own.command], expected);
        assert_eq!((own.device.as_str(), own.handle, own.dualpi2.any_ect), ("to-h2", 0x12_0000, arguments.is_some()));
        let line = created(&script(&toml(keys))).unwrap();
        let rest = line.strip_prefix(&format!("tc -n r1 {expected}")).unwrap();
        match arguments {
            None => assert_eq!(rest, ""),
            Some(arguments) => assert!(rest.starts_with(arguments) && rest.contains(" any_ect"), "{line}"),
        }
    }
}

#[test]
fn the_least_segments_of_a_packet_are_a_setting_of_the_kernel() {
    let asking = format!("{LAB}host = [{{ name = \"h1\", tcp = {{ min_tso_segs = 45 }} }}]");
    let script = script(&asking);
    let settings: Vec<&str> = script.lines().filter(|line| line.contains("min_tso_segs")).map(str::trim).collect();
    let expected = [("h1", 45), ("r1", 2), ("h2", 2)]
        .map(|(host, value)| format!("ip netns exec {host} sysctl -qw net.ipv4.tcp_min_tso_segs='{value}'"));
    assert_eq!(settings, expected);
}

/// A ring of four routers. From h1 to h2 both ways round are equally long, and the link named first wins.
#[test]
fn among_equally_short_ways_the_first_link_wins() {
    let toml = r#"
        title = "Ring"
        duration = "1s"
        link = [
          { name = "h1-a", ends = ["h1", "a"] }, { name = "a-b", ends = ["a", "b"] }, { name = "a-c", ends = ["a", "c"] },
          { name = "b-d", ends = ["b", "d"] }, { name = "c-d", ends = ["c", "d"] }, { name = "d-h2", ends = ["d", "h2"] },
        ]
        traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }]
    "#;
    let script = script(toml);
    let routes: Vec<&str> = script.lines().filter(|line| line.contains(" route add ")).collect();
    insta::assert_snapshot!(routes.join("\n"));
}

#[test]
fn what_linux_cannot_hold_is_refused_by_name() {
    let toml =
        LAB.replace(r#"queue = { qdisc = "pfifo", limit = "100p" }"#, r#"queue = { qdisc = "bfifo", limit = "5gb" }"#);
    let expected = "r1>h2: limit 5368709120 is more than Linux' sch_fifo can hold (4294967295)";
    assert!(error(&toml).to_string().starts_with(expected), "{}", error(&toml));
}

#[test]
fn a_delay_is_rounded_to_the_microseconds_of_tc() {
    let delays = |delay: &str, wire: &str| {
        let lab = LAB.replace(r#"delay = "5ms""#, &format!(r#"delay = "{delay}"{wire}"#));
        let lines = script(&lab);
        let delay = |line: &str| line.split_once(" delay ").map(|(_, more)| more.split(' ').next().unwrap().to_owned());
        lines.lines().filter_map(delay).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(delays("5000400ns", ""), ["5ms".to_owned()].into());
    assert_eq!(delays("5000500ns", ""), ["5001us".to_owned()].into());
    assert_eq!(delays("5000500ns", r#", wire.loss = 0.01"#), ["5001us".to_owned()].into());
}

#[test]
fn times_finer_than_tc_counts_are_refused() {
    let toml = LAB.replace(r#"qdisc = "pfifo", limit = "100p""#, r#"qdisc = "codel", target = "1500ns""#);
    assert!(error(&toml).to_string().contains("target of 1500ns is not a whole number of microseconds"));
    for (old, new, name) in [
        ("delay = \"5ms\"", "delay = \"5ms\", wire.jitter = \"1500ns\"", "jitter of 1500ns"),
        (
            r#"qdisc = "pfifo", limit = "100p""#,
            r#"qdisc = "netem", slot.min_delay = "1500ns""#,
            "slot.min_delay of 1500ns",
        ),
        (
            r#"qdisc = "pfifo", limit = "100p""#,
            r#"qdisc = "netem", delay = "1ms", jitter = "1001ns""#,
            "jitter of 1001ns",
        ),
    ] {
        let expected = format!("{name} is not a whole number of microseconds, as Linux' netem counts");
        let message = error(&LAB.replace(old, new)).to_string();
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn a_congestion_control_that_no_kernel_has_is_refused_by_name_but_not_its_network() {
    let toml = LAB.replace("\"reno\"", "\"ledbat\"");
    assert_eq!(
        check(&scenario(&toml)).unwrap_err().to_string(),
        "traffic `bulk`: no released Linux kernel has the congestion control ledbat; use --engine sim"
    );
    assert_eq!(check(&scenario(LAB)), Ok(()));
    assert_eq!(script(&toml), script(LAB));
}

#[test]
fn a_scenario_with_dangling_indices_is_refused() {
    let mut broken = scenario(LAB);
    broken.traffic[0].to = 7;
    assert_eq!(
        Plan::new(&broken, Kernel::USUAL).unwrap_err(),
        PlanError::Malformed("traffic `bulk` is not between two nodes".into())
    );
}

#[test]
fn a_nodes_own_address_comes_before_those_of_its_other_links() {
    let scenario = scenario(LAB);
    let hosts = Plan::new(&scenario, Kernel::USUAL).unwrap().hosts(&scenario);
    let expected = "127.0.0.1 localhost\n::1 localhost\n10.0.0.1 h1\n10.0.0.2 r1\n10.0.0.6 h2\n10.0.0.5 r1\n";
    assert_eq!(hosts, expected);
}

/// The author of the title must not be able to add commands to the script.
#[test]
fn what_the_script_says_about_itself_stays_a_comment() {
    let script = Script::new(&scenario(LAB), &["two\nlines\r\u{85}\u{2028}rm -rf /".into()]).unwrap().to_string();
    let hostile: Vec<&str> = script.split(['\n', '\r']).filter(|line| line.contains("rm -rf")).collect();
    assert_eq!(hostile.len(), 1);
    assert!(hostile[0].starts_with("# "), "{hostile:?}");
}

/// HFSC keeps to a schedule, but not across a change of the rate, and `tc` gives it rates of 32 bits only. The schedule
/// goes on while packets are held back, so that HFSC would be late for it and send faster than the rate.
#[test]
fn a_guest_has_wires_that_are_never_ahead() {
    let shaping_of = |rate: &str, queue: &str| {
        let lab = LAB.replace(r#""10mbit""#, rate).replace(r#"{ qdisc = "pfifo", limit = "100p" }"#, queue);
        let scenario = scenario(&lab);
        let guest = Kernel { delay_by: DelayBy::Netem, clock: Clock::Virtual };
        let plan = Plan::new(&scenario, guest).unwrap();
        let port = plan.ports.iter().find(|port| port.name == "r1>h2").unwrap();
        let lines = plan.namespaces[usize::from(port.node)].tc.iter();
        let class = lines.filter(|line| line.contains(&format!("class add dev {}", port.device)));
        let arguments = class.map(|line| line.split(" 1:1 ").last().unwrap().to_owned()).collect::<Vec<_>>();
        let changes = plan.rate_changes.iter().take(1).map(|change| change.commands.last().unwrap().1.clone());
        [arguments, changes.collect()].concat()
    };
    let shaping = |rate: &str| shaping_of(rate, r#"{ qdisc = "pfifo", limit = "100p" }"#);
    assert_eq!(shaping(r#""10mbit""#), ["hfsc ls rate 10mbit ul rate 10mbit"]);
    assert_eq!(shaping(r#""34359738360bit""#), ["hfsc ls rate 34359738360bit ul rate 34359738360bit"]);
    assert_eq!(shaping(r#""40gbit""#), ["htb rate 40gbit burst 50000b cburst 50000b quantum 1514"]);
    assert_eq!(
        shaping(r#"[["0s", "10mbit"], ["5s", "50mbit"]]"#),
        [
            "htb rate 10mbit burst 13b cburst 13b quantum 1514",
            "class change dev to-h2 parent 1: classid 1:1 htb rate 50mbit burst 63b cburst 63b quantum 1514",
        ]
    );
    for holding in [
        r#"{ qdisc = "fq", maxrate = "1mbit" }"#,
        r#"{ qdisc = "prio", inner = [{ qdisc = "netem", delay = "10ms", limit = "100p" }] }"#,
    ] {
        let shaped = shaping_of(r#""10mbit""#, holding);
        assert_eq!(shaped[0], "htb rate 10mbit burst 13b cburst 13b quantum 1514", "{holding}");
    }
}

/// The lab with rings on its bottleneck.
fn ringed(more: &str) -> String {
    LAB.replace(r#"limit = "100p" }"#, &format!(r#"limit = "100p" }}, {more}"#))
}

const FORWARD: &str = r#"forward = { ring = { size = "64p", bql = true } }"#;

/// 1514 bytes at 10 Mbit/s take 1.2112 ms.
#[test]
fn a_port_with_a_ring_sends_through_a_card_whose_wire_has_its_rate() {
    let plan = Plan::new(&scenario(&ringed(FORWARD)), Kernel::USUAL).unwrap();
    let cards: Vec<Cards> = plan.cards().collect();
    assert_eq!(cards, [Cards { number: 0, wire_ns: [Some(1_211_200), None] }]);
    let ends = &plan.cable_of(0).unwrap().ends;
    assert_eq!(ends.each_ref().map(|end| end.name.as_str()), ["to-h2", "to-r1"]);
    assert_eq!(plan.namespaces[ends[1].namespace].name, "delay-bottleneck", "the delay is behind the wire, not in it");
    assert_eq!(plan.namespaces[1].tc, ["qdisc add dev to-h2 root handle 10: pfifo limit 100"], "no shaper");
    let ring = plan.ports[0].ring.unwrap();
    assert_eq!(
        (ring.size_packets, ring.bql, ring.card, ring.frame_bytes),
        (64, Some(ByteLimits::DEFAULT), (0, 0), 1514)
    );
    assert!(
        plan.namespaces[2].tc[0].contains(" htb "),
        "the way back is as without a ring: {:?}",
        plan.namespaces[2].tc
    );
    assert_eq!(plan.ports[1].ring, None);
}

#[test]
fn both_directions_of_a_link_may_have_rings() {
    let both = ringed(r#"ring = { size = "256p", bql = false }"#);
    let wires = |toml: &str| {
        Plan::new(&scenario(toml), Kernel::USUAL).unwrap().cards().map(|cards| cards.wire_ns).collect::<Vec<_>>()
    };
    assert_eq!(wires(&both), [[Some(1_211_200), None], [None, Some(1_211_200)]]);
    let direct = both.replace(r#"rate = "10mbit", delay = "5ms""#, r#"rate = "10mbit""#);
    assert_eq!(wires(&direct), [[Some(1_211_200), Some(1_211_200)]], "no delay: one cable");
}

#[test]
fn a_stacked_interface_is_refused_by_name() {
    let stacked = ringed(r#"stacked.queue.qdisc = "sfq""#);
    let expected = "r1>h2 has a stacked interface, and only the simulator has those: use --engine sim, or leave it out";
    assert_eq!(error(&stacked).to_string(), expected);
}

#[test]
fn rings_that_no_card_can_have_are_refused_by_name() {
    let refused = |toml: String, expected: &str| {
        let found = error(&toml).to_string();
        assert!(found.starts_with(expected), "{found}");
    };
    refused(ringed(FORWARD).replace("64p", "100p"), "the ring of r1>h2 has 100p, which virtio_net cannot be set to");
    let changing = r#"rate = [["0s", "10mbit"], ["5s", "1mbit"]], delay = "5ms""#;
    let changing = ringed(FORWARD).replace(r#"rate = "10mbit", delay = "5ms""#, changing);
    refused(changing, "the ring of r1>h2 needs a wire of constant rate");
    let late = ringed(FORWARD).replace("bql = true", r#"bql = true, completion = "8p""#);
    refused(late, "the ring of r1>h2 has a completion, and a virtual machine's card reports each packet at once");
    let slow = ringed(FORWARD).replace("10mbit", "1kbit");
    refused(slow, "the ring of r1>h2 needs a wire that sends a full packet in 4294967295 ns at most");
}

#[test]
fn segmentation_offload_stays_on_along_the_whole_path_where_a_host_wants_it() {
    let offloading = |lab: &str| format!("{lab}\n[[host]]\nname = \"h1\"\ntcp.gso_max_segs = 8\n");
    let text = script(&offloading(LAB));
    assert_eq!(text.matches("gso_max_segs 8").count(), 3, "of h1, and of the router both ways: {text}");
    assert_eq!(text.matches("gso_max_segs 1\n").count(), 1, "of h2: {text}");
    assert!(text.contains(" gro off") && !text.contains("gso off"), "{text}");
    let refused = Plan::new(&scenario(&offloading(LAB)), Kernel { delay_by: DelayBy::Relay, ..Kernel::USUAL })
        .unwrap_err()
        .to_string();
    assert!(refused.contains("host `h1`: tcp.gso_max_segs needs sch_netem"), "{refused}");
    let refused = error(&offloading(&ringed(FORWARD))).to_string();
    assert!(refused.contains("goes with no ring"), "{refused}");
}

#[test]
fn a_boost_is_the_bucket_of_htb_and_its_wire_sends_at_the_boosts_rate() {
    let boosted = |bytes: &str| {
        LAB.replace(
            r#"rate = "10mbit""#,
            &format!(r#"rate = "2mbit", boost = {{ rate = "10mbit", bytes = "{bytes}" }}"#),
        )
    };
    let plan = Plan::new(&scenario(&boosted("500000b")), Kernel { clock: Clock::Virtual, ..Kernel::USUAL }).unwrap();
    let tc: Vec<&str> = plan.namespaces.iter().flat_map(|namespace| &namespace.tc).map(String::as_str).collect();
    // In 10 us, 12.5 bytes pass at 10 Mbit/s.
    let class = "classid 1:1 htb rate 2mbit burst 500000b ceil 10mbit cburst 13b quantum 1514";
    assert!(tc.iter().any(|line| line.ends_with(class)), "{tc:?}");
    assert!(tc.iter().any(|line| line.ends_with("netem limit 1000000 delay 5032us rate 10mbit -40")), "{tc:?}");
    assert_eq!(plan.ports[0].rate_bps, 10_000_000, "the experiment begins with a full bucket");
    // 60 s of 2 Mbit/s are 15 MB.
    Plan::new(&scenario(&boosted("15000000b")), Kernel::USUAL).unwrap();
    let refused = error(&boosted("15000001b")).to_string();
    assert!(refused.contains("boost.bytes 15000001 is more than Linux' sch_htb can hold (15000000)"), "{refused}");
}

#[test]
fn a_rate_that_varies_by_itself_is_refused_by_name() {
    let walking = LAB.replace(r#"rate = "10mbit""#, r#"rate = { preset = "umts-down" }"#);
    let expected = "r1>h2: no queueing discipline of Linux has a rate that walks at random; use --engine sim";
    assert_eq!(error(&walking).to_string(), expected);
}

/// The first netem sends, and one inside it does the rest: a netem with a rate would not let its delays overlap.
#[test]
fn losses_and_jitter_are_those_of_a_netem_inside_the_wires() {
    let faulty = LAB.replace(
        r#"rate = "10mbit", delay = "5ms""#,
        r#"rate = "10mbit", delay = "5ms", forward.wire = { loss = 0.01, jitter = "2ms" }, reverse.wire = { gemodel = { p = 0.01, r = 0.25 }, jitter = "1ms", keep_order = true }"#,
    );
    let namespaces = namespaces(&faulty, DelayBy::Netem);
    let tc: Vec<&str> = namespaces.iter().flat_map(|namespace| &namespace.tc).map(String::as_str).collect();
    for expected in [
        "qdisc add dev to-h2 root handle 1: netem limit 1000000 rate 10mbit",
        "qdisc add dev to-h2 parent 1:1 handle 2: netem limit 1000000 delay 5000us 2000us 0 loss random 1 0",
        "qdisc add dev to-r1 parent 1:1 handle 2: netem limit 1000000 delay 5000us 1000us 0 loss gemodel 1 25 100 0 \
         rate 400000000000000bit 0 0 0",
    ] {
        assert!(tc.contains(&expected), "{expected}: {tc:#?}");
    }
    let kernel = Kernel { delay_by: DelayBy::Relay, ..Kernel::USUAL };
    let refused = Plan::new(&scenario(&faulty), kernel).unwrap_err().to_string();
    assert!(refused.starts_with("r1>h2: this kernel has no sch_netem"), "{refused}");
}

#[test]
fn no_script_builds_a_ring() {
    let error = Script::new(&scenario(&ringed(FORWARD)), &[]).unwrap_err().to_string();
    assert!(error.starts_with("the ring of r1>h2 takes a network card, which namespaces have none of"), "{error}");
}

/// Whether `sh` reads the line as plain words. Everything else occurs only in the script's own frame, which the
/// snapshots show.
fn is_plain(line: &str) -> bool {
    line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" .,:/_-='>\n".contains(&byte))
}

proptest! {
    #[test]
    fn any_scenario_becomes_commands_of_plain_words(scenario in arbitrary_scenario()) {
        let plan = match Plan::new(&scenario, Kernel::USUAL) {
            Err(PlanError::TooFine { .. } | PlanError::TooLarge { .. } | PlanError::Ptm { .. } | PlanError::Link { .. }) => return Ok(()),
            other => other.unwrap(),
        };
        let script = Script::new(&scenario, &[]).unwrap().to_string();
        let commands: Vec<&str> =
            script.lines().map(str::trim).filter(|line| line.starts_with("ip ") || line.starts_with("tc ")).collect();
        for line in &commands {
            prop_assert!(is_plain(line), "{line}");
        }
        let planned = |namespace: &Namespace| {
            1 + namespace.sysctls.len() + namespace.ip.len() + namespace.devices.len() + namespace.tc.len()
        };
        let changes: usize = plan.rate_changes.iter().map(|change| change.commands.len()).sum();
        let count = plan.namespaces.iter().map(planned).sum::<usize>() + plan.cables.len() + changes;
        prop_assert_eq!(commands.len(), count, "everything planned has its command");
    }

    #[test]
    fn every_ring_has_a_card_or_is_refused(mut scenario in arbitrary_scenario_with_rings()) {
        // Segmentation offload cannot be combined with a ring, and nothing builds stacked interfaces.
        scenario.nodes.iter_mut().for_each(|node| node.tcp.gso_max_segs = 1);
        scenario.links.iter_mut().flat_map(|link| [&mut link.forward, &mut link.reverse]).for_each(|port| port.stacked = None);
        let plan = match Plan::new(&scenario, Kernel::USUAL) {
            Err(
                PlanError::TooFine { .. } | PlanError::TooLarge { .. } | PlanError::Ring { .. } | PlanError::Ptm { .. } | PlanError::Link { .. },
            ) => return Ok(()),
            other => other.unwrap(),
        };
        let numbers: Vec<usize> = plan.cards().map(|cards| cards.number).collect();
        prop_assert_eq!(&numbers, &(0..numbers.len()).collect::<Vec<_>>());
        for port in &plan.ports {
            let Some(ring) = port.ring else { continue };
            let cable = plan.cable_of(ring.card.0).unwrap();
            prop_assert!(cable.cards.unwrap().wire_ns[ring.card.1].is_some());
            prop_assert_eq!(&cable.ends[ring.card.1].name, &port.device);
        }
    }
}
