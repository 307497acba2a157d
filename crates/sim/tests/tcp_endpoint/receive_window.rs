//! The window that the receiver offers.

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::Config;

fn config(rmem_max_bytes: u64) -> Config {
    let rmem_default_bytes = rmem_max_bytes.min(131_072);
    Config { rmem_max_bytes, rmem_default_bytes, congestion: Congestion::Reno, ..Config::default() }
}

#[test]
fn a_connection_starts_with_64_kb() {
    let mut net = Net::new(&config(6 << 20), 50 * MS).stream();
    net.run_until(150 * MS);
    // 65160 in the SYN-ACK: see `receiver::window`.
    assert_eq!(net.sample().rwnd_bytes, 65_160);
}

#[test]
fn auto_tuning_follows_slow_start_up_to_half_of_rmem_max() {
    // Half of the buffer, without half of the memory of the packet that is acknowledged (1280 bytes and its payload),
    // in units of 128 bytes.
    const MOST: u64 = ((3 << 20) - (1_280 + 1_448) / 2_u64).next_multiple_of(128);
    let mut net = Net::new(&config(6 << 20), 50 * MS).stream();
    let mut limited_rounds = 0;
    for round in 1..20 {
        net.run_until((100 * round + 95) * MS);
        let sample = net.sample();
        limited_rounds += u64::from(sample.rwnd_bytes < sample.cwnd_bytes && sample.rwnd_bytes < MOST);
    }
    // Slow start reaches 3 MiB = 2172 packets in 8 doublings; the window keeps ahead all the way.
    assert_eq!(limited_rounds, 0);
    assert_eq!(net.sample().rwnd_bytes, MOST);
}

#[test]
fn a_small_rmem_max_limits_throughput_to_window_per_round_trip() {
    // 400,000 bytes of buffer are 200,000 bytes of window: over 100 ms 2 MB/s. From 2 s to 12 s: 20 MB.
    let mut net = Net::new(&config(400_000), 50 * MS).stream();
    net.run_until(2 * SECOND);
    let begin = net.ends[SERVER].received_bytes();
    net.run_until(12 * SECOND);
    let received = net.ends[SERVER].received_bytes() - begin;
    assert!((19_600_000..=20_100_000).contains(&received), "{received}");
    assert_eq!(net.sample().retransmits, 0);
}

#[test]
fn a_buffer_smaller_than_two_segments_still_makes_progress() {
    let mut net = Net::new(&config(4096), 5 * MS).upload(100_000);
    net.run_to_end(600 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), 100_000);
}
