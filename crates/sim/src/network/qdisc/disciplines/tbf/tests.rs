use bufferscope_scenario::sizes::MSS_BYTES;

use super::*;
use crate::network::qdisc::Qdisc;
use crate::network::qdisc::testing::{Bench, FRAME, Flow, MS, attachment, segment, strict_red};
use crate::network::traffic_class::{Ecn, TrafficClass};

/// 10 Mbit/s: a frame of 1514 bytes lasts 1,211,200 ns.
const FRAME_NS: u64 = 1_211_200;

fn parameters() -> scenario::Tbf {
    scenario::Tbf { rate_bps: 10_000_000, burst_bytes: 2 * FRAME, peak: None, limit_bytes: 100_000, inner: None }
}

fn bench(parameters: scenario::Tbf) -> Bench {
    Bench::new(&scenario::Qdisc::Tbf(parameters))
}

fn fill(bench: &mut Bench, frames: u32) {
    (0..frames).for_each(|_| assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None));
}

/// `psched_ratecfg_precompute__` doubles 10^9 until the quotient by the rate in bytes has its 32nd bit set, or the
/// dividend its 64th.
#[test]
fn a_rate_is_a_multiplier_of_32_bits_and_a_shift() {
    // 10 Mbit/s are 1,250,000 bytes a second: 800 ns a byte, times 2^22 is 3,355,443,200.
    assert_eq!(Rate::new(10_000_000), Rate { multiplier: 3_355_443_200, shift: 22 });
    assert_eq!(Rate::new(10_000_000).duration_ns(1514), 1_211_200);
    // 1 Gbit/s: 8 ns a byte, times 2^28 is 2^31.
    assert_eq!(Rate::new(1_000_000_000), Rate { multiplier: 1 << 31, shift: 28 });
    // 3 Mbit/s: 2666.67 ns a byte, times 2^20 is 2,796,202,666.67. 1514 bytes are 4,037,333.33 ns, rounded down.
    assert_eq!(Rate::new(3_000_000), Rate { multiplier: 2_796_202_666, shift: 20 });
    assert_eq!(Rate::new(3_000_000).duration_ns(1514), 4_037_333);
    // 400 Gbit/s: 0.02 ns a byte. 10^9 fits 34 doublings, 1.7e19, whose 64th bit is set.
    assert_eq!(Rate::new(400_000_000_000), Rate { multiplier: 343_597_383, shift: 34 });
}

#[test]
fn a_full_bucket_passes_a_burst_and_then_the_rate() {
    let mut bench = bench(parameters());
    fill(&mut bench, 4);
    assert_eq!(bench.dequeue(0).0, Some((0, Ecn::NotEct)));
    assert_eq!(bench.dequeue(0).0, Some((1, Ecn::NotEct)));
    assert_eq!(bench.not_before(0), Some(FRAME_NS));
    assert_eq!(bench.not_before(FRAME_NS - 1), Some(FRAME_NS), "asking takes no tokens");
    assert_eq!(bench.dequeue(FRAME_NS).0, Some((2, Ecn::NotEct)));
    assert_eq!(bench.not_before(FRAME_NS), Some(2 * FRAME_NS));
    assert_eq!(bench.backlog(), (1, u64::from(FRAME)));
}

#[test]
fn a_bucket_never_holds_more_than_its_size() {
    let mut bench = bench(parameters());
    fill(&mut bench, 3);
    let long_after = 1000 * FRAME_NS;
    bench.dequeue(long_after);
    bench.dequeue(long_after);
    assert_eq!(bench.not_before(long_after), Some(long_after + FRAME_NS));
}

#[test]
fn an_empty_queue_waits_for_a_packet_and_not_for_tokens() {
    let mut bench = bench(parameters());
    assert_eq!(bench.not_before(0), None);
    fill(&mut bench, 2);
    bench.dequeue(0);
    bench.dequeue(0);
    assert_eq!(bench.not_before(0), None);
}

/// With a second bucket of one frame at 20 Mbit/s, a burst passes at that rate.
#[test]
fn the_peak_rate_spaces_the_packets_of_a_burst() {
    let peak = scenario::Peak { rate_bps: 20_000_000, mtu_bytes: FRAME };
    let mut bench = bench(scenario::Tbf { burst_bytes: 3 * FRAME, peak: Some(peak), ..parameters() });
    fill(&mut bench, 6);
    let leave = |bench: &mut Bench, at_ns| assert!(bench.dequeue(at_ns).0.is_some());
    leave(&mut bench, 0);
    assert_eq!(bench.not_before(0), Some(FRAME_NS / 2), "only the second bucket is empty");
    leave(&mut bench, FRAME_NS / 2);
    leave(&mut bench, FRAME_NS);
    // The first bucket held 3 frames, and 1 has arrived. 3 were taken, so there is one left, and it passes at the peak
    // rate. From then on the next frame's tokens have to arrive: half of them have.
    leave(&mut bench, FRAME_NS * 3 / 2);
    assert_eq!(bench.not_before(FRAME_NS * 3 / 2), Some(FRAME_NS * 2));
    leave(&mut bench, FRAME_NS * 2);
    assert_eq!(bench.not_before(FRAME_NS * 2), Some(FRAME_NS * 3), "the burst is over");
}

