//! `video`: a video that a player streams over HTTP, as DASH and HLS do, at a bit rate that adapts to the path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{Common, RequestSize, Server};
use super::shared::{keys, sending};
use super::{Demand, End, Entry, Sending, Source, Transport};
use crate::congestion::Congestion;
use crate::error::{Problem, Problems};
use crate::file::{Interval, Rate};
use crate::model::Traffic;
use crate::path::join;
use crate::quantity::{Quantity, Times};
use crate::units::{MINUTE, MS, SECOND};

/// Playing time of a segment.
type SegmentLength = Quantity<Times, { 100 * MS }, MINUTE>;

/// A video that the player `to` streams from the server `from`: it fetches one segment after the other over a TCP connection
/// until its buffer is full, and chooses the bit rate of each by the throughput of the last ones.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Playing time of each segment.
    #[serde(default = "segment")]
    segment: SegmentLength,
    /// Bit rates in which every segment exists, in ascending order.
    #[serde(default = "rates")]
    #[schemars(length(min = 1))]
    rates: Vec<Rate>,
    /// Size of a request.
    #[serde(default = "keys::request")]
    request: RequestSize,
    /// Playing time in the buffer at which playback starts.
    #[serde(default = "startup")]
    startup: Interval,
    /// Playing time in the buffer at which playback continues after a stall.
    #[serde(default = "resume")]
    resume: Interval,
    /// Playing time in the buffer above which the player requests no segment.
    #[serde(default = "buffer")]
    buffer: Interval,
    /// Congestion control of the sender. Default: that of the host `from`.
    congestion: Option<Congestion>,
    #[serde(flatten)]
    sending: sending::Keys,
}

/// Two to four seconds are best over persistent connections: Lederer, "Optimal Adaptive Streaming Formats MPEG-DASH & HLS
/// Segment Length", Bitmovin, 2015.
fn segment() -> SegmentLength {
    SegmentLength::new(4 * SECOND)
}

/// The average bit rates for H.264 in Apple's "HLS Authoring Specification for Apple Devices": 416x234 to 1920x1080.
fn rates() -> Vec<Rate> {
    [145, 365, 730, 1100, 2000, 3000, 4500, 6000, 7800].map(|kbit| Rate::new(kbit * 1000)).to_vec()
}

/// `DEFAULT_BUFFER_FOR_PLAYBACK_MS` of Android's ExoPlayer.
fn startup() -> Interval {
    Interval::new(2500 * MS)
}

/// `DEFAULT_BUFFER_FOR_PLAYBACK_AFTER_REBUFFER_MS` of ExoPlayer.
fn resume() -> Interval {
    Interval::new(5 * SECOND)
}

/// `maxBufferLength` of hls.js, and `bufferTimeAtTopQuality` of dash.js.
fn buffer() -> Interval {
    Interval::new(30 * SECOND)
}

/// A video that `to` streams from `from`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VideoTraffic {
    /// Playing time of each segment.
    pub segment_ns: u64,
    /// Bits per second of the versions of each segment, in ascending order; never empty.
    pub rates_bps: Vec<u64>,
    /// Size of a request.
    pub request_bytes: u32,
    /// Playing time in the buffer at which playback starts.
    pub startup_ns: u64,
    /// Playing time in the buffer at which playback continues after a stall.
    pub resume_ns: u64,
    /// Playing time in the buffer above which nothing is requested; at least `startup_ns` and `resume_ns`.
    pub buffer_ns: u64,
    /// How the data is sent.
    #[serde(flatten)]
    pub sending: Sending,
}

