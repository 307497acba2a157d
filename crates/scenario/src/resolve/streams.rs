//! Traffic that opens TCP connections: keys that need one another, or rule one another out.

use super::{on_off, sending};
use crate::error::{Problem, Problems};
use crate::file::{Bittorrent, HostTcp, Tcp, Web, page_connections};
use crate::model::{BittorrentTraffic, OnOff, PageObjects, TcpTraffic, WebTraffic};
use crate::path::join;
use crate::units::TIME;

pub(super) fn tcp(keys: &Tcp, stop_ns: u64, host: &HostTcp, path: &str, problems: &mut Problems) -> TcpTraffic {
    check_stagger(keys, stop_ns, path, problems);
    if keys.transfers > 1 && keys.bytes.is_none() {
        let found = format!("{} without bytes", keys.transfers);
        problems
            .add(|| Problem::new(join(path, "transfers"), found, "1, or set bytes as well: the size of a transfer"));
    }
    TcpTraffic {
        flows: keys.flows,
        stagger_ns: keys.stagger.get(),
        bytes: keys.bytes.map(|bytes| bytes.get()),
        transfers: keys.transfers,
        rate_bps: keys.rate.map(|rate| rate.get()),
        on_off: on_off(keys, path, problems),
        sending: sending::resolve(keys.congestion.unwrap_or(host.congestion), &keys.sending, path, problems),
    }
}

pub(super) fn web(keys: &Web, host: &HostTcp, path: &str, problems: &mut Problems) -> WebTraffic {
    WebTraffic {
        interval_ns: keys.interval.get(),
        bytes: keys.bytes.get(),
        request_bytes: keys.request.get_u32(),
        objects: objects(keys, path, problems),
        sending: sending::resolve(keys.congestion.unwrap_or(host.congestion), &keys.sending, path, problems),
    }
}

pub(super) fn bittorrent(keys: &Bittorrent, path: &str, problems: &mut Problems) -> BittorrentTraffic {
    BittorrentTraffic {
        peers: keys.peers,
        unchoked: keys.unchoked,
        sending: sending::resolve(keys.congestion, &keys.sending, path, problems),
    }
}

/// The last flow too must begin before the traffic stops.
fn check_stagger(keys: &Tcp, stop_ns: u64, path: &str, problems: &mut Problems) {
    let later = u64::from(keys.flows.saturating_sub(1));
    let room_ns = stop_ns.saturating_sub(keys.common.placement.start.get());
    if later.saturating_mul(keys.stagger.get()) < room_ns.max(1) {
        return;
    }
    let most_ns = (room_ns - 1) / later;
    let found = format!("{} with flows = {}", keys.stagger, keys.flows);
    let stop = TIME.display(stop_ns);
    let allowed = format!("at most {}, for the last to begin before stop = {stop}", TIME.display(most_ns));
    problems.add(|| Problem::new(join(path, "stagger"), found, allowed));
}

/// On and off times. Traffic that has them ends only when it stops, so it cannot have `bytes`.
fn on_off(keys: &Tcp, path: &str, problems: &mut Problems) -> Option<OnOff> {
    let on_off = on_off::resolve(&keys.on_off, path, problems);
    if let (Some(bytes), Some(_)) = (keys.bytes, on_off) {
        let found = format!("{bytes} with on and off");
        let allowed = "no such key (an on/off source ends only at stop)";
        problems.add(|| Problem::new(join(path, "bytes"), found, allowed));
    }
    on_off
}

fn objects(keys: &Web, path: &str, problems: &mut Problems) -> Option<PageObjects> {
    let mut idle = |key: &str, found: String| {
        let allowed = "no such key (only a page with objects has it)";
        problems.add(|| Problem::new(join(path, key), format!("{found} without objects"), allowed));
    };
    match (keys.objects, keys.object_bytes) {
        (Some(0), _) => None,
        (Some(count), Some(bytes)) => {
            let connections = keys.connections.unwrap_or_else(page_connections);
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
