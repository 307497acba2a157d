//! A port: the sending side of one direction of a link. It is a pipeline of layers, each with its own counts.
//!
//! A packet passes through the [queueing discipline](super::qdisc), which may drop it or make it wait, the driver's
//! [ring](super::ring) if there is one, and the [link](super::link). Back-pressure goes the other way: while the link is
//! stopped, nothing is taken out of the layer above it, and while the ring is, nothing out of the discipline.

use bufferscope_scenario::{self as scenario, Encapsulation, NodeIndex};

use super::link::Link;
use super::pool::{PacketId, Pool};
use super::qdisc::layer::QdiscLayer;
use super::qdisc::{Dequeued, Qdisc, QdiscEvents};
use super::ring::Ring;
use super::segmentation::encapsulate;
use super::wifi::Radio;
use super::xmit::Xmit;
use crate::random::Random;
use crate::timers::Timers;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Port {
    /// `None` for a port without a rate, in which nothing ever queues.
    pub(crate) queue: Option<QdiscLayer>,
    /// The driver's ring, which few ports have.
    pub(crate) ring: Option<Box<Ring>>,
    pub(crate) link: Link,
    /// Whether an event is pending for the link's restart, as it is while packets wait for it.
    awaits_link: bool,
    /// The radio that sends its packets, for a port of a Wi-Fi network. For the port's queue, the link is then stopped
    /// forever.
    pub(crate) radio: Option<Box<Radio>>,
    encapsulation: Encapsulation,
    /// The node to which the link leads.
    pub(crate) to: NodeIndex,
}

/// A packet that just left the queue for the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) packet: PacketId,
    /// When its last bit will have been sent.
    pub(crate) end_ns: u64,
    /// How long it was in the queue.
    pub(crate) sojourn_ns: u64,
}

/// What is below a port's queue, and whether that takes a packet now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// The link of a port without a rate, and so without a queue: it takes every packet at once.
    Wire,
    /// A link that is not stopped.
    IdleLink,
    /// A link that is stopped.
    BusyLink,
    /// A ring, which takes what it has room for.
    Ring,
}

impl Port {
    /// `timers` has the lateness of the sending node's timers, and `random` the random numbers of the link.
    pub(crate) fn new(
        port: &scenario::Port,
        to: NodeIndex,
        qdisc: Qdisc,
        stacked: Option<Qdisc>,
        timers: Timers,
        random: Random,
    ) -> Self {
        Self {
            queue: port.rate.is_some().then(|| QdiscLayer::new(qdisc, stacked)),
            ring: port.ring.as_ref().map(|ring| Box::new(Ring::new(ring, timers))),
            link: Link::new(port, random),
            awaits_link: false,
            radio: None,
            encapsulation: port.encapsulation,
            to,
        }
    }

    /// Makes a new port one of a Wi-Fi network.
    pub(super) fn set_radio(&mut self, radio: Radio) {
        self.radio = Some(Box::new(radio));
        self.awaits_link = true;
    }

    /// What is below the queue now.
    #[inline]
    pub(crate) fn below(&self, now_ns: u64) -> Below {
        match (&self.queue, &self.ring) {
            (None, _) => Below::Wire,
            (Some(_), Some(_)) => Below::Ring,
            (Some(_), None) if self.is_ready(now_ns) => Below::IdleLink,
            (Some(_), None) => Below::BusyLink,
        }
    }

    /// Passes a packet to the link, which is idle, if the discipline has nothing to do with it. Returns when its last bit
    /// is sent; `None` if the port has to [accept](Self::accept) it.
    #[inline]
    pub(crate) fn bypass(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool) -> Option<u64> {
        encapsulate(packet, &self.encapsulation, pool);
        let passes = self.queue.as_mut()?.bypass(packet, pool);
        passes.then(|| self.link.send(now_ns, pool.header(packet).frame_bytes))
    }

