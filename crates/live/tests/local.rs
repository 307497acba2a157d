//! The facts and samples of interfaces of real namespaces, compared with those of `ip` and `tc`.
//!
//! Each test runs in a process of its own, in new namespaces of users, networks and mounts.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use bufferscope_live::local::{EndFacts, LinkKind, Local, LocalSample};
use serde_json::Value;

/// Set in the process in the namespaces.
const INSIDE: &str = "BUFFERSCOPE_TEST_NAMESPACES";
/// A neighbour whose packets `a` sends to `b`, which drops them.
const NEIGHBOUR: &str = "10.9.0.2";

/// Whether this process is in namespaces of its own. If not, starts the test again in such a process, and waits for it.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        run("ip link set lo up");
        return true;
    }
    let unshare = |program: &std::ffi::OsStr, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--mount"]).arg(program).args(arguments);
        command
    };
    if !unshare("true".as_ref(), &[]).output().is_ok_and(|output| output.status.success()) {
        skip(test, "this kernel lets no user create namespaces");
        return false;
    }
    let program = std::env::current_exe().unwrap();
    let output = unshare(program.as_os_str(), &["--exact", test, "--nocapture"]).env(INSIDE, "yes").output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
    for line in String::from_utf8_lossy(&text).lines().filter(|line| line.starts_with("skipped: ")) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    false
}

