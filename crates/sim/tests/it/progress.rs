//! Progress is reported after a bounded amount of work in every run, so that the caller can end a run at any time.

use std::ops::ControlFlow;

use bufferscope_records::{MemorySink, Recorder};
use bufferscope_scenario::{Experiment, Scenario};
use bufferscope_sim::SimError;

/// Packets that may arrive, on average, from one report to the next: some 10 ms of work.
const MOST_HOPS: u64 = 1 << 16;

fn scenario(link: &str, traffic: &str) -> Scenario {
    let text = format!(
        r#"
        title = "Much at a time"
        duration = "400ms"
        sample = "100ms"
        link = [{{ name = "line", ends = ["h1", "h2"], {link} }}]
        traffic = [{{ name = "much", from = "h1", to = "h2", {traffic} }}]
        "#
    );
    let experiment = Experiment::parse(&text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    experiment.points()[0].scenario.clone()
}

/// Runs to the end; returns packets that arrived, and how often progress was reported before that.
fn hops_and_reports(scenario: &Scenario) -> (u64, u64) {
    let mut reports = 0;
    let recorder = Recorder::new(MemorySink::default());
    let summary = bufferscope_sim::run(scenario, 1, recorder, &mut |_| {
        reports += 1;
        ControlFlow::Continue(())
    });
    (summary.unwrap_or_else(|error| panic!("{error}")).hops, reports)
}

#[test]
fn reports_come_at_bounded_work_where_events_are_large() {
    let busy = [
        ("delay = '20ms'", "kind = 'tcp', flows = 2000"),
        ("delay = '10ms'", "kind = 'bittorrent', peers = 1000, unchoked = 1000"),
        ("delay = '1ms', rate = '10gbit'", "kind = 'udp', rate = '1gbit', flows = 8"),
    ];
    for (link, traffic) in busy {
        let (hops, reports) = hops_and_reports(&scenario(link, traffic));
        assert!(hops > 3 * MOST_HOPS, "{traffic} makes {hops} hops, too few to show anything");
        assert!(hops <= (reports + 1) * MOST_HOPS, "{traffic}: {hops} hops, {reports} reports");
    }
}

#[test]
fn reports_come_at_bounded_work_where_there_is_much_to_sample() {
    // 10,000 flows that send next to nothing: 400 rows each.
    let text = scenario("delay = '1ms', rate = '1gbit'", "kind = 'udp', rate = '8kbit', size = '100b', flows = 10000");
    let sampled = Scenario { sample_interval_ns: 1_000_000, ..text };
    let (_, reports) = hops_and_reports(&sampled);
    assert!((reports + 1) * MOST_HOPS > 400 * 10_000 / 2, "{reports} reports");
}

#[test]
fn the_progress_callback_can_end_the_run() {
    let recorder = Recorder::new(MemorySink::default());
    let scenario = scenario("delay = '20ms'", "kind = 'tcp', flows = 100");
    let outcome = bufferscope_sim::run(&scenario, 1, recorder, &mut |_| ControlFlow::Break(()));
    assert!(matches!(outcome, Err(SimError::Interrupted)));
}
