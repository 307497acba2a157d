//! Properties of every discipline under any sequence of operations.

use std::collections::HashMap;

use bufferscope_scenario::sizes::{FRAME_BYTES, MSS_BYTES};
use bufferscope_scenario::testing::adds_limits;
use bufferscope_scenario::{self as scenario, Limit};
use proptest::prelude::*;

use crate::network::packet::{Body, TcpPacket};
use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::qdisc::testing::{Flow, attachment, segment};
use crate::network::qdisc::{Dequeued, Qdisc, QdiscEvent, QdiscEvents};
use crate::network::traffic_class::{Ecn, TrafficClass};
use crate::network::xmit::Xmit;

const FLOWS: usize = 6;
/// Largest frame that a packet of ten segments takes, with the headers of each.
const LARGEST_BYTES: u64 = 10 * FRAME_BYTES as u64;
/// The ECN field of each flow. (A flow that changed it could overtake itself: dualpi2 has a queue for either kind.)
const ECN: [Ecn; FLOWS] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct, Ecn::Ect0];

/// What happens to a discipline.
#[derive(Clone, Debug)]
enum Operation {
    /// Time passes; timers that are due fire.
    Wait(u64),
    /// A segment of a flow arrives, with this many bytes of payload.
    Arrive { flow: usize, payload_bytes: u32 },
    /// The link takes this many packets.
    Take(usize),
    /// The discipline gets other parameters, or is replaced.
    Change(Box<scenario::Qdisc>),
}

fn operation() -> impl Strategy<Value = Operation> {
    let wait = prop_oneof![0..20_000_u64, 0..5_000_000_u64, 0..2_000_000_000_u64];
    let payload = prop_oneof![3 => Just(MSS_BYTES), 2 => 0..=MSS_BYTES, 1 => 0..=10 * MSS_BYTES];
    prop_oneof![
        30 => (0..FLOWS, payload).prop_map(|(flow, payload_bytes)| Operation::Arrive { flow, payload_bytes }),
        15 => (1..4_usize).prop_map(Operation::Take),
        15 => wait.prop_map(Operation::Wait),
        1 => scenario::Qdisc::any().prop_map(|to| Operation::Change(Box::new(to))),
    ]
}

/// A packet that the discipline holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    flow: usize,
    ecn: Ecn,
}

/// A discipline, and an independent account of its packets.
struct Account {
    qdisc: Qdisc,
    limit: Limit,
    /// Whether a limit in bytes may include queues that count packets. Each of these counts as a full frame then, even
    /// if it is larger.
    adds_limits: bool,
    holds_back: bool,
    /// After the last operation.
    backlog: Backlog,
    /// Bytes of the backlog, where each packet counts as a full frame at most.
    counted_bytes: u64,
    /// Whether packets of a flow stay in order, now and after the queue was empty.
    keeps_order: bool,
    will_keep_order: bool,
    pool: Pool,
    events: QdiscEvents,
    now_ns: u64,
    held: HashMap<PacketId, Held>,
    /// First byte of the next segment of each flow to arrive, and the least of the next to leave.
    next_seq: [u64; FLOWS],
    least_seq: [u64; FLOWS],
}

/// A discipline with these parameters at that time, if Linux takes them.
fn qdisc(parameters: &scenario::Qdisc, now_ns: u64) -> Option<Qdisc> {
    Qdisc::new(parameters, attachment(now_ns)).ok()
}

