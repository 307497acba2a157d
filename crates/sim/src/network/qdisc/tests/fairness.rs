//! Fairness of the disciplines that serve flows by deficit round robin, under any sequence of arrivals and departures.
//!
//! Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round-Robin" (1996), bound by how much the bytes of two
//! flows differ that leave in an interval in which both are backlogged. In Linux a flow sends while its deficit is
//! positive, and is then given a quantum `Q` and put at the end of the list. With packets of at most `L` bytes, its
//! deficit is above `-L` at the end of a visit and at most 0. So `v` visits send less than `vQ + L` bytes, and more than
//! `vQ - L` if they are complete. Two flows of the list are visited in turn: between two visits of one there is a complete
//! visit of the other. Of `v` visits of the first, the other has at least `v - 1` complete ones, and the bytes differ by
//! less than `Q + 2L`.
//!
//! A flow that has just become active is served before those of the list (RFC 8290, section 4.2), with at most `D` bytes,
//! which is the initial quantum. It then joins the end of the list, behind flows of which one may have been interrupted in
//! its visit. This adds `D` to the bound, once, until both flows have had their first visits. A visit sends less than
//! `D + L`.

use bufferscope_scenario::sizes::{FRAME_BYTES, MSS_BYTES};
use bufferscope_scenario::{self as scenario, Cells, Diffserv, FlowMode, LinkLayer};
use proptest::prelude::*;

use crate::network::pool::{PacketId, Pool};
use crate::network::qdisc::testing::{Flow, attachment, segment};
use crate::network::qdisc::{Dequeued, Qdisc, QdiscEvent, QdiscEvents};
use crate::network::traffic_class::{Ecn, TrafficClass};

const FLOWS: usize = 4;
/// All of these differ wherever a discipline looks: in the upper bits, in the lower ones, and in those in between.
const HASHES: [u32; FLOWS] = [0, 0x4001_0001, 0x8002_0002, 0xc003_0003];
const ECN: [Ecn; FLOWS] = [Ecn::NotEct, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0];
const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

