//! A port: the sending side of one direction of a link. It has a queueing discipline, a wire and a delay line.

use bufferscope_scenario::{self as scenario, NodeIndex, RateSchedule};

use super::pool::{Fifo, PacketId, Pool};
use super::qdisc::{Fates, Qdisc};
use super::wire::Wire;
use super::xmit::Xmit;

/// One direction of a link.
///
/// A frame is put on the delay line when its first bit is sent, because its arrival time is known from then on. So the
/// end of a frame needs an event only if a packet is waiting for the wire.
#[derive(Debug)]
pub(crate) struct Port {
    /// Queue and wire. `None` for a port without a rate; its packets go straight to the delay line.
    pub(crate) sender: Option<Sender>,
    /// Propagation delay, counted from when the last bit was sent.
    delay_ns: u64,
    /// Packets on the wire or propagating, in the order of their arrival at the other end.
    line: Fifo,
    last_arrival_ns: u64,
    pub(crate) overhead_bytes: u32,
    /// The node to which the link leads.
    pub(crate) to: NodeIndex,
    pub(crate) counts: Counts,
}

/// Queue and wire of a port with a rate.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) qdisc: Qdisc,
    wire: Wire,
    /// Whether an event is pending for the end of the current frame, as it is while packets wait.
    awaited: bool,
}

/// Counts of what has happened at a port so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) arrived: u64,
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
    /// Packets and bytes that left the queue for the wire, counted like "Sent" of `tc -s qdisc` (which counts each
    /// segment of a packet that has several).
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    /// Packets that reached the other end.
    pub(crate) delivered: u64,
}

/// A packet that just left the queue for the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) packet: PacketId,
    /// When its last bit will have been sent.
    pub(crate) end_ns: u64,
    /// How long it was in the queue.
    pub(crate) sojourn_ns: u64,
}

/// What a port did with an arriving packet, and what is to be done next. The results are those for the packet's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// The port has no rate, and so no queue: the packet goes straight to the delay line.
    Passed,
    /// The queue has the packet, or has dropped it. The wire is free and must [send](Port::send_next).
    Ready(Xmit),
    /// The queue has the packet, or has dropped it. The wire is busy.
    Waiting(Xmit),
}

impl Port {
    pub(crate) fn new(port: &scenario::Port, to: NodeIndex, qdisc: Qdisc) -> Self {
        let sender = port.rate.as_ref().map(|rate| Sender { qdisc, wire: Wire::new(rate), awaited: false });
        Self {
            sender,
            delay_ns: port.delay_ns,
            line: Fifo::new(),
            last_arrival_ns: 0,
            overhead_bytes: port.overhead_bytes,
            to,
            counts: Counts::default(),
        }
    }

    /// From now on, frames are sent at this rate. The one on the wire is not affected.
    pub(crate) fn set_rate(&mut self, rate: &RateSchedule) {
        if let Some(sender) = &mut self.sender {
            sender.wire.set_rate(rate);
        }
    }

    /// From now on, packets propagate this long. No packet overtakes an earlier one.
    pub(crate) fn set_delay(&mut self, delay_ns: u64) {
        self.delay_ns = delay_ns;
    }

    /// Changes the parameters of the queueing discipline, or replaces it, as [`Qdisc::change`].
    pub(crate) fn change_queue(&mut self, to: Qdisc, pool: &Pool, fates: &mut Fates) {
        if let Some(sender) = &mut self.sender {
            sender.qdisc.change(to, pool, fates);
        }
    }