impl Account {
    fn new(parameters: &scenario::Qdisc) -> Option<Self> {
        Some(Self {
            qdisc: qdisc(parameters, 0)?,
            limit: limit(parameters),
            adds_limits: adds_limits(parameters),
            holds_back: holds_back(parameters),
            backlog: Backlog::default(),
            counted_bytes: 0,
            keeps_order: keeps_order(parameters),
            will_keep_order: keeps_order(parameters),
            pool: Pool::new(),
            events: QdiscEvents::default(),
            now_ns: 0,
            held: HashMap::new(),
            next_seq: [0; FLOWS],
            least_seq: [0; FLOWS],
        })
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Wait(ns) => self.wait_until(self.now_ns + ns),
            Operation::Arrive { flow, payload_bytes } => self.arrive(flow, payload_bytes),
            Operation::Take(packets) => (0..packets).for_each(|_| self.take()),
            Operation::Change(ref to) => self.change(to),
        }
        self.check();
    }

    fn wait_until(&mut self, end_ns: u64) {
        while let Some(due_ns) = self.qdisc.timer().filter(|&due_ns| due_ns <= end_ns) {
            assert!(due_ns >= self.now_ns, "a timer lies in the past");
            self.now_ns = due_ns;
            self.qdisc.on_timer(due_ns, &mut self.pool, &mut self.events);
            self.settle();
            assert!(self.qdisc.timer().is_none_or(|next_ns| next_ns > due_ns), "a timer is due twice at once");
        }
        self.now_ns = end_ns;
    }

    fn arrive(&mut self, flow: usize, payload_bytes: u32) {
        let ecn = ECN[flow];
        let seq = self.next_seq[flow];
        self.next_seq[flow] += u64::from(payload_bytes);
        let identity = Flow {
            // The first two flows collide wherever there are fewer than 2^31 queues.
            hash: [0, 1, 0x4000_0000, 0x8000_0000, 0xc000_0000, u32::MAX][flow],
            source: flow as u16 % 2,
            destination: flow as u16 % 3,
        };
        let class = TrafficClass::new([0, 8, 46, 10, 0, 48][flow], ecn);
        let (header, body) = segment(flow as u32, identity, class, seq, payload_bytes);
        let id = self.pool.insert(header, body);
        self.held.insert(id, Held { flow, ecn });
        let xmit = self.qdisc.enqueue(id, self.now_ns, &mut self.pool, &mut self.events);
        let split = self.events.0.iter().any(|event| matches!(event, QdiscEvent::Split(_)));
        let dropped = self.events.has_dropped(id);
        let displaced =
            self.events.0.iter().any(|event| matches!(event, QdiscEvent::Dropped(other, _) if *other != id));
        // A discipline that orphans packets from their sockets does so for all of them.
        assert!(
            split || xmit == Xmit::Orphaned || xmit.is_queued() != dropped,
            "{xmit:?} of a packet that was dropped: {dropped}"
        );
        assert!(split || xmit != Xmit::Displacing || displaced, "nothing was displaced");
        self.settle();
    }

    fn take(&mut self) {
        let dequeued = self.qdisc.dequeue(self.now_ns, &mut self.pool, &mut self.events);
        self.settle();
        match dequeued {
            Dequeued::Packet(id) => {
                let Held { flow, .. } = self.held.remove(&id).expect("the discipline held it");
                let Body::Tcp(TcpPacket { segment, .. }) = *self.pool.body(id) else {
                    unreachable!("all are segments")
                };
                assert!(!self.keeps_order || segment.seq >= self.least_seq[flow], "a packet overtook another");
                self.least_seq[flow] = self.least_seq[flow].max(segment.seq + u64::from(segment.len));
                self.pool.remove(id);
            }
            Dequeued::Nothing => assert_eq!(self.qdisc.backlog(), Backlog::default(), "packets are kept back"),
            Dequeued::NotBefore(at_ns) => {
                assert!(self.holds_back, "it is not said to hold packets back");
                assert!(at_ns > self.now_ns, "not before now");
            }
        }
    }

    fn change(&mut self, to: &scenario::Qdisc) {
        let Some(qdisc) = qdisc(to, self.now_ns) else { return };
        self.qdisc.change(qdisc, &self.pool, &mut self.events);
        self.limit = limit(to);
        self.adds_limits = adds_limits(to);
        self.holds_back = holds_back(to);
        // Packets of the backlog may be in other queues than those that arrive later.
        self.keeps_order = false;
        self.will_keep_order = keeps_order(to);
        self.settle();
    }

    /// Processes the discipline's decisions.
    fn settle(&mut self) {
        for event in std::mem::take(&mut self.events.0) {
            match event {
                QdiscEvent::Dropped(id, reason) => {
                    assert!(!reason.marks, "{} is not a reason to drop", reason.word);
                    self.held.remove(&id).expect("the discipline held it");
                    self.pool.remove(id);
                }
                QdiscEvent::Marked(id, reason) => {
                    assert!(reason.marks, "{} is not a reason to mark", reason.word);
                    assert!(self.held[&id].ecn.is_capable(), "a packet without ECN was marked");
                    assert_eq!(self.pool.header(id).class.ecn(), Ecn::Ce);
                }
                QdiscEvent::Split(id) | QdiscEvent::Copied(id) => {
                    let flow = self.pool.header(id).flow as usize;
                    let ecn = self.pool.header(id).class.ecn();
                    assert!(self.held.insert(id, Held { flow, ecn }).is_none(), "it was held before");
                }
            }
        }
    }

    /// The discipline holds what the account says, and no more than its limit. (Over a limit that was lowered, it holds
    /// no more than before.)
    fn check(&mut self) {
        let (mut packets, mut bytes, mut counted_bytes) = (0, 0, 0);
        self.qdisc.each_packet(&self.pool, &mut |id| {
            assert!(self.held.contains_key(&id), "a packet that has left");
            let frame_bytes = self.pool.header(id).frame_bytes;
            packets += 1;
            bytes += u64::from(frame_bytes);
            counted_bytes += u64::from(frame_bytes.min(FRAME_BYTES));
        });
        assert_eq!(packets, self.held.len() as u64, "each packet is held once");
        let backlog = self.qdisc.backlog();
        assert_eq!(backlog, Backlog { packets, bytes });
        assert_eq!(self.qdisc.is_empty(), packets == 0);
        self.keeps_order |= self.will_keep_order && packets == 0;
        let before = std::mem::replace(&mut self.backlog, backlog);
        let counted_before = std::mem::replace(&mut self.counted_bytes, counted_bytes);
        match self.limit {
            Limit::Packets(limit) => assert!(packets <= limit.max(before.packets), "{packets} of {limit} packets"),
            Limit::Bytes(limit) => {
                let (now, before) =
                    if self.adds_limits { (counted_bytes, counted_before) } else { (bytes, before.bytes) };
                assert!(now <= limit.max(before), "{now} of {limit} bytes");
            }
        }
    }
}

