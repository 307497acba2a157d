//! Detects packets that were captured more than once at one vantage point, as at mirror ports, bridges, and routers on
//! one wire.
//!
//! All copies of a packet have the same digest ([`Decoded::digest`]). A retransmission has a different one, because its
//! IP identification and its TCP timestamp are new. But IPv6 has no identification, many systems send 0, and a
//! timestamp clock may tick too slowly. These rules therefore distinguish packets with the same digest:
//!
//! - A packet with a smaller time to live was forwarded.
//! - A packet with the same identification is a copy; a sender that reuses it (RFC 1122, section 3.2.1.5) waits longer
//!   than [`FORWARDED_NS`].
//! - A SYN is retransmitted after a second (RFC 6298, section 2), and not before [`SYN_NS`]. Each packet of a direction
//!   is captured as often as its SYN.
//! - A sender retransmits only after an answer or a timeout of milliseconds. A packet that arrives within
//!   [`AT_ONCE_NS`], without a packet of the other direction in between, is a copy. An acknowledgement without data may
//!   be repeated at once; it counts as a copy only if the direction's data is captured several times.
//!
//! Packets that these rules cannot decide are passed on, and counted if a direction has many of them.

use std::collections::HashMap;

use crate::Flags;
use crate::decode::{Decoded, Tcp, Transport, mixed};

/// Maximum time between two copies of a forwarded packet.
const FORWARDED_NS: i64 = 2_000_000_000;
/// Copies of a SYN come within this time.
const SYN_NS: i64 = 200_000_000;
/// No sender retransmits data within this time without an answer.
const AT_ONCE_NS: i64 = 1_000_000;
/// The same if answers are not captured.
const AT_ONCE_UNSEEN_NS: i64 = 100_000;
/// Maximum number of hops within one capture.
const MOST_HOPS: u8 = 8;
/// Maximum number of directions that are tracked at a time.
const MOST_DIRECTIONS: usize = 65_536;
/// Minimum number of segments before a direction in which every packet is repeated counts as doubtful.
const LEAST_SEGMENTS: u32 = 8;

/// Sets of four packets that are remembered: 2 MiB.
const SETS: usize = 1 << 14;
const WAYS: usize = 4;

/// A packet that was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    digest: u64,
    /// The times of its first and its last copy.
    first_ns: i64,
    last_ns: i64,
    /// When it was seen, as a number of packets.
    ordinal: u64,
    /// How often it was seen since it was last sent.
    times: u16,
    ttl: u8,
}

/// The state of a direction of a connection at one vantage point.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// How often its SYN was captured; 0: not at all.
    times: u16,
    /// Distinct segments with data; how many of them were repeated as certain copies, and how many as doubtful ones.
    segments: u32,
    copied: u32,
    doubtful: u32,
    /// The last of its packets.
    ordinal: u64,
}

impl Direction {
    /// Whether its data shows that each packet is captured several times.
    fn is_doubled(&self) -> bool {
        self.times > 1 || (self.segments >= 2 && 2 * self.copied >= self.segments)
    }
}

/// Detects packets that were captured more than once.
#[derive(Debug)]
pub(super) struct Copies {
    seen: Vec<[Seen; WAYS]>,
    directions: HashMap<u64, Direction>,
    ordinal: u64,
    doubtful: u64,
}

impl Default for Copies {
    fn default() -> Self {
        Self { seen: vec![Default::default(); SETS], directions: HashMap::new(), ordinal: 0, doubtful: 0 }
    }
}

impl Copies {
    /// Whether a packet is a copy of one that was captured at this vantage point before.
    #[inline]
    pub(super) fn has(&mut self, packet: &Decoded, vantage_point: u16, t_ns: i64) -> bool {
        self.ordinal += 1;
        let digest = mixed(packet.digest, u64::from(vantage_point) + 1);
        let [own, other] = keys(packet, vantage_point);
        let before = self.find(digest, t_ns, packet.ttl);
        let mut direction = self.direction(own);
        let is_copy = match before {
            None => {
                direction.began(packet);
                false
            }
            Some(before) => self.judge(packet, before, t_ns, &mut direction, other),
        };
        if !is_copy {
            direction.ordinal = self.ordinal;
        }
        if own != 0 {
            self.directions.insert(own, direction);
        }
        is_copy
    }

    /// Number of repeated segments in directions where nearly every segment is repeated and no rule decides whether
    /// they are copies.
    pub(super) fn doubtful(mut self) -> u64 {
        self.forget_directions();
        self.doubtful
    }

    /// The entry of this packet; adds it if it is missing.
    fn find(&mut self, digest: u64, t_ns: i64, ttl: u8) -> Option<(usize, usize)> {
        let set = digest as usize % SETS;
        if let Some(way) = self.seen[set].iter().position(|each| each.times > 0 && each.digest == digest) {
            return Some((set, way));
        }
        let oldest = self.seen[set].iter_mut().min_by_key(|each| each.ordinal)?;
        *oldest = Seen { digest, first_ns: t_ns, last_ns: t_ns, ordinal: self.ordinal, times: 1, ttl };
        None
    }

    fn direction(&mut self, key: u64) -> Direction {
        if self.directions.len() >= MOST_DIRECTIONS && !self.directions.contains_key(&key) {
            self.forget_directions();
        }
        self.directions.get(&key).copied().unwrap_or_default()
    }

