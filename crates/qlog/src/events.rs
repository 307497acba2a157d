//! The events: the name of each, with its category, and its fields.
//!
//! Windows are in bytes, times in milliseconds and rates in bits per second, as in all of qlog. A value that does not exist, such as a
//! threshold that is still unlimited, has no field.

use bufferscope_sim::tcp::{
    Config, ConnectionState, Epoch, Expiry, Limit, Metrics, Sign, SlowStartEnd, State, Timers, Transition, Trigger,
    WindowChange, Windows,
};
use serde_json::{Map, Value, json};

use crate::file::ms;

/// An event: its name and its data.
pub type Event = (&'static str, Value);

/// The duration of a jiffy with Debian's `CONFIG_HZ=250`.
const JIFFY_MS: u32 = 4;
/// Selectively acknowledged segments that show a loss, before any reordering is seen (RFC 5681, section 3.2).
const REORDERING_THRESHOLD: u32 = 3;

/// The settings of an end.
pub fn settings(config: &Config) -> Event {
    let granularity = if config.timers == Timers::Exact { 0 } else { JIFFY_MS };
    let data = json!({
        "reordering_threshold": REORDERING_THRESHOLD,
        "timer_granularity": granularity,
        "max_datagram_size": config.mss_bytes,
        "initial_congestion_window": u64::from(config.initial_window_packets) * u64::from(config.mss_bytes),
        "congestion_control": config.congestion.name(),
    });
    ("recovery:parameters_set", data)
}

/// The event of a change, with a maximum segment size of `mss_bytes`.
pub fn event(transition: &Transition, mss_bytes: u32) -> Event {
    match *transition {
        Transition::Connection { old, new } => {
            updated("connectivity:connection_state_updated", connection_state(old), connection_state(new))
        }
        Transition::Congestion { old, new, trigger, change } => congestion(old, new, Some(trigger), change),
        Transition::Lost { packets, trigger } => {
            ("recovery:packet_lost", json!({ "trigger": loss_trigger(trigger), "packets": packets }))
        }
        Transition::Expired { timer, backoff, timeout_ns } => {
            let mut data = json!({ "timer_type": expiry(timer), "event_type": "expired", "backoff": backoff });
            set(&mut data, "timeout", timeout_ns.map(ms));
            ("recovery:loss_timer_updated", data)
        }
        Transition::Probed { new_data } => ("tcp:tail_loss_probe_sent", json!({ "new_data": new_data })),
        Transition::Undone { sign, change } => {
            ("tcp:reduction_undone", with_change(json!({ "trigger": sign_name(sign) }), change))
        }
        Transition::SlowStartEnded { reason, windows } => slow_start_ended(Some(reason), windows),
        Transition::SlowStartBegan { windows } => slow_start_began(windows),
        Transition::IdleRestart { idle_ns, change } => {
            ("tcp:idle_restart", with_change(json!({ "idle_time": ms(idle_ns) }), change))
        }
        Transition::WindowUnused { change } => ("tcp:unused_window_reduced", with_change(json!({}), change)),
        Transition::Phase { old, new } => {
            let mut data = json!({});
            set(&mut data, "old", old);
            set(&mut data, "new", Some(new));
            ("tcp:congestion_control_phase_updated", data)
        }
        Transition::Epoch(Epoch { w_max_packets, k_ns, origin_point_packets }) => {
            let bytes = |packets: u32| u64::from(packets) * u64::from(mss_bytes);
            let data =
                json!({ "w_max": bytes(w_max_packets), "k": ms(k_ns), "origin_point": bytes(origin_point_packets) });
            ("tcp:cubic_epoch_started", data)
        }
        Transition::Limit { old, new } => limit(old, new),
        Transition::Metrics(measured) => metrics(&measured),
    }
}

/// The congestion state has changed. Samples do not show why.
pub(crate) fn congestion(old: State, new: State, trigger: Option<Trigger>, change: WindowChange) -> Event {
    let (name, mut data) = updated("recovery:congestion_state_updated", state(old), state(new));
    set(&mut data, "trigger", trigger.map(trigger_name));
    (name, with_change(data, change))
}

/// The measurements.
pub(crate) fn metrics(metrics: &Metrics) -> Event {
    let Metrics { windows, inflight_bytes, srtt_ns, min_rtt_ns, pacing_bps } = *metrics;
    let mut data = json!({});
    set(&mut data, "min_rtt", min_rtt_ns.map(ms));
    set(&mut data, "smoothed_rtt", srtt_ns.map(ms));
    set_windows(&mut data, windows);
    set(&mut data, "bytes_in_flight", Some(inflight_bytes));
    set(&mut data, "pacing_rate", pacing_bps);
    ("recovery:metrics_updated", data)
}

/// Slow start is over. Samples do not show why.
pub(crate) fn slow_start_ended(reason: Option<SlowStartEnd>, windows: Windows) -> Event {
    let mut data = json!({});
    set(&mut data, "trigger", reason.map(slow_start_trigger));
    set_windows(&mut data, windows);
    ("tcp:slow_start_ended", data)
}

/// The window is below its threshold again.
pub(crate) fn slow_start_began(windows: Windows) -> Event {
    let mut data = json!({});
    set_windows(&mut data, windows);
    ("tcp:slow_start_began", data)
}

/// Something else limits the sender.
pub(crate) fn limit(old: Limit, new: Limit) -> Event {
    updated("tcp:sender_limit_updated", limit_name(old), limit_name(new))
}

fn updated(name: &'static str, old: &str, new: &str) -> Event {
    (name, json!({ "old": old, "new": new }))
}

fn with_change(mut data: Value, WindowChange { before, after }: WindowChange) -> Value {
    set(&mut data, "old_congestion_window", Some(before.cwnd_bytes));
    set(&mut data, "old_ssthresh", before.ssthresh_bytes);
    set_windows(&mut data, after);
    data
}

fn set_windows(data: &mut Value, windows: Windows) {
    set(data, "congestion_window", Some(windows.cwnd_bytes));
    set(data, "ssthresh", windows.ssthresh_bytes);
}

/// Sets a field, if there is a value.
fn set(data: &mut Value, field: &str, value: Option<impl Into<Value>>) {
    let fields: &mut Map<String, Value> = data.as_object_mut().expect("the data of an event is an object");
    if let Some(value) = value {
        fields.insert(field.to_owned(), value.into());
    }
}

fn connection_state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Closed => "closed",
        ConnectionState::Listen => "listen",
        ConnectionState::SynSent => "syn_sent",
        ConnectionState::SynReceived => "syn_received",
        ConnectionState::Established => "established",
        ConnectionState::FinWait1 => "fin_wait_1",
        ConnectionState::FinWait2 => "fin_wait_2",
        ConnectionState::Closing => "closing",
        ConnectionState::TimeWait => "time_wait",
        ConnectionState::CloseWait => "close_wait",
        ConnectionState::LastAck => "last_ack",
    }
}

