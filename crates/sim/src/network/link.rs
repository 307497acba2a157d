//! The link of a port: sends one frame at a time, and carries what it has sent to the other end.
//!
//! Above it is the queueing discipline, or a driver's ring. They use only whether the link is
//! [stopped](Link::is_stopped), and when it [restarts](Link::restarts_at), as in the kernel's `netif_tx_stop_queue` and
//! `netif_tx_wake_queue`. A link that is not stopped accepts one frame, and is then stopped until the frame's last bit
//! is sent.
//!
//! There are several kinds of links, which differ in how long a frame takes. A new kind is a struct that computes this,
//! and a variant of [`Kind`].

mod boosted;
mod delivery;
mod faults;
mod walk;

use std::hint::select_unpredictable;

use bufferscope_scenario::{self as scenario, RateSchedule, RateStep, Variation};

use self::boosted::Boosted;
use self::delivery::{Delivery, Opening};
use self::faults::Faults;
use self::walk::Walking;

use super::pool::{Fifo, PacketId, Pool};
use crate::random::Random;

const NS_PER_S: u64 = 1_000_000_000;
const BITS_PER_BYTE: u64 = 8;

/// A link, in one direction.
///
/// A frame is put on the delay line when its first bit is sent, because its arrival time is known from then on. So the
/// end of a frame needs an event only if a packet is waiting for it.
#[derive(Debug)]
pub(crate) struct Link {
    kind: Kind,
    /// When the last bit of the last frame is, or was, sent; or, if the link accepts frames only at certain times, the next of
    /// these that is known.
    free_at_ns: u64,
    /// After this time the link accepts no frame, until it is [awaited](Self::awaited).
    closes_at_ns: u64,
    /// Propagation delay, counted from when the last bit was sent.
    delay_ns: u64,
    /// Packets being sent or propagating, in the order of their arrival at the other end.
    line: Fifo,
    last_arrival_ns: u64,
    /// The impairments of the link; packets then have a delay line of their own.
    faults: Option<Box<Faults>>,
    /// Packets that reached the other end.
    delivered: u64,
    /// Its rates from the start of the run on; `None` if frames take no time.
    rates: Option<RateSchedule>,
    /// The number of these rates that were recorded.
    recorded_rates: usize,
}

/// How long frames take.
#[derive(Debug)]
enum Kind {
    /// Frames take no time. Such a link is never stopped.
    Unlimited,
    Constant(Constant),
    Schedule(Schedule),
    Boosted(Boosted),
    Delivery(Box<Delivery>),
    Walking(Box<Walking>),
}

/// A link whose rate never changes.
///
/// Times are whole nanoseconds, rounded up for a frame that finds the link idle. Frames sent back to back carry over
/// the rounding error, so that over a busy period the link sends exactly at its rate and never faster.
#[derive(Debug)]
struct Constant {
    bits_per_second: u64,
    /// The rounding error so far in this busy period, in units of 1/rate ns.
    credit: u64,
    last: Duration,
}

/// The duration of a frame that begins without credit. It is cached, because most frames have the length of the
/// previous one.
#[derive(Clone, Copy, Debug, Default)]
struct Duration {
    bytes: u32,
    whole_ns: u64,
    /// The rest, in units of 1/rate ns.
    rest: u64,
}

/// A link whose rate changes at given times.
///
/// The rate at which a frame's first bit is sent applies to the whole frame. If the rate changes meanwhile, the new
/// rate applies from the next frame on.
#[derive(Debug)]
struct Schedule {
    /// The step of the link's rates that applied when the last frame began.
    current: usize,
    now: Constant,
}

impl Link {
    /// The link of a port. Without a rate, frames take no time.
    pub(crate) fn new(port: &scenario::Port, mut random: Random) -> Self {
        let fault_random = Random::from_seed(random.seed());
        let kind = match (&port.rate, &port.variation, port.boost) {
            (None, ..) => Kind::Unlimited,
            (Some(_), Some(Variation::Trace { opportunities, .. }), _) => {
                Kind::Delivery(Box::new(Delivery::new(opportunities.clone())))
            }
            (Some(_), Some(Variation::Walk(walk)), _) => Kind::Walking(Box::new(Walking::new(walk, random))),
            (Some(rate), None, None) => Kind::at(rate, 0),
            (Some(rate), None, Some(boost)) => Kind::Boosted(Boosted::new(boost, rate.at(0))),
        };
        let faults = port.faults.map(|faults| Box::new(Faults::new(&faults, port.delay_ns, fault_random)));
        let is_open = !matches!(kind, Kind::Delivery(_));
        Self {
            kind,
            free_at_ns: if is_open { 0 } else { u64::MAX },
            closes_at_ns: u64::MAX,
            delay_ns: port.delay_ns,
            line: Fifo::new(),
            last_arrival_ns: 0,
            faults,
            delivered: 0,
            rates: port.rate.clone(),
            recorded_rates: 0,
        }
    }

