//! No discipline that limits a rate sends more than rate x time + burst in any window of time, whatever arrives.
//!
//! This holds in every window if and only if a bucket of the size of the burst, which leaks at the rate and is filled
//! by the packets that leave, never overflows (Cruz, "A Calculus for Network Delay", 1991).

use bufferscope_scenario::sizes::MSS_BYTES;
use bufferscope_scenario::{self as scenario, Cells, ClassFilter, Htb, LinkLayer, Match, Qdisc as Parameters};
use proptest::prelude::*;

use crate::network::packet::Header;
use crate::network::pool::Pool;
use crate::network::qdisc::testing::{Flow, attachment, segment};
use crate::network::qdisc::{Dequeued, Qdisc, QdiscEvent, QdiscEvents};
use crate::network::traffic_class::{Ecn, TrafficClass};

const NS_PER_S: i128 = 1_000_000_000;
const FLOWS: u8 = 5;
const MOST_SEGMENTS: u32 = 10;
/// The largest packet: ten segments, each with 52 bytes of headers and 14 of the link.
const MOST_BYTES: u64 = (MOST_SEGMENTS * (MSS_BYTES + 66)) as u64;

/// For how long packets leave after the last arrival.
const REST_NS: u64 = 30_000_000_000;

/// An event at a port whose link accepts every packet at once.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A segment of a flow arrives after a time.
    Arrival { after_ns: u64, flow: u8, payload_bytes: u32 },
    /// The link stops for a time.
    Stop { for_ns: u64 },
}

fn arrival() -> impl Strategy<Value = Event> {
    let after = prop_oneof![4 => Just(0), 2 => 0..2_000_000_u64, 2 => 0..50_000_000_u64, 1 => 0..10_000_000_000_u64];
    let payload = prop_oneof![3 => Just(MSS_BYTES), 3 => 0..=MSS_BYTES, 1 => 0..=MOST_SEGMENTS * MSS_BYTES];
    (after, 0..FLOWS, payload).prop_map(|(after_ns, flow, payload_bytes)| Event::Arrival {
        after_ns,
        flow,
        payload_bytes,
    })
}

fn arrivals() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(arrival(), 1..150)
}

/// The same with a link that stops now and then.
fn arrivals_and_stops() -> impl Strategy<Value = Vec<Event>> {
    let stop = (0..500_000_000_u64).prop_map(|for_ns| Event::Stop { for_ns });
    prop::collection::vec(prop_oneof![9 => arrival(), 1 => stop], 1..150)
}

/// A bucket that leaks at a rate, and must not overflow.
#[derive(Clone, Debug)]
struct Meter {
    name: String,
    bits_per_second: i128,
    burst_bytes: u64,
    /// In bits, times the nanoseconds of a second.
    level: i128,
    at_ns: u64,
}

impl Meter {
    fn new(name: impl Into<String>, bits_per_second: u64, burst_bytes: u64) -> Self {
        Self { name: name.into(), bits_per_second: bits_per_second.into(), burst_bytes, level: 0, at_ns: 0 }
    }

    /// Counts this many bytes that leave. The kernel rounds the duration of a packet down to nanoseconds, and computes
    /// with a rate of at least 31 significant bits (`psched_ratecfg_precompute`, `cake_set_rate`).
    fn pass(&mut self, bytes: u32, now_ns: u64) {
        let leaked = i128::from(now_ns - self.at_ns) * self.bits_per_second;
        let exact = i128::from(bytes) * 8 * NS_PER_S;
        let passed = exact - (exact >> 31) - self.bits_per_second;
        self.level = (self.level - leaked).max(0) + passed.max(0);
        self.at_ns = now_ns;
        let most = i128::from(self.burst_bytes) * 8 * NS_PER_S;
        let excess = (self.level - most) / (8 * NS_PER_S);
        assert!(self.level <= most, "{}: {excess} bytes above the rate and {}", self.name, self.burst_bytes);
    }
}

/// A discipline whose packets leave as soon as they may.
struct Port {
    qdisc: Qdisc,
    pool: Pool,
    qdisc_events: QdiscEvents,
    now_ns: u64,
}

impl Port {
    /// Advances the time. Unless the link is stopped, packets that may leave do so, and are reported.
    fn wait_until(&mut self, end_ns: u64, is_stopped: bool, leaves: &mut impl FnMut(&Header, u64)) {
        loop {
            let mut next_ns = self.qdisc.timer().unwrap_or(u64::MAX);
            if !is_stopped {
                match self.qdisc.dequeue(self.now_ns, &mut self.pool, &mut self.qdisc_events) {
                    Dequeued::Packet(id) => {
                        leaves(self.pool.header(id), self.now_ns);
                        self.pool.remove(id);
                        next_ns = self.now_ns;
                    }
                    Dequeued::NotBefore(at_ns) => next_ns = next_ns.min(at_ns),
                    Dequeued::Nothing => {}
                }
                self.free_dropped();
            }
            if next_ns > end_ns {
                self.now_ns = end_ns;
                return;
            }
            self.now_ns = next_ns;
            if self.qdisc.timer().is_some_and(|due_ns| due_ns <= next_ns) {
                self.qdisc.on_timer(next_ns, &mut self.pool, &mut self.qdisc_events);
                self.free_dropped();
            }
        }
    }