impl VideoTraffic {
    /// Payload of a segment at a bit rate.
    pub fn segment_bytes(&self, rate_bps: u64) -> u64 {
        let bytes = u128::from(rate_bps) * u128::from(self.segment_ns) / u128::from(8 * SECOND);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl Source for VideoTraffic {
    type Keys = Keys;

    const TRANSPORT: Option<Transport> = Some(Transport::Tcp);
    const CARRIES: bool = true;
    const SERVER: End = End::From;

    fn common(keys: &Keys) -> &Common {
        &keys.common
    }

    fn port(keys: &Keys) -> Option<u16> {
        keys.server.port
    }

    fn resolve(keys: &Keys, entry: &Entry<'_>, problems: &mut Problems) -> Self {
        check_rates(&keys.rates, entry.path, problems);
        for (key, level) in [("startup", keys.startup), ("resume", keys.resume)] {
            if level.get() > keys.buffer.get() {
                let allowed = format!("at most buffer = {}, because no more is fetched", keys.buffer);
                problems.add(|| Problem::new(join(entry.path, key), level.to_string(), allowed));
            }
        }
        let congestion = keys.congestion.unwrap_or(entry.hosts[0].congestion);
        Self {
            segment_ns: keys.segment.get(),
            rates_bps: keys.rates.iter().map(|rate| rate.get()).collect(),
            request_bytes: keys.request.get_u32(),
            startup_ns: keys.startup.get(),
            resume_ns: keys.resume.get(),
            buffer_ns: keys.buffer.get(),
            sending: Sending::resolve(congestion, &keys.sending, entry.path, problems),
        }
    }

    /// Even the shortest segments of a whole day have fewer rows than a table may have.
    fn check_limits(&self, _: &Traffic, _: &mut Problems) {}

    fn flows(&self) -> Option<u32> {
        Some(1)
    }

    fn sending(&self) -> Option<Sending> {
        Some(self.sending)
    }

    /// No more than one segment is under way.
    fn demand(&self, _: u64) -> Demand {
        let largest_bytes = self.rates_bps.iter().map(|rate_bps| self.segment_bytes(*rate_bps)).max();
        Demand::Connections {
            at_a_time: 1,
            senders: 1,
            begun: 1,
            window_packets: self.sending.window_packets,
            bytes: largest_bytes,
        }
    }

    fn connections_are_flows(&self) -> bool {
        true
    }

    /// They are segments, of which the connection carries many.
    fn transfers_are_connections(&self) -> bool {
        false
    }

    #[cfg(feature = "testing")]
    const WEIGHT: u32 = 2;

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;
        let rates = prop::collection::btree_set(10_000..=20_000_000_u64, 1..=6);
        let levels = (1..=5000_u64).prop_flat_map(|buffer_ms| (1..=buffer_ms, 1..=buffer_ms, Just(buffer_ms)));
        let any = (100..=2000_u64, rates, 1..=2000_u32, levels, Sending::any()).prop_map(
            |(segment_ms, rates, request_bytes, (startup_ms, resume_ms, buffer_ms), sending)| Self {
                segment_ns: segment_ms * MS,
                rates_bps: rates.into_iter().collect(),
                request_bytes,
                startup_ns: startup_ms * MS,
                resume_ns: resume_ms * MS,
                buffer_ns: buffer_ms * MS,
                sending,
            },
        );
        Some(any.boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{rate, size, time};
        let mut keys = vec![
            ("segment", time(self.segment_ns)),
            ("rates", toml::Value::Array(self.rates_bps.iter().map(|rate_bps| rate(*rate_bps)).collect())),
            ("request", size(self.request_bytes)),
            ("startup", time(self.startup_ns)),
            ("resume", time(self.resume_ns)),
            ("buffer", time(self.buffer_ns)),
        ];
        keys.extend(self.sending.written());
        keys
    }
}

fn check_rates(rates: &[Rate], path: &str, problems: &mut Problems) {
    for (lower, higher) in rates.iter().zip(&rates[1..]) {
        if lower.get() >= higher.get() {
            let found = format!("{higher} after {lower}");
            problems.add(|| Problem::new(join(path, "rates"), found, "bit rates in ascending order, each once"));
        }
    }
}
