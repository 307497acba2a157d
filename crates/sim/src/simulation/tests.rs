//! Tests that look into a run: slots of connections, the middle of an event, headers of packets.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bufferscope_records::MemorySink;
use bufferscope_scenario::Experiment;

use super::*;

fn simulation(scenario: &Scenario) -> Simulation<MemorySink> {
    Simulation::new(scenario.clone(), 1, Recorder::new(MemorySink::default())).unwrap()
}

fn scenario(text: &str) -> Scenario {
    let experiment = Experiment::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    experiment.points()[0].scenario.clone()
}

#[test]
fn slots_of_closed_connections_are_used_again() {
    // 1000 pages, a few round trips of 20 ms each and 20 ms apart: a handful is open at a time.
    let text = r#"
        title = "Many pages"
        duration = "20s"
        link = [{ name = "line", ends = ["h1", "h2"], rate = "100mbit", delay = "10ms" }]
        traffic = [{ name = "web", kind = "web", from = "h1", to = "h2", interval = "20ms", bytes = "1000b" }]
    "#;
    let scenario = scenario(text);
    let mut simulation = simulation(&scenario);
    simulation.handle_before(u64::MAX, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!((1..20).contains(&simulation.connections.slots()), "{} slots", simulation.connections.slots());
}

/// 300 transfers one after the other, with the sample interval and queue given: about 22 ms each.
fn transfers(sample: &str, queue: &str) -> Scenario {
    scenario(&format!(
        r#"
        title = "One file after the other"
        duration = "60s"
        sample = "{sample}"
        link = [{{ name = "line", ends = ["h1", "h2"], rate = "10mbit", delay = "5ms", queue = {{ qdisc = "pfifo", limit = "{queue}" }} }}]
        traffic = [{{ name = "files", kind = "tcp", from = "h1", to = "h2", bytes = "20000b", transfers = 300 }}]
        "#
    ))
}

#[test]
fn slots_are_used_again_however_seldom_samples_are_taken() {
    // A flow has one connection at a time, and briefly the one before it. With a queue of three packets, the last
    // packet of a connection may be one that is dropped.
    for queue in ["100p", "3p"] {
        let scenario = transfers("60s", queue);
        let mut simulation = simulation(&scenario);
        simulation.handle_before(u64::MAX, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!((1..5).contains(&simulation.connections.slots()), "{} slots", simulation.connections.slots());
    }
}

#[test]
fn a_connection_that_was_forgotten_has_its_last_sample_at_the_next_sampling_time() {
    let scenario = transfers("7s", "100p");
    let summary = simulation(&scenario).finish(&mut |_| ControlFlow::Continue(())).unwrap();
    let batches = summary.output.batches(Table::Flows);
    let column = |name: &str| -> Vec<i64> {
        let values = |batch: &RecordBatch| batch[name].as_primitive::<Int64Type>().values().to_vec();
        batches.iter().flat_map(values).collect()
    };
    let (times, delivered) = (column("t_ns"), column("delivered_bytes"));
    assert!(times.is_sorted(), "rows come in the order of their times");
    assert!(times.iter().all(|t| t % 7_000_000_000 == 0 || *t == 60_000_000_000));
    // Each transfer's connection is sampled once after it has closed. Few are sampled while open.
    assert_eq!(delivered.iter().filter(|&&bytes| bytes == 20_000).count(), 300);
}

#[test]
fn a_run_stops_in_the_middle_of_an_event_that_has_thousands_of_packets() {
    let scenario = scenario(
        r#"
        title = "A crowd on a link without a rate: what is sent within microseconds arrives in the same nanosecond"
        duration = "1s"
        link = [{ name = "line", ends = ["h1", "h2"], delay = "50ms" }]
        traffic = [{ name = "crowd", kind = "tcp", from = "h1", to = "h2", flows = 3000, congestion = "reno" }]
        "#,
    );
    let mut simulation = simulation(&scenario);
    let mut reports = 0;
    let outcome = simulation.handle_before(u64::MAX, &mut |_| {
        reports += 1;
        if reports < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(outcome, Err(Stop::Interrupted));
    // Beyond that, there is only the answer to the last packet, which is at most a window.
    assert!(simulation.net.hops < 4 * WORK_PER_REPORT, "{} hops", simulation.net.hops);
}

#[test]
fn packets_carry_the_code_point_and_the_port_of_their_traffic_both_ways() {
    let scenario = scenario(
        r#"
        title = "Four classes"
        duration = "3s"
        link = [{ name = "line", ends = ["h1", "h2"], rate = "2mbit", delay = "20ms", queue = { qdisc = "codel", ecn = true } }]
        traffic = [
          { name = "bulk", kind = "tcp", from = "h1", to = "h2", dscp = "cs1", ecn = true },
          { name = "web", kind = "web", from = "h2", to = "h1", interval = "100ms", bytes = "20kb", dscp = "af41", port = 80 },
          { name = "ping", kind = "ping", from = "h1", to = "h2", interval = "10ms", dscp = "ef" },
          { name = "trips", kind = "irtt", from = "h1", to = "h2", interval = "10ms", dscp = "va", port = 2112 },
        ]
        "#,
    );
    let mut simulation = simulation(&scenario);
    let mut seen = [[0; 2]; 4];
    while simulation.net.now() < 2 * SECOND_NS {
        let slot = simulation.net.events.pop_before(u64::MAX).unwrap();
        simulation.handle_event(slot, &mut |_| ControlFlow::Continue(())).unwrap();
        let Network { ports, pool, flows, .. } = &simulation.net;
        for (direction, port) in ports.iter().enumerate() {
            for header in port.packets(pool).into_iter().map(|packet| pool.header(packet)) {
                let traffic = flows[header.flow as usize].account.traffic as usize;
                assert_eq!(header.class.dscp(), [8, 34, 46, 44][traffic]);
                assert_eq!(header.port, [5001, 80, 0, 2112][traffic]);
                seen[traffic][direction] += 1;
            }
        }
    }
    assert!(seen.iter().flatten().all(|&packets| packets > 100), "{seen:?}");
    assert!(simulation.net.ports[0].queue.as_ref().unwrap().counts.marked > 0, "marks leave the code point as it is");
}

#[test]
fn packets_keep_their_flows_when_traffic_is_added() {
    let text = |more: &str| {
        format!(
            r#"
            title = "Two flows through a queue, and maybe a ping"
            duration = "3s"
            link = [{{ name = "line", ends = ["h1", "h2"], rate = "2mbit", delay = "20ms" }}]
            traffic = [{{ name = "bulk", kind = "tcp", from = "h1", to = "h2", flows = 2 }}{more}]
            "#
        )
    };
    let mut simulation = simulation(&scenario(&text("")));
    let under_way = |simulation: &Simulation<MemorySink>| -> Vec<(u32, u32, Option<u32>)> {
        let Network { ports, pool, flows, .. } = &simulation.net;
        let flow_of = |packet| {
            let index = pool.header(packet).flow;
            let account = flows[index as usize].account;
            (index, account.traffic, account.number)
        };
        ports.iter().flat_map(|port| port.packets(pool)).map(flow_of).collect()
    };
    simulation.advance(SECOND_NS, &mut |_| ControlFlow::Continue(())).unwrap();
    let before = under_way(&simulation);
    assert!(before.len() >= 5, "{} packets", before.len());
    let ping = r#", { name = "ping", kind = "ping", from = "h1", to = "h2", interval = "10ms" }"#;
    simulation.change(scenario(&text(ping)), Vec::new()).unwrap();
    assert_eq!(under_way(&simulation), before);

    simulation.advance(2 * SECOND_NS, &mut |_| ControlFlow::Continue(())).unwrap();
    let Network { ports, pool, flows, .. } = &simulation.net;
    let mut seen = [0; 2];
    for packet in ports.iter().flat_map(|port| port.packets(pool)) {
        let traffic = flows[pool.header(packet).flow as usize].account.traffic;
        assert_eq!(traffic, u32::from(matches!(pool.body(packet), Body::Echo(_))));
        seen[traffic as usize] += 1;
    }
    assert!(seen.iter().all(|&packets| packets > 0), "{seen:?}");
}
