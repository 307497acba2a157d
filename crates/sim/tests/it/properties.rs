//! Properties that hold in every run of every scenario.

use crate::common::{SECOND, most_segments, numbers, numbers_of_layer, numbers_where, optional, run, words};
use bufferscope_records::{MemorySink, Table};
use bufferscope_scenario::sizes::FRAME_BYTES;
use bufferscope_scenario::testing::{adds_limits, arbitrary_scenario, arbitrary_scenario_with_rings};
use bufferscope_scenario::{Limit, NodeIndex, Port, Qdisc, Scenario, TrafficKind};
use proptest::prelude::*;

/// The headers of IPv4 and TCP with the most options.
const LARGEST_ACKNOWLEDGEMENT_BYTES: u32 = 20 + 60;

/// Largest frame, or packet of several: 1500 bytes of IP and whatever the link adds, for each.
fn largest_frame(scenario: &Scenario, port: &Port) -> u64 {
    u64::from(port.encapsulation.frame_bytes(1500)) * most_segments(scenario)
}

/// Every port that has a rate, with its name.
fn rated_ports(scenario: &Scenario) -> Vec<(String, &Port)> {
    let ports = |link: &'_ bufferscope_scenario::Link| link.port_names(&scenario.nodes);
    scenario
        .links
        .iter()
        .flat_map(|link| ports(link).into_iter().zip([&link.forward, &link.reverse]))
        .filter(|(_, port)| port.rate.is_some())
        .collect()
}

/// The ports from one node of the line to another.
fn path(scenario: &Scenario, from: NodeIndex, to: NodeIndex) -> Vec<&Port> {
    let (first, last) = (usize::from(from.min(to)), usize::from(from.max(to)));
    let direction = |link: &'_ bufferscope_scenario::Link| {
        if from < to { link.ends[0] < link.ends[1] } else { link.ends[0] > link.ends[1] }
    };
    scenario.links[first..last].iter().map(|link| if direction(link) { &link.forward } else { &link.reverse }).collect()
}

/// Bytes that the port's wire can send from one time to another: at its rate, and what a boost's full bucket adds.
fn capacity_bytes(port: &Port, from_ns: u64, to_ns: u64) -> u64 {
    if port.variation.is_some() {
        let fastest = port.fastest_bps().expect("it has a rate");
        return (u128::from(to_ns - from_ns) * u128::from(fastest)).div_ceil(u128::from(8 * SECOND)) as u64;
    }
    let steps = port.rate.as_ref().expect("only asked for ports with a rate").steps();
    let ends = steps.iter().skip(1).map(|step| step.from_ns).chain([u64::MAX]);
    let bits_ns: u128 = steps
        .iter()
        .zip(ends)
        .map(|(step, end_ns)| {
            let overlap_ns = end_ns.min(to_ns).saturating_sub(step.from_ns.max(from_ns));
            u128::from(overlap_ns) * u128::from(step.bits_per_second)
        })
        .sum();
    (bits_ns / u128::from(8 * SECOND)) as u64 + port.boost.map_or(0, |boost| boost.bytes)
}

fn assert_times_ascend(sink: &MemorySink) {
    for table in [Table::Queues, Table::Flows, Table::Drops, Table::Sojourns] {
        assert!(numbers(sink, table, "t_ns").is_sorted(), "{table}");
    }
}

fn assert_queues_within_limits(scenario: &Scenario, sink: &MemorySink) {
    for (name, port) in rated_ports(scenario) {
        let most = |column| queue(sink, column, (&name, "qdisc")).into_iter().max().unwrap();
        match (port.queue.limit(), &port.queue) {
            (Limit::Packets(packets), _) => assert!(most("packets") <= packets, "{name}"),
            // Where queues that count packets add to one that counts bytes, each packet counts as one full frame.
            (Limit::Bytes(bytes), queue) if adds_limits(queue) => {
                let most_bytes = bytes.saturating_mul(largest_frame(scenario, port).div_ceil(FRAME_BYTES.into()));
                assert!(most("bytes") <= most_bytes, "{name}");
            }
            // The memory of an acknowledgement counts with less than its length. `autorate-ingress` sets the limit anew with
            // each rate that it measures (`cake_reconfigure`).
            (Limit::Bytes(_), Qdisc::Cake(cake)) => {
                let bytes = cake.buffer_limit(if cake.autorate_ingress { 0 } else { cake.bytes_per_second() });
                let acknowledgement = u64::from(port.encapsulation.frame_bytes(LARGEST_ACKNOWLEDGEMENT_BYTES));
                let [packets, queued] = ["packets", "bytes"].map(|column| queue(sink, column, (&name, "qdisc")));
                for (packets, queued) in packets.into_iter().zip(queued) {
                    assert!(queued <= bytes + packets * acknowledgement, "{name}: {queued} bytes, {packets} packets");
                }
            }
            (Limit::Bytes(bytes), _) => assert!(most("bytes") <= bytes, "{name}: {} of {bytes} bytes", most("bytes")),
        }
    }
}

