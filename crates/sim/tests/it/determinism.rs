//! The same scenario and seed give the same records, and another seed gives another run.

use crate::common::{BULK, PING, WEB, dumbbell, optional, run};
use bufferscope_records::{MemorySink, Table};
use bufferscope_scenario::Scenario;

/// Every kind of traffic and something random in the queue.
fn scenario() -> Scenario {
    let queue = "rate = '10mbit'\nqueue = { qdisc = 'red', limit = '400000b', min = '30000b', max = '90000b', avpkt = '1000b', burst = 55 }";
    dumbbell("10s", queue, &format!("{BULK}flows = 3\n{PING}{WEB}"))
}

fn assert_same(a: &MemorySink, b: &MemorySink) {
    for table in Table::ALL {
        assert_eq!(a.batches(table), b.batches(table), "{table}");
    }
}

#[test]
fn the_same_seed_gives_the_same_records() {
    let (first, second) = (run(&scenario(), 7), run(&scenario(), 7));
    assert_same(&first.output, &second.output);
    assert_eq!((first.events, first.hops, first.flows), (second.events, second.hops, second.flows));
}

#[test]
fn another_seed_gives_another_run() {
    let (first, second) = (run(&scenario(), 7), run(&scenario(), 8));
    let rtts = |sink| optional(sink, Table::Probes, "rtt_ns");
    assert_ne!(rtts(&first.output), rtts(&second.output));
    assert_ne!((first.events, first.hops), (second.events, second.hops));
}

#[test]
fn what_one_traffic_draws_does_not_change_when_another_draws() {
    // The ping's sending times are the same whether or not a bulk flow is there.
    let alone = dumbbell("5s", "rate = '10mbit'", PING);
    let beside = dumbbell("5s", "rate = '10mbit'", &format!("{PING}{BULK}"));
    let sent = |scenario| optional(&run(scenario, 3).output, Table::Probes, "sent_ns");
    assert_eq!(sent(&alone), sent(&beside));
}