    /// From now on, frames are sent at this rate. The one that is being sent is not affected. A link without a rate
    /// gets none.
    pub(crate) fn set_rate(&mut self, rate: &RateSchedule, now_ns: u64) {
        if let Some(rates) = &mut self.rates {
            rates.follow(rate, now_ns);
            match &mut self.kind {
                Kind::Boosted(boosted) => boosted.set_rate(rates.at(now_ns), now_ns),
                Kind::Delivery(_) | Kind::Walking(_) => {}
                kind => *kind = Kind::at(rates, now_ns),
            }
        }
    }

    /// From now on, packets propagate this long. No packet overtakes an earlier one.
    pub(crate) fn set_delay(&mut self, delay_ns: u64) {
        self.delay_ns = delay_ns;
        if let Some(faults) = &mut self.faults {
            faults.set_delay(delay_ns);
        }
    }

    /// Whether the link accepts no frame now.
    #[inline]
    pub(crate) fn is_stopped(&self, now_ns: u64) -> bool {
        now_ns < self.free_at_ns || now_ns > self.closes_at_ns
    }

    /// The time from which the link can accept another frame.
    #[inline]
    pub(crate) fn restarts_at(&self) -> u64 {
        self.free_at_ns
    }

    /// A packet waits for the link, which is stopped. Returns the time from which the link can accept it.
    #[inline]
    pub(crate) fn awaited(&mut self, now_ns: u64) -> u64 {
        if let Kind::Delivery(delivery) = &mut self.kind
            && (self.free_at_ns == u64::MAX || now_ns > self.closes_at_ns)
        {
            self.free_at_ns = delivery.open(now_ns);
            self.closes_at_ns = self.free_at_ns;
        }
        self.free_at_ns
    }

