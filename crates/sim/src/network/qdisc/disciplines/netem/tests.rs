use bufferscope_scenario::sizes::MSS_BYTES;
use bufferscope_scenario::{Distribution, Loss, NetemRate, NetemSlot, SlotDelay};

use super::drawing::Correlated;
use super::settings::duration_ns;
use super::slot::Slot;
use super::*;
use crate::network::packet::Body;
use crate::network::qdisc::QdiscEvent;
use crate::network::qdisc::testing::{Bench, FRAME, Flow, MS, attachment, segment};
use crate::network::traffic_class::{Ecn, TrafficClass};

fn netem() -> scenario::Netem {
    scenario::Netem {
        limit_packets: 1000,
        delay_ns: 0,
        jitter_ns: 0,
        correlation: 0.0,
        distribution: Distribution::Uniform,
        loss: None,
        ecn: false,
        duplicate: None,
        corrupt: None,
        reorder: None,
        rate: None,
        slot: None,
        inner: None,
    }
}

fn bench(netem: scenario::Netem) -> Bench {
    Bench::new(&scenario::Qdisc::Netem(netem))
}

fn class() -> TrafficClass {
    TrafficClass::new(0, Ecn::NotEct)
}

/// The numbers of the packets that leave, each with its time.
fn drain(bench: &mut Bench) -> Vec<(u64, u64)> {
    let (mut now_ns, mut left) = (0, Vec::new());
    loop {
        match bench.answer(now_ns) {
            Dequeued::Packet(packet) => left.push((bench.leave(packet), now_ns)),
            Dequeued::NotBefore(at_ns) => now_ns = at_ns,
            Dequeued::Nothing => return left,
        }
    }
}

#[test]
fn a_delay_is_exact_and_its_packets_are_no_longer_their_senders() {
    let mut bench = bench(scenario::Netem { delay_ns: 10 * MS, limit_packets: 2, ..netem() });
    assert_eq!(bench.arrive(0, FRAME, class()), (Xmit::Orphaned, vec![]));
    assert_eq!(bench.arrive(3, FRAME, class()), (Xmit::Orphaned, vec![]));
    assert_eq!(bench.arrive(4, FRAME, class()), (Xmit::Dropped, vec![(2, Reason::OVERLIMIT)]));
    assert_eq!(bench.backlog(), (2, 2 * u64::from(FRAME)));
    assert_eq!(drain(&mut bench), [(0, 10 * MS), (1, 10 * MS + 3)]);
    assert_eq!(bench.backlog(), (0, 0));
}

/// At 1 Mbit/s, 1514 bytes take 12.112 ms. With 20 bytes more in cells of 48 with 5 more each, they take 32 cells of 53
/// bytes, which are 13.568 ms.
#[test]
fn packets_pass_one_after_the_other_at_a_rate() {
    let mut rate = NetemRate { rate_bps: 1_000_000, packet_overhead_bytes: 0, cell_bytes: 0, cell_overhead_bytes: 0 };
    let mut bench = bench(scenario::Netem { delay_ns: 5 * MS, rate: Some(rate), ..netem() });
    for _ in 0..3 {
        bench.arrive(0, FRAME, class());
    }
    assert_eq!(drain(&mut bench), [(0, 17_112_000), (1, 29_224_000), (2, 41_336_000)]);
    (rate.packet_overhead_bytes, rate.cell_bytes, rate.cell_overhead_bytes) = (20, 48, 5);
    assert_eq!(duration_ns(&rate, FRAME), 13_568_000);
}

#[test]
fn with_jitter_packets_leave_in_the_order_of_their_times_and_none_is_lost() {
    let mut bench = bench(scenario::Netem { delay_ns: 20 * MS, jitter_ns: 10 * MS, ..netem() });
    for at_ns in 0..500 {
        bench.arrive(at_ns * 100_000, FRAME, class());
    }
    let left = drain(&mut bench);
    assert!(left.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    assert!(left.windows(2).any(|pair| pair[0].0 > pair[1].0), "some overtake others");
    let delays: Vec<u64> = left.iter().map(|(number, at_ns)| at_ns - number * 100_000).collect();
    assert!(delays.iter().all(|delay| (10 * MS..30 * MS).contains(delay)));
    let mean = delays.iter().sum::<u64>() / delays.len() as u64;
    assert!(mean.abs_diff(20 * MS) < MS, "{mean}");
    let mut numbers: Vec<u64> = left.iter().map(|packet| packet.0).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..500));
}

