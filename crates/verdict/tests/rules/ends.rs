//! Delays inside the two ends.

use bufferscope_verdict::input::{Direction, EndName, LocalSample, PhaseKind, Stage};
use bufferscope_verdict::verdict::{OutcomeKind, Place};

use crate::build::{MS, SECOND, Test, places};

fn sample(second: i64, qdisc_bytes: u64) -> LocalSample {
    LocalSample {
        t_ns: second * SECOND,
        end: EndName::Client,
        qdisc_bytes: Some(qdisc_bytes),
        qdisc_drops: None,
        ring_bytes: None,
        cpu_busy: None,
        softirq: None,
    }
}

fn raised() -> Test {
    Test::new(PhaseKind::Upload, 50.0, 0.0).ladder(EndName::Client, [Some(50.0); 3])
}

#[test]
fn timestamps_show_the_queueing_discipline() {
    let found = raised().stage(EndName::Client, Stage::Qdisc, 50.0).place();
    assert_eq!((places(&found), found.answer.probability), (vec![Place::ClientQdisc], 0.97));
    assert_eq!(found.second, None);
}

#[test]
fn flat_timestamps_leave_the_driver() {
    let found = raised().stage(EndName::Client, Stage::Qdisc, 0.0).place();
    assert_eq!(places(&found), [Place::ClientDriver]);
}

#[test]
fn without_timestamps_the_backlog_decides() {
    assert_eq!(places(&raised().place()), [Place::ClientQdisc, Place::ClientDriver]);
    let backlog = |bytes| {
        let mut test = raised();
        for second in 10..20 {
            test.loaded().local.push(sample(second, bytes));
        }
        places(&test.place())
    };
    // 62,500 bytes at 10 Mbit/s are the 50 ms.
    assert_eq!(backlog(62_500), [Place::ClientQdisc]);
    assert_eq!(backlog(0), [Place::ClientDriver]);
}

#[test]
fn byte_queue_limits_show_what_the_driver_holds() {
    let driver = |bql| {
        let mut test = raised().rate(Direction::Up, 10_000_000);
        test.observations.ends.client.bql = bql;
        for second in 10..20 {
            test.loaded().local.push(LocalSample { ring_bytes: Some(12_949), ..sample(second, 0) });
        }
        let stages = test.phase().stages;
        stages.into_iter().find(|stage| stage.stage == Stage::Driver).map(|stage| stage.delay.p50_ns.unwrap() / MS)
    };
    // 12.9 kB at 10 Mbit/s of goodput, and headers.
    assert_eq!(driver(Some(true)), Some(10));
    assert_eq!([driver(Some(false)), driver(None)], [None; 2], "unknown");
}

#[test]
fn a_device_without_a_queueing_discipline_queues_in_its_driver() {
    let mut test = raised();
    test.observations.ends.client.qdisc = Some("noqueue".to_owned());
    assert_eq!(places(&test.place()), [Place::ClientDriver]);
}

#[test]
fn a_driver_without_timestamps_is_a_warning() {
    let mut test = raised();
    let warned = |test: &Test| test.judge().warnings.iter().any(|warning| warning.contains("does not stamp"));
    assert!(!warned(&test));
    test.observations.ends.client.software_stamps = false;
    assert!(warned(&test));
}

#[test]
fn the_rest_of_the_delay_may_be_in_the_network() {
    // 20 ms in the queueing discipline, and 30 ms at link 2.
    let test = Test::new(PhaseKind::Upload, 50.0, 0.0)
        .ladder(EndName::Client, [Some(20.0), Some(50.0), Some(50.0)])
        .stage(EndName::Client, Stage::Qdisc, 20.0);
    let found = test.place();
    assert_eq!(places(&found), [Place::RouterUplink]);
    let second = found.second.unwrap();
    assert_eq!((second.locations[0].place, second.share), (Place::ClientQdisc, 0.4));
}

#[test]
fn downwards_the_server_is_the_sender() {
    let test = Test::new(PhaseKind::Download, 0.0, 50.0)
        .ladder(EndName::Server, [Some(50.0); 3])
        .ladder(EndName::Client, [Some(0.0); 3]);
    assert_eq!(places(&test.clone().stage(EndName::Server, Stage::Qdisc, 50.0).place()), [Place::ServerQdisc]);
    assert_eq!(places(&test.stage(EndName::Server, Stage::Qdisc, 0.0).place()), [Place::ServerDriver]);
}

#[test]
fn a_send_buffer_delays_only_its_own_program() {
    let phase = Test::new(PhaseKind::Upload, 0.0, 0.0).stage(EndName::Client, Stage::SendBuffer, 769.0).phase();
    assert_eq!((phase.outcome.kind, phase.locations.len()), (OutcomeKind::Clean, 0));
    assert_eq!(phase.send_buffers[0].locations[0].place, Place::ClientSendBuffer);
    assert_eq!(phase.send_buffers[0].locations[0].direction, Direction::Up);
    assert_eq!(phase.stages[0].delay.p50_ns, Some(769 * MS));
    let short = Test::new(PhaseKind::Upload, 0.0, 0.0).stage(EndName::Client, Stage::SendBuffer, 9.0).phase();
    assert!(short.send_buffers.is_empty());
}