fn skip(test: &str, why: impl Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Runs a command; returns whether it succeeded, and its output.
fn try_run(command: &str) -> (bool, String) {
    let mut words = command.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn run(command: &str) -> String {
    let (done, text) = try_run(command);
    assert!(done, "{command}: {text}");
    text
}

/// Makes the devices `near` and `far`, which are the ends of a cable, and a neighbour behind `near`.
fn cable(options: &str) {
    run(&format!("ip link add name near{options} type veth peer name far"));
    run("ip addr add 10.9.0.1/24 dev near");
    run("ip link set near up");
    run("ip link set far up");
    run(&format!("ip neigh add {NEIGHBOUR} lladdr 02:00:00:00:00:09 dev near nud permanent"));
}

/// Sends datagrams of 1000 bytes to the neighbour, from several ports.
fn send(number: usize) {
    let sockets: Vec<UdpSocket> = (0..8).map(|_| UdpSocket::bind("0.0.0.0:0").unwrap()).collect();
    for socket in &sockets {
        socket.set_nonblocking(true).unwrap();
        socket.connect((NEIGHBOUR, 9)).unwrap();
    }
    for socket in sockets.iter().cycle().take(number) {
        let _ = socket.send(&[0; 1000]);
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn towards_neighbour() -> Local {
    Local::towards(address(NEIGHBOUR), None).unwrap()
}

fn facts_of(interface: &str) -> EndFacts {
    Local::towards(address("127.0.0.1"), Some(interface)).unwrap().facts().clone()
}

fn is_unknown(facts: &EndFacts, what: &str) -> bool {
    facts.unknown.iter().any(|words| words.starts_with(what))
}

/// Bytes, packets and drops of the disciplines of `near` that satisfy `is_wanted`, added up, as `tc` prints them.
fn seen_by_tc(is_wanted: impl Fn(&Value) -> bool) -> [u64; 3] {
    let disciplines: Vec<Value> = serde_json::from_str(&run("tc -s -j qdisc show dev near")).unwrap();
    let sum = |key: &str| {
        disciplines.iter().filter(|discipline| is_wanted(discipline)).map(|it| it[key].as_u64().unwrap()).sum()
    };
    ["backlog", "qlen", "drops"].map(sum)
}

fn seen(sample: LocalSample) -> [u64; 3] {
    [sample.qdisc_bytes, sample.qdisc_packets, sample.qdisc_drops].map(Option::unwrap)
}

/// A sample, and what `tc` prints if it is the same before and after the sample.
fn undisturbed(local: &mut Local, is_wanted: impl Fn(&Value) -> bool) -> ([u64; 3], [u64; 3]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let before = seen_by_tc(&is_wanted);
        let sample = seen(local.sample());
        if before == seen_by_tc(&is_wanted) {
            return (sample, before);
        }
        assert!(Instant::now() < deadline, "a packet leaves all the time");
    }
}

fn is_root(discipline: &Value) -> bool {
    discipline["root"] == true
}

#[test]
fn the_backlog_is_that_of_tc() {
    if !is_inside("the_backlog_is_that_of_tc") {
        return;
    }
    cable("");
    // At 8 kbit/s, a packet leaves every second.
    let shaper = "tbf rate 8kbit burst 2000 limit 1000000";
    for (root, inner) in [
        (shaper, None),
        (shaper, Some("fq_codel limit 20")),
        (shaper, Some("pfifo limit 10")),
        (shaper, Some("fq")),
        ("prio", Some("tbf rate 8kbit burst 2000 limit 5000")),
        ("htb default 1", Some("pfifo limit 10")),
        ("cake bandwidth 8kbit", None),
    ] {
        let (done, why) = try_run(&format!("tc qdisc replace dev near root handle 1: {root}"));
        if !done {
            skip(root, why.trim_end());
            continue;
        }
        // `prio` puts these packets into its second band.
        let parent = if root == "prio" { "1:2" } else { "1:1" };
        if root.starts_with("htb") {
            run("tc class add dev near parent 1: classid 1:1 htb rate 8kbit");
        }
        if let Some(inner) = inner {
            let (done, why) = try_run(&format!("tc qdisc add dev near parent {parent} handle 10: {inner}"));
            if !done {
                skip(inner, why.trim_end());
                run("tc qdisc del dev near root");
                continue;
            }
        }
        let mut local = towards_neighbour();
        assert_eq!(local.facts().qdisc.as_deref(), root.split(' ').next());
        assert_eq!(undisturbed(&mut local, is_root).0[..2], [0, 0], "{root} {inner:?} begins empty");
        send(50);
        let (sample, by_tc) = undisturbed(&mut local, is_root);
        assert_eq!(sample, by_tc, "{root} {inner:?}");
        assert!(sample[0] >= 1042 * 5 && sample[1] >= 5, "{root} {inner:?} has a backlog: {sample:?}");
        if inner.is_some_and(|inner| inner.contains("limit")) {
            assert!(sample[2] >= 20, "{root} {inner:?} dropped what it has no room for: {sample:?}");
        }
        run("tc qdisc del dev near root");
    }
}

#[test]
fn the_backlog_of_mq_is_that_of_all_queues() {
    if !is_inside("the_backlog_of_mq_is_that_of_all_queues") {
        return;
    }
    cable(" numtxqueues 4");
    run("tc qdisc replace dev near root handle 1: mq");
    for queue in 1..=4 {
        run(&format!(
            "tc qdisc replace dev near parent 1:{queue} handle 1{queue}: tbf rate 8kbit burst 2000 limit 5000"
        ));
    }
    let mut local = towards_neighbour();
    send(60);
    let (sample, by_tc) = undisturbed(&mut local, |discipline| !is_root(discipline));
    assert_eq!((sample, local.facts().qdisc.as_deref()), (by_tc, Some("mq")));
    assert!(sample[0] > 0 && sample[2] > 0, "{sample:?}");
}

#[test]
fn a_route_leads_to_an_interface() {
    if !is_inside("a_route_leads_to_an_interface") {
        return;
    }
    cable("");
    let (has_ipv6, why) = try_run("ip addr add 2001:db8::1/64 dev near nodad");
    if !has_ipv6 {
        skip("routes of IPv6", why.trim_end());
    }
    let interface = |to: &str| Local::towards(address(to), None).unwrap().facts().interface.clone();
    for (to, expected) in [
        (NEIGHBOUR, "near"),
        ("::ffff:10.9.0.2", "near"),
        ("2001:db8::2", "near"),
        ("127.0.0.1", "lo"),
        ("::1", "lo"),
        ("10.9.0.1", "lo"),
    ] {
        if address(to).to_canonical().is_ipv6() && !has_ipv6 {
            continue;
        }
        assert_eq!(interface(to), expected, "{to}");
    }
    for to in ["192.0.2.1", "2001:db8:1::1"] {
        let error = Local::towards(address(to), None).unwrap_err();
        assert!(error.to_string().starts_with(&format!("there is no route to {to}: ")), "{error}");
    }
    let given = Local::towards(address("192.0.2.1"), Some("far")).unwrap();
    assert_eq!(given.facts().interface, "far");
    let error = Local::towards(address("192.0.2.1"), Some("c")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), "there is no interface \"c\"; this machine has far, lo, near");
}

#[test]
fn devices_have_their_kinds() {
    if !is_inside("devices_have_their_kinds") {
        return;
    }
    for (device, command, kind) in [
        ("dummy1", "ip link add name dummy1 type dummy", LinkKind::Virtual),
        ("tun1", "ip tuntap add dev tun1 mode tun", LinkKind::Tunnel),
        ("tun1", "ip tuntap add dev tun1 mode tap", LinkKind::Virtual),
        ("veth1", "ip link add name veth1 type veth peer name veth2", LinkKind::Virtual),
        ("bridge1", "ip link add name bridge1 type bridge", LinkKind::Virtual),
        ("gre1", "ip link add name gre1 type gre local 10.9.0.1 remote 10.9.0.2", LinkKind::Tunnel),
        ("wg1", "ip link add name wg1 type wireguard", LinkKind::Tunnel),
        ("vxlan1", "ip link add name vxlan1 type vxlan id 1 dstport 4789 local 10.9.0.1", LinkKind::Tunnel),
    ] {
        let (done, why) = try_run(command);
        if !done {
            skip(command, why.trim_end());
            continue;
        }
        let facts = facts_of(device);
        assert_eq!(facts.link, kind, "{command}");
        assert!(is_unknown(&facts, "the queueing discipline: the interface is down"), "{command}");
        if matches!(device, "dummy1" | "tun1" | "veth1") {
            assert_eq!(facts.link_bps, None, "{command}");
            assert!(is_unknown(&facts, "the link's rate"), "{command}");
        }
        run(&format!("ip link del dev {device}"));
    }
    let facts = facts_of("lo");
    assert_eq!((facts.link, facts.qdisc.as_deref()), (LinkKind::Loopback, Some("noqueue")));
    assert_eq!(facts.kernel, run("uname -r").trim_end());
    let mut local = Local::towards(address("127.0.0.1"), None).unwrap();
    assert_eq!(seen(local.sample()), [0, 0, 0]);
}

#[test]
fn sysfs_of_another_namespace_is_not_used() {
    if !is_inside("sysfs_of_another_namespace_is_not_used") {
        return;
    }
    // The machine's own interfaces, of which one may have the same index.
    let mut names = vec!["veth1".to_owned()];
    let others =
        std::fs::read_dir("/sys/class/net").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.extend(others.filter(|name| name != "lo" && !name.starts_with("bonding")));
    for (number, name) in names.iter().enumerate() {
        run(&format!("ip link add name {name} type veth peer name peer{number}"));
        let facts = facts_of(name);
        assert_eq!(facts.bql, None, "{name}");
        assert!(facts.unknown.iter().any(|words| words.contains("/sys does not show this")), "{:?}", facts.unknown);
    }
    let (done, why) = try_run("mount -t sysfs sysfs /sys");
    if !done {
        skip("byte queue limits in a namespace", why.trim_end());
        return;
    }
    for name in &names {
        let facts = facts_of(name);
        assert!(!facts.unknown.iter().any(|words| words.contains("/sys")), "{:?}", facts.unknown);
        // Newer kernels know that a veth device has no ring.
        assert_ne!(facts.bql, Some(true), "{name}");
    }
}

#[test]
fn a_driver_without_byte_queue_limits_is_known_after_traffic() {
    if !is_inside("a_driver_without_byte_queue_limits_is_known_after_traffic") {
        return;
    }
    let (done, why) = try_run("mount -t sysfs sysfs /sys");
    if !done {
        skip("byte queue limits in a namespace", why.trim_end());
        return;
    }
    cable("");
    let mut local = towards_neighbour();
    let undecided = |local: &Local| is_unknown(local.facts(), "whether the driver uses byte queue limits");
    assert_eq!(local.facts().bql.is_none(), undecided(&local));
    for _ in 0..20 {
        send(100);
    }
    let sample = local.sample();
    assert_eq!((local.facts().bql, undecided(&local), sample.ring_bytes), (Some(false), false, None));
}

#[test]
fn samples_open_nothing_and_survive_the_interface() {
    if !is_inside("samples_open_nothing_and_survive_the_interface") {
        return;
    }
    cable("");
    let mut local = towards_neighbour();
    let open_files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open_files();
    let mut shares = 0;
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(20));
        let sample = local.sample();
        assert!(sample.qdisc_bytes.is_some());
        if let (Some(busy), Some(softirq)) = (sample.cpu_busy, sample.softirq) {
            assert!((0.0..=1.0).contains(&busy) && (0.0..=busy).contains(&softirq), "{sample:?}");
            shares += 1;
        }
    }
    assert!(shares >= 10, "{shares} of 50 samples have the processors' shares");
    assert_eq!(open_files(), before);
    // The kernel answers nothing about the discipline of an interface that has not been up yet.
    run("ip link add name veth1 type veth peer name veth2");
    let start = Instant::now();
    let mut other = Local::towards(address(NEIGHBOUR), Some("veth1")).unwrap();
    assert_eq!(other.sample().qdisc_bytes, None);
    assert!(start.elapsed() < Duration::from_secs(5), "nothing waits for an answer");
    run("ip link set veth1 up");
    assert!(other.sample().qdisc_bytes.is_some());
    run("ip link del dev near");
    let sample = local.sample();
    assert_eq!((sample.qdisc_bytes, sample.ring_bytes), (None, None));
}
