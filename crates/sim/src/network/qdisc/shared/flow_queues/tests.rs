use super::*;
use crate::network::packet::{Body, Echo, EchoKind, Header, Load};
use crate::network::traffic_class::{Ecn, TrafficClass};

const QUANTUM: u32 = 1514;

/// Flow queues whose packets carry numbers of their own.
struct Queues {
    queues: FlowQueues<()>,
    pool: Pool,
}

impl Queues {
    fn new(flows: u32) -> Self {
        Self { queues: FlowQueues::new(flows, || ()), pool: Pool::new() }
    }

    fn push(&mut self, flow: u32, frame_bytes: u32, seq: u64) {
        let header = Header {
            at_ns: 0,
            ip_bytes: frame_bytes - 14,
            frame_bytes,
            flow,
            hash: flow,
            port: 0,
            source: 0,
            destination: 0,
            class: TrafficClass::new(0, Ecn::NotEct),
            load: Load::of(1),
        };
        let packet = self.pool.insert(header, Body::Echo(Echo { ping: flow, seq, kind: EchoKind::Request }));
        self.queues.push(flow, packet, QUANTUM, &mut self.pool);
    }

    /// Takes the next packet. Returns its flow and number.
    fn pop(&mut self) -> Option<(u32, u64)> {
        loop {
            let flow = self.queues.next(QUANTUM)?;
            let Some(packet) = self.queues.turn(flow).queue.pop(&self.pool) else {
                self.queues.retire();
                continue;
            };
            self.queues.spend(flow, self.pool.header(packet).frame_bytes);
            let Body::Echo(echo) = self.pool.body(packet) else { unreachable!("all are echoes") };
            let popped = (echo.ping, echo.seq);
            self.pool.remove(packet);
            return Some(popped);
        }
    }

    fn flows(&mut self, packets: usize) -> Vec<u32> {
        (0..packets).filter_map(|_| self.pop()).map(|popped| popped.0).collect()
    }
}

#[test]
fn a_hash_is_scaled_to_the_table() {
    let queues = FlowQueues::new(1024, || ());
    assert_eq!([0, 1 << 22, (1 << 22) - 1, u32::MAX].map(|hash| queues.index_of(hash)), [0, 1, 0, 1023]);
    assert_eq!(FlowQueues::new(1, || ()).index_of(u32::MAX), 0);
    assert_eq!(FlowQueues::new(3, || ()).index_of(1 << 31), 1, "not a power of two");
}

#[test]
fn flows_with_full_frames_take_turns() {
    let mut queues = Queues::new(4);
    (0..3).for_each(|seq| (0..2).for_each(|flow| queues.push(flow, 1514, seq)));
    assert_eq!(queues.flows(9), [0, 1, 0, 1, 0, 1]);
}

#[test]
fn small_packets_share_a_turn() {
    // A quantum of 1514 bytes lasts for 16 packets of 100 bytes: the 16th begins with 14 bytes left. It leaves a deficit
    // of -86, and a second turn of 1428 bytes lasts for 15.
    let mut queues = Queues::new(2);
    (0..40).for_each(|seq| queues.push(0, 100, seq));
    (0..3).for_each(|seq| queues.push(1, 1514, seq));
    let flows = queues.flows(43);
    let runs: Vec<usize> = flows.chunk_by(|a, b| a == b).map(<[u32]>::len).collect();
    assert_eq!(runs, [16, 1, 15, 1, 9, 1]);
}

#[test]
fn new_flows_come_first_and_an_emptied_one_waits_for_the_old_flows() {
    let mut queues = Queues::new(4);
    (0..4).for_each(|seq| queues.push(0, 1514, seq));
    assert_eq!(queues.pop(), Some((0, 0)));
    // Flow 0 has used its quantum up and becomes old. Flow 1 is new and comes first.
    queues.push(1, 100, 0);
    assert_eq!(queues.pop(), Some((1, 0)));
    // Flow 1 is empty but still in the list of new flows: another packet comes first again.
    queues.push(1, 100, 1);
    assert_eq!(queues.pop(), Some((1, 1)));
    // Now it is found empty, and waits behind flow 0. Its next packet does not overtake.
    assert_eq!(queues.pop(), Some((0, 1)));
    queues.push(1, 100, 2);
    queues.push(2, 100, 0);
    assert_eq!(queues.flows(9), [2, 1, 0, 0]);
}

#[test]
fn the_fattest_flow_is_the_first_with_the_most_bytes() {
    let mut queues = Queues::new(8);
    assert_eq!(queues.queues.fattest(), 0);
    (0..10).for_each(|seq| queues.push(2, 100, seq));
    queues.push(5, 1500, 0);
    queues.push(7, 1500, 0);
    assert_eq!(queues.queues.fattest(), 5);
    // Flow 2 sends a quantum's worth, which is all that it has, and flow 5 the only packet that it has.
    assert_eq!(queues.flows(11).last(), Some(&5));
    assert_eq!(queues.queues.fattest(), 7);
    assert_eq!(queues.flows(2), [7]);
    assert_eq!(queues.queues.fattest(), 0);
}

proptest::proptest! {
    /// Packets of a flow keep their order, and the backlog is that of the packets inside.
    #[test]
    fn packets_keep_their_order_and_are_counted(steps in proptest::collection::vec((0..6_u32, 60..=1514_u32, 0..3_u32), 1..400)) {
        let mut queues = Queues::new(6);
        let mut sent = [(0, 0); 6];
        let mut inside: std::collections::VecDeque<_> = Default::default();
        let mut expected = [0; 6];
        for (seq, (flow, bytes, pops)) in (0..).zip(steps) {
            queues.push(flow, bytes, sent[flow as usize].1);
            sent[flow as usize].1 += 1;
            inside.push_back((flow, sent[flow as usize].1 - 1, bytes));
            for _ in 0..pops {
                let Some((flow, number)) = queues.pop() else {
                    proptest::prop_assert!(inside.is_empty(), "step {seq}");
                    break;
                };
                proptest::prop_assert_eq!(number, expected[flow as usize]);
                expected[flow as usize] += 1;
                inside.retain(|packet| (packet.0, packet.1) != (flow, number));
            }
            let bytes: u64 = inside.iter().map(|packet| u64::from(packet.2)).sum();
            proptest::prop_assert_eq!(queues.queues.backlog(), Backlog { packets: inside.len() as u64, bytes });
            let mut visited = 0;
            queues.queues.each_packet(&queues.pool, &mut |_| visited += 1);
            proptest::prop_assert_eq!(visited, inside.len());
        }
    }

    /// While all flows have packets waiting, none is ahead of another by more than a quantum and a frame.
    #[test]
    fn flows_are_served_alike(sizes in proptest::collection::vec(60..=1514_u32, 5), packets in 1..300_usize) {
        let mut queues = Queues::new(5);
        (0..400).for_each(|seq| (0..).zip(&sizes).for_each(|(flow, bytes)| queues.push(flow, *bytes, seq)));
        let mut served = [0_u64; 5];
        for _ in 0..packets {
            let (flow, _) = queues.pop().expect("packets wait");
            served[flow as usize] += u64::from(sizes[flow as usize]);
        }
        let spread = served.iter().max().unwrap() - served.iter().min().unwrap();
        proptest::prop_assert!(spread <= u64::from(2 * QUANTUM), "{served:?}");
    }
}
