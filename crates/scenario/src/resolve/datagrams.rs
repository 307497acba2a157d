//! Traffic over UDP.

use super::on_off;
use crate::error::{Problem, Problems};
use crate::file::{Dns, Irtt, Netalyzr, Udp, Voip};
use crate::model::{DnsTraffic, IrttTraffic, NetalyzrTraffic, UdpTraffic, VoipTraffic};
use crate::path::join;
use crate::units::TIME;

/// The keys of the traffic at `path`.
pub(super) fn udp(keys: &Udp, path: &str, problems: &mut Problems) -> UdpTraffic {
    UdpTraffic {
        flows: keys.flows,
        rate_bps: keys.rate.get(),
        payload_bytes: keys.size.get_u32(),
        pattern: keys.pattern,
        on_off: on_off::resolve(&keys.on_off, path, problems),
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

/// A test that can be completed within `time_ns`, the duration of its entry.
pub(super) fn netalyzr(keys: &Netalyzr, time_ns: u64, path: &str, problems: &mut Problems) -> NetalyzrTraffic {
    let test = NetalyzrTraffic {
        probes: keys.probes,
        interval_ns: keys.interval.get(),
        load_ns: keys.load.get(),
        pause_ns: keys.pause.get(),
        payload_bytes: keys.size.get_u32(),
        rate_bps: keys.rate.get(),
    };
    if test.lasts_ns() > time_ns {
        let found = format!("a time of {} from start to stop", TIME.display(time_ns));
        let allowed = format!("at least {} (probes * interval + 2 * load + pause)", TIME.display(test.lasts_ns()));
        let hint = "make the experiment's duration longer";
        problems.add(|| Problem::new(join(path, "stop"), found, allowed).hint(hint));
    }
    test
}
