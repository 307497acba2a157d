//! What happened.

use bufferscope_verdict::input::{Direction, EndName, LocalSample, Lost, PhaseKind};
use bufferscope_verdict::verdict::{Limit, OutcomeKind};

use crate::build::{MS, SECOND, Test, ns};

fn flat() -> Test {
    Test::new(PhaseKind::Upload, 0.0, 0.0)
}

fn limit(test: &Test) -> (OutcomeKind, Option<Limit>) {
    let outcome = test.phase().outcome;
    (outcome.kind, outcome.limit)
}

#[test]
fn a_path_that_was_filled_without_delay_is_clean() {
    let test = flat().flow(Direction::Up, |_, _| {}).ladder(EndName::Client, [Some(0.0); 3]);
    assert_eq!(limit(&test), (OutcomeKind::Clean, None));
    assert!(test.phase().locations.is_empty());
}

#[test]
fn a_load_that_waits_alone_is_managed() {
    let test = flat().flow(Direction::Up, |flow, _| flow.srtt_ns = 60 * MS);
    assert_eq!(limit(&test), (OutcomeKind::Managed, None));
    assert_eq!(test.phase().numbers.directions[0].load.unwrap().rtt_rise_ns, Some(40 * MS));
    // 4 ms more may come from delayed acknowledgements.
    assert_eq!(limit(&flat().flow(Direction::Up, |flow, _| flow.srtt_ns = 24 * MS)).0, OutcomeKind::Clean);
}

#[test]
fn a_short_rise_beside_a_long_one_of_the_load_is_managed() {
    // 8 ms for others, and 40 ms for the load itself.
    let test = Test::new(PhaseKind::Upload, 8.0, 0.0).flow(Direction::Up, |flow, _| flow.srtt_ns = 60 * MS);
    assert_eq!(limit(&test).0, OutcomeKind::Managed);
    // Less than four times as long: one queue for all.
    let test = Test::new(PhaseKind::Upload, 9.0, 0.0).flow(Direction::Up, |flow, _| flow.srtt_ns = 55 * MS);
    assert_eq!(limit(&test).0, OutcomeKind::Queue);
}

#[test]
fn congestion_marks_without_delay_are_managed() {
    // 10 Mbit/s are 863 segments a second; 10 of them are marked.
    let test = flat().flow(Direction::Up, |flow, s| flow.delivered_ce = (10.0 * s) as u64);
    assert_eq!(limit(&test).0, OutcomeKind::Managed);
}

#[test]
fn a_window_a_buffer_or_a_program_may_limit_the_load() {
    let window = flat().flow(Direction::Up, |flow, s| flow.rwnd_limited_us = (6e5 * s) as u64);
    assert_eq!(limit(&window), (OutcomeKind::NotFilled, Some(Limit::ReceiveWindow)));
    // With small windows, acknowledgements wait for more data, and the load's own round trips are longer.
    let waiting = window.flow(Direction::Up, |flow, s| {
        (flow.rwnd_limited_us, flow.srtt_ns) = ((6e5 * s) as u64, 60 * MS);
    });
    assert_eq!(limit(&waiting), (OutcomeKind::NotFilled, Some(Limit::ReceiveWindow)));
    let buffer = flat().flow(Direction::Up, |flow, s| flow.sndbuf_limited_us = (6e5 * s) as u64);
    assert_eq!(limit(&buffer), (OutcomeKind::NotFilled, Some(Limit::Sender)));
    let program = flat().flow(Direction::Up, |flow, s| flow.busy_us = (4e5 * s) as u64);
    assert_eq!(limit(&program), (OutcomeKind::NotFilled, Some(Limit::Sender)));
    let short = flat().flow(Direction::Up, |flow, s| flow.rwnd_limited_us = (4e5 * s) as u64);
    assert_eq!(limit(&short), (OutcomeKind::Clean, None));
}

#[test]
fn a_busy_processor_limits_the_load() {
    let mut test = flat();
    for index in 0..10 {
        test.loaded().local.push(LocalSample {
            t_ns: (10 + index) * SECOND,
            end: EndName::Server,
            qdisc_bytes: None,
            qdisc_drops: None,
            ring_bytes: None,
            cpu_busy: Some(0.4),
            softirq: Some(0.97),
        });
    }
    assert_eq!(limit(&test), (OutcomeKind::NotFilled, Some(Limit::Cpu)));
}

