//! The log that samples of a socket allow (`TCP_INFO`, the table `flows`): for a kernel, whose TCP notes nothing.
//!
//! A state that begins and ends between two samples does not show, and no event has a reason. The time of an event is
//! that of the first sample that shows it.

use std::io::{self, Write};

use bufferscope_sim::tcp::{Limit, Metrics, State, WindowChange, Windows};

use crate::events::{self, Event};
use crate::file::{self, Header};

/// A sample of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it was taken.
    pub t_ns: u64,
    /// Its measurements.
    pub metrics: Metrics,
    /// Its congestion state.
    pub state: State,
    /// For how long, since the start, it has been busy, and the parts of that for which the receiver's window and the
    /// send buffer have limited it.
    pub times_ns: [u64; 3],
}

/// Writes the file of a connection with these samples, in order of time.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut impl Write, header: &Header<'_>, samples: &[Sample]) -> io::Result<()> {
    file::write_header(out, header)?;
    let Some(first) = samples.first() else { return Ok(()) };
    file::write_event(out, first.t_ns, &events::metrics(&first.metrics))?;
    let mut reported = (first.metrics, Limit::Idle);
    for (before, now) in samples.iter().zip(&samples[1..]) {
        for event in events_between(before, now, &mut reported) {
            file::write_event(out, now.t_ns, &event)?;
        }
    }
    Ok(())
}

fn events_between(before: &Sample, now: &Sample, (reported, limit): &mut (Metrics, Limit)) -> Vec<Event> {
    let mut events = Vec::new();
    let change = WindowChange { before: before.metrics.windows, after: now.metrics.windows };
    if now.state != before.state {
        events.push(events::congestion(before.state, now.state, None, change));
    }
    match (in_slow_start(before), in_slow_start(now)) {
        (true, false) => events.push(events::slow_start_ended(None, change.after)),
        (false, true) => events.push(events::slow_start_began(change.after)),
        _ => {}
    }
    let limits = limit_between(before, now);
    if limits != *limit {
        events.push(events::limit(*limit, limits));
        *limit = limits;
    }
    if reported.is_set_otherwise(&now.metrics) || !events.is_empty() {
        events.push(events::metrics(&now.metrics));
        *reported = now.metrics;
    }
    events
}

/// As the simulator sees it: while the window is being reduced, it does not grow by slow start.
fn in_slow_start(sample: &Sample) -> bool {
    let Windows { cwnd_bytes, ssthresh_bytes } = sample.metrics.windows;
    !matches!(sample.state, State::Cwr | State::Recovery) && ssthresh_bytes.is_none_or(|bytes| cwnd_bytes < bytes)
}

/// What limited the sender for most of the time between two samples.
fn limit_between(before: &Sample, now: &Sample) -> Limit {
    let [busy_ns, window_ns, buffer_ns] = [0, 1, 2].map(|i| now.times_ns[i].saturating_sub(before.times_ns[i]));
    let idle_ns = (now.t_ns - before.t_ns).saturating_sub(busy_ns);
    let path_ns = busy_ns.saturating_sub(window_ns + buffer_ns);
    let times = [
        (path_ns, Limit::Path),
        (window_ns, Limit::ReceiveWindow),
        (buffer_ns, Limit::SendBuffer),
        (idle_ns, Limit::Idle),
    ];
    // Of equals, the last.
    times.into_iter().max_by_key(|&(ns, _)| ns).map_or(Limit::Idle, |(_, limit)| limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sample(t_ms: u64, cwnd_bytes: u64, ssthresh_bytes: Option<u64>, state: State, times_ms: [u64; 3]) -> Sample {
        let windows = Windows { cwnd_bytes, ssthresh_bytes };
        let metrics =
            Metrics { windows, inflight_bytes: 0, srtt_ns: Some(50 * MS), min_rtt_ns: Some(40 * MS), pacing_bps: None };
        Sample { t_ns: t_ms * MS, metrics, state, times_ns: times_ms.map(|ms| ms * MS) }
    }

    /// The events of these samples: time, name and, if there are any, `old` and `new`.
    fn written(samples: &[Sample]) -> Vec<String> {
        let header = Header {
            title: "",
            description: "",
            flow: "bulk/1",
            host: "h1",
            of_client: true,
            sampled_ns: Some(10 * MS),
        };
        let mut out = Vec::new();
        write(&mut out, &header, samples).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.split('\u{1e}')
            .skip(2)
            .map(|record| {
                let event: serde_json::Value = serde_json::from_str(record).unwrap();
                let word =
                    |field: &str| event["data"][field].as_str().map(|word| format!(" {word}")).unwrap_or_default();
                format!("{} {}{}{}", event["time"], event["name"].as_str().unwrap(), word("old"), word("new"))
            })
            .collect()
    }

    #[test]
    fn a_reduction_shows_in_the_sample_after_it() {
        let samples = [
            sample(10, 14_480, None, State::Open, [10, 0, 0]),
            sample(20, 14_480, None, State::Open, [20, 0, 0]),
            sample(30, 14_480, Some(10_136), State::Recovery, [30, 0, 0]),
            sample(40, 10_136, Some(10_136), State::Open, [40, 0, 0]),
        ];
        let expected = [
            "10.0 recovery:metrics_updated",
            "20.0 tcp:sender_limit_updated idle path",
            "20.0 recovery:metrics_updated",
            "30.0 recovery:congestion_state_updated open recovery",
            "30.0 tcp:slow_start_ended",
            "30.0 recovery:metrics_updated",
            "40.0 recovery:congestion_state_updated recovery open",
            "40.0 recovery:metrics_updated",
        ];
        assert_eq!(written(&samples), expected);
    }

    #[test]
    fn what_limited_for_most_of_an_interval_counts() {
        let samples = [
            sample(0, 14_480, None, State::Open, [0, 0, 0]),
            sample(10, 14_480, None, State::Open, [10, 6, 0]),
            sample(20, 14_480, None, State::Open, [20, 6, 7]),
            sample(30, 14_480, None, State::Open, [22, 6, 7]),
        ];
        let limits: Vec<String> = written(&samples).into_iter().filter(|event| event.contains("limit")).collect();
        let expected = [
            "10.0 tcp:sender_limit_updated idle receive_window",
            "20.0 tcp:sender_limit_updated receive_window send_buffer",
            "30.0 tcp:sender_limit_updated send_buffer idle",
        ];
        assert_eq!(limits, expected);
    }
}