/// The standard deviation of a normal distribution is the jitter.
#[test]
fn a_table_gives_its_mean_and_deviation() {
    let mut random = Random::new(1, Stream::Qdisc(0));
    let parameters =
        scenario::Netem { delay_ns: 100 * MS, jitter_ns: 10 * MS, distribution: Distribution::Normal, ..netem() };
    let mut settings = Settings::new(&parameters, 0, &mut random);
    let delays: Vec<f64> = (0..20_000).map(|_| settings.drawn_delay_ns(&mut random) as f64 / 1e6).collect();
    let mean = delays.iter().sum::<f64>() / 20_000.0;
    let deviation = (delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / 20_000.0).sqrt();
    assert!((mean - 100.0).abs() < 0.3 && (deviation - 10.0).abs() < 0.2, "{mean} {deviation}");
}

/// How many of 40,000 packets are lost, and how many losses follow a loss.
fn losses(loss: Loss) -> (f64, f64) {
    let mut random = Random::new(1, Stream::Qdisc(0));
    let mut settings = Settings::new(&scenario::Netem { loss: Some(loss), ..netem() }, 0, &mut random);
    let chain = settings.loss.as_mut().unwrap();
    let lost: Vec<bool> = (0..40_000).map(|_| chain.loses(&mut random)).collect();
    let count = lost.iter().filter(|lost| **lost).count() as f64;
    (count / 40_000.0, lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / count)
}

#[test]
fn losses_have_the_frequency_of_their_model() {
    let (rate, _) = losses(Loss::Random([0.02, 0.0]));
    assert!((rate - 0.02).abs() < 0.003, "{rate}");
    // Losses with p13 = 1 % last 1 / p31 = 4 packets: a share of 0.01 / (0.01 + 0.25).
    let (rate, runs) = losses(Loss::State([0.01, 0.25, 0.0, 1.0, 0.0]));
    assert!((rate - 0.0385).abs() < 0.006 && (runs - 0.75).abs() < 0.04, "{rate} {runs}");
    // The bad state is as frequent; half of its packets are lost, and one in a hundred of the others.
    let (rate, _) = losses(Loss::Gemodel([0.01, 0.25, 0.5, 0.01]));
    assert!((rate - (0.0385 * 0.5 + 0.9615 * 0.01)).abs() < 0.005, "{rate}");
    assert_eq!(losses(Loss::Random([1.0, 0.0])).0, 1.0);
}

#[test]
fn a_loss_is_silent_and_a_mark_replaces_it() {
    let always = scenario::Netem { loss: Some(Loss::Random([1.0, 0.0])), ecn: true, ..netem() };
    let mut bench = bench(always);
    assert_eq!(bench.arrive(0, FRAME, class()), (Xmit::Orphaned, vec![(0, Reason::NETEM_LOSS)]));
    let (xmit, events) = bench.arrive(0, FRAME, TrafficClass::new(0, Ecn::Ect0));
    assert_eq!((xmit, events), (Xmit::Queued, vec![(1, Reason::NETEM_MARK)]));
    assert_eq!(bench.dequeue(0).0, Some((1, Ecn::Ce)));
}

/// tc-netem(8): with a gap of 3, every third packet goes first if the probability is 1.
#[test]
fn every_packet_of_the_gaps_number_goes_first() {
    let reorder = Some(scenario::Reorder { probability: 1.0, correlation: 0.0, gap: 3 });
    let mut bench = bench(scenario::Netem { delay_ns: 10 * MS, reorder, ..netem() });
    for _ in 0..6 {
        bench.arrive(0, FRAME, class());
    }
    let left: Vec<u64> = drain(&mut bench).into_iter().map(|packet| packet.0).collect();
    assert_eq!(left, [5, 2, 0, 1, 3, 4]);
}

