//! Links whose rate varies, in whole runs.

use crate::common::{MS, numbers, numbers_of_layer, numbers_where, run, words};
use bufferscope_records::Table;
use bufferscope_scenario::{Experiment, Scenario};
use proptest::prelude::*;

/// UDP at 12 Mbit/s into a link that plays a trace: more than it delivers.
fn flood(trace: &[u8], qdisc: &str) -> Scenario {
    flood_with(trace, qdisc, "")
}

/// The same with more settings of the direction that plays the trace.
fn flood_with(trace: &[u8], qdisc: &str, more: &str) -> Scenario {
    let text = format!(
        r#"
        title = "Trace"
        duration = "2s"
        [[link]]
        name = "cell"
        ends = ["h1", "h2"]
        delay = "5ms"
        overhead = 0
        queue.qdisc = "{qdisc}"
        queue.limit = "50p"
        forward.rate = {{ trace = "cell.down" }}
        {more}
        reverse.rate = "1mbit"
        [[traffic]]
        name = "flood"
        kind = "udp"
        from = "h1"
        to = "h2"
        rate = "12mbit"
        size = 1472
        [[traffic]]
        name = "ping"
        kind = "ping"
        from = "h1"
        to = "h2"
        "#
    );
    let read = |name: &str| if name == "cell.down" { Ok(trace.to_vec()) } else { Err("not there".to_owned()) };
    let experiment = Experiment::from_bytes_and_files(text.as_bytes(), "trace.toml", &[], &read);
    experiment.unwrap_or_else(|error| panic!("{error}")).points()[0].scenario.clone()
}

/// Two opportunities in every 10 ms are 300,000 bytes a second. The queue always holds packets, so each is used.
#[test]
fn a_full_queue_uses_every_opportunity() {
    let sink = run(&flood(b"5\n10\n", "pfifo"), 1).output;
    let sent = numbers_where(&sink, Table::Queues, "sent_bytes", ("port", "h1>h2"));
    let times = numbers_where(&sink, Table::Queues, "t_ns", ("port", "h1>h2"));
    let at = |ms: u64| sent[times.iter().position(|t_ns| *t_ns == ms * MS).unwrap()];
    // What is being sent at a sample has left the queue: up to 1500 bytes more.
    assert!((at(1500) - at(500)).abs_diff(300_000) <= 1500, "{}", at(1500) - at(500));
    let capacity = ["t_ns", "rate_bps"].map(|column| numbers_where(&sink, Table::Capacity, column, ("port", "h1>h2")));
    // The opportunity at 1000 ms belongs to the next second: the first has one fewer.
    assert_eq!(capacity, [vec![0, 1000 * MS], vec![199 * 12_000, 200 * 12_000]]);
}

/// A packet waits in the queue, and not on the link, for an opportunity: 300 ms without one fill the queue, but no more.
#[test]
fn packets_wait_in_the_queue_for_an_opportunity() {
    let sink = run(&flood(b"300\n300\n", "pfifo"), 1).output;
    let packets = numbers_where(&sink, Table::Queues, "packets", ("port", "h1>h2"));
    assert_eq!(packets.iter().max(), Some(&50));
    let sent = numbers_where(&sink, Table::Queues, "sent_packets", ("port", "h1>h2"));
    assert_eq!(sent[29], 0, "nothing leaves before 300 ms");
}