#[derive(Clone, Debug)]
enum Operation {
    /// This many segments of a flow arrive, each with this many bytes of payload.
    Arrive { flow: usize, packets: u32, payload_bytes: u32 },
    /// The link takes this many packets.
    Take(u32),
    /// Time passes; timers that are due fire.
    Wait(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let payload = prop_oneof![3 => Just(MSS_BYTES), 3 => 0..=MSS_BYTES, 1 => 0..=10 * MSS_BYTES];
    let arrive = (0..FLOWS, 1..20_u32, payload);
    prop_oneof![
        4 => arrive.prop_map(|(flow, packets, payload_bytes)| Operation::Arrive { flow, packets, payload_bytes }),
        4 => (1..40_u32).prop_map(Operation::Take),
        1 => (0..5_000_000_u64).prop_map(Operation::Wait),
    ]
}

/// A discipline, and what its scheduler is given.
#[derive(Clone, Debug)]
struct Scheduler {
    parameters: scenario::Qdisc,
    quantum_bytes: u32,
    initial_bytes: u32,
    /// Each quantum is rounded by at most this much.
    rounding_bytes: u32,
}

/// The disciplines that promise fairness between flows, with queues enough to separate the flows.
fn scheduler() -> impl Strategy<Value = Scheduler> {
    let kinds = prop::sample::select(vec!["fq_codel", "fq_pie", "fq", "sfq", "cake"]);
    let quantum = || 100..=20_000_u32;
    (kinds.prop_flat_map(scenario::Qdisc::any_named), quantum(), quantum(), 64..=1024_u32)
        .prop_map(|(parameters, quantum, initial, flows)| scheduler_of(parameters, quantum, initial, flows))
}

fn scheduler_of(mut parameters: scenario::Qdisc, mut quantum: u32, initial: u32, flows: u32) -> Scheduler {
    let (mut initial_bytes, mut rounding_bytes) = (0, 0);
    match &mut parameters {
        scenario::Qdisc::FqCodel(own) => {
            (own.quantum_bytes, own.flows) = (Some(quantum), flows);
            quantum = quantum.max(scenario::FqCodel::LEAST_QUANTUM_BYTES);
        }
        scenario::Qdisc::FqPie(own) => (own.quantum_bytes, own.flows) = (quantum, flows),
        scenario::Qdisc::Fq(own) => {
            (own.quantum_bytes, own.initial_quantum_bytes) = (Some(quantum), Some(initial));
            own.maxrate_bps = None;
            initial_bytes = initial;
        }
        scenario::Qdisc::Sfq(own) => {
            (own.quantum_bytes, own.divisor, own.flows, own.perturb_s) = (quantum, 65_536, flows, None);
        }
        scenario::Qdisc::Cake(own) => {
            (own.flowmode, own.diffserv, own.autorate_ingress) = (FlowMode::Flows, Diffserv::Besteffort, false);
            own.link_layer = LinkLayer { raw: true, overhead_bytes: 0, cells: Cells::None, mpu_bytes: 0 };
            // In ingress mode, dropped packets count as sent.
            own.ingress = false;
            // `cake_set_rate`. The share is rounded at random (`cake_get_flow_quantum`).
            quantum = own.bandwidth_bps.map_or(FRAME_BYTES, |bps| ((bps / 8) >> 12).clamp(300, 1514) as u32);
            rounding_bytes = 1;
        }
        other => unreachable!("{} is not drawn", other.kind().name),
    }
    // After an idle time, a flow has at least a quantum.
    Scheduler { parameters, quantum_bytes: quantum, initial_bytes: initial_bytes.max(quantum), rounding_bytes }
}

/// An interval in which two flows are backlogged.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// Bytes of each that have left.
    served: [u64; 2],
    /// By how much the first has been ahead of the other, at least and at most.
    lead: Range,
    /// The same since both have had their first visits.
    lead_of_old: Option<Range>,
}

/// The least and the most.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    least: i64,
    most: i64,
}

impl Range {
    fn of(value: i64) -> Self {
        Self { least: value, most: value }
    }

    fn include(&mut self, value: i64) {
        (self.least, self.most) = (self.least.min(value), self.most.max(value));
    }

    /// The most that the value has changed between two times.
    fn width(self) -> i64 {
        self.most - self.least
    }
}

/// A discipline, and an account of what leaves it.
struct Contest {
    scheduler: Scheduler,
    qdisc: Qdisc,
    pool: Pool,
    events: QdiscEvents,
    now_ns: u64,
    waiting: [u32; FLOWS],
    intervals: [Option<Interval>; PAIRS.len()],
    largest_bytes: u32,
}