/// `get_crandom`: with a correlation of one half, half of each number is the one before.
#[test]
fn a_correlated_number_is_a_mean_with_the_one_before() {
    let mut random = Random::new(1, Stream::Qdisc(0));
    let mut correlated = Correlated::new(0.5, &mut random);
    assert_eq!(correlated.rho, 1 << 31);
    for _ in 0..100 {
        let (last, fresh) = (u64::from(correlated.last), u64::from(random.clone().next_u32()));
        let expected = (fresh * ((1 << 31) - 1) + last * ((1 << 31) + 1)) >> 32;
        assert_eq!(u64::from(correlated.next(&mut random)), expected);
    }
}

/// A copy comes before its packet, and counts towards the limit.
#[test]
fn a_packet_is_doubled_once_and_a_loss_takes_one_of_the_two() {
    let always = scenario::Netem { duplicate: Some([1.0, 0.0]), limit_packets: 3, delay_ns: MS, ..netem() };
    let mut doubling = bench(always.clone());
    assert_eq!(doubling.arrive(0, FRAME, class()), (Xmit::Orphaned, vec![]));
    assert_eq!(doubling.arrive(1, FRAME, class()), (Xmit::Orphaned, vec![]));
    assert_eq!(doubling.backlog(), (4, 4 * u64::from(FRAME)), "one more than the limit");
    assert_eq!(doubling.arrive(2, FRAME, class()), (Xmit::Dropped, vec![(2, Reason::OVERLIMIT)]));
    assert_eq!(drain(&mut doubling), [(0, MS), (0, MS), (1, MS + 1), (1, MS + 1)]);
    let mut losing = bench(scenario::Netem { loss: Some(Loss::Random([1.0, 0.0])), ..always });
    assert_eq!(losing.arrive(0, FRAME, class()), (Xmit::Orphaned, vec![]));
    assert_eq!(drain(&mut losing), [(0, MS)]);
}

#[test]
fn copies_have_the_frequency_that_is_given() {
    let mut bench = bench(scenario::Netem { duplicate: Some([0.25, 0.0]), limit_packets: 20_000, ..netem() });
    for _ in 0..10_000 {
        bench.arrive(0, FRAME, class());
    }
    let copies = bench.backlog().0 - 10_000;
    assert!((2350..2650).contains(&copies), "{copies}");
}

/// The first slot begins at once and has passed when the first packet is due; the next begins 5 ms after a packet that
/// fills one. (`netem_dequeue` draws a new slot whenever the old one began before the next packet is due.)
#[test]
fn packets_leave_in_slots() {
    let slot = |packets, bytes| {
        let delay = SlotDelay::Between([5 * MS, 5 * MS]);
        Some(NetemSlot { delay, packets, bytes })
    };
    let times = |slot| {
        let mut bench = bench(scenario::Netem { slot, ..netem() });
        (0..5).for_each(|_| drop(bench.arrive(0, FRAME, class())));
        drain(&mut bench).into_iter().map(|(_, at_ns)| at_ns / MS).collect::<Vec<u64>>()
    };
    assert_eq!(times(slot(Some(2), None)), [0, 0, 5, 5, 10]);
    assert_eq!(times(slot(None, Some(1514))), [0, 5, 10, 15, 20]);
    assert_eq!(times(slot(None, Some(1515))), [0, 0, 5, 5, 10]);
    assert_eq!(times(slot(None, None)), [0; 5]);
}

#[test]
fn a_slot_is_drawn_between_its_bounds_or_from_a_table() {
    let mut random = Random::new(1, Stream::Qdisc(0));
    let delay = SlotDelay::Between([2 * MS, 6 * MS]);
    let mut slot = Slot::new(NetemSlot { delay, packets: None, bytes: None }, 0);
    for _ in 0..100 {
        let drawn = u64::from(random.clone().next_u32());
        slot.advance(7, &mut random);
        assert_eq!(slot.next_ns, 7 + 2 * MS + ((drawn * 4 * MS) >> 32));
    }
    slot.parameters.delay = SlotDelay::Distributed(Distribution::Normal, [20 * MS, 2 * MS]);
    let mean = (0..10_000)
        .map(|_| {
            slot.advance(0, &mut random);
            slot.next_ns
        })
        .sum::<u64>()
        / 10_000;
    assert!(mean.abs_diff(20 * MS) < MS / 10, "{mean}");
}

