//! Traffic over UDP.

use super::turns;
use crate::error::Problems;
use crate::file::{Dns, Irtt, Udp, Voip};
use crate::model::{DnsTraffic, IrttTraffic, UdpTraffic, VoipTraffic};

/// The keys of the traffic at `path`.
pub(super) fn udp(keys: &Udp, path: &str, problems: &mut Problems) -> UdpTraffic {
    UdpTraffic {
        flows: keys.flows,
        rate_bps: keys.rate.get(),
        payload_bytes: keys.size.get_u32(),
        pattern: keys.pattern,
        on_off: turns::resolve(&keys.turns, path, problems),
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

pub(super) fn irtt(keys: &Irtt) -> IrttTraffic {
    IrttTraffic { interval_ns: keys.interval.get(), payload_bytes: keys.size.get_u32(), timeout_ns: keys.timeout.get() }
}