/// What 5 s of UDP at 12 Mbit/s in packets of 1500 bytes, and a ping, make of a link at a rate: packets and bytes that it
/// sent in the four seconds after the first.
fn sent_at(rate: &str, overhead: &str) -> [u64; 2] {
    let text = format!(
        r#"
        title = "Link layer"
        duration = "5s"
        link = [{{ name = "line", ends = ["h1", "h2"], rate = "{rate}", overhead = {overhead} }}]
        traffic = [{{ name = "flood", kind = "udp", from = "h1", to = "h2", rate = "12mbit", size = 1472 }}]
        "#
    );
    let experiment = Experiment::parse(&text, "overhead.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let sink = run(&experiment.points()[0].scenario, 1).output;
    ["sent_packets", "sent_bytes"].map(|column| {
        let sent = numbers_where(&sink, Table::Queues, column, ("port", "h1>h2"));
        sent[sent.len() - 1] - sent[sent.len() - 401]
    })
}

/// A packet of 1500 bytes over PPPoE and LLC takes 33 cells, or 13,992 bits; with PPPoE on PTM 1554 bytes, or 12,432 bits; on
/// DOCSIS 1518 bytes, or 12,144 bits. At a hundred times that many bits a second, a link sends
/// 400 packets in 4 s.
#[test]
fn a_link_sends_what_its_link_layer_makes_of_a_packet() {
    for (rate, overhead, bytes) in [
        ("1.3992mbit", r#""pppoe-llcsnap""#, 1749),
        ("1.2432mbit", r#""pppoe-ptm""#, 1554),
        ("1.2144mbit", r#""docsis""#, 1518),
        ("1.2112mbit", r#"{ bytes = 14, mpu = 1000 }"#, 1514),
    ] {
        let [packets, sent] = sent_at(rate, overhead);
        assert!(packets.abs_diff(400) <= 1, "{overhead}: {packets}");
        assert_eq!(sent, packets * bytes, "{overhead}");
    }
}

/// The ring is always full, and passes a packet on only at an opportunity.
#[test]
fn a_ring_waits_for_an_opportunity_too() {
    let sink = run(&flood_with(b"5\n10\n", "pfifo", "forward.ring = { size = \"4p\", bql = false }"), 1).output;
    let of_ring = |column| {
        let layers = words(&sink, Table::Queues, "layer");
        let values = numbers(&sink, Table::Queues, column);
        layers.iter().zip(values).filter(|(layer, _)| *layer == "ring").map(|(_, value)| value).collect::<Vec<u64>>()
    };
    let (times, sent) = (of_ring("t_ns"), of_ring("sent_bytes"));
    let at = |ms: u64| sent[times.iter().position(|t_ns| *t_ns == ms * MS).unwrap()];
    assert!((at(1500) - at(500)).abs_diff(300_000) <= 1500, "{}", at(1500) - at(500));
    assert!(of_ring("packets").iter().all(|packets| *packets <= 4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Conservation is checked by `run`. The bytes that leave the queue are at most those of the opportunities so far, and one packet that
    /// waits for the rest of its own.
    #[test]
    fn no_more_is_sent_than_there_are_opportunities(
        gaps in prop::collection::vec(0..40_u32, 1..60),
        qdisc in prop::sample::select(vec!["pfifo", "codel", "fq_codel"]),
        seed: u64,
    ) {
        let mut at_ms = 1;
        let times: Vec<u32> = gaps.iter().map(|gap| { at_ms += gap; at_ms }).collect();
        let trace: String = times.iter().map(|ms| format!("{ms}\n")).collect();
        let sink = run(&flood(trace.as_bytes(), qdisc), seed).output;
        let sent = numbers_where(&sink, Table::Queues, "sent_bytes", ("port", "h1>h2"));
        let sampled = numbers_where(&sink, Table::Queues, "t_ns", ("port", "h1>h2"));
        let period = u64::from(at_ms);
        for (t_ns, bytes) in sampled.into_iter().zip(sent) {
            let ms = t_ns / MS;
            let in_part = times.iter().filter(|time| u64::from(**time) <= ms % period).count() as u64;
            let most = 1500 * (ms / period * times.len() as u64 + in_part + 1);
            prop_assert!(bytes <= most, "{bytes} of {most} bytes at {ms} ms");
        }
    }
}

/// With segmentation offload, a host's own queue and ring pass on packets of up to 16 segments. They count as in
/// `tc -s qdisc`: so many packets of at most 1514 bytes. Each has one sojourn time.
#[test]
fn a_packet_of_several_segments_is_sent_as_so_many() {
    let text = r#"
        title = "Offload"
        duration = "5s"
        tcp.gso_max_segs = 16
        link = [{ name = "line", ends = ["h1", "h2"], rate = "10mbit", delay = "5ms", forward.ring = { size = "64p", bql = false } }]
        traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }]
        "#;
    let experiment = Experiment::parse(text, "offload.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let sink = run(&experiment.points()[0].scenario, 1).output;
    for layer in ["qdisc", "ring"] {
        let last = |column| numbers_of_layer(&sink, Table::Queues, column, ("h1>h2", layer)).last().copied().flatten();
        let (packets, bytes) = (last("sent_packets").unwrap(), last("sent_bytes").unwrap());
        assert!((1450 * packets..=1514 * packets).contains(&bytes), "{layer}: {packets} packets, {bytes} bytes");
        let left = numbers_of_layer(&sink, Table::Sojourns, "packets", ("h1>h2", layer)).into_iter().flatten();
        assert!(left.sum::<u64>() < packets / 2, "{layer}");
    }
}
