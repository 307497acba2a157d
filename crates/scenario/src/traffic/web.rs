//! `web`: pages that a client fetches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{Common, RequestSize, Server, TransferSize};
use super::shared::{keys, sending};
use super::{Demand, End, Entry, Sending, Source, Transport};
use crate::congestion::Congestion;
use crate::error::{Problem, Problems};
use crate::file::Interval;
use crate::model::Traffic;
use crate::path::join;
use crate::resolve::limits::{MOST_CONNECTIONS, check_starts};
use crate::units::SECOND;

/// Web pages that the client `to` fetches from the server `from` at a fixed interval, each over new TCP connections.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Time between the starts of two fetches.
    #[serde(default = "interval")]
    interval: Interval,
    /// Size of a page, including headers. If the page has `objects`, the size of its document.
    #[schemars(example = 177_669)]
    bytes: TransferSize,
    /// Size of a request.
    #[serde(default = "keys::request")]
    request: RequestSize,
    /// Number of further objects of a page, requested once its document has arrived. Default: none.
    #[schemars(range(min = 0, max = 10_000), example = 30)]
    objects: Option<u32>,
    /// Size of each object, including headers.
    #[schemars(example = &"15kb")]
    object_bytes: Option<TransferSize>,
    /// Maximum number of connections that fetch a page's objects. Each fetches one object at a time. Default: 6.
    #[schemars(range(min = 1, max = 1000), example = 6)]
    connections: Option<u32>,
    /// Congestion control of the sender. Default: that of the host `from`.
    congestion: Option<Congestion>,
    #[serde(flatten)]
    sending: sending::Keys,
}

/// A page every two seconds, as in the CS244 lab on bufferbloat.
fn interval() -> Interval {
    Interval::new(2 * SECOND)
}

/// As in Chromium and Firefox, to one server over HTTP/1.1.
const CONNECTIONS: u32 = 6;

/// Pages fetched at a fixed interval from `from` by `to`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WebTraffic {
    /// Time between the starts of two fetches; a fetch still under way does not hold up the next.
    pub interval_ns: u64,
    /// Size of the page, headers included. If the page has `objects`, this is the size of its document.
    pub bytes: u64,
    /// Size of the request.
    pub request_bytes: u32,
    /// The other objects of a page. `None`: there are none, and the page comes over one connection, which the server
    /// closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<PageObjects>,
    /// How the data is sent.
    #[serde(flatten)]
    pub sending: Sending,
}

/// The objects that a page refers to. They are fetched after its document, over persistent connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageObjects {
    /// How many there are (never 0).
    pub count: u32,
    /// Size of each, headers included.
    pub bytes: u64,
    /// Maximum number of connections that fetch them.
    pub connections: u32,
}

impl Source for WebTraffic {
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
        let congestion = keys.congestion.unwrap_or(entry.hosts[0].congestion);
        Self {
            interval_ns: keys.interval.get(),
            bytes: keys.bytes.get(),
            request_bytes: keys.request.get_u32(),
            objects: objects(keys, entry.path, problems),
            sending: Sending::resolve(congestion, &keys.sending, entry.path, problems),
        }
    }

    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
        let each = self.objects.map_or(1, |objects| u64::from(objects.connections.min(objects.count)));
        check_starts(traffic, "interval", self.interval_ns, MOST_CONNECTIONS / each, "pages", problems);
    }

    fn sending(&self) -> Option<Sending> {
        Some(self.sending)
    }

    fn demand(&self, _: u64) -> Demand {
        let (objects_bytes, connections) =
            self.objects.map_or((0, 1), |o| (u64::from(o.count) * o.bytes, u64::from(o.connections.min(o.count))));
        Demand::Pages {
            interval_ns: self.interval_ns,
            bytes: self.bytes + objects_bytes,
            connection_bytes: self.bytes.max(objects_bytes),
            connections,
        }
    }

    /// A page with objects is one row, and comes over several connections.
    fn transfers_are_connections(&self) -> bool {
        self.objects.is_none()
    }

    #[cfg(feature = "testing")]
    const WEIGHT: u32 = 2;

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;

        use crate::units::MS;
        let objects = (1..=20_u32, 1..=20_000_u64, 1..=8_u32).prop_map(|(count, bytes, connections)| PageObjects {
            count,
            bytes,
            connections,
        });
        let any = (20..=2000_u64, 1..=100_000_u64, 1..=2000_u32, prop::option::of(objects), Sending::any()).prop_map(
            |(interval_ms, bytes, request_bytes, objects, sending)| Self {
                interval_ns: interval_ms * MS,
                bytes,
                request_bytes,
                objects,
                sending,
            },
        );
        Some(any.boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, size, time};
        let mut keys = vec![
            ("interval", time(self.interval_ns)),
            ("bytes", size(self.bytes)),
            ("request", size(self.request_bytes)),
        ];
        keys.extend(self.objects.into_iter().flat_map(|PageObjects { count, bytes, connections }| {
            [("objects", number(count)), ("object_bytes", size(bytes)), ("connections", number(connections))]
        }));
        keys.extend(self.sending.written());
        keys
    }
}

fn objects(keys: &Keys, path: &str, problems: &mut Problems) -> Option<PageObjects> {
    let mut idle = |key: &str, found: String| {
        let allowed = "no such key (only a page with objects has it)";
        problems.add(|| Problem::new(join(path, key), format!("{found} without objects"), allowed));
    };
    match (keys.objects, keys.object_bytes) {
        (Some(0), _) => None,
        (Some(count), Some(bytes)) => {
            let connections = keys.connections.unwrap_or(CONNECTIONS);
            Some(PageObjects { count, bytes: bytes.get(), connections })
        }
        (Some(count), None) => {
            let found = format!("{count} without object_bytes");
            problems.add(|| {
                Problem::new(join(path, "objects"), found, "0, or set object_bytes as well: the size of each object")
            });
            None
        }
        (None, bytes) => {
            bytes.inspect(|bytes| idle("object_bytes", bytes.to_string()));
            keys.connections.inspect(|connections| idle("connections", connections.to_string()));
            None
        }
    }
}
