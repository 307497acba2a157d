//! Whatever the path does, every byte arrives once and in order, no segment is sent beyond a window, and the connection
//! ends once the path works again. (`witness` checks the invariants after every event.)

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::{Config, Timers};
use proptest::prelude::*;
use std::ops::Range;

/// The faults of a direction until the path works again.
#[derive(Clone, Debug)]
struct Adversary {
    /// For each packet in turn, then from the beginning.
    actions: Vec<Action>,
    /// Nothing gets through during these times.
    outages: Vec<Range<u64>>,
    /// Rates and how long they last; none: no bottleneck.
    rates: Vec<(u64, u64)>,
    limit_packets: usize,
    /// The queue is the sending host's own.
    own_host: bool,
}

/// The applications' actions: the client offers these amounts, with these pauses between them; the server offers one.
#[derive(Clone, Debug)]
struct Work {
    writes: Vec<(u64, u64)>,
    /// At the end, the client offers enough data to reach the edge of the server's window, so that its FIN is beyond
    /// it.
    fills_window: bool,
    bytes_back: u64,
}

/// Longest time until an end whose timeouts have been doubled tries again: 120 s (`TCP_RTO_MAX`), and a bucket of the
/// timer wheel more.
const LONGEST_WAIT_NS: u64 = 140 * SECOND;
/// Slowest rate, in bits per second.
const SLOWEST: u64 = 50_000;

fn actions() -> impl Strategy<Value = Vec<Action>> {
    // From a path that is almost free of faults to one on which no packet is safe.
    (1u32..60).prop_flat_map(|good| {
        let action = prop_oneof![
            good => Just(Action::Deliver),
            2 => Just(Action::Drop),
            2 => (0..60 * MS).prop_map(Action::Late),
            1 => (0..60 * MS).prop_map(Action::Twice),
            1 => Just(Action::Mark),
            1 => Just(Action::Congest),
        ];
        prop::collection::vec(action, 1..300)
    })
}

prop_compose! {
    fn adversary()(
        actions in actions(),
        outages in prop::collection::vec((0..20 * SECOND, 0..5 * SECOND), 0..3),
        rates in prop::collection::vec((SLOWEST..50_000_000, 10 * MS..3 * SECOND), 0..6),
        limit_packets in 2usize..100,
        own_host: bool,
    ) -> Adversary {
        let outages = outages.into_iter().map(|(from_ns, ns)| from_ns..from_ns + ns).collect();
        Adversary { actions, outages, rates, limit_packets, own_host }
    }
}

prop_compose! {
    fn work()(
        writes in prop::collection::vec((1u64..200_000, 0..2 * SECOND), 1..4),
        fills_window: bool,
        bytes_back in prop_oneof![Just(0u64), 1u64..200_000],
    ) -> Work {
        Work { writes, fills_window, bytes_back }
    }
}

prop_compose! {
    fn configs()(
        congestion in prop::sample::select(Congestion::ALL),
        (ecn, accurate_ecn) in prop::sample::select(vec![(false, false), (true, false), (false, true)]),
        pacing: bool,
        slow_start_after_idle: bool,
        initial_window_packets in 1u32..20,
        gso_max_segs in prop_oneof![Just(1u32), 2u32..45],
        window_packets in 1u32..60,
        rmem_default_bytes in prop_oneof![3_000u64..20_000, 20_000u64..300_000],
        wmem_default_bytes in 4_000u64..100_000,
        notsent_lowat_bytes in prop_oneof![Just(u64::from(u32::MAX)), 1u64..100_000],
        growth in 1u64..20,
        timers in prop_oneof![Just(Timers::Exact), (0..256 * MS).prop_map(|age_ns| Timers::Jiffies { age_ns })],
        seed: u64,
    ) -> Config {
        let [rmem_max_bytes, wmem_max_bytes] = [rmem_default_bytes, wmem_default_bytes].map(|bytes| bytes * growth);
        Config {
            congestion, ecn, accurate_ecn, pacing, slow_start_after_idle, initial_window_packets,
            gso_max_segs, window_packets, rmem_default_bytes, rmem_max_bytes, wmem_default_bytes, wmem_max_bytes, notsent_lowat_bytes, timers, seed, ..Config::default()
        }
    }
}

impl Adversary {
    /// Applies the faults to a direction until `works_ns`.
    fn set_up(&self, pipe: &mut Pipe, works_ns: u64) {
        let Self { actions, outages, .. } = self.clone();
        pipe.plan = Box::new(move |n, packet| match packet.sent_ns {
            at_ns if at_ns >= works_ns => Action::Deliver,
            at_ns if outages.iter().any(|outage| outage.contains(&at_ns)) => Action::Drop,
            _ => actions[n % actions.len()],
        });
        let mut from_ns = 0;
        for &(rate, lasts_ns) in &self.rates {
            pipe.rates.push((from_ns, rate));
            from_ns += lasts_ns;
        }
        pipe.limit_packets = self.limit_packets;
        pipe.own_host = self.own_host;
    }
}

/// How long it may take to carry `bytes` over a path that works, by the slowest rate, and with the smallest window: one
/// segment a round trip, of which each meets a delayed acknowledgement and a full queue.
fn longest_transfer_ns(bytes: u64, delay_ns: u64, queue_packets: usize) -> u64 {
    let queue_ns = queue_packets as u64 * 1500 * 8 * SECOND / SLOWEST;
    let round_trip_ns = 2 * delay_ns + 2 * queue_ns + 300 * MS;
    (bytes / 1000 + 10) * round_trip_ns
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_byte_arrives_once_and_in_order_and_the_connection_ends(
        client in configs(),
        server in configs(),
        there in adversary(),
        back in adversary(),
        work in work(),
        delay_ns in 0..120 * MS,
        works_ns in prop_oneof![0..SECOND, 0..30 * SECOND, 0..600 * SECOND],
    ) {
        // Both ends run the same control. Their other settings may differ.
        let server = Config { congestion: client.congestion, ..server };
        let mut net = Net::between(&client, &server, delay_ns);
        there.set_up(&mut net.pipes[CLIENT], works_ns);
        back.set_up(&mut net.pipes[SERVER], works_ns);
        net.act(SERVER, |end, now_ns, out| end.offer(now_ns, work.bytes_back, out));
        net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
        for &(bytes, pause_ns) in &work.writes {
            net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, bytes, out));
            net.run_until(net.now_ns + pause_ns);
        }
        let mut bytes: u64 = work.writes.iter().map(|write| write.0).sum();
        if work.fills_window {
            let missing = net.window_edge(CLIENT).saturating_sub(1 + bytes);
            net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, missing, out));
            bytes += missing;
        }
        net.act(CLIENT, |end, now_ns, out| end.finish_sending(now_ns, out));

        let transfer_ns = longest_transfer_ns(bytes + work.bytes_back, delay_ns, there.limit_packets.max(back.limit_packets));
        // A handshake, data and a FIN each way may each wait for a timer.
        net.run_to_end(works_ns.max(net.now_ns) + 6 * LONGEST_WAIT_NS + transfer_ns);
        prop_assert_eq!(net.ends[SERVER].received_bytes(), bytes);
        prop_assert_eq!(net.ends[CLIENT].received_bytes(), work.bytes_back);
        for end in [CLIENT, SERVER] {
            prop_assert!(net.ends[end].is_closed());
            let sample = net.ends[end].sample(net.now_ns);
            prop_assert_eq!((sample.inflight_bytes, sample.lost), (0, 0));
        }
    }
}
