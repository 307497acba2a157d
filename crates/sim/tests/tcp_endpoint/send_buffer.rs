//! The send buffer: how much the application may write, and when that limits the connection.

use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::Config;

use crate::net::{CLIENT, MS, MSS, Net, SECOND, SERVER};

const RENO: Config =
    Config { congestion: Congestion::Reno, rmem_default_bytes: 64 << 20, rmem_max_bytes: 64 << 20, ..Config::DEFAULT };

/// What the kernel charges for a full packet.
const CHARGE: u64 = 1280 + MSS;

#[test]
fn a_small_maximum_is_all_there_can_be_in_flight() {
    // 65,536 bytes have room for 24.02 packets, and the 25th may still begin. The application writes again when a third
    // is free.
    let config = Config { wmem_max_bytes: 65_536, ..RENO };
    let mut net = Net::new(&config, 20 * MS).stream();
    net.run_until(SECOND);
    let before = net.ends[SERVER].received_bytes();
    let mut most_bytes = 0;
    for n in 1..=2000 {
        net.run_until(SECOND + n * MS);
        most_bytes = most_bytes.max(net.ends[CLIENT].sample(net.now_ns).inflight_bytes);
    }
    assert_eq!((65_536_u64.div_ceil(CHARGE), (65_536_u64 * 2 / 3) / CHARGE), (25, 16));
    assert!((16 * MSS..=25 * MSS).contains(&most_bytes), "{most_bytes}");
    let packets = (net.ends[SERVER].received_bytes() - before) / MSS;
    assert!((50 * 16..=50 * 25).contains(&packets), "{packets} packets in 50 round trips");
    // To the kernel that looks like an application that does not keep up (`tcp_rate_check_app_limited`).
    let sample = net.ends[CLIENT].sample(net.now_ns);
    assert!(sample.app_limited && sample.cwnd_bytes > 25 * MSS, "{sample:?}");
}

#[test]
fn a_window_that_only_the_buffer_keeps_from_being_used_does_not_shrink() {
    // `tcp_cwnd_application_limited` spares it; an application that has nothing to send is not spared.
    let config = Config { wmem_max_bytes: 65_536, ..RENO };
    let mut net = Net::new(&config, 20 * MS).stream();
    net.run_until(SECOND);
    let cwnd_bytes = net.ends[CLIENT].sample(net.now_ns).cwnd_bytes;
    assert!(cwnd_bytes > 25 * MSS, "{cwnd_bytes}");
    net.run_until(10 * SECOND);
    assert_eq!(net.ends[CLIENT].sample(net.now_ns).cwnd_bytes, cwnd_bytes);
}

#[test]
fn tuning_keeps_it_ahead_of_the_window() {
    // 100 Mbit/s at 40 ms are 345 packets, which need 940 KB of buffer.
    let mut net = Net::new(&RENO, 20 * MS).bottleneck(100_000_000, 400).stream();
    net.run_until(3 * SECOND);
    let sample = net.ends[CLIENT].sample(net.now_ns);
    assert!(sample.notsent_bytes > 10 * MSS, "{sample:?}");
    assert!(sample.sndbuf_limited_ns < 5 * MS, "{sample:?}");
    let before = net.ends[SERVER].received_bytes();
    net.run_until(4 * SECOND);
    let rate = (net.ends[SERVER].received_bytes() - before) * 8;
    assert!(rate > 95_000_000, "{rate}");
}

#[test]
fn it_begins_with_room_for_ten_packets_as_the_kernel_reckons_them() {
    // Twice ten times 2304 bytes hold 16.9 packets (`tcp_sndbuf_expand`): ten are sent, seven wait.
    let mut net = Net::new(&RENO, 20 * MS).stream();
    net.run_until(50 * MS);
    assert_eq!(net.data_sent().count(), 10);
    assert_eq!(net.ends[CLIENT].sample(net.now_ns).notsent_bytes, 7 * MSS);
}

#[test]
fn little_waits_unsent_under_a_low_water_mark() {
    // packetdrill: tcp/notsent_lowat, notsent-lowat-sysctl.pkt: the application is woken below half of the mark.
    let config = Config { notsent_lowat_bytes: 16_384, ..RENO };
    let mut net = Net::new(&config, 20 * MS).bottleneck(10_000_000, 100).stream();
    net.run_until(2 * SECOND);
    let before = net.ends[SERVER].received_bytes();
    let (mut least, mut most) = (u64::MAX, 0);
    for n in 1..=4000 {
        net.run_until(2 * SECOND + n * MS / 2);
        let unsent = net.ends[CLIENT].sample(net.now_ns).notsent_bytes;
        (least, most) = (least.min(unsent), most.max(unsent));
    }
    assert!((16_384 - MSS..16_384 + MSS).contains(&most), "{most}");
    // In recovery the window shrinks, and nothing is sent; otherwise half of the mark is left.
    assert!(least >= 8_192 - 2 * MSS, "{least}");
    let rate = (net.ends[SERVER].received_bytes() - before) * 4;
    assert!(rate > 9_500_000, "{rate}: the path stays full");
}

#[test]
fn what_was_handed_over_is_sent_though_the_application_has_stopped() {
    let mut net = Net::new(&RENO, 20 * MS).bottleneck(10_000_000, 100).stream();
    net.run_until(2 * SECOND);
    let sample = net.ends[CLIENT].sample(net.now_ns);
    let sent_bytes = net.data_sent().map(|packet| packet.segment.end()).max().unwrap() - 1;
    let handed_over = sent_bytes + sample.notsent_bytes;
    net.act(CLIENT, |end, _, _| end.hold());
    net.run_until(10 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), handed_over);
    // More may follow.
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 1000, out));
    net.run_until(11 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), handed_over + 1000);
}

#[test]
fn only_the_end_of_what_the_application_wrote_before_it_waited_is_pushed() {
    // Each write of 64 kB goes on in the packet in which the last one ended. In a capture of Linux 6.1 over such a path, the flag is on
    // every 133rd segment: a third of the buffer.
    let mut net = Net::new(&RENO, 10 * MS).bottleneck(10_000_000, 100).stream();
    net.run_until(20 * SECOND);
    let mut pushed: Vec<u64> =
        net.data_sent().filter(|packet| packet.segment.flags.psh()).map(|packet| packet.segment.seq).collect();
    // Some of them were retransmitted, with the flag.
    let transmissions = pushed.len();
    pushed.sort_unstable();
    pushed.dedup();
    assert!(pushed.len() < transmissions);
    let gaps: Vec<u64> = pushed.windows(2).map(|pair| (pair[1] - pair[0]) / MSS).collect();
    let late = &gaps[gaps.len() - 20..];
    assert!(late.iter().all(|&gap| gap == late[0] && gap > 65_536 / MSS), "{late:?}");
}
