//! Drivers' rings in whole runs: what is queued in them, their effect on the queue above, and on the sender.

use crate::common::*;
use bufferscope_records::{MemorySink, Table};

/// How long a full frame takes at 10 Mbit/s, 1514 bytes.
const FRAME_US: u64 = 1_211;

/// 20 Mbit/s of full packets into a bottleneck of 10 Mbit/s with a queue of 50 packets and this ring, and a ping beside
/// them; 10 ms each way.
fn overload(ring: &str) -> MemorySink {
    let bottleneck = format!(
        r#"
        [link.forward]
        rate = "10mbit"
        queue = {{ qdisc = "pfifo", limit = "50p" }}
        ring = {ring}
        "#
    );
    let flood = r#"
        [[traffic]]
        name = "flood"
        kind = "udp"
        from = "h1"
        to = "h2"
        size = "1472b"
        rate = "20mbit"
    "#;
    run(&dumbbell("4s", &bottleneck, &format!("{flood}{PING}")), 1).output
}

/// The samples of one layer of the bottleneck after the first second.
fn samples(sink: &MemorySink, layer: &str, column: &str) -> Vec<u64> {
    let [times, values] = ["t_ns", column].map(|name| numbers_of_layer(sink, Table::Queues, name, ("r1>h2", layer)));
    let later = times.into_iter().zip(values).filter(|(t_ns, _)| t_ns.is_some_and(|t_ns| t_ns > SECOND));
    later.map(|(_, value)| value.expect("a number")).collect()
}

fn smallest_and_largest(values: &[u64]) -> (u64, u64) {
    (values.iter().copied().min().unwrap(), values.iter().copied().max().unwrap())
}

/// The median wait of a ping in full frames.
fn frames_waited(sink: &MemorySink) -> u64 {
    median_wait_us(sink, 20 * MS, 10) / FRAME_US
}

