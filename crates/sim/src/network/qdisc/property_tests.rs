//! What holds for every discipline with any parameters, whatever arrives, leaves and expires.

use bufferscope_scenario::testing::arbitrary_scenario;
use bufferscope_scenario::{self as scenario};
use proptest::prelude::*;

use super::testing::{Bench, FRAME, Flow, MS};
use crate::network::traffic_class::{Ecn, TrafficClass};
use crate::network::xmit::Xmit;

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive { flow: u32, bytes: u32, ecn: bool },
    Leave,
    Wait { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![Just(FRAME), 60..=FRAME];
    prop_oneof![
        6 => (0..6_u32, bytes, any::<bool>()).prop_map(|(flow, bytes, ecn)| Step::Arrive { flow, bytes, ecn }),
        4 => Just(Step::Leave),
        1 => (0..400_u64).prop_map(|ms| Step::Wait { ms }),
    ]
}

fn any_qdisc() -> impl Strategy<Value = scenario::Qdisc> {
    arbitrary_scenario().prop_map(|scenario| scenario.links[0].forward.queue.clone())
}

/// A discipline, and what has become of the packets.
struct Ledger {
    bench: Bench,
    now_ns: u64,
    /// The flow of each packet.
    flows: Vec<u32>,
    gone: Vec<bool>,
    /// The newest packet of each flow that has left.
    newest: [Option<u64>; 6],
}

impl Ledger {
    fn lose(&mut self, fates: &[(u64, scenario::Reason)]) {
        for (number, _) in fates.iter().filter(|(_, reason)| !reason.marks) {
            assert!(!std::mem::replace(&mut self.gone[*number as usize], true), "{number} is dropped twice");
        }
    }

    fn arrive(&mut self, flow: u32, bytes: u32, ecn: bool) {
        let number = self.flows.len();
        self.flows.push(flow);
        self.gone.push(false);
        let class = TrafficClass::new(0, if ecn { Ecn::Ect0 } else { Ecn::NotEct });
        let of = Flow { hash: flow.wrapping_mul(0x9e37_79b9), ..Flow::default() };
        let (xmit, fates) = self.bench.arrive_of(of, self.now_ns, bytes, class);
        self.lose(&fates);
        assert_eq!(xmit.is_queued(), !self.gone[number], "{xmit:?} for {number}");
        let displaced = fates.iter().any(|(dropped, reason)| !reason.marks && *dropped != number as u64);
        assert!(xmit != Xmit::Displacing || displaced, "{fates:?}");
    }

    fn leave(&mut self) {
        let waiting = self.bench.backlog().0;
        let (passed, fates) = self.bench.dequeue_or_wait(self.now_ns);
        self.lose(&fates);
        match passed {
            Ok(Some((number, _))) => {
                assert!(!std::mem::replace(&mut self.gone[number as usize], true), "{number} leaves twice");
                let newest = &mut self.newest[self.flows[number as usize] as usize];
                assert!(newest.replace(number).is_none_or(|before| before < number), "{number} is overtaken");
            }
            Ok(None) => {
                assert_eq!(waiting, fates.iter().filter(|(_, reason)| !reason.marks).count() as u64);
                self.bench.idle_since(self.now_ns);
            }
            Err(at_ns) => assert!(at_ns > self.now_ns),
        }
    }

    /// Timers fire when they are due.
    fn wait(&mut self, until_ns: u64) {
        while let Some(due_ns) = self.bench.qdisc().timer().filter(|due_ns| *due_ns <= until_ns) {
            assert!(due_ns >= self.now_ns, "timers are set for the future");
            self.now_ns = due_ns;
            let fates = self.bench.on_timer(due_ns);
            self.lose(&fates);
            assert!(self.bench.qdisc().timer().is_none_or(|next_ns| next_ns > due_ns));
        }
        self.now_ns = until_ns;
    }

    fn assert_balanced(&self) {
        let (mut numbers, bytes) = self.bench.waiting();
        numbers.sort_unstable();
        let expected: Vec<u64> = (0..).zip(&self.gone).filter(|(_, gone)| !**gone).map(|(number, _)| number).collect();
        assert_eq!(numbers, expected);
        assert_eq!(self.bench.backlog(), (expected.len() as u64, bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_packet_is_lost_doubled_or_overtaken_by_one_of_its_flow(
        qdisc in any_qdisc(),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut ledger =
            Ledger { bench: Bench::new(&qdisc), now_ns: 0, flows: Vec::new(), gone: Vec::new(), newest: [None; 6] };
        for step in steps {
            match step {
                Step::Arrive { flow, bytes, ecn } => ledger.arrive(flow, bytes, ecn),
                Step::Leave => ledger.leave(),
                Step::Wait { ms } => ledger.wait(ledger.now_ns + ms * MS),
            }
            ledger.assert_balanced();
        }
    }
}
