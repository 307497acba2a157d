//! `netalyzr`: what a test of the path's buffers observes on a path whose buffers are known.

use crate::common::{MS, numbers, run, words};
use bufferscope_records::{MemorySink, Table};
use bufferscope_scenario::{Experiment, Scenario};

/// A link of 20 ms each way at these rates (up, down), with this queue; the test lasts 45 s.
fn scenario(up: &str, down: &str, queue: &str) -> Scenario {
    let text = format!(
        r#"
        title = "A test of the path's buffers"
        duration = "45s"
        [[link]]
        name = "access"
        ends = ["home", "server"]
        delay = "20ms"
        forward = {{ rate = "{up}" }}
        reverse = {{ rate = "{down}" }}
        queue = {queue}
        [[traffic]]
        name = "test"
        kind = "netalyzr"
        from = "home"
        to = "server"
        "#
    );
    Experiment::parse(&text, "test.toml", &[]).unwrap().points()[0].scenario.clone()
}

/// One direction of a test.
#[derive(Debug)]
struct Estimate {
    idle_ns: u64,
    loaded_ns: u64,
    rate_bps: u64,
    sent: u64,
    received: u64,
}

impl Estimate {
    fn kib(&self) -> f64 {
        self.rate_bps as f64 * (self.loaded_ns - self.idle_ns) as f64 / 8e9 / 1024.0
    }
}

/// The estimates of the downlink and of the uplink.
fn estimates(sink: &MemorySink) -> [Estimate; 2] {
    assert_eq!(words(sink, Table::Estimates, "direction"), ["down", "up"]);
    let of = |column| numbers(sink, Table::Estimates, column);
    let columns = ["idle_ns", "loaded_ns", "rate_bps", "sent", "received"].map(of);
    [0, 1].map(|row| {
        let [idle_ns, loaded_ns, rate_bps, sent, received] = [0, 1, 2, 3, 4].map(|column: usize| columns[column][row]);
        Estimate { idle_ns, loaded_ns, rate_bps, sent, received }
    })
}

#[test]
fn a_buffer_that_fills_is_inferred_with_the_payload_s_share_of_it() {
    let sink = run(&scenario("1mbit", "4mbit", "{ qdisc = 'bfifo', limit = '64kb' }"), 1).output;
    for (estimate, bps) in estimates(&sink).iter().zip([4_000_000, 1_000_000]) {
        // Packets of 1042 bytes on the wire: 28 of UDP and IP, 14 of Ethernet. 1000 of them are payload.
        let rate_bps = bps * 1000 / 1042;
        assert!(estimate.rate_bps.abs_diff(rate_bps) <= rate_bps / 200, "{estimate:?}");
        // Small packets of 74 bytes take 0.6 ms at most, and answers as long, beside 40 ms of propagation.
        assert!((40 * MS..42 * MS).contains(&estimate.idle_ns), "{estimate:?}");
    }
    let [_, up] = estimates(&sink);
    let expected = 64.0 * 1000.0 / 1042.0;
    assert!((up.kib() / expected - 1.0).abs() < 0.05, "{} KiB of {expected}", up.kib());
}

#[test]
fn a_buffer_that_takes_longer_to_fill_than_the_test_lasts_is_underestimated() {
    // 512 KiB at 500 kbit/s are 8.4 s. The load exceeds the rate by as much as the rate, so it takes as long to fill.
    let sink = run(&scenario("500kbit", "4mbit", "{ qdisc = 'bfifo', limit = '512kb' }"), 1).output;
    let [_, up] = estimates(&sink);
    assert!(up.kib() > 128.0 && up.kib() < 0.6 * 512.0, "{} KiB: {up:?}", up.kib());
}

#[test]
fn requests_that_fill_a_slow_uplink_are_taken_for_the_downlink_s_buffer() {
    let queue = "{ qdisc = 'bfifo', limit = '64kb' }";
    let [even, uneven] = ["8mbit", "500kbit"].map(|up| estimates(&run(&scenario(up, "8mbit", queue), 1).output));
    assert!((even[0].kib() / 61.4 - 1.0).abs() < 0.05, "{} KiB", even[0].kib());
    assert!(uneven[0].kib() > 5.0 * even[0].kib(), "{} KiB: {:?}", uneven[0].kib(), uneven[0]);
}

#[test]
fn the_client_sends_two_packets_for_each_answer_and_20_mbit_a_second_at_most() {
    let sink = run(&scenario("1mbit", "1mbit", "{ qdisc = 'bfifo', limit = '64kb' }"), 1).output;
    let [_, up] = estimates(&sink);
    // 120 packets a second get through for 10 s; half of them arrive in the second half.
    assert!(up.sent.abs_diff(4 * up.received) < up.sent / 10, "{up:?}");
    let sink = run(&scenario("100mbit", "100mbit", "{ qdisc = 'bfifo', limit = '1mb' }"), 1).output;
    for estimate in estimates(&sink) {
        assert!(estimate.rate_bps.abs_diff(20_000_000) <= 20_000, "{estimate:?}");
        assert!(estimate.sent <= 10 * 2500 + 25, "2500 packets of 1000 bytes a second: {estimate:?}");
    }
}

#[test]
fn a_path_on_which_nothing_returns_has_no_mean() {
    let sink = run(&scenario("1mbit", "1mbit", "{ qdisc = 'netem', loss = 1.0 }"), 1).output;
    assert_eq!(numbers(&sink, Table::Estimates, "received"), [0, 0]);
    assert!(crate::common::optional(&sink, Table::Estimates, "loaded_ns").iter().all(Option::is_none));
    assert!(crate::common::optional(&sink, Table::Estimates, "idle_ns").iter().all(Option::is_none));
    assert_eq!(numbers(&sink, Table::Estimates, "sent"), [10, 10], "one a second");
}
