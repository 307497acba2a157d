//! Numbers of a loaded phase.

use bufferscope_verdict::input::{Direction, Lost, PhaseKind};
use bufferscope_verdict::verdict::{Grade, OutcomeKind};

use crate::build::{MS, SECOND, Test, ns};

#[test]
fn delays_are_those_over_the_idle_median() {
    let phase = Test::new(PhaseKind::Upload, 50.0, 0.0).phase();
    assert_eq!(phase.numbers.idle_p50_ns, Some(20 * MS));
    assert_eq!((phase.numbers.loaded.p50_ns, phase.numbers.added.p95_ns), (Some(70 * MS), Some(50 * MS)));
    let [up, down] = &phase.numbers.directions[..] else { panic!() };
    assert_eq!((up.added.p50_ns, down.added.p50_ns), (Some(50 * MS), Some(0)));
    assert_eq!((up.rises, down.rises), (true, false));
    assert_eq!(phase.grade, Some(Grade::B));
}

#[test]
fn the_effective_buffer_is_delay_times_rate_with_headers() {
    let phase = Test::new(PhaseKind::Upload, 50.0, 0.0).phase();
    let buffer = phase.numbers.directions[0].buffer.unwrap();
    // 0.05 s x 10 Mbit/s = 62,500 bytes of payload, x 1500 / 1448 = 64,744.5.
    assert_eq!((buffer.delay_ns, buffer.bytes), (50 * MS, Some(64_744)));
    assert_eq!(phase.numbers.directions[0].goodput.unwrap().mean_bps, 10_000_000);
    assert_eq!(phase.numbers.directions[1].buffer, None);
}

#[test]
fn a_buffer_has_filled_at_80_percent_of_its_later_delay() {
    let mut test = Test::new(PhaseKind::Upload, 0.0, 0.0);
    // It fills within 4 s, so it reaches 80 % after 3.2 s. The bin of 250 ms from 3.25 s on has that median; the one before
    // has 78 %.
    for echo in &mut test.loaded().echoes {
        let part = ((echo.t_ns - 10 * SECOND) as f64 / (4 * SECOND) as f64).min(1.0);
        echo.rtt_ns = echo.rtt_ns.map(|rtt| rtt + ns(100.0 * part));
        echo.up_ns = echo.up_ns.map(|up| up + ns(100.0 * part));
    }
    let fill_ns = test.phase().numbers.directions[0].fill_ns.unwrap();
    assert!((3250 * MS..3270 * MS).contains(&fill_ns), "{fill_ns}");
}

#[test]
fn a_rise_exceeds_3_ms() {
    assert_eq!(Test::new(PhaseKind::Upload, 2.9, 0.0).phase().outcome.kind, OutcomeKind::Clean);
    assert_eq!(Test::new(PhaseKind::Upload, 3.1, 0.0).phase().outcome.kind, OutcomeKind::Queue);
}

#[test]
fn two_short_rises_are_no_rise() {
    // 2 + 2 ms exceed 3 ms, and no direction does.
    assert_eq!(Test::new(PhaseKind::Upload, 2.0, 2.0).phase().outcome.kind, OutcomeKind::Clean);
    // 2.6 of 3.4 ms are 76 %, in the direction of the load.
    let most = Test::new(PhaseKind::Upload, 2.6, 0.8).phase();
    assert_eq!(most.outcome.kind, OutcomeKind::Queue);
    assert_eq!([most.numbers.directions[0].rises, most.numbers.directions[1].rises], [true, false]);
    assert_eq!(Test::new(PhaseKind::Upload, 0.8, 2.6).phase().outcome.kind, OutcomeKind::Clean);
}

#[test]
fn a_rise_exceeds_two_full_packets() {
    // 2 x 1514 bytes at 1 Mbit/s take 24.224 ms.
    let at = |up_ms| Test::new(PhaseKind::Upload, up_ms, 0.0).rate(Direction::Up, 1_000_000).phase();
    assert_eq!(at(24.0).numbers.threshold_ns, Some(24_224_000));
    assert_eq!(at(24.0).outcome.kind, OutcomeKind::Clean);
    assert_eq!(at(25.0).outcome.kind, OutcomeKind::Queue);
}

#[test]
fn a_rise_exceeds_three_deviations_of_the_idle_path() {
    let mut test = Test::new(PhaseKind::Upload, 8.0, 0.0);
    // The idle path alternates between 16, 20 and 24 ms: the median absolute deviation is 4 ms, so a rise is 12 ms.
    for (index, echo) in test.idle().echoes.iter_mut().enumerate() {
        echo.rtt_ns = echo.rtt_ns.map(|rtt| rtt + [-4, 0, 4][index % 3] * MS);
    }
    let phase = test.phase();
    assert_eq!((phase.numbers.threshold_ns, phase.outcome.kind), (Some(12 * MS), OutcomeKind::Clean));
}

#[test]
fn losses_are_counted_by_direction_and_as_infinite_delays() {
    let mut test = Test::new(PhaseKind::Upload, 50.0, 0.0);
    // 40 of 500 are lost on the way up, and 23 of the other 460 on the way down.
    for (index, echo) in test.loaded().echoes.iter_mut().enumerate().take(63) {
        echo.rtt_ns = None;
        echo.down_ns = None;
        if index < 40 {
            echo.up_ns = None;
        }
        echo.lost = Some(if index < 40 { Lost::Up } else { Lost::Down });
    }
    let numbers = test.phase().numbers;
    assert_eq!((numbers.directions[0].loss, numbers.directions[1].loss), (Some(0.08), Some(0.05)));
    // 12.6 % are infinite, so the 95th percentile is not known, and the median is.
    assert_eq!((numbers.added.p50_ns, numbers.added.p95_ns, numbers.added.censored), (Some(50 * MS), None, true));
    assert_eq!(numbers.added.max_ns, Some(50 * MS));
}

#[test]
fn the_drift_of_clocks_is_no_rise() {
    let mut test = Test::new(PhaseKind::Upload, 0.0, 20.0);
    // 100 ppm: 2 ms in 20 s. The rise is in the other direction than the load, so a wrong fit would show.
    for phase in &mut test.observations.phases {
        for echo in &mut phase.echoes {
            echo.up_ns = echo.up_ns.map(|up| up + echo.t_ns / 10_000);
            echo.down_ns = echo.down_ns.map(|down| down - echo.t_ns / 10_000);
        }
    }
    let verdict = test.judge();
    assert!((verdict.idle.drift_ppm.unwrap() - 100.0).abs() < 1.0);
    let directions = &verdict.phases[0].numbers.directions;
    assert!(directions[0].added.p50_ns.unwrap().abs() < MS / 10, "{directions:?}");
    assert!((directions[1].added.p50_ns.unwrap() - 20 * MS).abs() < MS / 10, "{directions:?}");
}

#[test]
fn an_interruption_is_reported_with_its_duration() {
    let mut test = Test::new(PhaseKind::Upload, 50.0, 0.0);
    let interruption = 14 * SECOND..16 * SECOND;
    for echo in test.loaded().echoes.iter_mut().filter(|echo| interruption.contains(&echo.t_ns)) {
        echo.rtt_ns = None;
    }
    let warnings = test.judge().warnings;
    assert!(
        warnings.iter().any(|text| text == "The connection was interrupted for 2 s during upload."),
        "{warnings:?}"
    );
    let whole = Test::new(PhaseKind::Upload, 50.0, 0.0).judge().warnings;
    assert!(!whole.iter().any(|text| text.contains("interrupted")), "{whole:?}");
}
