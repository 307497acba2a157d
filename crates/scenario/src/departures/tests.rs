use super::*;
use crate::traffic::UdpTraffic;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// SplitMix64, for numbers that are the same every time.
fn draws(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

fn udp(rate_bps: u64, pattern: Pattern, on_off: Option<OnOff>) -> UdpTraffic {
    UdpTraffic { flows: 1, rate_bps, payload_bytes: 1000, pattern, on_off }
}

fn all(mut departures: Departures, seed: u64) -> Vec<u64> {
    let mut draw = draws(seed);
    std::iter::from_fn(|| departures.next(&mut draw)).collect()
}

#[test]
fn a_constant_rate_is_exact_over_any_time() {
    // 8000 bits at 7 Mbit/s take 1 142 857 1/7 ns: an hour holds 3 150 000 datagrams, and the n-th leaves at its exact
    // time.
    let times = all(udp(7_000_000, Pattern::Constant, None).departures(5, 3600 * SECOND + 5), 1);
    assert_eq!(times.len(), 3_150_000);
    assert!((0..).zip(&times).all(|(n, &at_ns)| at_ns == 5 + (n * 8_000_000) / 7));
}

/// An exponential distribution has mean 1, variance 1 and median ln 2. Those of 100,000 draws are within four standard
/// errors.
#[test]
fn exponential_numbers_have_the_moments_of_the_distribution() {
    let mut draw = draws(7);
    let mut numbers: Vec<f64> =
        (0..100_000).map(|_| exponential(&mut draw) as f64 / f64::from(2.0_f32).powi(32)).collect();
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    assert!((mean - 1.0).abs() < 4.0 / n.sqrt(), "mean {mean}");
    // The fourth central moment is 9, so the variance of the variance is 8/n.
    assert!((variance - 1.0).abs() < 4.0 * (8.0 / n).sqrt(), "variance {variance}");
    let median = numbers[numbers.len() / 2];
    assert!((median - 2_f64.ln()).abs() < 4.0 / n.sqrt(), "median {median}");
    assert!(numbers[numbers.len() - 1] > 8.0, "the tail reaches beyond: {}", numbers[numbers.len() - 1]);
}

/// In a Poisson process, the counts in disjoint intervals have a variance equal to their mean. The rate is the one
/// requested.
#[test]
fn a_poisson_flow_has_counts_of_equal_mean_and_variance() {
    // 1000 datagrams a second for 100 s, counted in 10,000 intervals of 10 ms.
    let times = all(udp(8_000_000, Pattern::Poisson, None).departures(0, 100 * SECOND), 3);
    let mut counts = vec![0_u32; 10_000];
    times.iter().for_each(|at_ns| counts[(at_ns / (10 * MS)) as usize] += 1);
    let n = counts.len() as f64;
    let mean = counts.iter().map(|&count| f64::from(count)).sum::<f64>() / n;
    let variance = counts.iter().map(|&count| (f64::from(count) - mean).powi(2)).sum::<f64>() / (n - 1.0);
    assert!((mean - 10.0).abs() < 4.0 * (10.0 / n).sqrt(), "mean {mean}");
    // For a Poisson distribution of mean m, the variance of the variance is about (2 m^2 + m) / n.
    assert!((variance - 10.0).abs() < 4.0 * (210.0 / n).sqrt(), "variance {variance}");
}

#[test]
fn fixed_periods_are_kept_to_the_nanosecond() {
    let on_off = OnOff { on_ns: 100 * MS, off_ns: 300 * MS, periods: Periods::Fixed };
    // One datagram per millisecond while on: 100 of them in every 400 ms.
    let times = all(udp(8_000_000, Pattern::Constant, Some(on_off)).departures(0, 4 * SECOND), 1);
    assert_eq!(times.len(), 1000);
    assert!((0..).zip(&times).all(|(n, &at_ns)| at_ns == (n / 100) * 400 * MS + (n % 100) * MS));
}

#[test]
fn periods_that_do_not_fit_the_distance_keep_the_rate() {
    // One datagram every 7 ms while on; on for 10 ms of every 20. The interval continues where it was when the flow
    // went off.
    let on_off = OnOff { on_ns: 10 * MS, off_ns: 10 * MS, periods: Periods::Fixed };
    let udp = UdpTraffic { payload_bytes: 7, ..udp(8_000, Pattern::Constant, Some(on_off)) };
    let times = all(udp.departures(0, 14 * SECOND), 1);
    assert_eq!(times.len(), 1000, "7 s of being on");
    assert_eq!(times[..4], [0, 7 * MS, 24 * MS, 41 * MS]);
}

#[test]
fn exponential_periods_have_the_duty_that_was_asked_for() {
    let on_off = OnOff { on_ns: 10 * MS, off_ns: 30 * MS, periods: Periods::Exponential };
    let times = all(udp(80_000_000, Pattern::Constant, Some(on_off)).departures(0, 400 * SECOND), 5);
    // 10,000 cycles. Each length has a relative deviation of 1, so the duty cycle of a quarter has a standard error of
    // 1.06 %. Four of these are allowed.
    let duty = times.len() as f64 * 100e3 / 400e9;
    assert!((duty - 0.25).abs() < 0.25 * 0.75 * 4.0 * (2.0_f64 / 10_000.0).sqrt(), "{duty}");
    let pauses = times.windows(2).filter(|pair| pair[1] - pair[0] > 100_000).count() as f64;
    assert!((pauses - 10_000.0).abs() < 400.0, "{pauses} pauses");
}

#[test]
fn nothing_leaves_at_or_after_the_stop() {
    assert_eq!(all(udp(8_000_000, Pattern::Constant, None).departures(0, 3 * MS), 1), [0, MS, 2 * MS]);
    assert!(all(udp(8_000_000, Pattern::Constant, None).departures(5, 5), 1).is_empty());
}

/// A slow flow that is hardly ever on comes to its end, and nothing overflows.
#[test]
fn absurd_periods_come_to_an_end() {
    let day = 24 * 3600 * SECOND;
    for periods in [Periods::Fixed, Periods::Exponential] {
        let on_off = OnOff { on_ns: 100_000, off_ns: day, periods };
        assert_eq!(all(udp(1_000, Pattern::Constant, Some(on_off)).departures(0, day), 1), [0]);
    }
}