impl Contest {
    fn new(scheduler: Scheduler) -> Self {
        Self {
            qdisc: Qdisc::new(&scheduler.parameters, attachment(0)).expect("Linux takes these parameters"),
            scheduler,
            pool: Pool::new(),
            events: QdiscEvents::default(),
            now_ns: 0,
            waiting: [0; FLOWS],
            intervals: [None; PAIRS.len()],
            largest_bytes: 0,
        }
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Arrive { flow, packets, payload_bytes } => {
                (0..packets).for_each(|_| self.arrive(flow, payload_bytes));
            }
            Operation::Take(packets) => (0..packets).for_each(|_| self.take()),
            Operation::Wait(ns) => self.wait_until(self.now_ns + ns),
        }
    }

    fn arrive(&mut self, flow: usize, payload_bytes: u32) {
        let identity = Flow { hash: HASHES[flow], source: 0, destination: 1 };
        let class = TrafficClass::new(0, ECN[flow]);
        let (header, body) = segment(flow as u32, identity, class, 0, payload_bytes);
        self.largest_bytes = self.largest_bytes.max(header.frame_bytes);
        let id = self.pool.insert(header, body);
        self.waiting[flow] += 1;
        self.qdisc.enqueue(id, self.now_ns, &mut self.pool, &mut self.events);
        self.settle();
    }

    /// The link takes a packet. If a shaper holds it back, time passes until it may leave.
    fn take(&mut self) {
        loop {
            let dequeued = self.qdisc.dequeue(self.now_ns, &mut self.pool, &mut self.events);
            if let Dequeued::Packet(id) = dequeued {
                self.serve(id);
            }
            self.settle();
            match dequeued {
                Dequeued::NotBefore(at_ns) => self.wait_until(at_ns),
                Dequeued::Packet(_) | Dequeued::Nothing => return,
            }
        }
    }

    fn wait_until(&mut self, end_ns: u64) {
        while let Some(due_ns) = self.qdisc.timer().filter(|&due_ns| due_ns <= end_ns) {
            self.qdisc.on_timer(due_ns, &mut self.pool, &mut self.events);
            self.settle();
        }
        self.now_ns = end_ns;
    }

    /// A packet has left.
    fn serve(&mut self, id: PacketId) {
        let bytes = u64::from(self.pool.header(id).frame_bytes);
        let flow = self.leave(id);
        let first_visit = u64::from(self.scheduler.initial_bytes + self.largest_bytes);
        for (pair, interval) in PAIRS.iter().zip(&mut self.intervals) {
            let Some(side) = pair.iter().position(|member| *member == flow) else { continue };
            let Some(interval) = interval else { continue };
            interval.served[side] += bytes;
            let lead = interval.served[0] as i64 - interval.served[1] as i64;
            interval.lead.include(lead);
            match &mut interval.lead_of_old {
                Some(range) => range.include(lead),
                None if interval.served.iter().all(|served| *served >= first_visit) => {
                    interval.lead_of_old = Some(Range::of(lead));
                }
                None => {}
            }
        }
        self.check();
    }

    fn leave(&mut self, id: PacketId) -> usize {
        let flow = self.pool.header(id).flow as usize;
        self.waiting[flow] -= 1;
        self.pool.remove(id);
        flow
    }

    /// Processes the discipline's decisions. An interval ends when one of the flows has no packet left.
    fn settle(&mut self) {
        for event in std::mem::take(&mut self.events.0) {
            match event {
                QdiscEvent::Dropped(id, _) => {
                    self.leave(id);
                }
                QdiscEvent::Split(id) | QdiscEvent::Copied(id) => self.waiting[self.pool.header(id).flow as usize] += 1,
                QdiscEvent::Marked(..) => {}
            }
        }
        for (pair, interval) in PAIRS.iter().zip(&mut self.intervals) {
            if pair.iter().any(|flow| self.waiting[*flow] == 0) {
                *interval = None;
            } else {
                interval.get_or_insert_default();
            }
        }
    }

    fn check(&self) {
        let Scheduler { quantum_bytes, initial_bytes, rounding_bytes, .. } = self.scheduler;
        for (pair, interval) in PAIRS.iter().zip(&self.intervals) {
            let Some(interval) = interval else { continue };
            // As many quanta as are needed for what has been served, and one that has been begun.
            let quanta = interval.served.iter().max().map_or(0, |served| served / u64::from(quantum_bytes - 1) + 2);
            let rounding = quanta * u64::from(rounding_bytes);
            let bound = (u64::from(quantum_bytes + 2 * self.largest_bytes) + rounding) as i64;
            let (apart, initial) = (interval.lead.width(), i64::from(initial_bytes));
            assert!(apart < bound + initial, "flows {pair:?}: {apart} bytes apart, of less than {bound} + {initial}");
            let apart = interval.lead_of_old.map_or(0, Range::width);
            assert!(apart < bound, "old flows {pair:?}: {apart} bytes apart, of less than {bound}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn backlogged_flows_get_the_same_within_a_quantum_and_two_packets(
        scheduler in scheduler(),
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        let mut contest = Contest::new(scheduler);
        operations.iter().for_each(|operation| contest.apply(operation));
    }
}
