//! Whatever the path does, everything arrives once and in order and the connection ends. (The checks are in `net`.)

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::Config;
use proptest::prelude::*;

/// What may happen to a packet: nothing in most cases.
fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        12 => Just(Fate::Deliver),
        2 => Just(Fate::Drop),
        2 => (0..60 * MS).prop_map(Fate::Late),
        1 => (0..60 * MS).prop_map(Fate::Twice),
        1 => Just(Fate::Mark),
    ];
    prop::collection::vec(fate, 1..300)
}

fn configs() -> impl Strategy<Value = Config> {
    let congestion = prop::sample::select(Congestion::ALL);
    let ecn = prop::sample::select(vec![(false, false), (true, false), (false, true)]);
    (congestion, ecn, any::<bool>(), 1u32..20, 6_000u64..300_000, 1u64..20).prop_map(
        |(congestion, (ecn, accurate_ecn), pacing, initial_window_packets, rmem_default_bytes, growth)| Config {
            congestion,
            ecn,
            accurate_ecn,
            pacing,
            initial_window_packets,
            rmem_default_bytes,
            rmem_max_bytes: rmem_default_bytes * growth,
            ..Config::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        config in configs(),
        there in fates(),
        back in fates(),
        bytes in 1u64..400_000,
        bytes_back in prop_oneof![Just(0u64), 1u64..200_000],
        delay_ms in 0u64..120,
        rate in prop::option::of(200_000u64..100_000_000),
        limit in 2usize..100,
    ) {
        let mut net = Net::new(&config, delay_ms * MS);
        if let Some(rate) = rate {
            net = net.bottleneck(rate, limit);
        }
        // Misfortunes end, so that every transfer does.
        net = net
            .fate(move |n, _| there.get(n).copied().unwrap_or(Fate::Deliver))
            .fate_back(move |n, _| back.get(n).copied().unwrap_or(Fate::Deliver))
            .upload(bytes);
        net.act(SERVER, |end, now_ns, out| end.offer(now_ns, bytes_back, out));
        net.run_to_end(4_000 * SECOND);
        prop_assert_eq!(net.ends[SERVER].received_bytes(), bytes);
        prop_assert_eq!(net.ends[CLIENT].received_bytes(), bytes_back);
        prop_assert_eq!(net.ends[CLIENT].acked_bytes(), bytes);
        prop_assert!(net.ends[CLIENT].is_closed() && net.ends[SERVER].is_closed());
        let sample = net.sample();
        prop_assert_eq!((sample.inflight_bytes, sample.lost), (0, 0));
    }
}