/// Maximum backlog of a discipline. A `tbf` that has peeked at its inner discipline's first packet keeps it in addition
/// to those of the inner one (see `inner.rs`).
fn limit(parameters: &scenario::Qdisc) -> Limit {
    let looks = |discipline: &&&scenario::Qdisc| matches!(discipline, scenario::Qdisc::Tbf(tbf) if tbf.inner.is_some());
    let beside = parameters.all().iter().filter(looks).count() as u64;
    match parameters.limit() {
        Limit::Packets(packets) => Limit::Packets(packets.saturating_add(beside)),
        Limit::Bytes(bytes) => Limit::Bytes(bytes.saturating_add(beside * LARGEST_BYTES)),
    }
}

/// Whether a discipline may hold packets back although the link is ready. All others are work-conserving.
fn holds_back(parameters: &scenario::Qdisc) -> bool {
    parameters.all().iter().any(|discipline| discipline.kind().holds_back)
}

/// Packets of one flow, which all have the same DSCP, leave in the order of their arrival.
fn keeps_order(parameters: &scenario::Qdisc) -> bool {
    !matches!(parameters.kind().name, "netem")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn packets_are_conserved_in_order_and_within_limits(
        parameters in scenario::Qdisc::any(),
        operations in prop::collection::vec(operation(), 1..150),
    ) {
        if let Some(mut account) = Account::new(&parameters) {
            operations.iter().for_each(|operation| account.apply(operation));
        }
    }
}
