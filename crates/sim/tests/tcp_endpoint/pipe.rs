//! One direction of a path: a rate that may change, a queue, a delay, and a plan of faults.

use crate::net::SECOND;
use bufferscope_sim::tcp::Segment;
use bufferscope_sim::{Ecn, Xmit};
use std::collections::VecDeque;

/// What happens to one packet on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Deliver,
    Drop,
    /// Delivered, later by this time.
    Late(u64),
    /// Delivered, and delivered again this much later.
    Twice(u64),
    /// Marked "congestion experienced" if ECN-capable.
    Mark,
    /// Dropped. If that is at the sending host, the sender is notified.
    Congest,
}

/// One segment on the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) sent_ns: u64,
    pub(crate) segment: Segment,
    pub(crate) ecn: Ecn,
    /// It was sent before with the same or a larger range.
    pub(crate) again: bool,
}

/// Decides about each packet, given its number in its direction, from 0.
pub(crate) type Plan = Box<dyn FnMut(usize, &Packet) -> Action>;

/// One direction.
pub(crate) struct Pipe {
    pub(crate) delay_ns: u64,
    /// The rates in bits per second, each with the time from which it applies. Without a rate, packets take no time.
    pub(crate) rates: Vec<(u64, u64)>,
    pub(crate) limit_packets: usize,
    /// The queue is that of the sending host, which learns what happens to its packets.
    pub(crate) own_host: bool,
    /// What happens to each packet.
    pub(crate) plan: Plan,
    /// All packets handed to this direction, except those that the sending host had no room for.
    pub(crate) sent: Vec<Packet>,
    /// All packets that arrived at its end, with the time.
    pub(crate) delivered: Vec<(u64, Segment)>,
    pub(crate) overflowed: usize,
    /// The times at which the packets that are queued or being sent will have left.
    departures: VecDeque<u64>,
}

/// What happens to a packet handed to a direction.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The result for the sender.
    pub(crate) xmit: Xmit,
    /// When it leaves the queue for the wire, or is dropped there.
    pub(crate) leaves_ns: u64,
    /// When it arrives, and how: not at all, once or twice.
    pub(crate) arrivals: Vec<(u64, Ecn)>,
}

impl Pipe {
    pub(crate) fn new(delay_ns: u64) -> Self {
        Self {
            delay_ns,
            rates: vec![],
            limit_packets: usize::MAX,
            own_host: false,
            plan: Box::new(|_, _| Action::Deliver),
            sent: vec![],
            delivered: vec![],
            overflowed: 0,
            departures: VecDeque::new(),
        }
    }

    pub(crate) fn carry(&mut self, packet: Packet) -> Carried {
        let action = (self.plan)(self.sent.len(), &packet);
        let now_ns = packet.sent_ns;
        let lost = |xmit| Carried { xmit, leaves_ns: now_ns, arrivals: vec![] };
        let departure = self.depart(&packet);
        if departure.is_none() && self.own_host {
            return lost(Xmit::Dropped);
        }
        self.sent.push(packet);
        let Some((leaves_ns, sent_ns)) = departure else { return lost(Xmit::Orphaned) };
        if action == Action::Congest && self.own_host {
            return lost(Xmit::Congested);
        }
        let xmit = match self.own_host {
            true if leaves_ns > now_ns => Xmit::Queued,
            true => Xmit::Left,
            false => Xmit::Orphaned,
        };
        let at_ns = sent_ns + self.delay_ns;
        let ecn = packet.ecn;
        let arrivals = match action {
            Action::Deliver => vec![(at_ns, ecn)],
            Action::Drop | Action::Congest => vec![],
            Action::Late(by_ns) => vec![(at_ns + by_ns, ecn)],
            Action::Twice(by_ns) => vec![(at_ns, ecn), (at_ns + by_ns, ecn)],
            Action::Mark if ecn == Ecn::NotEct => vec![(at_ns, ecn)],
            Action::Mark => vec![(at_ns, Ecn::Ce)],
        };
        Carried { xmit, leaves_ns, arrivals }
    }

    /// Queues a packet. Returns when its transmission begins and ends, or `None` if the queue is full.
    fn depart(&mut self, packet: &Packet) -> Option<(u64, u64)> {
        let now_ns = packet.sent_ns;
        if self.rates.is_empty() {
            return Some((now_ns, now_ns));
        }
        while self.departures.front().is_some_and(|&at_ns| at_ns <= now_ns) {
            self.departures.pop_front();
        }
        // One is on the wire, the others are queued.
        if self.departures.len() > self.limit_packets {
            self.overflowed += 1;
            return None;
        }
        let free_ns = self.departures.back().copied().unwrap_or(now_ns);
        let sent_ns = self.sent_at(free_ns, u64::from(packet.segment.ip_bytes()) * 8);
        self.departures.push_back(sent_ns);
        Some((free_ns, sent_ns))
    }

    /// When the last of these bits is sent, if the first is sent at `from_ns`.
    fn sent_at(&self, from_ns: u64, bits: u64) -> u64 {
        let mut at_ns = from_ns;
        let mut left_bits_ns = u128::from(bits) * u128::from(SECOND);
        let now = self.rates.partition_point(|&(since_ns, _)| since_ns <= from_ns).max(1) - 1;
        for (index, &(_, rate)) in self.rates.iter().enumerate().skip(now) {
            let until_ns = self.rates.get(index + 1).map_or(u64::MAX, |&(since_ns, _)| since_ns);
            let room_bits_ns = u128::from(until_ns - at_ns) * u128::from(rate);
            if left_bits_ns <= room_bits_ns {
                return at_ns + (left_bits_ns / u128::from(rate.max(1))) as u64;
            }
            left_bits_ns -= room_bits_ns;
            at_ns = until_ns;
        }
        at_ns
    }
}