#[test]
fn the_inner_queue_is_bounded_in_bytes() {
    let mut bench = bench(scenario::Tbf { limit_bytes: 3 * u64::from(FRAME), ..parameters() });
    fill(&mut bench, 3);
    assert_eq!(bench.enqueue(0, 60, Ecn::Ect0), Some(Reason::OVERLIMIT));
    assert_eq!(bench.backlog(), (3, 3 * u64::from(FRAME)));
}

#[test]
fn a_packet_larger_than_the_bucket_is_dropped() {
    let mut bench = bench(scenario::Tbf { burst_bytes: 1000, ..parameters() });
    let class = TrafficClass::new(0, Ecn::NotEct);
    assert_eq!(bench.arrive(0, 1001, class), (Xmit::Dropped, vec![(0, Reason::OVERSIZE)]));
    assert_eq!(bench.arrive(0, 1000, class), (Xmit::Queued, vec![]));
    let warning = bench.qdisc().warning().expect("no full packet passes");
    assert!(warning.starts_with("tbf: a burst of 1000 bytes"), "{warning}");
}

/// `tbf_change` sets the tokens of both buckets to their sizes, and gives the inner `bfifo` its limit.
#[test]
fn a_changed_filter_keeps_its_packets_and_has_full_buckets() {
    let mut bench = bench(parameters());
    fill(&mut bench, 5);
    bench.dequeue(0);
    bench.dequeue(0);
    assert_eq!(bench.not_before(0), Some(FRAME_NS));
    let slower = scenario::Tbf { rate_bps: 5_000_000, limit_bytes: 2 * u64::from(FRAME), ..parameters() };
    assert_eq!(bench.change(&scenario::Qdisc::Tbf(slower)), vec![]);
    assert_eq!(bench.backlog().0, 3, "one more than the new limit");
    assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), Some(Reason::OVERLIMIT));
    assert_eq!(bench.dequeue(0).0, Some((2, Ecn::NotEct)), "the bucket is full again");
    assert_eq!(bench.dequeue(0).0, Some((3, Ecn::NotEct)));
    assert_eq!(bench.not_before(0), Some(2 * FRAME_NS), "at half the rate");
}

/// `qdisc_peek_dequeued`: CoDel passes its first packet on as soon as the filter peeks at it. So only the packets left
/// in it can become old there. FIFOs let the filter peek at their first packet, which still counts for them.
#[test]
fn the_backlog_may_be_in_another_discipline() {
    let inner = |inner| scenario::Tbf { burst_bytes: FRAME, inner: Some(Box::new(inner)), ..parameters() };
    let mut bench = bench(inner(scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 2 })));
    for _ in 0..2 {
        assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None);
    }
    assert_eq!(bench.dequeue(0).0, Some((0, Ecn::NotEct)));
    // A full frame at 10 Mbit/s takes 1.2112 ms.
    assert_eq!(bench.not_before(0), Some(1_211_200));
    assert_eq!(bench.enqueue(1, FRAME, Ecn::NotEct), None);
    assert_eq!(bench.enqueue(2, FRAME, Ecn::NotEct), Some(Reason::OVERLIMIT), "the limit is in packets now");
    assert_eq!(bench.backlog().0, 2);
    let codel = scenario::Codel {
        limit_packets: 100,
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        ecn: false,
        ce_threshold_ns: None,
    };
    let mut bench = self::bench(inner(scenario::Qdisc::Codel(codel)));
    for _ in 0..3 {
        bench.enqueue(0, FRAME, Ecn::NotEct);
    }
    assert_eq!(bench.dequeue(0).0, Some((0, Ecn::NotEct)));
    assert_eq!(bench.not_before(0), Some(1_211_200));
    assert_eq!(bench.backlog(), (2, 2 * u64::from(FRAME)), "the one that was looked at still waits");
    assert_eq!(bench.not_before(MS), Some(1_211_200), "and is not looked for again");
    assert_eq!(bench.dequeue(1_211_200).0, Some((1, Ecn::NotEct)));
}

/// While a packet waits for tokens, `tbf_dequeue` does not ask the inner discipline. CoDel's intervals go on.
#[test]
fn a_link_that_is_idle_for_want_of_tokens_does_not_stop_codel() {
    let drops = |is_idle: bool| {
        let codel = scenario::Codel {
            limit_packets: 1000,
            target_ns: 5 * MS,
            interval_ns: 100 * MS,
            ecn: false,
            ce_threshold_ns: None,
        };
        let mut bench = bench(scenario::Tbf { inner: Some(Box::new(scenario::Qdisc::Codel(codel))), ..parameters() });
        fill(&mut bench, 600);
        let (mut now_ns, mut drops) = (0, Vec::new());
        while now_ns < 400 * MS {
            if is_idle {
                bench.idle_since(now_ns);
            }
            let (passed, events) = bench.dequeue_or_wait(now_ns);
            drops.extend(events.iter().map(|_| now_ns));
            now_ns = passed.err().unwrap_or(now_ns);
        }
        drops
    };
    let expected = drops(false);
    assert!(expected.len() > 3, "{expected:?}");
    assert_eq!(drops(true), expected);
}