#[test]
fn losses_without_delay_are_a_policer() {
    // 863 segments a second; 5 of them are retransmitted: 0.58 %.
    let test = flat().flow(Direction::Up, |flow, s| flow.retransmits = (5.0 * s) as u64);
    assert_eq!(limit(&test), (OutcomeKind::NotFilled, Some(Limit::Policer)));
    let few = flat().flow(Direction::Up, |flow, s| flow.retransmits = (4.0 * s) as u64);
    assert_eq!(limit(&few), (OutcomeKind::Clean, None));
}

#[test]
fn a_very_short_queue_loses_probes_and_is_not_managed() {
    // 7 % of the load's packets are lost, and as many of the probes; the load waits 12 ms longer.
    let mut test = flat().flow(Direction::Up, |flow, s| {
        flow.retransmits = (60.0 * s) as u64;
        flow.srtt_ns = 32 * MS;
    });
    assert_eq!(limit(&test).0, OutcomeKind::Managed);
    for echo in test.loaded().echoes.iter_mut().step_by(14) {
        (echo.rtt_ns, echo.up_ns, echo.down_ns, echo.lost) = (None, None, None, Some(Lost::Up));
    }
    assert_eq!(limit(&test), (OutcomeKind::NotFilled, Some(Limit::Policer)));
}

#[test]
fn losses_of_the_load_alone_show_flow_queueing() {
    // 863 segments a second; 4 % are retransmitted, and no probe is lost. The load waits 6 ms longer, and probes 2 ms.
    let shorter = |lost: f64| {
        let mut test = Test::new(PhaseKind::Upload, 2.0, 0.0).flow(Direction::Up, |flow, s| {
            flow.retransmits = (lost * 863.0 * s) as u64;
            flow.srtt_ns = 26 * MS;
        });
        test.observations.parameters.mtu_bytes = Some(4500); // so that 6 ms are a rise only with the losses
        test
    };
    assert_eq!(limit(&shorter(0.04)), (OutcomeKind::Managed, None));
    // Two or three of 500 probes might have escaped by chance.
    assert_eq!(limit(&shorter(0.006)), (OutcomeKind::NotFilled, Some(Limit::Policer)));
}

#[test]
fn a_machine_that_is_late_with_its_probes_shows_no_flow_queueing() {
    let mut test = flat().flow(Direction::Up, |flow, _| flow.srtt_ns = 60 * MS);
    test.observations.parameters.probe_interval_ns = Some(20 * MS);
    assert_eq!(limit(&test).0, OutcomeKind::Managed);
    let mut index = 0;
    test.loaded().echoes.retain(|_| {
        index += 1;
        index % 5 != 0
    });
    assert_eq!(limit(&test), (OutcomeKind::NotFilled, Some(Limit::Cpu)));
    let warning = "This machine was busy and sent only 80 % of its test packets during upload.";
    assert!(test.judge().warnings.iter().any(|text| text == warning), "{:?}", test.judge().warnings);
}

#[test]
fn a_control_that_keeps_queues_short_says_nothing_about_them() {
    let mut test = flat();
    test.observations.parameters.congestion = Some("bbr".to_owned());
    assert_eq!(limit(&test), (OutcomeKind::NotFilled, Some(Limit::LowDelayControl)));
}

#[test]
fn a_goodput_that_still_grows_has_filled_nothing() {
    let mut test = flat();
    test.loaded().levelled = Some(false);
    assert_eq!(limit(&test), (OutcomeKind::NotFilled, Some(Limit::Unknown)));
}

#[test]
fn a_queue_of_the_idle_path_is_other_traffic() {
    let mut test = Test::new(PhaseKind::Upload, 30.0, 0.0);
    // Every other second there is a queue of 40 ms.
    for echo in test.idle().echoes.iter_mut().filter(|echo| echo.t_ns / SECOND % 2 == 1) {
        echo.rtt_ns = echo.rtt_ns.map(|rtt| rtt + 40 * MS);
    }
    assert_eq!(test.phase().outcome.kind, OutcomeKind::OtherTraffic);
    assert_eq!(test.judge().idle.queue_ns, Some(40 * MS));
}