    /// Sends a frame; the link must not be stopped. Returns when the last bit is sent.
    #[inline]
    pub(crate) fn send(&mut self, now_ns: u64, bytes: u32) -> u64 {
        debug_assert!(!self.is_stopped(now_ns), "a link sends one frame at a time");
        let idle = now_ns > self.free_at_ns;
        let duration_ns = match &mut self.kind {
            Kind::Constant(constant) => constant.duration_ns(bytes, idle),
            Kind::Schedule(schedule) => schedule.duration_ns(steps(self.rates.as_ref()), now_ns, bytes, idle),
            Kind::Boosted(boosted) => {
                let sent = boosted.send(now_ns, bytes);
                self.free_at_ns = sent.restarts_at_ns;
                return sent.end_ns;
            }
            Kind::Delivery(delivery) => {
                let (end_ns, opening) = delivery.send(now_ns, bytes.into());
                (self.free_at_ns, self.closes_at_ns) = match opening {
                    Opening::At(at_ns) => (at_ns, at_ns),
                    Opening::Later => (u64::MAX, u64::MAX),
                };
                return end_ns;
            }
            Kind::Walking(walking) => {
                self.free_at_ns = walking.send(now_ns, bytes, idle);
                return self.free_at_ns;
            }
            Kind::Unlimited => 0,
        };
        self.free_at_ns = now_ns + duration_ns;
        self.free_at_ns
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

    /// Whether packets can be lost or reordered on this link.
    #[inline]
    pub(crate) fn is_faulty(&self) -> bool {
        self.faults.is_some()
    }

    /// As [`propagate`](Self::propagate) for a link with impairments. Returns whether the packet goes on; it is lost
    /// otherwise. If the packet arrives before all others, `first` is set to the time.
    pub(crate) fn propagate_or_lose(
        &mut self,
        packet: PacketId,
        end_ns: u64,
        extra_ns: u64,
        first: &mut Option<u64>,
    ) -> bool {
        let Some(faults) = &mut self.faults else { return true };
        let Some(arrival_ns) = faults.propagate(packet, end_ns, extra_ns) else { return false };
        *first = Some(arrival_ns).filter(|_| faults.next_arrival() == Some(arrival_ns));
        true
    }

    /// Takes a packet that arrives at `now_ns` off the line.
    #[inline]
    pub(crate) fn arrival(&mut self, now_ns: u64, pool: &Pool) -> Option<PacketId> {
        if let Some(faults) = &mut self.faults {
            let packet = faults.arrival(now_ns)?;
            self.delivered += 1;
            return Some(packet);
        }
        let packet = self.line.front().filter(|&packet| pool.header(packet).at_ns == now_ns)?;
        self.delivered += 1;
        self.line.pop(pool);
        Some(packet)
    }

    /// When the next packet arrives at the other end.
    #[inline]
    pub(crate) fn next_arrival(&self, pool: &Pool) -> Option<u64> {
        match &self.faults {
            None => self.line.front().map(|packet| pool.header(packet).at_ns),
            Some(faults) => faults.next_arrival(),
        }
    }

    /// The rate at which it can send; `None` if frames take no time.
    pub(crate) fn rate_bps(&self, now_ns: u64) -> Option<u64> {
        match &self.kind {
            Kind::Boosted(boosted) => Some(boosted.rate_bps(now_ns)),
            Kind::Delivery(delivery) => Some(delivery.rate_bps()),
            Kind::Walking(walking) => Some(walking.rate_bps(now_ns)),
            _ => self.rates.as_ref().map(|rates| rates.at(now_ns)),
        }
    }

    /// Passes on the rates that it has had up to `now_ns` and that were not yet recorded, each with its beginning.
    pub(crate) fn record_rates(&mut self, now_ns: u64, record: impl FnMut(RateStep)) {
        match &mut self.kind {
            Kind::Boosted(boosted) => return boosted.take_rates(now_ns).for_each(record),
            Kind::Delivery(delivery) => return delivery.take_rates(now_ns, record),
            Kind::Walking(walking) => return walking.take_rates(now_ns).for_each(record),
            Kind::Unlimited | Kind::Constant(_) | Kind::Schedule(_) => {}
        }
        let steps = &steps(self.rates.as_ref())[self.recorded_rates..];
        let begun = steps.iter().take_while(|step| step.from_ns <= now_ns).count();
        steps[..begun].iter().copied().for_each(record);
        self.recorded_rates += begun;
    }

    /// Packets being sent or propagating.
    pub(crate) fn packets(&self, pool: &Pool) -> Vec<PacketId> {
        let faulty = self.faults.iter().flat_map(|faults| faults.packets());
        self.line.iter(pool).chain(faulty).collect()
    }

    /// Number of packets being sent or propagating.
    pub(crate) fn in_flight(&self) -> u64 {
        u64::from(self.line.packets()) + self.faults.as_ref().map_or(0, |faults| faults.packets().len() as u64)
    }

    /// Number of packets that were lost on the way.
    pub(crate) fn lost(&self) -> u64 {
        self.faults.as_ref().map_or(0, |faults| faults.lost())
    }

    /// Number of packets that have reached the other end.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Number of packets that the link has accepted and not lost.
    pub(crate) fn accepted(&self) -> u64 {
        self.delivered + self.in_flight()
    }
}

fn steps(rates: Option<&RateSchedule>) -> &[RateStep] {
    rates.map_or(&[], RateSchedule::steps)
}

impl Kind {
    /// The kind of a link that has had these rates up to `now_ns`, and has the others later.
    fn at(rates: &RateSchedule, now_ns: u64) -> Self {
        let steps = rates.steps();
        let current = steps.partition_point(|step| step.from_ns <= now_ns) - 1;
        let now = Constant::new(steps[current].bits_per_second);
        if current + 1 == steps.len() { Self::Constant(now) } else { Self::Schedule(Schedule { current, now }) }
    }
}

impl Constant {
    fn new(bits_per_second: u64) -> Self {
        Self { bits_per_second, credit: 0, last: Duration::default() }
    }