    fn arrive(&mut self, flow: u8, payload_bytes: u32) {
        let identity = Flow { hash: u32::from(flow) << 28 | u32::from(flow), source: 0, destination: 1 };
        let class = TrafficClass::new(flow, if flow.is_multiple_of(2) { Ecn::NotEct } else { Ecn::Ect0 });
        let (header, body) = segment(flow.into(), identity, class, 0, payload_bytes);
        let id = self.pool.insert(header, body);
        self.qdisc.enqueue(id, self.now_ns, &mut self.pool, &mut self.qdisc_events);
        self.free_dropped();
    }

    fn free_dropped(&mut self) {
        for event in std::mem::take(&mut self.qdisc_events.0) {
            if let QdiscEvent::Dropped(id, _) = event {
                self.pool.remove(id);
            }
        }
    }
}

/// Applies the events to a discipline, and reports each packet that leaves it, with the time.
fn pass(parameters: &Parameters, events: &[Event], mut leaves: impl FnMut(&Header, u64)) {
    let qdisc = Qdisc::new(parameters, attachment(0)).expect("Linux takes these parameters");
    let mut port = Port { qdisc, pool: Pool::new(), qdisc_events: QdiscEvents::default(), now_ns: 0 };
    for event in events {
        match *event {
            Event::Arrival { after_ns, flow, payload_bytes } => {
                port.wait_until(port.now_ns + after_ns, false, &mut leaves);
                port.arrive(flow, payload_bytes);
            }
            Event::Stop { for_ns } => port.wait_until(port.now_ns + for_ns, true, &mut leaves),
        }
    }
    port.wait_until(port.now_ns + REST_NS, false, &mut leaves);
}

/// Parameters of one discipline, changed so that the test knows what it promises.
fn any<T>(name: &str, own: impl Fn(Parameters) -> Option<T>) -> impl Strategy<Value = T>
where
    T: std::fmt::Debug,
{
    Parameters::any_named(name).prop_map(move |parameters| own(parameters).expect("it was drawn by name"))
}

fn tbf() -> impl Strategy<Value = scenario::Tbf> {
    any("tbf", |parameters| if let Parameters::Tbf(own) = parameters { Some(own) } else { None })
}

/// A shaper whose rate does not change by itself, for which lengths are those of frames.
fn cake() -> impl Strategy<Value = scenario::Cake> {
    let cake = any("cake", |parameters| if let Parameters::Cake(own) = parameters { Some(own) } else { None });
    (cake, 300_000..=50_000_000_u64).prop_map(|(own, bandwidth_bps)| scenario::Cake {
        bandwidth_bps: Some(bandwidth_bps),
        autorate_ingress: false,
        link_layer: LinkLayer { raw: true, overhead_bytes: 0, cells: Cells::None, mpu_bytes: 0 },
        ..own
    })
}

/// A rate, and no packets that pass it by, wait for a slot or arrive from an earlier time.
fn netem() -> impl Strategy<Value = scenario::Netem> {
    let netem = any("netem", |parameters| if let Parameters::Netem(own) = parameters { Some(own) } else { None });
    (netem, 300_000..=50_000_000_u64, 0..=60_i32).prop_map(|(own, rate_bps, packet_overhead_bytes)| {
        let rate = scenario::NetemRate { rate_bps, packet_overhead_bytes, cell_bytes: 0, cell_overhead_bytes: 0 };
        let jitter_ns = own.jitter_ns.min(own.delay_ns);
        let distribution = scenario::Distribution::Uniform;
        scenario::Netem { rate: Some(rate), jitter_ns, distribution, reorder: None, slot: None, inner: None, ..own }
    })
}

/// A packet never lasts longer than the second to which the kernel limits its time.
fn fq() -> impl Strategy<Value = scenario::Fq> {
    let fq = any("fq", |parameters| if let Parameters::Fq(own) = parameters { Some(own) } else { None });
    (fq, MOST_BYTES * 8..=50_000_000_u64).prop_map(|(own, maxrate_bps)| scenario::Fq {
        maxrate_bps: Some(maxrate_bps),
        pacing: true,
        ..own
    })
}

/// Classes of which each has a rate at least as high as its children's together, and a leaf for each flow, which may be
/// shared.
fn htb() -> impl Strategy<Value = Htb> {
    any("htb", |parameters| if let Parameters::Htb(own) = parameters { Some(own) } else { None }).prop_map(|mut htb| {
        for parent in (0..htb.classes.len() as u16).rev() {
            let children = htb.classes.iter().filter(|class| class.parent == Some(parent));
            let rates_bps: u64 = children.map(|child| child.rate_bps).sum();
            let class = &mut htb.classes[usize::from(parent)];
            class.rate_bps = class.rate_bps.max(rates_bps);
            class.ceil_bps = class.ceil_bps.max(class.rate_bps);
        }
        let leaves: Vec<u16> = (0..htb.classes.len() as u16).filter(|class| htb.is_leaf(*class)).collect();
        let leaf_of =
            |flow: u8| ClassFilter { chosen: Match::Dscp(flow), class: leaves[usize::from(flow) % leaves.len()] };
        htb.filters = (0..FLOWS).map(leaf_of).collect();
        htb
    })
}