/// Between any two samples a wire takes at most what it can send. The frame it takes last may end later, and one that
/// is on the wire when the rate falls still ends at the higher rate.
fn assert_wires_keep_to_their_rate(scenario: &Scenario, sink: &MemorySink) {
    for (name, port) in rated_ports(scenario) {
        let lowest = if port.ring.is_some() { "ring" } else { "qdisc" };
        let [times, sent] = ["t_ns", "sent_bytes"].map(|column| queue(sink, column, (&name, lowest)));
        for (t, bytes) in times.windows(2).zip(sent.windows(2)) {
            let most =
                capacity_bytes(port, t[0], t[1]) + largest_frame(scenario, port) * (1 + changes(port, t[0], t[1]));
            let sent = bytes[1] - bytes[0];
            assert!(sent <= most, "{name}: {sent} of {most} bytes from {} to {}", t[0], t[1]);
        }
    }
}

/// How often the port's rate changes between two times.
fn changes(port: &Port, from_ns: u64, to_ns: u64) -> u64 {
    let steps = port.rate.as_ref().expect("only asked for ports with a rate").steps();
    steps.iter().filter(|step| (from_ns..to_ns).contains(&step.from_ns)).count() as u64
}

/// Every port of a flow's path could have carried what the flow delivered.
fn assert_goodput_below_capacity(scenario: &Scenario, sink: &MemorySink) {
    for traffic in &scenario.traffic {
        if matches!(
            traffic.kind,
            TrafficKind::Ping(_) | TrafficKind::Voip(_) | TrafficKind::Dns(_) | TrafficKind::Irtt(_)
        ) {
            continue;
        }
        let first_flow = format!("{}/1", traffic.name);
        let times = numbers_where(sink, Table::Flows, "t_ns", ("flow", &first_flow));
        let delivered = numbers_where(sink, Table::Flows, "delivered_bytes", ("flow", &first_flow));
        for port in path(scenario, traffic.from, traffic.to).into_iter().filter(|port| port.rate.is_some()) {
            for (&t, &bytes) in times.iter().zip(&delivered) {
                assert!(bytes <= capacity_bytes(port, 0, t), "{first_flow}: {bytes} bytes at {t}");
            }
        }
    }
}

fn assert_probes_take_at_least_the_propagation(scenario: &Scenario, sink: &MemorySink) {
    for traffic in
        scenario.traffic.iter().filter(|traffic| matches!(traffic.kind, TrafficKind::Ping(_) | TrafficKind::Irtt(_)))
    {
        // A delay that varies may be as short as none.
        let least = |port: &&Port| if port.faults.is_some() { 0 } else { port.delay_ns };
        let delay = |from, to| path(scenario, from, to).iter().map(least).sum::<u64>();
        let least = delay(traffic.from, traffic.to) + delay(traffic.to, traffic.from);
        let names = words(sink, Table::Probes, "probe");
        for (name, rtt) in names.iter().zip(optional(sink, Table::Probes, "rtt_ns")) {
            assert!(*name != traffic.name || rtt.is_none_or(|rtt| rtt >= least), "{rtt:?} below {least}");
        }
    }
}

/// Every packet that left a queue is in the sojourn times, and none that was dropped. A packet of several segments has
/// one sojourn time, and is sent as so many packets.
fn assert_sojourns_complete(scenario: &Scenario, sink: &MemorySink) {
    let most = most_segments(scenario);
    for (name, port) in rated_ports(scenario) {
        let sent = *queue(sink, "sent_packets", (&name, "qdisc")).last().unwrap();
        let sojourns = |layer| numbers_of_layer(sink, Table::Sojourns, "packets", (&name, layer)).into_iter().flatten();
        let left = sojourns("qdisc").sum::<u64>();
        assert!((left..=left * most).contains(&sent), "{name}: {sent} sent of {left}");
        if port.ring.is_some() {
            // The wait in a ring is over when its packet begins to be sent.
            let ended = *queue(sink, "sent_packets", (&name, "ring")).last().unwrap();
            let begun = sojourns("ring").sum::<u64>();
            assert!((begun.saturating_sub(1)..=begun * most).contains(&ended), "{name}: {ended} sent of {begun}");
        }
    }
}