/// A packet of the inner discipline does not count against the limit; its drops are those of the inner discipline.
#[test]
fn packets_wait_in_the_inner_discipline_after_their_delay() {
    let inner = scenario::Qdisc::PfifoHeadDrop(scenario::PfifoHeadDrop { limit_packets: 2 });
    let mut bench = bench(scenario::Netem { delay_ns: MS, limit_packets: 3, inner: Some(Box::new(inner)), ..netem() });
    for _ in 0..3 {
        assert_eq!(bench.arrive(0, FRAME, class()).0, Xmit::Orphaned);
    }
    assert_eq!(bench.not_before(0), Some(MS));
    let (left, events) = bench.dequeue(MS);
    assert_eq!((left.map(|left| left.0), events), (Some(1), vec![(0, Reason::OVERLIMIT)]));
    assert_eq!(bench.backlog().0, 1);
    for _ in 0..3 {
        assert_eq!(bench.arrive(MS, FRAME, class()).0, Xmit::Orphaned);
    }
    assert_eq!(bench.backlog().0, 4);
}

/// A bit in the Ethernet source address, 6 of 1514 bytes, does no harm; all others do.
#[test]
fn a_corrupted_packet_is_discarded_unless_only_its_source_address_changed() {
    let corrupt = |part| bench(scenario::Netem { corrupt: Some([part, 0.0]), limit_packets: 50_000, ..netem() });
    let harmed = |bench: &mut Bench| {
        (0..20_000).for_each(|_| assert_eq!(bench.arrive(0, FRAME, class()), (Xmit::Queued, vec![])));
        bench.loads().iter().filter(|load| load.is_corrupt()).count()
    };
    let all = harmed(&mut corrupt(1.0));
    assert!((19_880..19_960).contains(&all), "{all} of 20,000: 19,921 expected, with a deviation of 9");
    let half = harmed(&mut corrupt(0.5));
    assert!((9_600..10_320).contains(&half), "{half} of 20,000: 9,960 expected, with a deviation of 71");
}

/// The first is corrupted, and so is each of the others when it enters the discipline anew.
#[test]
fn of_a_corrupted_packet_of_several_segments_each_is_a_packet_of_its_own() {
    let parameters = scenario::Netem { corrupt: Some([1.0, 0.0]), delay_ns: MS, ..netem() };
    let mut qdisc = Qdisc::new(&scenario::Qdisc::Netem(parameters), attachment(0)).unwrap();
    let (mut pool, mut events) = (Pool::new(), QdiscEvents::default());
    let (header, body) = segment(0, Flow::default(), class(), 1, 3 * MSS_BYTES);
    let packet = pool.insert(header, body);
    assert_eq!(qdisc.enqueue(packet, 0, &mut pool, &mut events), Xmit::Orphaned);
    assert_eq!(events.0.iter().filter(|event| matches!(event, QdiscEvent::Split(_))).count(), 2);
    assert_eq!(qdisc.backlog(), Backlog { packets: 3, bytes: 3 * u64::from(FRAME) });
    let mut starts = Vec::new();
    while let Dequeued::Packet(packet) = qdisc.dequeue(MS, &mut pool, &mut events) {
        let Body::Tcp(tcp) = pool.body(packet) else { unreachable!("it is a segment") };
        starts.push((tcp.segment.seq, pool.header(packet).load.frames()));
    }
    let length = u64::from(MSS_BYTES);
    assert_eq!(starts, [(1, 1), (1 + length, 1), (1 + 2 * length, 1)]);
}

#[test]
fn a_duplicate_is_made_before_the_packet_is_corrupted() {
    let parameters = scenario::Netem { duplicate: Some([1.0, 0.0]), corrupt: Some([0.5, 0.0]), ..netem() };
    let mut bench = bench(parameters);
    (0..400).for_each(|_| assert_eq!(bench.arrive(0, 1000, class()).1, vec![]));
    let loads = bench.loads();
    let differing = loads.chunks(2).filter(|pair| pair[0].is_corrupt() != pair[1].is_corrupt()).count();
    assert!((150..250).contains(&differing), "{differing} of 400: each of a pair on its own");
}
