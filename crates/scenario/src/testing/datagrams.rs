//! Arbitrary traffic over UDP.

use proptest::prelude::*;

use crate::model::{
    DnsTraffic, IrttTraffic, NetalyzrTraffic, OnOff, Pattern, Periods, TrafficKind, UdpTraffic, VoipTraffic,
};
use crate::units::MS;

pub(super) fn udp() -> impl Strategy<Value = UdpTraffic> {
    let flows = (0..=4_u32, 1_000..=20_000_000_u64, 16..=1472_u32);
    (flows, pattern(), prop::option::of(on_off())).prop_map(|((flows, rate_bps, payload_bytes), pattern, on_off)| {
        // Tiny datagrams at a high rate take long to simulate and show nothing.
        let rate_bps = rate_bps.min(u64::from(payload_bytes) * 100_000);
        UdpTraffic { flows, rate_bps, payload_bytes, pattern, on_off }
    })
}

pub(super) fn voip() -> impl Strategy<Value = VoipTraffic> {
    any::<bool>().prop_map(|both_ways| VoipTraffic { both_ways })
}

pub(super) fn dns() -> impl Strategy<Value = DnsTraffic> {
    let sizes = [16..=1472_u32, 16..=1472];
    (5..=2000_u64, pattern(), sizes, 10..=3000_u64, 1..=4_u32).prop_map(
        |(interval_ms, pattern, [request_bytes, response_bytes], timeout_ms, attempts)| DnsTraffic {
            interval_ns: interval_ms * MS,
            pattern,
            request_bytes,
            response_bytes,
            timeout_ns: timeout_ms * MS,
            attempts,
        },
    )
}

pub(super) fn irtt() -> impl Strategy<Value = IrttTraffic> {
    (1..=500_u64, 16..=1472_u32, 10..=5000_u64).prop_map(|(interval_ms, payload_bytes, timeout_ms)| IrttTraffic {
        interval_ns: interval_ms * MS,
        payload_bytes,
        timeout_ns: timeout_ms * MS,
    })
}

/// A test of the path's buffers; a call where `stream_ns` are too short for a test.
pub(super) fn netalyzr(stream_ns: u64) -> impl Strategy<Value = TrafficKind> {
    (0..5_u64, 16..=1472_u32, 1_000..=20_000_000_u64).prop_map(move |(probes, payload_bytes, rate_bps)| {
        // The shortest time between two probes, and the shortest load.
        let [interval_ns, load_ns] = [MS / 10, MS];
        let probes = probes.min((stream_ns / 4) / interval_ns).max(1);
        let left_ns = stream_ns.saturating_sub(probes * interval_ns);
        let load_ns = (left_ns / 3).max(load_ns);
        let test = NetalyzrTraffic {
            probes: probes as u32,
            interval_ns,
            load_ns,
            pause_ns: left_ns.saturating_sub(2 * load_ns),
            payload_bytes,
            rate_bps,
        };
        let fits = test.lasts_ns() <= stream_ns;
        if fits { TrafficKind::Netalyzr(test) } else { TrafficKind::Voip(VoipTraffic { both_ways: true }) }
    })
}

fn pattern() -> impl Strategy<Value = Pattern> {
    any::<bool>().prop_map(|poisson| if poisson { Pattern::Poisson } else { Pattern::Constant })
}

pub(super) fn on_off() -> impl Strategy<Value = OnOff> {
    (1..=500_u64, 1..=500_u64, any::<bool>()).prop_map(|(on_ms, off_ms, random)| OnOff {
        on_ns: on_ms * MS,
        off_ns: off_ms * MS,
        periods: if random { Periods::Exponential } else { Periods::Fixed },
    })
}
