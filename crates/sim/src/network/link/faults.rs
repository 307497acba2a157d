//! The impairments of a wire: losses, jitter, and packets that skip the delay.
//!
//! Loss models, correlations and distributions are those of [netem](crate::network::qdisc). As in a netem without a
//! rate, packets overtake one another when their delays differ by enough, unless the wire keeps their order. Losses are
//! decided when the first bit of a packet is sent. A lost packet still occupies the link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bufferscope_scenario as scenario;

use crate::network::pool::PacketId;
use crate::network::qdisc::NetemSettings;
use crate::random::Random;

#[derive(Debug)]
pub(crate) struct Faults {
    settings: NetemSettings,
    random: Random,
    keep_order: bool,
    /// The packets on the wire, by the times of their arrivals and then in the order in which they were sent.
    line: BinaryHeap<Reverse<(u64, u64, PacketId)>>,
    sent: u64,
    last_arrival_ns: u64,
    lost: u64,
}

impl Faults {
    pub(super) fn new(parameters: &scenario::Faults, delay_ns: u64, mut random: Random) -> Self {
        Self {
            settings: NetemSettings::new(&parameters.netem(delay_ns), 0, &mut random),
            random,
            keep_order: parameters.keep_order,
            line: BinaryHeap::new(),
            sent: 0,
            last_arrival_ns: 0,
            lost: 0,
        }
    }

    pub(super) fn set_delay(&mut self, delay_ns: u64) {
        self.settings.delay_ns = delay_ns as i64;
    }

    /// A packet whose last bit is sent at `end_ns` propagates, with a further delay of `extra_ns`. Returns its arrival time; `None` if
    /// it is lost.
    pub(super) fn propagate(&mut self, packet: PacketId, end_ns: u64, extra_ns: u64) -> Option<u64> {
        let Self { settings, random, .. } = self;
        if settings.loss.as_mut().is_some_and(|chain| chain.loses(random)) {
            self.lost += 1;
            return None;
        }
        let is_delayed = !settings.reorder.as_mut().is_some_and(|reorder| reorder.goes_first(random));
        let delay_ns = if is_delayed { settings.drawn_delay_ns(random).max(0) as u64 } else { 0 };
        let mut arrival_ns = end_ns + delay_ns + extra_ns;
        if self.keep_order {
            arrival_ns = arrival_ns.max(self.last_arrival_ns);
        }
        self.last_arrival_ns = arrival_ns;
        self.sent += 1;
        self.line.push(Reverse((arrival_ns, self.sent, packet)));
        Some(arrival_ns)
    }

    /// When the next packet arrives at the other end.
    pub(super) fn next_arrival(&self) -> Option<u64> {
        self.line.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// Takes a packet that arrives at `now_ns`.
    pub(super) fn arrival(&mut self, now_ns: u64) -> Option<PacketId> {
        if self.next_arrival() != Some(now_ns) {
            return None;
        }
        self.line.pop().map(|Reverse((.., packet))| packet)
    }

    /// The packets on the wire, in any order.
    pub(super) fn packets(&self) -> impl ExactSizeIterator<Item = PacketId> {
        self.line.iter().map(|Reverse((.., packet))| *packet)
    }

    /// Number of packets that were lost.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::{Distribution, Loss, Reorder};

    use super::*;
    use crate::random::Stream;

    const MS: u64 = 1_000_000;

    fn wire(faults: scenario::Faults) -> Faults {
        Faults::new(&faults, 10 * MS, Random::new(1, Stream::Link(0)))
    }

    fn none() -> scenario::Faults {
        scenario::Faults {
            loss: None,
            jitter_ns: 0,
            correlation: 0.0,
            distribution: Distribution::Uniform,
            keep_order: false,
            reorder: None,
        }
    }

    /// One packet each millisecond: the arrivals, `None` for a lost packet.
    fn arrivals(faults: scenario::Faults, packets: u64) -> Vec<Option<u64>> {
        let mut wire = wire(faults);
        (0..packets).map(|number| wire.propagate(PacketId::numbered(number), number * MS, 0)).collect()
    }

    /// Of 100,000 packets, 1000 are lost, with a standard deviation of 31.
    #[test]
    fn packets_are_lost_with_their_probability() {
        let lost = arrivals(scenario::Faults { loss: Some(Loss::Random([0.01, 0.0])), ..none() }, 100_000);
        let lost = lost.iter().filter(|arrival| arrival.is_none()).count();
        assert!(lost.abs_diff(1000) < 4 * 31, "{lost}");
    }

    /// The bad state, which loses every packet, begins with 1 % and ends with 25 %: its share is 1/26, and it lasts for four packets. Of
    /// 400,000 packets, some 15,385 are lost in some 3846 bursts, whose mean length has a standard error of 0.056.
    #[test]
    fn the_bursts_of_gilberts_model_have_their_share_and_length() {
        let lost = arrivals(scenario::Faults { loss: Some(Loss::Gemodel([0.01, 0.25, 1.0, 0.0])), ..none() }, 400_000);
        let lost: Vec<bool> = lost.iter().map(Option::is_none).collect();
        let count = lost.iter().filter(|lost| **lost).count() as f64;
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((count / 400_000.0 * 26.0 - 1.0).abs() < 0.08, "{count}");
        assert!((count / bursts - 4.0).abs() < 0.25, "{}", count / bursts);
    }

    #[test]
    fn packets_overtake_one_another_unless_the_wire_keeps_their_order() {
        let jitter = scenario::Faults { jitter_ns: 5 * MS, ..none() };
        let overtaken: Vec<u64> = arrivals(jitter, 1000).into_iter().flatten().collect();
        assert!(!overtaken.is_sorted());
        for (number, arrival_ns) in (0..).zip(&overtaken) {
            assert!((number * MS + 5 * MS..number * MS + 15 * MS).contains(arrival_ns), "{number}: {arrival_ns}");
        }
        let kept: Vec<u64> =
            arrivals(scenario::Faults { keep_order: true, ..jitter }, 1000).into_iter().flatten().collect();
        // The same delays were drawn, and each packet waits for the one before.
        let mut last_ns = 0;
        for (kept_ns, overtaken_ns) in kept.into_iter().zip(overtaken) {
            last_ns = overtaken_ns.max(last_ns);
            assert_eq!(kept_ns, last_ns);
        }
    }

    /// With a gap of 4, three packets are delayed between two that are not.
    #[test]
    fn packets_that_go_first_are_not_delayed_and_arrive_before_the_others() {
        let reorder = Some(Reorder { probability: 1.0, correlation: 0.0, gap: 4 });
        let mut wire = wire(scenario::Faults { reorder, ..none() });
        let arrivals: Vec<u64> =
            (0..8).filter_map(|number| wire.propagate(PacketId::numbered(number), number * MS, 0)).collect();
        assert_eq!(arrivals, [10, 11, 12, 3, 14, 15, 16, 7].map(|ms| ms * MS));
        let mut order = Vec::new();
        while let Some(at_ns) = wire.next_arrival() {
            order.extend(wire.arrival(at_ns));
        }
        assert_eq!(order, [3, 7, 0, 1, 2, 4, 5, 6].map(PacketId::numbered));
    }
}