    /// How long the next frame takes. `afresh` says that it begins without credit.
    #[inline]
    fn duration_ns(&mut self, bytes: u32, afresh: bool) -> u64 {
        if self.last.bytes != bytes {
            self.last = Duration::new(bytes, self.bits_per_second);
        }
        let Duration { whole_ns, rest, .. } = self.last;
        let credit = select_unpredictable(afresh, 0, self.credit);
        let rounded_up = rest > credit;
        self.credit = credit.wrapping_sub(rest).wrapping_add(select_unpredictable(rounded_up, self.bits_per_second, 0));
        whole_ns + u64::from(rounded_up)
    }
}

impl Duration {
    fn new(bytes: u32, bits_per_second: u64) -> Self {
        let owed = u64::from(bytes) * BITS_PER_BYTE * NS_PER_S;
        Self { bytes, whole_ns: owed / bits_per_second, rest: owed % bits_per_second }
    }
}

impl Schedule {
    fn duration_ns(&mut self, steps: &[RateStep], now_ns: u64, bytes: u32, idle: bool) -> u64 {
        while let Some(next) = steps.get(self.current + 1).filter(|next| next.from_ns <= now_ns) {
            self.now = Constant::new(next.bits_per_second);
            self.current += 1;
        }
        self.now.duration_ns(bytes, idle)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MBIT: u64 = 1_000_000;

    fn link(bits_per_second: u64) -> Link {
        new(RateSchedule::constant(bits_per_second))
    }

    fn steps(steps: &[(u64, u64)]) -> Link {
        let steps = steps.iter().map(|&(from_ns, bits_per_second)| RateStep { from_ns, bits_per_second }).collect();
        new(RateSchedule::new(steps))
    }

    fn new(rate: Option<RateSchedule>) -> Link {
        let queue = scenario::Qdisc::default();
        let port = scenario::Port {
            rate,
            variation: None,
            delay_ns: 0,
            encapsulation: scenario::Encapsulation::adding(14),
            queue,
            ring: None,
            boost: None,
            stacked: None,
            faults: None,
        };
        Link::new(&port, Random::from_seed(1))
    }

    #[test]
    fn a_full_frame_takes_1211200_ns_at_10_mbit() {
        // 1514 bytes are 12112 bits.
        let mut link = link(10 * MBIT);
        assert_eq!(link.send(5, 1514), 1_211_205);
        assert!(link.is_stopped(1_211_204) && !link.is_stopped(1_211_205));
        assert_eq!(link.send(1_211_205, 1514), 2_422_405);
    }

    #[test]
    fn rounding_is_handed_on_within_a_busy_period_and_ends_with_it() {
        // 1 byte at 7 Mbit/s takes 1142.86 ns. The ends: 1143, 2286, 3429, 4572, 5715, 6858, and 8000 after seven
        // bytes.
        let mut link = link(7 * MBIT);
        let ends: Vec<u64> = (0..7).map(|_| link.send(link.restarts_at(), 1)).collect();
        assert_eq!(ends, [1143, 2286, 3429, 4572, 5715, 6858, 8000]);
        assert_eq!(link.send(8000, 1), 9143);
        assert_eq!(link.send(10_000, 1), 11_143, "the link was idle: rounded up afresh");
    }

    #[test]
    fn a_change_of_rate_applies_to_the_frame_that_is_sent_next() {
        let mut link = steps(&[(0, 100 * MBIT), (100_000, 10 * MBIT), (5_000_000, 100 * MBIT)]);
        // The frame takes 121.12 us at 100 Mbit/s; it begins before the change and ends after it.
        assert_eq!(link.send(0, 1514), 121_120);
        assert_eq!(link.send(121_120, 1514), 121_120 + 1_211_200);
        assert_eq!(link.send(5_000_000, 1514), 5_121_120, "a step holds from its first nanosecond on");
    }

    #[test]
    fn a_link_without_a_rate_is_never_stopped() {
        let mut link = new(None);
        assert_eq!([link.send(7, 1514), link.send(7, 1514)], [7, 7]);
        assert!(!link.is_stopped(7));
    }

    proptest! {
        #[test]
        fn a_busy_link_sends_exactly_at_its_rate(
            rate in 1_000_u64..400_000_000_000,
            frames in prop::collection::vec(1_u32..65_536, 1..50),
            repeated in 1_usize..3,
        ) {
            let mut link = link(rate);
            let mut bits = 0_u128;
            for bytes in frames.into_iter().flat_map(|bytes| std::iter::repeat_n(bytes, repeated)) {
                bits += u128::from(bytes) * 8;
                let end_ns = link.send(link.restarts_at(), bytes);
                prop_assert_eq!(u128::from(end_ns), (bits * 1_000_000_000).div_ceil(u128::from(rate)));
            }
        }
    }
}
