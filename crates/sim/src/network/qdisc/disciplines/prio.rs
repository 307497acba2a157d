//! `prio`: several disciplines in bands of falling priority. A band is served only while those before it are empty.
//!
//! Source: Linux `net/sched/sch_prio.c`. A filter chooses the band of a packet by its code point or port. If none fits, the
//! packet's priority does, which follows from the code point (see [`TrafficClass::priority`]).
//!
//! Departs: an echo reply in the queue of its own host has the priority of its code point; the kernel's has none.
//!
//! [`TrafficClass::priority`]: crate::network::traffic_class::TrafficClass::priority

use bufferscope_scenario as scenario;

use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::qdisc::shared::classifier::Classifier;
use crate::network::qdisc::{Attachment, Dequeued, Discipline, Qdisc, QdiscEvents, inside};
use crate::network::traffic_class::{Ecn, TrafficClass};
use crate::network::xmit::Xmit;

#[derive(Debug)]
pub(crate) struct Prio {
    bands: Vec<Qdisc>,
    band_of: Classifier<u8>,
    /// The backlog of all bands.
    backlog: Backlog,
}

impl Discipline for Prio {
    type Parameters = scenario::Prio;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Prio, attachment: Attachment) -> Result<Self, String> {
        let named = parameters.priomap.iter().copied().chain(parameters.filters.iter().map(|filter| filter.band));
        if parameters.bands < 2 || named.into_iter().any(|band| band >= parameters.bands) {
            return Err(format!("prio: a band is not below {}, or there are fewer than 2 bands", parameters.bands));
        }
        let other = scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: scenario::Prio::BAND_PACKETS });
        let band =
            |band: u16| Qdisc::new(parameters.inner.get(usize::from(band)).unwrap_or(&other), attachment.inner(band));
        let filters = parameters.filters.iter().map(|filter| (&filter.chosen, filter.band));
        let band_of = Classifier::new(filters, |dscp| parameters.priomap[usize::from(priority(dscp))]);
        let bands = (0..parameters.bands.into()).map(band).collect::<Result<_, _>>()?;
        Ok(Self { bands, band_of, backlog: Backlog::default() })
    }

    fn keeps_time(parameters: &scenario::Prio) -> bool {
        parameters.inner.iter().any(Qdisc::keeps_time)
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let band = self.band_of.of(pool.header(packet));
        self.watched(band.into(), |band| band.enqueue(packet, now_ns, pool, events))
    }

    /// If the packets of a band must wait until a later time, the next bands are served.
    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        let mut answer = Dequeued::Nothing;
        for band in 0..self.bands.len() {
            if self.bands[band].is_empty() {
                self.bands[band].idle_since(now_ns);
                continue;
            }
            match self.watched(band, |band| band.dequeue(now_ns, pool, events)) {
                Dequeued::Packet(packet) => return Dequeued::Packet(packet),
                found => answer = answer.or_before(found),
            }
        }
        answer
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn peek(&self) -> Option<PacketId> {
        let first = self.bands.iter().find(|band| !band.is_empty())?;
        first.peek()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.bands.iter().for_each(|band| band.each_packet(pool, visit));
    }

    fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        for (index, band) in self.bands.iter().enumerate() {
            band.each_in_flow_queues(pool, &mut |queue, packet| visit(inside(index, queue), packet));
        }
    }

    /// `prio_tune`: bands that remain keep their packets, unless they get another discipline.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        for surplus in self.bands.drain(to.bands.len().min(self.bands.len())..) {
            surplus.each_packet(pool, &mut |packet| events.drop(packet, scenario::Reason::PURGED));
        }
        let kept = self.bands.len();
        for (index, new) in to.bands.into_iter().enumerate() {
            if index < kept { self.bands[index].change(new, pool, events) } else { self.bands.push(new) }
        }
        self.band_of = to.band_of;
        self.backlog = self.bands.iter().map(Qdisc::backlog).sum();
    }

    fn idle_since(&mut self, at_ns: u64) {
        self.bands.iter_mut().for_each(|band| band.idle_since(at_ns));
    }

    /// `prio_peek` peeks at each band.
    fn peeked_empty_since(&mut self, at_ns: u64) {
        self.bands.iter_mut().for_each(|band| band.peeked_empty_since(at_ns));
    }

    fn timer(&self) -> Option<u64> {
        self.bands.iter().filter_map(Qdisc::timer).min()
    }

    fn on_timer(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) {
        for band in 0..self.bands.len() {
            if self.bands[band].timer().is_some_and(|at_ns| at_ns <= now_ns) {
                self.watched(band, |band| band.on_timer(now_ns, pool, events));
            }
        }
    }

    fn warning(&self) -> Option<String> {
        self.bands.iter().find_map(Qdisc::warning)
    }
}

impl Prio {
    /// Calls `act` with a band, and updates the backlog of all bands.
    fn watched<T>(&mut self, band: usize, act: impl FnOnce(&mut Qdisc) -> T) -> T {
        let band = &mut self.bands[band];
        let before = band.backlog();
        let result = act(band);
        self.backlog.adjust(before, band.backlog());
        result
    }
}

/// The priority of packets without ECN.
fn priority(dscp: u8) -> u8 {
    TrafficClass::new(dscp, Ecn::NotEct).priority()
}

#[cfg(test)]
mod tests;
