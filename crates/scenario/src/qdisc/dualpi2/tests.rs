use super::super::{Qdisc, testing};
use super::*;

/// The discipline of a link whose queue has these keys, or why it is refused.
fn loaded(keys: &str) -> Result<Dualpi2, String> {
    match testing::loaded(&format!("qdisc = \"dualpi2\"{keys}"))? {
        Qdisc::Dualpi2(dualpi2) => Ok(dualpi2),
        other => unreachable!("{other:?}"),
    }
}

fn controller_of(keys: &str) -> Pi2 {
    loaded(keys).unwrap().controller
}

fn refusal(keys: &str) -> String {
    loaded(keys).unwrap_err()
}

/// `dualpi2_reset_default`.
#[test]
fn the_defaults_are_those_of_the_kernel() {
    let expected = Dualpi2 {
        limit_packets: 10_000,
        memlimit_bytes: None,
        controller: Pi2 { target_ns: 15 * MS, tupdate_ns: 16 * MS, alpha: 41, beta: 819 },
        coupling_factor: 2,
        step_threshold: StepThreshold::Time(MS),
        min_qlen_step: 0,
        drop_on_overload: true,
        drop_enqueue: false,
        any_ect: false,
        classic_protection_percent: 10,
        split_gso: true,
    };
    assert_eq!(loaded("").unwrap(), expected);
    assert_eq!(Dualpi2::default(), expected);
}

/// RFC 9332, appendix A.1: alpha = 0.1 * Tupdate / RTT_max^2 and beta = 0.3 / RTT_max, with Tupdate = min(RTT_typ,
/// RTT_max / 3). For 15 and 100 ms, 0.15 and 3 Hz; in 256ths, 38.4 and 768.
#[test]
fn round_trip_times_make_a_controller() {
    let internet = Pi2 { target_ns: 15 * MS, tupdate_ns: 15 * MS, alpha: 38, beta: 768 };
    assert_eq!(controller_of(", typical_rtt = '15ms', max_rtt = '100ms'"), internet);
    // A sixth: 16,666 us. 0.16666 Hz are 42.66 256ths.
    let from_max = Pi2 { target_ns: 16_666 * US, tupdate_ns: 16_666 * US, alpha: 42, beta: 768 };
    assert_eq!(controller_of(", max_rtt = '100ms'"), from_max);
    // Six times: 90 ms. 0.1 * 0.015 / 0.0081 = 0.185 Hz, and 3.33 Hz.
    let from_typical = Pi2 { target_ns: 15 * MS, tupdate_ns: 15 * MS, alpha: 47, beta: 853 };
    assert_eq!(controller_of(", typical_rtt = '15ms'"), from_typical);
    // More than a third of the longest: 20 ms, 0.1 * 0.02 / 0.0036 = 0.5556 Hz.
    let third = Pi2 { target_ns: 50 * MS, tupdate_ns: 20 * MS, alpha: 142, beta: 1280 };
    assert_eq!(controller_of(", typical_rtt = '50ms', max_rtt = '60ms'"), third);
}

#[test]
fn weights_are_256ths_as_tc_cuts_them() {
    let weights = controller_of(", alpha = 0.16, beta = 3.2");
    assert_eq!((weights.alpha, weights.beta), (40, 819));
    assert_eq!(controller_of(", alpha = 0.00390625").alpha, 1);
}

/// tc would read a bare number as microseconds.
#[test]
fn the_step_threshold_is_a_time_or_a_number_of_packets_and_says_which() {
    let step = |keys| loaded(keys).unwrap().step_threshold;
    assert_eq!(step(", step_thresh = '500us'"), StepThreshold::Time(500 * US));
    assert_eq!(step(", step_thresh = '7p'"), StepThreshold::Packets(7));
    assert_eq!(step(", step_thresh = '7packets'"), StepThreshold::Packets(7));
    for unclear in ["7", "'7'", "'0p'", "'5px'"] {
        let message = refusal(&format!(", step_thresh = {unclear}"));
        assert!(message.contains("step_thresh: found") && message.contains("a number of packets from 1p"), "{message}");
    }
    let settings = loaded(", step_thresh = '7p'").unwrap().settings();
    assert!(settings.contains(&("step_thresh", Setting::Packets(7))), "{settings:?}");
}

#[test]
fn what_tc_refuses_or_ignores_is_refused() {
    let refused = |keys, words: [&str; 2]| {
        let message = refusal(keys);
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refused(", typical_rtt = '20ms', max_rtt = '10ms'", ["typical_rtt: found 20ms", "at most max_rtt = 10ms"]);
    refused(", max_rtt = '20s'", ["max_rtt", "at least 1/256"]);
    refused(", max_rtt = '20ms', alpha = 0.16", ["alpha", "tc computes from these and ignores here"]);
    refused(", typical_rtt = '20ms', target = '20ms'", ["target", "tc computes from these and ignores here"]);
    refused(", beta = 0.003", ["beta", "at least 1/256"]);
    refused(", coupling_factor = 0", ["coupling_factor", "1"]);
    refused(", coupling_factor = 256", ["coupling_factor", "255"]);
    refused(", classic_protection = 101", ["classic_protection", "100"]);
    refused(", limit = 0", ["limit", "1p"]);
}

/// 12 drops; 30 marks, of which 20 above the step threshold.
#[test]
fn marks_above_the_step_threshold_are_among_all_marks() {
    assert_eq!(Dualpi2::counts(12, &[0, 0, 0, 100, 100, 9, 30, 20]), counted([12, 10, 20]));
}

/// `tc` passes 41/256 on as 41.
#[test]
fn the_arguments_say_everything() {
    let dualpi2 = loaded(", memlimit = 5000, drop_on_overload = false, drop_enqueue = true, any_ect = true").unwrap();
    let settings = dualpi2.settings();
    let flags: Vec<_> = settings.iter().filter(|each| each.1 == Setting::Flag).map(|each| each.0).collect();
    assert_eq!(flags, ["overflow", "drop_enqueue", "any_ect", "split_gso"]);
    assert!(settings.contains(&("alpha", Setting::Decimal(0.160_156_25))), "{settings:?}");
    assert!(settings.contains(&("memlimit", Setting::Number(5000))), "{settings:?}");
    assert_eq!(loaded("").unwrap().settings().iter().find(|each| each.0 == "memlimit"), None);
}