/// A ring holds no more packets than it has room for, and has those that its queue has passed on and that have not been
/// sent. At most one packet exceeds the largest limit.
fn assert_rings_within_limits(scenario: &Scenario, sink: &MemorySink) {
    for (name, port) in rated_ports(scenario) {
        let Some(ring) = port.ring else { continue };
        let [packets, sent] = ["packets", "sent_packets"].map(|column| queue(sink, column, (&name, "ring")));
        let [waiting, gone] = ["bytes", "sent_bytes"].map(|column| queue(sink, column, (&name, "ring")));
        for ((waiting, gone), begun) in waiting.into_iter().zip(gone).zip(queue(sink, "sent_bytes", (&name, "qdisc"))) {
            assert_eq!(waiting + gone, begun, "{name}: bytes");
        }
        let passed_on = queue(sink, "sent_packets", (&name, "qdisc"));
        for ((packets, sent), passed_on) in packets.into_iter().zip(sent).zip(passed_on) {
            assert!(packets <= ring.room_packets().into(), "{name}: {packets} packets in the ring");
            let most = packets * most_segments(scenario);
            assert!((packets + sent..=most + sent).contains(&passed_on), "{name}: {packets} packets, {sent} sent");
        }
        let [bytes, limit, inflight] = ["bytes", "limit_bytes", "inflight_bytes"]
            .map(|column| numbers_of_layer(sink, Table::Queues, column, (&name, "ring")));
        let largest = largest_frame(scenario, port);
        for ((bytes, limit), inflight) in bytes.into_iter().zip(limit).zip(inflight) {
            assert_eq!((limit.is_some(), inflight.is_some()), (ring.bql.is_some(), ring.bql.is_some()), "{name}");
            let (Some(limits), Some(limit), Some(inflight)) = (ring.bql, limit, inflight) else { continue };
            assert!(bytes.is_some_and(|bytes| bytes <= inflight), "{name}: {bytes:?} unsent of {inflight} bytes");
            assert!(limit == 0 || (limits.min_bytes..=limits.max_bytes).contains(&limit), "{name}: limit {limit}");
            assert!(inflight <= limits.max_bytes + largest, "{name}: {inflight} bytes in the ring");
        }
    }
}

/// A column of a layer's samples.
fn queue(sink: &MemorySink, column: &str, layer: (&str, &str)) -> Vec<u64> {
    let column = numbers_of_layer(sink, Table::Queues, column, layer);
    column.into_iter().map(|value| value.expect("no nulls in this column")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_run_is_conserving_ordered_and_within_its_limits(scenario in arbitrary_scenario(), seed: u64) {
        // Conservation is checked by `run`.
        let sink = run(&scenario, seed).output;
        assert_times_ascend(&sink);
        assert_queues_within_limits(&scenario, &sink);
        assert_wires_keep_to_their_rate(&scenario, &sink);
        assert_goodput_below_capacity(&scenario, &sink);
        assert_probes_take_at_least_the_propagation(&scenario, &sink);
        assert_sojourns_complete(&scenario, &sink);
    }

    #[test]
    fn a_run_with_rings_is_conserving_ordered_and_within_its_limits(
        scenario in arbitrary_scenario_with_rings(),
        seed: u64,
    ) {
        let sink = run(&scenario, seed).output;
        assert_times_ascend(&sink);
        assert_queues_within_limits(&scenario, &sink);
        assert_rings_within_limits(&scenario, &sink);
        assert_wires_keep_to_their_rate(&scenario, &sink);
        assert_goodput_below_capacity(&scenario, &sink);
        assert_probes_take_at_least_the_propagation(&scenario, &sink);
        assert_sojourns_complete(&scenario, &sink);
    }

    #[test]
    fn a_run_can_be_repeated(scenario in arbitrary_scenario(), seed: u64) {
        let (first, second) = (run(&scenario, seed).output, run(&scenario, seed).output);
        for table in Table::ALL {
            prop_assert_eq!(first.batches(table), second.batches(table));
        }
    }
}