/// A short queue that others fill: its delay goes up and down by up to 20 ms within some probes, and the load hardly adds to it.
/// A probe is lost where `is_lost` says so, from its number and its part of the 20 ms.
fn filled_by_others(is_lost: impl Fn(usize, f64) -> bool) -> Test {
    let mut test =
        Test::new(PhaseKind::Upload, 10.0, 0.0).flow(Direction::Up, |flow, s| flow.retransmits = (100.0 * s) as u64);
    for phase in &mut test.observations.phases {
        let is_idle = phase.kind == PhaseKind::Idle;
        for (number, echo) in phase.echoes.iter_mut().enumerate() {
            let part = [0.0, 0.3, 0.6, 0.9, 1.0, 0.7, 0.4, 0.1][number % 8];
            let (added, lost) = if is_idle { (ns(20.0 * part), is_lost(number, part)) } else { (0, false) };
            echo.rtt_ns = echo.rtt_ns.map(|rtt| rtt + added).filter(|_| !lost);
            echo.up_ns = echo.up_ns.map(|up| up + added).filter(|_| !lost);
            echo.down_ns = echo.down_ns.filter(|_| !lost);
            echo.lost = lost.then_some(Lost::Up);
        }
    }
    test
}

#[test]
fn losses_of_the_idle_path_at_long_delays_show_a_queue_that_others_fill() {
    let full = filled_by_others(|number, part| part >= 0.9 && number % 5 == 0);
    assert_eq!(full.phase().outcome.kind, OutcomeKind::OtherTraffic, "{:?}", full.judge().idle);
    // A lossy link loses as many at any time.
    let lossy = filled_by_others(|number, _| number % 20 == 7 || number % 20 == 13);
    let outcome = lossy.phase().outcome;
    assert_eq!((outcome.kind, outcome.limit), (OutcomeKind::NotFilled, Some(Limit::Policer)));
    assert!(outcome.text.contains("already before the load: a lossy link"), "{}", outcome.text);
}

#[test]
fn a_rise_against_the_load_is_other_traffic() {
    let test = Test::new(PhaseKind::Upload, 0.0, 30.0);
    assert_eq!(test.phase().outcome.kind, OutcomeKind::OtherTraffic);
    assert!(test.phase().locations.is_empty());
}

#[test]
fn acknowledgements_may_fill_the_other_direction() {
    // 100 Mbit/s of download need 100 x 78 / 2896 = 2.7 Mbit/s of acknowledgements, and the upload carried 4 Mbit/s.
    let mut test = Test::new(PhaseKind::Download, 30.0, 0.0).rate(Direction::Down, 100_000_000);
    let upload = Test::new(PhaseKind::Upload, 0.0, 0.0).rate(Direction::Up, 4_000_000).loaded().clone();
    test.observations.phases.push(upload);
    let phase = test.phase();
    assert_eq!((phase.kind, phase.outcome.kind), (PhaseKind::Download, OutcomeKind::Queue));
    assert_eq!(phase.locations[0].direction, Direction::Up);
    assert!(test.judge().warnings.iter().any(|warning| warning.contains("acknowledgements")));
}

#[test]
fn other_addresses_at_most_hops_are_another_path() {
    let mut test = Test::new(PhaseKind::Upload, 50.0, 0.0).ladder(EndName::Client, [Some(0.0), Some(50.0), Some(50.0)]);
    let mut move_hop = |ttl: u8| {
        for probe in test.loaded().ladder.iter_mut().filter(|probe| probe.ttl == ttl) {
            probe.address = Some(format!("198.51.100.{ttl}"));
        }
        test.phase()
    };
    let one = move_hop(3);
    assert_eq!(one.outcome.kind, OutcomeKind::Queue);
    assert!(!one.hops[2].used && one.hops[2].note.as_ref().unwrap().contains("address"));
    assert_eq!(move_hop(2).outcome.kind, OutcomeKind::PathChanged);
    // One of two is not more than half.
    test.loaded().ladder.retain(|probe| probe.ttl != 3);
    test.idle().ladder.retain(|probe| probe.ttl != 3);
    assert_eq!(test.phase().outcome.kind, OutcomeKind::Queue);
}

#[test]
fn without_probes_nothing_can_be_said() {
    let mut test = Test::new(PhaseKind::Upload, 50.0, 0.0);
    test.idle().echoes.truncate(19);
    assert_eq!(test.phase().outcome.kind, OutcomeKind::CannotTell);
    let mut test = Test::new(PhaseKind::Upload, 50.0, 0.0);
    for echo in test.loaded().echoes.iter_mut().step_by(2) {
        echo.rtt_ns = None;
    }
    test.loaded().echoes[1].rtt_ns = None;
    assert_eq!(test.phase().outcome.kind, OutcomeKind::CannotTell);
    assert_eq!(test.phase().grade, None);
}
