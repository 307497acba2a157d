//! What is recorded, and when samples are taken.

use crate::common::{BULK, MS, PING, WEB, dumbbell, numbers, numbers_where, run};
use bufferscope_records::{MemorySink, Table, Tables};
use bufferscope_scenario::Scenario;

/// 10 s of a flow, pings, pages, a test of the buffers and datagrams, of which the queue drops some.
fn scenario() -> Scenario {
    scenario_with("{ qdisc = 'pfifo', limit = '20p' }")
}

fn scenario_with(queue: &str) -> Scenario {
    let datagrams = r#"
        [[traffic]]
        name = "buffers"
        kind = "netalyzr"
        from = "h1"
        to = "h2"
        probes = 10
        load = "1s"
        pause = "1s"

        [[traffic]]
        name = "datagrams"
        kind = "udp"
        from = "h1"
        to = "h2"
        rate = "1mbit"
    "#;
    let queue = format!("rate = '10mbit'\nqueue = {queue}");
    dumbbell("10s", &queue, &format!("{BULK}{PING}{WEB}{datagrams}"))
}

/// The times of a table's rows, each once.
fn times(sink: &MemorySink, table: Table) -> Vec<u64> {
    let mut times = numbers(sink, table, "t_ns");
    times.dedup();
    times
}

#[test]
fn each_table_is_sampled_at_its_own_times_and_at_the_end() {
    let scenario = Scenario { sample_interval_ns: 30 * MS, flows_interval_ns: Some(700 * MS), ..scenario() };
    let sink = run(&scenario, 1).output;
    let due = |interval_ms: usize, from_ms: u64| -> Vec<u64> {
        let multiples = (from_ms..10_000).step_by(interval_ms).map(|ms| ms * MS);
        multiples.chain([10_000 * MS]).collect()
    };
    assert_eq!(times(&sink, Table::Queues), due(30, 0));
    // At 0, no connection has been established yet.
    assert_eq!(times(&sink, Table::Flows), due(700, 700));
    assert!(numbers(&sink, Table::Flows, "t_ns").is_sorted());
}

/// The state that a sample shows does not depend on the other samples.
#[test]
fn flows_that_are_sampled_less_often_are_sampled_as_before() {
    let all = run(&scenario(), 1).output;
    let some = run(&Scenario { flows_interval_ns: Some(1000 * MS), ..scenario() }, 1).output;
    assert_eq!(all.batches(Table::Queues), some.batches(Table::Queues));
    let at_seconds = |sink: &MemorySink| -> Vec<(u64, u64)> {
        let [times, delivered] = ["t_ns", "delivered_bytes"].map(|column| numbers(sink, Table::Flows, column));
        times.into_iter().zip(delivered).filter(|(t_ns, _)| t_ns % (1000 * MS) == 0).collect()
    };
    let (all, some) = (at_seconds(&all), at_seconds(&some));
    // A page's connection that has closed is in the next sample, which comes later now.
    assert!(all.iter().all(|row| some.contains(row)), "{all:?}");
}

#[test]
fn what_is_recorded_does_not_change_what_happens() {
    let scenario = scenario_with("{ qdisc = 'fq_codel', limit = '20p' }");
    let whole = run(&scenario, 1);
    for table in Table::RECORDED {
        assert!(whole.output.rows(table) > 0, "{table}");
        for record in
            [Tables::from_iter([table]), Table::RECORDED.into_iter().filter(|other| *other != table).collect()]
        {
            let part = run(&Scenario { record, ..scenario.clone() }, 1);
            assert_eq!((&part.flows, part.hops, part.ended_ns), (&whole.flows, whole.hops, whole.ended_ns));
            for table in Table::ALL {
                let expected = if record.contains(table) { whole.output.batches(table) } else { &[] };
                assert_eq!(part.output.batches(table), expected, "{table}, of {record:?}");
            }
        }
    }
}

#[test]
fn rows_that_are_not_recorded_need_no_memory_to_read() {
    let scenario = scenario();
    let rows = |scenario: &Scenario| bufferscope_sim::footprint(scenario).unwrap().rows;
    let without = |table| Scenario {
        record: Table::RECORDED.into_iter().filter(|other| *other != table).collect(),
        ..scenario.clone()
    };
    let [queues, flows] = [Table::Flows, Table::Queues].map(|table| rows(&without(table)));
    // Two ports with a rate, 1001 samples each.
    assert_eq!(queues, 2 * 1001);
    assert_eq!(queues + flows, rows(&scenario));
    let seldom = Scenario { flows_interval_ns: Some(1000 * MS), ..scenario.clone() };
    assert!((queues + flows / 100..queues + flows / 10).contains(&rows(&seldom)));
}

#[test]
fn a_port_has_its_rates_from_0_to_the_end_as_capacity() {
    let rate = "forward.rate = [['0s', '10mbit'], ['1500ms', '2mbit'], ['5s', '8mbit'], ['6s', '1mbit']]";
    let sink = run(&dumbbell("5s", &format!("{rate}\nreverse.rate = '3mbit'"), BULK), 1).output;
    let of = |port| ["t_ns", "rate_bps"].map(|column| numbers_where(&sink, Table::Capacity, column, ("port", port)));
    assert_eq!(of("r1>h2"), [vec![0, 1500 * MS, 5000 * MS], vec![10_000_000, 2_000_000, 8_000_000]]);
    assert_eq!(of("h2>r1"), [[0], [3_000_000]]);
    assert!(numbers(&sink, Table::Capacity, "t_ns").is_sorted());
    assert_eq!(sink.rows(Table::Capacity), 4, "a port without a rate has no capacity");
}

/// UDP at 8 Mbit/s into a link of 2 Mbit/s whose boost has 100 kB at 10 Mbit/s. The bucket loses 8 and gains 2 Mbit/s, so
/// it is empty after 8 * 100 kB / 6 Mbit/s. The link then sends at 2 Mbit/s to the end.
#[test]
fn a_boost_is_capacity_until_its_bucket_is_empty() {
    let traffic = "[[traffic]]\nname = 'udp'\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = '8mbit'";
    let links =
        "forward.rate = '2mbit'\nforward.boost = { rate = '10mbit', bytes = '100000b' }\nreverse.rate = '10mbit'";
    let sink = run(&dumbbell("5s", links, traffic), 1).output;
    let of = |column| numbers_where(&sink, Table::Capacity, column, ("port", "r1>h2"));
    assert_eq!(of("rate_bps"), [10_000_000, 2_000_000]);
    let [0, empty_ns] = of("t_ns")[..] else { panic!("{:?}", of("t_ns")) };
    let expected_ns = 800_000 * 1_000_000_000 / 6_000_000;
    assert!(empty_ns.abs_diff(expected_ns) < 10 * MS, "{empty_ns} instead of {expected_ns}");
}