    /// Accepts a packet.
    #[inline]
    pub(crate) fn accept(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Accepted {
        self.counts.arrived += 1;
        let header = pool.header_mut(packet);
        header.frame_bytes = header.ip_bytes + self.overhead_bytes * header.load.frames();
        let Some(sender) = &mut self.sender else {
            self.counts.sent_packets += 1;
            self.counts.sent_bytes += u64::from(header.frame_bytes);
            return Accepted::Passed;
        };
        let free = !sender.awaited && sender.wire.free_at() <= now_ns;
        if free {
            sender.qdisc.idle_since(sender.wire.free_at());
        }
        let xmit = sender.qdisc.enqueue(packet, now_ns, pool, fates);
        if !free {
            return Accepted::Waiting(xmit);
        }
        // Nothing was waiting, so this packet leaves the queue now or is dropped on leaving. The sender is not told of
        // such a drop.
        let xmit = match xmit {
            Xmit::Queued => Xmit::Left,
            Xmit::Displacing => Xmit::Congested,
            Xmit::Left | Xmit::Congested | Xmit::Dropped => xmit,
        };
        Accepted::Ready(xmit)
    }

    /// The wire is free. Returns the packet whose transmission begins, if one was waiting.
    #[inline]
    pub(crate) fn send_next(&mut self, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Option<Sent> {
        let sender = self.sender.as_mut()?;
        sender.awaited = false;
        let packet = sender.qdisc.dequeue(now_ns, pool, fates)?;
        let header = pool.header(packet);
        let end_ns = sender.wire.send(now_ns, header.frame_bytes);
        self.counts.sent_packets += 1;
        self.counts.sent_bytes += u64::from(header.frame_bytes);
        Some(Sent { packet, end_ns, sojourn_ns: now_ns - header.at_ns })
    }

    /// The time when the wire will be free for a waiting packet. `None` if no packet waits, or if the time was already
    /// returned to an earlier call.
    #[inline]
    pub(crate) fn await_wire(&mut self) -> Option<u64> {
        let sender = self.sender.as_mut()?;
        if sender.awaited || sender.qdisc.is_empty() {
            return None;
        }
        sender.awaited = true;
        Some(sender.wire.free_at())
    }

    /// Puts a packet whose last bit is sent at `end_ns` on the delay line. The packet is delayed by a further
    /// `extra_ns`, or longer so that it does not overtake an earlier packet. Returns its arrival time if it is the only
    /// packet on the line.
    #[inline]
    pub(crate) fn propagate(&mut self, packet: PacketId, end_ns: u64, extra_ns: u64, pool: &mut Pool) -> Option<u64> {
        let arrival_ns = (end_ns + self.delay_ns + extra_ns).max(self.last_arrival_ns);
        self.last_arrival_ns = arrival_ns;
        pool.header_mut(packet).at_ns = arrival_ns;
        let first = self.line.is_empty();
        self.line.push(packet, pool);
        first.then_some(arrival_ns)
    }

    /// Takes a packet that arrives at `now_ns` off the line.
    #[inline]
    pub(crate) fn arrival(&mut self, now_ns: u64, pool: &Pool) -> Option<PacketId> {
        let packet = self.line.front().filter(|&packet| pool.header(packet).at_ns == now_ns)?;
        self.counts.delivered += 1;
        self.line.pop(pool);
        Some(packet)
    }

    /// When the next packet arrives at the other end.
    #[inline]
    pub(crate) fn next_arrival(&self, pool: &Pool) -> Option<u64> {
        self.line.front().map(|packet| pool.header(packet).at_ns)
    }

    /// Packets and bytes waiting in the queue.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        self.sender.as_ref().map_or((0, 0), |sender| sender.qdisc.backlog())
    }

    /// Every packet in the port.
    pub(crate) fn packets(&self, pool: &Pool) -> impl Iterator<Item = PacketId> {
        let bands = self.sender.as_ref().map_or(&[][..], |sender| sender.qdisc.bands());
        bands.iter().chain([&self.line]).flat_map(|queue| queue.iter(pool))
    }

    /// Packets on the wire or propagating.
    pub(crate) fn in_flight(&self) -> u64 {
        u64::from(self.line.packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::packet::{Body, Echo, EchoKind, Header};
    use crate::network::qdisc::Place;
    use crate::network::traffic_class::{Ecn, TrafficClass};

    const SECOND: u64 = 1_000_000_000;

    /// A port of 10 Mbit/s and 1 ms.
    fn port(queue: scenario::Qdisc) -> Port {
        let rate = RateSchedule::constant(10_000_000);
        let port = scenario::Port { rate, delay_ns: 1_000_000, overhead_bytes: 14, queue, ring: None };
        Port::new(&port, 0, Qdisc::new(&port.queue, Place { port: 0, overhead_bytes: 14, seed: 1 }).unwrap())
    }

    /// Passes a packet of 1500 bytes to the port.
    fn offer(port: &mut Port, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Option<Sent> {
        let header = Header {
            at_ns: 0,
            ip_bytes: 1500,
            frame_bytes: 0,
            flow: 0,
            destination: 0,
            class: TrafficClass::new(0, Ecn::NotEct),
            load: crate::network::packet::Load::of(1),
        };
        let id = pool.insert(header, Body::Echo(Echo { ping: 0, seq: 0, kind: EchoKind::Request }));
        match port.accept(id, now_ns, pool, fates) {
            Accepted::Ready(_) => port.send_next(now_ns, pool, fates),
            Accepted::Waiting(_) => None,
            Accepted::Passed => unreachable!("the port has a rate"),
        }
    }

    #[test]
    fn an_idle_port_sends_at_once_and_awaits_its_wire_only_if_packets_wait() {
        let (mut pool, mut fates) = (Pool::new(), Fates::default());
        let mut port = port(scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 10 }));
        let sent = offer(&mut port, 5, &mut pool, &mut fates).expect("the wire is free");
        assert_eq!((sent.end_ns, sent.sojourn_ns), (1_211_205, 0));
        assert_eq!(port.await_wire(), None, "nothing waits");
        assert!(offer(&mut port, 6, &mut pool, &mut fates).is_none());
        assert_eq!(port.await_wire(), Some(1_211_205));
        assert_eq!(port.await_wire(), None, "one event is enough");
        let second = port.send_next(1_211_205, &mut pool, &mut fates).expect("one waits");
        assert_eq!((second.end_ns, second.sojourn_ns), (2_422_405, 1_211_199));
    }

    #[test]
    fn packets_on_the_line_stay_in_order_whatever_they_wait_for_at_its_end() {
        let (mut pool, mut fates) = (Pool::new(), Fates::default());
        let mut port = port(scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 10 }));
        let first = offer(&mut port, 0, &mut pool, &mut fates).unwrap();
        assert_eq!(port.propagate(first.packet, first.end_ns, 5_000_000, &mut pool), Some(7_211_200));
        let second = offer(&mut port, 2_000_000, &mut pool, &mut fates).unwrap();
        assert_eq!(port.propagate(second.packet, second.end_ns, 0, &mut pool), None, "the first comes first");
        assert_eq!(port.arrival(7_211_199, &pool), None);
        assert_eq!(port.arrival(7_211_200, &pool), Some(first.packet));
        assert_eq!(port.arrival(7_211_200, &pool), Some(second.packet));
    }

    #[test]
    fn a_queue_learns_how_long_the_wire_was_idle() {
        // RED drops every packet once its average has risen above `max`. After ten idle seconds, the average is low
        // again.
        let red = scenario::Red {
            limit_bytes: 100_000,
            min_bytes: 2000,
            max_bytes: 4000,
            avpkt_bytes: 1000,
            burst_packets: 3,
            probability: 0.02,
            bandwidth_bps: 10_000_000,
            ecn: false,
        };
        let (mut pool, mut fates) = (Pool::new(), Fates::default());
        let mut port = port(scenario::Qdisc::Red(red));
        for _ in 0..20 {
            offer(&mut port, 0, &mut pool, &mut fates);
        }
        assert!(!fates.0.is_empty(), "the average is above max");
        let mut now_ns = 0;
        while let Some(at_ns) = port.await_wire() {
            now_ns = at_ns;
            port.send_next(now_ns, &mut pool, &mut fates);
        }
        fates.0.clear();
        assert!(offer(&mut port, now_ns + 2_000_000, &mut pool, &mut fates).is_none(), "not yet forgotten");
        assert!(offer(&mut port, now_ns + 10 * SECOND, &mut pool, &mut fates).is_some());
    }
}