/// How far the packets sent with the tokens of a class, or of the classes inside it, may be ahead of its rate.
///
/// A class sends while its tokens are not negative, so at most one packet more than its bucket holds. After the last
/// packet that it sends with its own tokens, only classes inside it send, by the same rule, and together at most at its
/// rate.
fn ahead_bytes(htb: &Htb, class: u16) -> u64 {
    let own = u64::from(htb.classes[usize::from(class)].burst_bytes) + MOST_BYTES;
    own + children(htb, class).map(|child| ahead_bytes(htb, child)).sum::<u64>()
}

fn children(htb: &Htb, parent: u16) -> impl Iterator<Item = u16> + '_ {
    (0..).zip(&htb.classes).filter(move |(_, class)| class.parent == Some(parent)).map(|(index, _)| index)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn tbf_keeps_to_its_rate_and_burst_and_to_its_peak_rate(tbf in tbf(), events in arrivals_and_stops()) {
        let mut meters = vec![Meter::new("rate", tbf.rate_bps, tbf.burst_bytes.into())];
        meters.extend(tbf.peak.as_ref().map(|peak| Meter::new("peakrate", peak.rate_bps, peak.mtu_bytes.into())));
        pass(&Parameters::Tbf(tbf), &events, |header, now_ns| {
            meters.iter_mut().for_each(|meter| meter.pass(header.frame_bytes, now_ns));
        });
    }

    /// There is no bucket: a packet leaves when the one before has lasted as long as it does at the rate.
    #[test]
    fn cake_keeps_to_its_bandwidth(cake in cake(), events in arrivals()) {
        let mut meter = Meter::new("bandwidth", cake.bandwidth_bps.unwrap_or(0), MOST_BYTES);
        pass(&Parameters::Cake(cake), &events, |header, now_ns| meter.pass(header.frame_bytes, now_ns));
    }

    /// A packet leaves after it has lasted as long as it does at the rate.
    #[test]
    fn netem_keeps_to_its_rate(netem in netem(), events in arrivals()) {
        let mut meter = Meter::new("rate", netem.rate.map_or(0, |rate| rate.rate_bps), MOST_BYTES);
        pass(&Parameters::Netem(netem), &events, |header, now_ns| meter.pass(header.frame_bytes, now_ns));
    }

    /// Each packet of TCP moves the time of the next one on by as long as it lasts, or by half of that if it is late. So the
    /// first packet of a window may count half, and the last not at all.
    #[test]
    fn fq_keeps_each_flow_to_its_maxrate(fq in fq(), events in arrivals_and_stops()) {
        let maxrate_bps = fq.maxrate_bps.unwrap_or(0);
        let meter = |flow| Meter::new(format!("flow {flow}"), maxrate_bps, MOST_BYTES * 3 / 2);
        let mut meters: Vec<Meter> = (0..FLOWS).map(meter).collect();
        pass(&Parameters::Fq(fq), &events, |header, now_ns| {
            meters[header.flow as usize].pass(header.frame_bytes, now_ns);
        });
    }

    #[test]
    fn htb_keeps_each_class_to_its_ceiling_and_each_root_to_its_rate(htb in htb(), events in arrivals_and_stops()) {
        let ceiling = |(index, class): (u16, &scenario::HtbClass)| {
            let inside: u64 = children(&htb, index).map(|child| ahead_bytes(&htb, child)).sum();
            let ahead = u64::from(class.cburst_bytes) + MOST_BYTES + inside;
            Meter::new(format!("ceil of class {index}"), class.ceil_bps, ahead)
        };
        let rate = |(index, class): (u16, &scenario::HtbClass)| {
            let meter = || Meter::new(format!("rate of class {index}"), class.rate_bps, ahead_bytes(&htb, index));
            class.parent.is_none().then(meter)
        };
        let mut ceilings: Vec<Meter> = (0..).zip(&htb.classes).map(ceiling).collect();
        let mut rates: Vec<Option<Meter>> = (0..).zip(&htb.classes).map(rate).collect();
        pass(&Parameters::Htb(htb.clone()), &events, |header, now_ns| {
            let mut class = Some(htb.filters[header.flow as usize].class);
            while let Some(index) = class {
                ceilings[usize::from(index)].pass(header.frame_bytes, now_ns);
                if let Some(meter) = &mut rates[usize::from(index)] {
                    meter.pass(header.frame_bytes, now_ns);
                }
                class = htb.classes[usize::from(index)].parent;
            }
        });
    }
}
