//! QUIC connections, as far as they can be observed from outside (RFC 9312).
//!
//! Acknowledgements, losses and windows are encrypted. Visible are the ends, the connection IDs of the handshake, the
//! sizes and times of datagrams, and the spin bit, if both ends use it.

use std::collections::HashMap;

use serde::Serialize;

use super::spin::{Spin, SpinNotes};
use crate::Endpoint;
use crate::analysis::End;
use crate::decode::{ConnectionId, Decoded, Guess, Quic, Transport};

/// Maximum number of connections that are followed.
const MOST_CONNECTIONS: usize = 1024;
/// Maximum number of IDs that are kept for a direction.
const MOST_IDS: usize = 4;
/// Maximum number of intervals for which bytes are counted. Beyond it, the intervals double.
const MOST_INTERVALS: usize = 600;
const FIRST_INTERVAL_NS: u64 = 100_000_000;

/// The summary of a connection.
#[derive(Clone, Debug, Serialize)]
pub struct QuicNotes {
    /// The end that opened it; without the handshake, the end that does not have port 443.
    pub from: End,
    /// The other end.
    pub to: End,
    /// Its version; `None`: the handshake was not captured.
    pub version: Option<u32>,
    /// The connection IDs that each end chose in the handshake, in hexadecimal; those of `from` first.
    pub ids: [Vec<String>; 2],
    /// Whether its handshake was captured. Otherwise it is taken for QUIC because of its port.
    pub is_sure: bool,
    /// Datagrams in each direction; those of `from` first.
    pub packets: [u64; 2],
    /// Their payload.
    pub bytes: [u64; 2],
    /// When its first datagram was seen, since the start.
    pub first_ns: u64,
    /// When its last datagram was seen.
    pub last_ns: u64,
    /// The length of the intervals.
    pub interval_ns: u64,
    /// The payload of each direction in each interval since the first datagram.
    pub bytes_in: [Vec<u64>; 2],
    /// Round-trip times by the spin bit.
    pub spin: SpinNotes,
}

#[derive(Debug)]
struct Connection {
    ends: [Endpoint; 2],
    /// The direction of the Initial packet with which it was opened: 0 is from the first end.
    opener: Option<usize>,
    version: Option<u32>,
    ids: [Vec<ConnectionId>; 2],
    /// The vantage point at which each direction is counted, if several see it.
    vantage_points: [Option<u16>; 2],
    packets: [u64; 2],
    bytes: [u64; 2],
    first_ns: u64,
    last_ns: u64,
    interval_ns: u64,
    bytes_in: [Vec<u64>; 2],
    spin: Spin,
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    connections: HashMap<[Endpoint; 2], Connection>,
    left_out: u64,
}

impl Connections {
    /// Processes a UDP datagram.
    pub(super) fn seen(&mut self, packet: &Decoded, t_ns: u64, vantage_point: u16) {
        let Transport::Udp { from, to, payload_bytes, guess, quic: Some(quic) } = packet.transport else { return };
        let from = Endpoint { address: packet.from, port: from };
        let to = Endpoint { address: packet.to, port: to };
        let direction = usize::from(from > to);
        let ends = if direction == 0 { [from, to] } else { [to, from] };
        let is_full = self.connections.len() >= MOST_CONNECTIONS;
        let connection = match self.connections.entry(ends) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(_) if guess != Some(Guess::Quic) => return,
            std::collections::hash_map::Entry::Vacant(_) if is_full => {
                self.left_out += 1;
                return;
            }
            std::collections::hash_map::Entry::Vacant(new) => new.insert(Connection::new(ends, t_ns)),
        };
        if *connection.vantage_points[direction].get_or_insert(vantage_point) == vantage_point {
            connection.seen(quic, direction, payload_bytes, t_ns);
        }
    }

    /// The summaries, those with the most data first; and the number of datagrams of connections that were not
    /// followed.
    pub(super) fn finish(self) -> (Vec<QuicNotes>, u64) {
        let mut notes: Vec<_> = self.connections.into_values().map(Connection::finish).collect();
        notes.sort_by_key(|each| (std::cmp::Reverse(each.bytes[0] + each.bytes[1]), each.first_ns));
        (notes, self.left_out)
    }
}

impl Connection {
    fn new(ends: [Endpoint; 2], t_ns: u64) -> Self {
        Self {
            ends,
            opener: None,
            version: None,
            ids: Default::default(),
            vantage_points: [None; 2],
            packets: [0; 2],
            bytes: [0; 2],
            first_ns: t_ns,
            last_ns: t_ns,
            interval_ns: FIRST_INTERVAL_NS,
            bytes_in: Default::default(),
            spin: Spin::default(),
        }
    }

    fn seen(&mut self, quic: Quic, direction: usize, payload_bytes: u32, t_ns: u64) {
        self.packets[direction] += 1;
        self.bytes[direction] += u64::from(payload_bytes);
        self.last_ns = self.last_ns.max(t_ns);
        self.count(direction, payload_bytes, t_ns.saturating_sub(self.first_ns));
        match quic {
            Quic::Short { spin } => self.spin.seen(spin, direction, t_ns),
            Quic::Long { version, is_initial, from, .. } => {
                if is_initial {
                    self.opener.get_or_insert(direction);
                }
                if version != 0 {
                    self.version = Some(version);
                }
                let ids = &mut self.ids[direction];
                if ids.len() < MOST_IDS && !from.is_empty() && !ids.contains(&from) {
                    ids.push(from);
                }
            }
        }
    }

    fn count(&mut self, direction: usize, payload_bytes: u32, since_ns: u64) {
        while since_ns / self.interval_ns >= MOST_INTERVALS as u64 {
            self.interval_ns = self.interval_ns.saturating_mul(2);
            for bytes in &mut self.bytes_in {
                *bytes = bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
        let at = (since_ns / self.interval_ns) as usize;
        let bytes = &mut self.bytes_in[direction];
        if bytes.len() <= at {
            bytes.resize(at + 1, 0);
        }
        bytes[at] += u64::from(payload_bytes);
    }

    fn finish(mut self) -> QuicNotes {
        const HTTPS_PORT: u16 = 443;
        let opener = self.opener.unwrap_or(usize::from(self.ends[0].port == HTTPS_PORT));
        let length = self.bytes_in[0].len().max(self.bytes_in[1].len());
        for bytes in &mut self.bytes_in {
            bytes.resize(length, 0);
        }
        let ids = self.ids.map(|ids| ids.iter().map(ConnectionId::hex).collect());
        QuicNotes {
            from: self.ends[opener].into(),
            to: self.ends[1 - opener].into(),
            version: self.version,
            is_sure: self.version.is_some(),
            ids: from(opener, ids),
            packets: from(opener, self.packets),
            bytes: from(opener, self.bytes),
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            interval_ns: self.interval_ns,
            bytes_in: from(opener, self.bytes_in),
            spin: self.spin.finish(opener),
        }
    }
}

/// The same in the order of the opener.
fn from<T>(opener: usize, [first, second]: [T; 2]) -> [T; 2] {
    if opener == 0 { [first, second] } else { [second, first] }
}
