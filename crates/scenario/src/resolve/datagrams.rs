//! Traffic over UDP.

use crate::error::{Problem, Problems};
use crate::file::{Dns, Interval, Udp, Voip};
use crate::model::{DnsTraffic, OnOff, Periods, UdpTraffic, VoipTraffic};
use crate::path::join;

/// The keys of the traffic at `path`.
pub(super) fn udp(keys: &Udp, path: &str, problems: &mut Problems) -> UdpTraffic {
    UdpTraffic {
        flows: keys.flows,
        rate_bps: keys.rate.get(),
        payload_bytes: keys.size.get_u32(),
        pattern: keys.pattern,
        on_off: on_off((keys.on, keys.off, keys.periods), path, problems),
    }
}

pub(super) fn voip(keys: &Voip) -> VoipTraffic {
    VoipTraffic { both_ways: keys.both_ways }
}

pub(super) fn dns(keys: &Dns) -> DnsTraffic {
    DnsTraffic {
        interval_ns: keys.interval.get(),
        pattern: keys.pattern,
        request_bytes: keys.request.get_u32(),
        response_bytes: keys.response.get_u32(),
        timeout_ns: keys.timeout.get(),
        attempts: keys.attempts,
    }
}

/// Both lengths or none: one alone is the other forgotten.
pub(super) fn on_off(
    (on, off, periods): (Option<Interval>, Option<Interval>, Option<Periods>),
    path: &str,
    problems: &mut Problems,
) -> Option<OnOff> {
    match (on, off) {
        (Some(on), Some(off)) => {
            return Some(OnOff { on_ns: on.get(), off_ns: off.get(), periods: periods.unwrap_or_default() });
        }
        (Some(on), None) => missing("off", "how long it pauses", "on", on, path, problems),
        (None, Some(off)) => missing("on", "how long it sends before it pauses", "off", off, path, problems),
        (None, None) if periods.is_some() => {
            let allowed = "no such key (only traffic with on and off has periods)";
            problems.add(|| Problem::new(join(path, "periods"), "periods of traffic that never pauses", allowed));
        }
        (None, None) => {}
    }
    None
}

fn missing(key: &str, meaning: &str, given: &str, value: Interval, path: &str, problems: &mut Problems) {
    let allowed = format!("{meaning}, such as 1s, which {given} = {value} needs");
    problems.add(|| Problem::new(join(path, key), "no such key", allowed));
}