    fn forget_directions(&mut self) {
        let in_doubt =
            |each: &Direction| each.times == 0 && each.segments >= LEAST_SEGMENTS && 2 * each.doubtful >= each.segments;
        self.doubtful += self
            .directions
            .drain()
            .map(|(_, each)| each)
            .filter(in_doubt)
            .map(|each| u64::from(each.doubtful))
            .sum::<u64>();
    }

    fn judge(
        &mut self,
        packet: &Decoded,
        (set, way): (usize, usize),
        t_ns: i64,
        direction: &mut Direction,
        other: u64,
    ) -> bool {
        let seen = self.seen[set][way];
        let back = self.directions.get(&other);
        let at_once_ns = if back.is_some() || other == 0 { AT_ONCE_NS } else { AT_ONCE_UNSEEN_NS };
        let again = Again {
            since_first_ns: t_ns.saturating_sub(seen.first_ns).saturating_abs(),
            is_at_once: t_ns.saturating_sub(seen.last_ns).saturating_abs() < at_once_ns,
            times: seen.times,
            is_forwarded: packet.ttl < seen.ttl && seen.ttl - packet.ttl <= MOST_HOPS,
            has_identification: packet.ip_id.is_some_and(|id| id != 0),
            is_answered: back.is_some_and(|back| back.ordinal > seen.ordinal),
            back_is_doubled: back.is_some_and(Direction::is_doubled),
        };
        let is_copy = again.is_copy(packet, direction);
        let seen = &mut self.seen[set][way];
        seen.last_ns = t_ns;
        seen.ordinal = self.ordinal;
        if is_copy {
            seen.times = seen.times.saturating_add(1);
        } else {
            *seen = Seen { first_ns: t_ns, times: 1, ttl: packet.ttl, ..*seen };
        }
        is_copy
    }
}

impl Direction {
    /// A packet that was not seen before.
    fn began(&mut self, packet: &Decoded) {
        if let Transport::Tcp(tcp) = packet.transport {
            if tcp.flags.has(Flags::SYN) {
                *self = Self { times: 1, ..Self::default() };
            }
            self.segments += u32::from(takes_sequence_numbers(&tcp));
        }
    }
}

/// A packet that was seen before, with the same digest.
#[derive(Clone, Copy, Debug)]
struct Again {
    /// The absolute time: clocks may go back a little, and copies come in any order.
    since_first_ns: i64,
    is_at_once: bool,
    times: u16,
    is_forwarded: bool,
    has_identification: bool,
    is_answered: bool,
    back_is_doubled: bool,
}

impl Again {
    fn is_copy(&self, packet: &Decoded, direction: &mut Direction) -> bool {
        let in_time = self.since_first_ns <= FORWARDED_NS;
        match packet.transport {
            Transport::Tcp(tcp) => self.is_copy_of_segment(&tcp, direction),
            // Every request has a number of its own, and its reply has the same number.
            Transport::Echo(_) => in_time,
            Transport::Udp { .. } | Transport::Other => {
                self.is_at_once || (in_time && (self.is_forwarded || self.has_identification))
            }
        }
    }

    fn is_copy_of_segment(&self, tcp: &Tcp, direction: &mut Direction) -> bool {
        let in_time = self.since_first_ns <= FORWARDED_NS;
        if tcp.flags.has(Flags::SYN) {
            let is_copy = self.since_first_ns < SYN_NS;
            if is_copy {
                direction.times = direction.times.max(self.times.saturating_add(1));
            }
            return is_copy;
        }
        let has_data = takes_sequence_numbers(tcp);
        let by_nature = in_time && (self.is_forwarded || (self.has_identification && direction.times != 1));
        let by_number = in_time && direction.times > 1 && !self.times.is_multiple_of(direction.times);
        let by_time =
            self.is_at_once && !self.is_answered && (has_data || direction.is_doubled() || self.back_is_doubled);
        let is_copy = by_nature || by_number || by_time;
        if has_data {
            direction.copied += u32::from(is_copy && self.times == 1);
            direction.doubtful += u32::from(!is_copy && in_time);
        }
        is_copy
    }
}

fn takes_sequence_numbers(tcp: &Tcp) -> bool {
    tcp.payload_bytes > 0 || tcp.flags.0 & (Flags::SYN | Flags::FIN) != 0
}

/// The keys of the direction of a packet's connection at a vantage point, and the other direction; 0: it has no
/// connection.
fn keys(packet: &Decoded, vantage_point: u16) -> [u64; 2] {
    let Transport::Tcp(tcp) = packet.transport else { return [0; 2] };
    let bits = |address| match address {
        std::net::IpAddr::V4(address) => u64::from(address.to_bits()),
        std::net::IpAddr::V6(address) => mixed(address.to_bits() as u64, (address.to_bits() >> 64) as u64),
    };
    let from = mixed(bits(packet.from), u64::from(tcp.from_port));
    let to = mixed(bits(packet.to), u64::from(tcp.to_port));
    let vantage_point = u64::from(vantage_point) + 1;
    [mixed(mixed(vantage_point, from), to) | 1, mixed(mixed(vantage_point, to), from) | 1]
}
