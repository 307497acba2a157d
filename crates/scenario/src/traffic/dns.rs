//! `dns`: look-ups of names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{Common, DatagramSize, Server};
use super::{Demand, End, Entry, Pattern, Source, Transport};
use crate::departures::Departures;
use crate::error::Problems;
use crate::file::Interval;
use crate::model::Traffic;
use crate::quantity::{Quantity, Times};
use crate::resolve::limits::{MOST_ROWS, check_starts};
use crate::units::{MINUTE, MS, SECOND};

/// Timeout of one attempt of a look-up.
type Timeout = Quantity<Times, MS, MINUTE>;

/// DNS look-ups: `to` sends queries to the server `from`, and retries if no response comes.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Time between the starts of two look-ups. With a Poisson process, the mean.
    #[serde(default = "interval")]
    interval: Interval,
    /// Whether the look-ups follow one another at equal intervals, or as a Poisson process.
    #[serde(default)]
    pattern: Pattern,
    /// UDP payload of a query.
    #[serde(default = "request")]
    request: DatagramSize,
    /// UDP payload of a response.
    #[serde(default = "response")]
    response: DatagramSize,
    /// How long to wait for a response before the query is repeated or given up.
    #[serde(default = "timeout")]
    timeout: Timeout,
    /// Maximum number of times that a query is sent.
    #[serde(default = "attempts")]
    #[schemars(range(min = 1, max = 10))]
    attempts: u32,
}

fn interval() -> Interval {
    Interval::new(SECOND)
}

/// Header (RFC 1035, section 4.1.1), the question `www.example.org` in 21 bytes, an empty OPT record in 11 (RFC 6891).
fn request() -> DatagramSize {
    DatagramSize::new(44)
}

/// The same with four addresses of 16 bytes each.
fn response() -> DatagramSize {
    DatagramSize::new(108)
}

/// resolv.conf(5), `timeout`.
fn timeout() -> Timeout {
    Timeout::new(5 * SECOND)
}

/// resolv.conf(5), `attempts`.
fn attempts() -> u32 {
    2
}

/// DNS look-ups: a query to a server, and its response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DnsTraffic {
    /// Time between the starts of two look-ups; on average with the pattern `poisson`.
    pub interval_ns: u64,
    /// How the look-ups follow one another.
    pub pattern: Pattern,
    /// UDP payload of a query; the IP packet is 28 bytes longer.
    pub request_bytes: u32,
    /// UDP payload of an answer.
    pub response_bytes: u32,
    /// How long to wait for the answer to one attempt before the next one.
    pub timeout_ns: u64,
    /// How many times a query is sent before the look-up fails.
    pub attempts: u32,
}

impl DnsTraffic {
    /// The range of random offsets between the look-ups of several hosts, without which all hosts would always make
    /// them together.
    pub fn phase_ns(&self) -> u64 {
        self.pattern.phase_ns(self.interval_ns)
    }

    /// When look-ups begin, from `start_ns` on. No look-up begins at or after `stop_ns`.
    pub fn departures(&self, start_ns: u64, stop_ns: u64) -> Departures {
        Departures::new((self.interval_ns.into(), 1), self.pattern, start_ns, stop_ns)
    }
}

impl Source for DnsTraffic {
    type Keys = Keys;

    const TRANSPORT: Option<Transport> = Some(Transport::Udp);
    const SERVER: End = End::From;

    fn common(keys: &Keys) -> &Common {
        &keys.common
    }

    fn port(keys: &Keys) -> Option<u16> {
        keys.server.port
    }

    fn resolve(keys: &Keys, _: &Entry<'_>, _: &mut Problems) -> Self {
        Self {
            interval_ns: keys.interval.get(),
            pattern: keys.pattern,
            request_bytes: keys.request.get_u32(),
            response_bytes: keys.response.get_u32(),
            timeout_ns: keys.timeout.get(),
            attempts: keys.attempts,
        }
    }

    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
        check_starts(traffic, "interval", self.interval_ns, MOST_ROWS, "look-ups", problems);
    }

    fn demand(&self, _: u64) -> Demand {
        Demand::Little
    }

    /// There are no connections.
    fn transfers_are_connections(&self) -> bool {
        false
    }

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;
        let sizes = [16..=1472_u32, 16..=1472];
        let any = (5..=2000_u64, Pattern::any(), sizes, 10..=3000_u64, 1..=4_u32).prop_map(
            |(interval_ms, pattern, [request_bytes, response_bytes], timeout_ms, attempts)| Self {
                interval_ns: interval_ms * MS,
                pattern,
                request_bytes,
                response_bytes,
                timeout_ns: timeout_ms * MS,
                attempts,
            },
        );
        Some(any.boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, size, time};
        vec![
            ("interval", time(self.interval_ns)),
            ("pattern", self.pattern.written()),
            ("request", size(self.request_bytes)),
            ("response", size(self.response_bytes)),
            ("timeout", time(self.timeout_ns)),
            ("attempts", number(self.attempts)),
        ]
    }
}