#[test]
fn a_packet_waits_for_all_in_the_queue_and_all_in_the_ring() {
    for (ring, holds) in [
        (r#"{ size = "16p", bql = false }"#, 16),
        (r#"{ size = "64p", bql = false }"#, 64),
        (r#"{ size = "64p", bql = false, accounting = "virtio" }"#, 46),
    ] {
        let sink = overload(ring);
        assert_eq!(smallest_and_largest(&samples(&sink, "ring", "packets")), (holds, holds), "{ring}");
        assert!(smallest_and_largest(&samples(&sink, "qdisc", "packets")).0 >= 48, "{ring}");
        // Of the packet being sent, about half is left; one packet of the queue may be missing for a moment.
        let waited = frames_waited(&sink);
        assert!((holds + 48..=holds + 50).contains(&waited), "{ring}: {waited} frames");
    }
}

#[test]
fn byte_queue_limits_make_the_size_of_the_ring_irrelevant() {
    let [small, large] = ["64p", "1024p"].map(|size| overload(&format!(r#"{{ size = "{size}", bql = true }}"#)));
    for table in Table::ALL {
        assert_eq!(small.batches(table), large.batches(table), "{table}");
    }
    // At most two full frames reach the limit, and one exceeds it. See the hand-computed table of the limit itself.
    assert!(smallest_and_largest(&samples(&small, "ring", "packets")).1 <= 4);
    let waited = frames_waited(&small);
    assert!((50..=53).contains(&waited), "{waited} frames");
    let sent = samples(&small, "ring", "sent_bytes");
    let bits = (sent.last().unwrap() - sent.first().unwrap()) * 8;
    assert!(bits > 29_800_000, "the wire is busy: {bits} bits in three seconds");
}

#[test]
fn a_late_report_starves_a_small_ring_and_byte_queue_limits_allow_for_it() {
    // Four frames take 4.8448 ms. The first is sent after 1.2112 ms and reported 5 ms later, so four frames are sent in
    // each 6.2112 ms, which is 78 % of the rate.
    let sink = overload(r#"{ size = "4p", bql = false, completion = "5ms" }"#);
    let sent = samples(&sink, "ring", "sent_packets");
    let packets = sent.last().unwrap() - sent.first().unwrap();
    assert!((1925..=1936).contains(&packets), "{packets} packets; 4 * 3000 / 6.2112 = 1932");
    // Until the report, 5 of the 4.13 frames per 5 ms are sent. Twice as much keeps the device busy.
    let sink = overload(r#"{ size = "64p", bql = true, completion = "5ms" }"#);
    let [sent, limit] = ["sent_packets", "limit_bytes"].map(|column| samples(&sink, "ring", column));
    let packets = sent.last().unwrap() - sent.first().unwrap();
    assert!(packets >= 2460, "{packets} packets; 3 s / 1.2112 ms = 2476");
    let (least, most) = smallest_and_largest(&limit);
    assert!(least >= 5 * 1514 && most <= 16 * 1514, "{least} to {most} bytes");
}

#[test]
fn a_device_sends_when_its_link_accepts_a_frame() {
    // The bucket of 500 kB is emptied at 15 - 10 Mbit/s, in 0.8 s; from then on the link sends at 10 Mbit/s. In all, it sends
    // what 10 Mbit/s carry, and the bucket.
    let bottleneck = r#"
        [link.forward]
        rate = "10mbit"
        boost = { rate = "15mbit", bytes = "500kb" }
        queue = { qdisc = "pfifo", limit = "50p" }
        ring = { size = "64p", bql = true, completion = "4p" }
    "#;
    let flood = r#"
        [[traffic]]
        name = "flood"
        kind = "udp"
        from = "h1"
        to = "h2"
        size = "1472b"
        rate = "20mbit"
    "#;
    let sink = run(&dumbbell("4s", bottleneck, flood), 1).output;
    let sent = samples(&sink, "ring", "sent_bytes");
    let bytes = *sent.last().unwrap();
    let expected = 4 * 10_000_000 / 8 + 512_000;
    assert!(bytes.abs_diff(expected) < 25_000, "{bytes} of {expected} bytes");
}

/// One flow from a host whose own port has a ring; the most packets in its queue and in its ring after a second.
fn own_port(ring: &str) -> (u64, u64) {
    let sink = run(
        &scenario(&format!(
            r#"
            title = "The host's own port"
            duration = "4s"
            [[link]]
            name = "line"
            ends = ["h1", "h2"]
            delay = "10ms"
            forward = {{ rate = "10mbit", ring = {ring} }}
            {BULK}
            "#
        )),
        1,
    )
    .output;
    let most = |layer| {
        let [times, packets] =
            ["t_ns", "packets"].map(|name| numbers_of_layer(&sink, Table::Queues, name, ("h1>h2", layer)));
        times.into_iter().zip(packets).filter(|row| row.0 > Some(SECOND)).filter_map(|row| row.1).max().unwrap()
    };
    (most("qdisc"), most("ring"))
}

#[test]
fn a_small_queue_counts_what_is_in_the_ring() {
    // TCP small queues allow two to three packets of a connection in its host, whatever the layer.
    let (queue, ring) = own_port(r#"{ size = "64p", bql = false }"#);
    assert_eq!(queue, 0, "the ring takes all");
    assert!((2..=3).contains(&ring), "{ring} packets");
}

#[test]
fn a_small_queue_waits_for_the_report_and_not_for_the_wire() {
    // With a window of four packets, the pacing rate never allows for more in the host than two full packets or three.
    let goodput = |completion: &str| {
        let text = format!(
            r#"
            title = "The host's own port"
            duration = "4s"
            [[link]]
            name = "line"
            ends = ["h1", "h2"]
            delay = "1ms"
            forward = {{ rate = "10mbit", ring = {{ size = "64p", bql = false, completion = "{completion}" }} }}
            {BULK}
            congestion = "window"
            window = "4p"
            "#
        );
        payload_bps(&run(&scenario(&text), 1).output, "bulk/1", SECOND)
    };
    // Four packets are sent in 4.8 ms, and the first is acknowledged 2 ms after the second begins.
    assert!(goodput("1p") > 9_400_000);
    // The reports come 20 ms late. Until then the connection may send only while at most one packet is not acknowledged
    // (`tcp_rtx_queue_empty_or_single_skb`), so one to two packets of 1448 bytes in each round trip of 3.2 ms: 3.6 to 7.2
    // Mbit/s.
    let late = goodput("20ms");
    assert!((3_600_000..7_240_000).contains(&late), "{late} bit/s");
}