/// The words of the column `state` of the table `flows`.
fn state(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Disorder => "disorder",
        State::Cwr => "cwr",
        State::Recovery => "recovery",
        State::Loss => "loss",
    }
}

fn trigger_name(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::ReorderingThreshold => "reordering_threshold",
        Trigger::TimeThreshold => "time_threshold",
        Trigger::ReorderingTimer => "reordering_timer",
        Trigger::Timeout => "rto",
        Trigger::TailLossProbe => "tail_loss_probe",
        Trigger::EcnEcho => "ECN",
        Trigger::HostQueue => "host_queue",
        Trigger::OutOfOrder => "out_of_order",
        Trigger::Acknowledged => "acknowledged",
        Trigger::Undone => "undone",
    }
}

/// Of the words that the draft has for a loss, the one that fits.
fn loss_trigger(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::ReorderingThreshold => "reordering_threshold",
        Trigger::Timeout => "pto_expired",
        _ => "time_threshold",
    }
}

fn expiry(timer: Expiry) -> &'static str {
    match timer {
        Expiry::Handshake => "handshake",
        Expiry::Retransmission => "rto",
        // RACK's, which waits for acknowledgements of segments that may only have been reordered.
        Expiry::Reordering => "ack",
        Expiry::Persist => "persist",
    }
}

fn sign_name(sign: Sign) -> &'static str {
    match sign {
        Sign::Duplicates => "dsack",
        Sign::Timestamps => "eifel",
        Sign::ForwardRto => "f_rto",
    }
}

fn slow_start_trigger(reason: SlowStartEnd) -> &'static str {
    match reason {
        SlowStartEnd::AckTrain => "hystart_ack_train",
        SlowStartEnd::DelayIncrease => "hystart_delay",
        SlowStartEnd::Threshold => "threshold_set",
        SlowStartEnd::Grown => "threshold_reached",
    }
}

fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Idle => "idle",
        Limit::Path => "path",
        Limit::ReceiveWindow => "receive_window",
        Limit::SendBuffer => "send_buffer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Windows = Windows { cwnd_bytes: 14_480, ssthresh_bytes: None };
    const AFTER: Windows = Windows { cwnd_bytes: 14_480, ssthresh_bytes: Some(10_136) };

    #[test]
    fn an_unlimited_threshold_has_no_field() {
        let change = WindowChange { before: BEFORE, after: AFTER };
        let (name, data) = congestion(State::Open, State::Recovery, Some(Trigger::TimeThreshold), change);
        assert_eq!(name, "recovery:congestion_state_updated");
        let expected = json!({
            "old": "open", "new": "recovery", "trigger": "time_threshold",
            "old_congestion_window": 14_480, "congestion_window": 14_480, "ssthresh": 10_136,
        });
        assert_eq!(data, expected);
    }

    #[test]
    fn the_triggers_of_a_loss_are_those_of_the_draft() {
        // draft-ietf-quic-qlog-quic-events-04, section 6.5: a closed list.
        let triggers =
            [Trigger::ReorderingThreshold, Trigger::TimeThreshold, Trigger::ReorderingTimer, Trigger::Timeout];
        let names = ["reordering_threshold", "time_threshold", "time_threshold", "pto_expired"];
        for (trigger, name) in triggers.into_iter().zip(names) {
            let (event, data) = event(&Transition::Lost { packets: 2, trigger }, 1448);
            assert_eq!((event, data), ("recovery:packet_lost", json!({ "trigger": name, "packets": 2 })));
        }
    }

    #[test]
    fn an_epoch_is_in_bytes_and_milliseconds() {
        let epoch = Epoch { w_max_packets: 100, k_ns: 4_200_000_000, origin_point_packets: 100 };
        let (_, data) = event(&Transition::Epoch(epoch), 1448);
        assert_eq!(data, json!({ "w_max": 144_800, "k": 4200.0, "origin_point": 144_800 }));
    }
}