    /// Accepts a packet: puts it into the queue, which is above `below`, if there is one. Returns the result for the
    /// sender, as long as nothing has left the queue since.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        packet: PacketId,
        below: Below,
        now_ns: u64,
        pool: &mut Pool,
        qdisc_events: &mut QdiscEvents,
    ) -> Xmit {
        encapsulate(packet, &self.encapsulation, pool);
        let Some(queue) = &mut self.queue else { return Xmit::Left };
        match (below, &self.ring) {
            (Below::IdleLink, _) => queue.idle_since(self.link.restarts_at()),
            (Below::Ring, Some(ring)) if !ring.is_stopped() => queue.idle_since(ring.idle_since()),
            _ => {}
        }
        queue.enqueue(packet, now_ns, pool, qdisc_events)
    }

    /// The link is not stopped. Returns the packet whose transmission begins, if there is one.
    #[inline]
    pub(crate) fn send_next(&mut self, now_ns: u64, pool: &mut Pool, qdisc_events: &mut QdiscEvents) -> Dequeued<Sent> {
        self.awaits_link = false;
        let Some(queue) = &mut self.queue else { return Dequeued::Nothing };
        queue.dequeue(now_ns, pool, qdisc_events).map(|packet| {
            let header = pool.header(packet);
            let end_ns = self.link.send(now_ns, header.frame_bytes);
            Sent { packet, end_ns, sojourn_ns: now_ns - header.at_ns }
        })
    }

    /// The link is stopped. Returns the time when it will restart for a queued packet; `None` if no packet is queued,
    /// or if the time was already returned to an earlier call.
    #[inline]
    pub(crate) fn await_link(&mut self, now_ns: u64) -> Option<u64> {
        if self.awaits_link || self.queue.as_ref()?.is_empty() {
            return None;
        }
        self.awaits_link = true;
        Some(self.link.awaited(now_ns))
    }

    /// Whether the link is ready for the next packet of the queue.
    #[inline]
    pub(crate) fn is_ready(&self, now_ns: u64) -> bool {
        !self.awaits_link && !self.link.is_stopped(now_ns)
    }

    /// Whether no packet waits in the port's queue.
    pub(crate) fn has_empty_queue(&self) -> bool {
        self.queue.as_ref().is_none_or(QdiscLayer::is_empty)
    }

    /// Every packet in the port.
    pub(crate) fn packets(&self, pool: &Pool) -> Vec<PacketId> {
        let mut packets: Vec<PacketId> = self.link.packets(pool);
        packets.extend(self.ring.iter().flat_map(|ring| ring.waiting().iter(pool)));
        if let Some(queue) = &self.queue {
            queue.each_packet(pool, &mut |packet| packets.push(packet));
        }
        if let Some(radio) = &self.radio {
            packets.extend(radio.packets(pool));
        }
        packets
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::RateSchedule;

    use super::*;
    use crate::network::packet::{Body, Echo, EchoKind, Header};
    use crate::network::qdisc::Attachment;
    use crate::network::qdisc::testing::strict_red;
    use crate::network::traffic_class::{Ecn, TrafficClass};

    const SECOND: u64 = 1_000_000_000;

    /// A port of 10 Mbit/s and 1 ms.
    fn port(queue: scenario::Qdisc) -> Port {
        let rate = RateSchedule::constant(10_000_000);
        let port = scenario::Port {
            rate,
            delay_ns: 1_000_000,
            encapsulation: Encapsulation::adding(14),
            queue,
            ring: None,
            stacked: None,
            variation: None,
            boost: None,
            faults: None,
        };
        Port::new(
            &port,
            0,
            Qdisc::new(
                &port.queue,
                Attachment { port: 0, node: 0, encapsulation: Encapsulation::adding(14), seed: 1, now_ns: 0 },
            )
            .unwrap(),
            None,
            Timers::Exact,
            Random::from_seed(1),
        )
    }

    /// A packet of 1500 bytes.
    fn packet(pool: &mut Pool) -> PacketId {
        let header = Header {
            at_ns: 0,
            ip_bytes: 1500,
            frame_bytes: 0,
            flow: 0,
            hash: 0,
            port: 0,
            source: 0,
            destination: 0,
            class: TrafficClass::new(0, Ecn::NotEct),
            load: crate::network::packet::Load::of(1),
        };
        pool.insert(header, Body::Echo(Echo { ping: 0, seq: 0, kind: EchoKind::Request }))
    }

    /// Passes a packet of 1500 bytes to the port.
    fn offer(port: &mut Port, now_ns: u64, pool: &mut Pool, qdisc_events: &mut QdiscEvents) -> Option<Sent> {
        let id = packet(pool);
        let below = port.below(now_ns);
        port.accept(id, below, now_ns, pool, qdisc_events);
        match below {
            Below::IdleLink => send(port, now_ns, pool, qdisc_events),
            Below::BusyLink => None,
            Below::Wire | Below::Ring => unreachable!("the port has a rate and no ring"),
        }
    }

    /// The packet that the link is given now, if there is one.
    fn send(port: &mut Port, now_ns: u64, pool: &mut Pool, qdisc_events: &mut QdiscEvents) -> Option<Sent> {
        match port.send_next(now_ns, pool, qdisc_events) {
            Dequeued::Packet(sent) => Some(sent),
            Dequeued::Nothing => None,
            Dequeued::NotBefore(at_ns) => unreachable!("there is no packet before {at_ns}"),
        }
    }

    #[test]
    fn an_idle_port_sends_at_once_and_awaits_its_link_only_if_packets_wait() {
        let (mut pool, mut qdisc_events) = (Pool::new(), QdiscEvents::default());
        let mut port = port(scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 10 }));
        let sent = offer(&mut port, 5, &mut pool, &mut qdisc_events).expect("the link is idle");
        assert_eq!((sent.end_ns, sent.sojourn_ns), (1_211_205, 0));
        assert_eq!(port.await_link(5), None, "nothing waits");
        assert!(offer(&mut port, 6, &mut pool, &mut qdisc_events).is_none());
        assert_eq!(port.await_link(6), Some(1_211_205));
        assert_eq!(port.await_link(6), None, "one event is enough");
        let second = send(&mut port, 1_211_205, &mut pool, &mut qdisc_events).expect("one waits");
        assert_eq!((second.end_ns, second.sojourn_ns), (2_422_405, 1_211_199));
    }

    #[test]
    fn a_packet_bypasses_only_an_empty_fifo_with_room_and_is_counted_and_sent_like_any_other() {
        let pfifo = |limit_packets| scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets });
        let bfifo = |limit_bytes| scenario::Qdisc::Bfifo(scenario::Bfifo { limit_bytes });
        let codel = scenario::Qdisc::Codel(scenario::Codel {
            limit_packets: 1000,
            target_ns: 5_000_000,
            interval_ns: 100_000_000,
            ecn: false,
            ce_threshold_ns: None,
        });
        for (queue, bypasses) in
            [(pfifo(1), true), (pfifo(0), false), (bfifo(1514), true), (bfifo(1513), false), (codel, false)]
        {
            let (mut pool, mut qdisc_events) = (Pool::new(), QdiscEvents::default());
            let mut port = port(queue);
            let id = packet(&mut pool);
            assert_eq!(port.bypass(id, 5, &mut pool), bypasses.then_some(1_211_205));
            let counts = port.queue.as_ref().unwrap().counts;
            let expected = if bypasses { (1, 1, 1514) } else { (0, 0, 0) };
            assert_eq!((counts.arrived, counts.sent_packets, counts.sent_bytes), expected);
            if bypasses {
                assert!(offer(&mut port, 6, &mut pool, &mut qdisc_events).is_none(), "the link is busy");
                let waiting = packet(&mut pool);
                assert_eq!(port.bypass(waiting, 1_211_205, &mut pool), None, "another packet waits");
            }
        }
    }

    #[test]
    fn packets_on_the_line_stay_in_order_whatever_they_wait_for_at_its_end() {
        let (mut pool, mut qdisc_events) = (Pool::new(), QdiscEvents::default());
        let mut port = port(scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 10 }));
        let first = offer(&mut port, 0, &mut pool, &mut qdisc_events).unwrap();
        assert_eq!(port.link.propagate(first.packet, first.end_ns, 5_000_000, &mut pool), Some(7_211_200));
        let second = offer(&mut port, 2_000_000, &mut pool, &mut qdisc_events).unwrap();
        assert_eq!(port.link.propagate(second.packet, second.end_ns, 0, &mut pool), None, "the first comes first");
        assert_eq!(port.link.arrival(7_211_199, &pool), None);
        assert_eq!(port.link.arrival(7_211_200, &pool), Some(first.packet));
        assert_eq!(port.link.arrival(7_211_200, &pool), Some(second.packet));
    }

    #[test]
    fn a_queue_learns_how_long_the_link_was_idle() {
        // RED drops every packet once its average has risen above `max`. After ten idle seconds, the average is low
        // again.
        let (mut pool, mut qdisc_events) = (Pool::new(), QdiscEvents::default());
        let mut port = port(strict_red());
        for _ in 0..20 {
            offer(&mut port, 0, &mut pool, &mut qdisc_events);
        }
        assert!(!qdisc_events.0.is_empty(), "the average is above max");
        let mut now_ns = 0;
        while let Some(at_ns) = port.await_link(now_ns) {
            now_ns = at_ns;
            send(&mut port, now_ns, &mut pool, &mut qdisc_events);
        }
        qdisc_events.0.clear();
        assert!(offer(&mut port, now_ns + 2_000_000, &mut pool, &mut qdisc_events).is_none(), "not yet forgotten");
        assert!(offer(&mut port, now_ns + 10 * SECOND, &mut pool, &mut qdisc_events).is_some());
    }
}
