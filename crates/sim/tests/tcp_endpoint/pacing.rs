//! A sender that paces spaces its packets.

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::{Config, State};

const PACED: Config = Config {
    congestion: Congestion::Reno,
    pacing: true,
    rmem_default_bytes: 64 << 20,
    rmem_max_bytes: 64 << 20,
    ..Config::DEFAULT
};

/// Times at which data left, from `from_ns` on.
fn departures(net: &Net, from_ns: u64) -> Vec<u64> {
    net.data_sent().map(|p| p.sent_ns).filter(|&ns| ns >= from_ns).collect()
}

#[test]
fn the_first_ten_packets_leave_at_once_and_those_after_them_spread_over_half_a_round_trip() {
    let mut net = Net::new(&PACED, 50 * MS).stream();
    net.run_until(299 * MS);
    let times = departures(&net, 0);
    assert_eq!(times[..10], [100 * MS; 10]);
    // At 200 ms ten acknowledgements arrive together: cwnd 20. In slow start the rate is twice the window a round trip,
    // that is 40 packets in 100 ms or 2.5 ms each, so 20 packets take about 50 ms. (The rate rises with each
    // acknowledgement, the first being that of 11 packets; and the first packet gains half of its space.)
    let second: Vec<u64> = times[10..].iter().map(|ns| (ns - 200 * MS) / 100_000).collect();
    assert_eq!(second.len(), 20);
    assert_eq!(second[0], 0);
    assert!(second[2..].windows(2).all(|pair| (24..=25).contains(&(pair[1] - pair[0]))), "{second:?}");
}

#[test]
fn without_pacing_a_window_leaves_as_fast_as_it_is_acknowledged() {
    let mut net = Net::new(&Config { pacing: false, ..PACED }, 50 * MS).stream();
    net.run_until(299 * MS);
    assert!(departures(&net, 200 * MS).iter().all(|&ns| ns == 200 * MS));
    assert_eq!(net.sample().pacing_bps, None);
}

#[test]
fn the_rate_follows_window_and_round_trip_time() {
    let mut net =
        Net::new(&PACED, 50 * MS).faults(|n, _| if n == 150 { Action::Drop } else { Action::Deliver }).stream();
    net.run_while(|net| net.sample().state != State::Recovery);
    net.run_while(|net| net.sample().state == State::Recovery);
    net.run_until(net.now_ns + 500 * MS);
    // Above the threshold: 1.2 windows of payload a round trip.
    let sample = net.sample();
    let expected = sample.cwnd_bytes * 8 * 12 / 10 * SECOND / sample.srtt_ns.unwrap();
    assert_eq!(sample.pacing_bps.unwrap() / 1000, expected / 1000);
}

#[test]
fn what_is_lost_is_repaired_at_the_pace_too() {
    let lost = 100..120;
    let mut net = Net::new(&PACED, 50 * MS);
    net = net
        .faults(move |n, p| if lost.contains(&n) && !p.again { Action::Drop } else { Action::Deliver })
        .upload(500_000);
    net.run_to_end(10 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), 500_000);
    let repaired: Vec<u64> = net.data_sent().filter(|p| p.again).map(|p| p.sent_ns).collect();
    assert_eq!(repaired.len(), 20);
    assert!(repaired.windows(2).all(|pair| pair[1] > pair[0]), "{repaired:?}");
}