/// `choke_peek_head`: the packet at which the filter peeks still counts for CHOKe.
#[test]
fn a_packet_of_choke_is_peeked_at_where_it_is() {
    let inner = scenario::Qdisc::Choke(scenario::Choke { limit_packets: 6, ..choke() });
    let mut bench = bench(scenario::Tbf { burst_bytes: FRAME, inner: Some(Box::new(inner)), ..parameters() });
    fill(&mut bench, 6);
    assert_eq!(bench.dequeue(0).0, Some((0, Ecn::NotEct)));
    assert_eq!(bench.not_before(0), Some(FRAME_NS));
    assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None);
    assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), Some(Reason::OVERLIMIT));
    assert_eq!(bench.dequeue(FRAME_NS).0, Some((1, Ecn::NotEct)));
}

/// CHOKe with an average that stays between its thresholds here, and so hardly drops.
fn choke() -> scenario::Choke {
    scenario::Choke {
        limit_packets: 100,
        min_packets: 20,
        max_packets: 60,
        avpkt_bytes: 1000,
        burst_packets: 30,
        probability: 0.0001,
        bandwidth_bps: 10_000_000,
        ecn: false,
    }
}

/// `tbf_dequeue` asks an empty RED or CHOKe only for its first packet (`red_peek`, `choke_peek_head`), and that does not
/// begin the idle time in which their averages age.
#[test]
fn averages_do_not_age_inside_the_filter() {
    let red = strict_red();
    let choke = scenario::Qdisc::Choke(scenario::Choke { min_packets: 2, max_packets: 4, burst_packets: 3, ..choke() });
    let prio = |inner: &scenario::Qdisc| {
        let bands = scenario::Prio {
            bands: 2,
            priomap: [0; 16],
            filters: vec![],
            inner: vec![inner.clone(), scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 1 })],
        };
        scenario::Qdisc::Prio(bands)
    };
    let filtered = |inner: &scenario::Qdisc| {
        scenario::Qdisc::Tbf(scenario::Tbf { inner: Some(Box::new(inner.clone())), ..parameters() })
    };
    for inner in [&red, &choke] {
        let bands = prio(inner);
        for (qdisc, ages) in [(inner, true), (&bands, true), (&filtered(inner), false), (&filtered(&bands), false)] {
            let mut bench = Bench::new(qdisc);
            let offer = |bench: &mut Bench, at_ns, hash| {
                let flow = Flow { hash, ..Flow::default() };
                bench.arrive_of(flow, at_ns, FRAME, TrafficClass::new(0, Ecn::NotEct)).0
            };
            let results: Vec<_> = (0..20).map(|hash| offer(&mut bench, 0, hash)).collect();
            assert_eq!(results.last(), Some(&Xmit::Congested), "the average is above max");
            let mut now_ns = 0;
            while bench.backlog().0 > 0 {
                let (passed, _) = bench.dequeue_or_wait(now_ns);
                now_ns = passed.err().unwrap_or(now_ns);
            }
            bench.idle_since(now_ns);
            let expected = if ages { Xmit::Queued } else { Xmit::Congested };
            assert_eq!(offer(&mut bench, now_ns + 10_000 * MS, 20), expected, "{qdisc:?}");
        }
    }
}

/// `tbf_segment` returns `NET_XMIT_DROP` for segments of which none is queued, whatever the inner discipline returns.
#[test]
fn segments_that_the_inner_discipline_refuses_were_dropped() {
    let parameters = scenario::Tbf { inner: Some(Box::new(strict_red())), ..parameters() };
    let mut qdisc = Qdisc::new(&scenario::Qdisc::Tbf(parameters), attachment(0)).unwrap();
    let (mut pool, mut events) = (Pool::new(), QdiscEvents::default());
    let mut arrive = |segments: u32| {
        let class = TrafficClass::new(0, Ecn::NotEct);
        let (header, body) = segment(0, Flow::default(), class, 1, segments * MSS_BYTES);
        let packet = pool.insert(header, body);
        qdisc.enqueue(packet, 0, &mut pool, &mut events)
    };
    let results: Vec<_> = (0..20).map(|_| arrive(1)).collect();
    assert_eq!((results.first(), results.last()), (Some(&Xmit::Queued), Some(&Xmit::Congested)));
    assert_eq!(arrive(2), Xmit::Congested, "two segments fit the bucket");
    assert_eq!(arrive(3), Xmit::Dropped);
}
