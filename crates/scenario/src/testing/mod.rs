//! Scenarios for property tests (feature `testing`): small, valid and otherwise arbitrary.

mod links;
pub(crate) mod text;
mod traffic;

pub use text::experiment_text;

use proptest::prelude::*;
use proptest::sample::select;

use crate::model::{Node, Scenario, SojournDetail, Table, Tables, TcpSettings};
use crate::qdisc::Qdisc;
use crate::units::MS;

/// Whether a discipline's [limit](Qdisc::limit) is the sum of those of several queues. If some of them count bytes and
/// others packets, a packet counts there as one full frame, even if it is larger.
pub fn adds_limits(queue: &Qdisc) -> bool {
    queue.all().iter().any(|discipline| matches!(discipline.kind().name, "htb" | "netem" | "prio"))
}

/// A line of one to three links, any queueing disciplines, one to four entries of arbitrary traffic, at most 5 s long,
/// rates of 0.5 to 50 Mbit/s. Each of these scenarios could have been loaded from a file, which [`experiment_text`]
/// writes.
///
/// ```
/// use bufferscope_scenario::testing::arbitrary_scenario;
/// use proptest::prelude::*;
///
/// proptest!(|(scenario in arbitrary_scenario())| {
///     prop_assert!(scenario.links.len() <= 3);
/// });
/// ```
pub fn arbitrary_scenario() -> impl Strategy<Value = Scenario> {
    let shape = (1..=3_usize, 100..=5000_u64);
    shape.prop_flat_map(|(links, duration_ms)| {
        let duration_ns = duration_ms * MS;
        let times = (0..duration_ms, 1..=100.min(duration_ms));
        let detail = select(vec![SojournDetail::Histogram, SojournDetail::Packets]);
        let nodes = prop::collection::vec(tcp_settings(), links + 1);
        let traffic = prop::collection::vec(traffic::traffic(links + 1, duration_ns), 1..=4);
        (times, detail, nodes, links::line(links), traffic).prop_map(
            move |((warmup_ms, sample_ms), sojourns, tcp, links, traffic)| Scenario {
                duration_ns,
                warmup_ns: warmup_ms * MS,
                sample_interval_ns: sample_ms * MS,
                flows_interval_ns: None,
                record: Tables::default(),
                sojourns,
                nodes: named(tcp),
                links,
                wifi: Vec::new(),
                traffic: traffic::named(traffic),
            },
        )
    })
}

/// The same, but any port with a rate may have a transmit ring and an interface on top.
pub fn arbitrary_scenario_with_rings() -> impl Strategy<Value = Scenario> {
    arbitrary_scenario().prop_flat_map(|scenario| {
        let devices = (prop::option::of(links::ring()), links::stacked());
        prop::collection::vec(devices, 2 * scenario.links.len()).prop_map(move |devices| {
            let mut scenario = scenario.clone();
            let ports = scenario.links.iter_mut().flat_map(|link| [&mut link.forward, &mut link.reverse]);
            for (port, (ring, stacked)) in ports.zip(devices).filter(|(port, _)| port.rate.is_some()) {
                (port.ring, port.stacked) = (ring, stacked);
            }
            scenario
        })
    })
}

/// The same, but tables may be left out or sampled at different times. This is for tests that do not run the scenario.
pub fn arbitrary_scenario_to_load() -> impl Strategy<Value = Scenario> {
    let record = prop::sample::subsequence(Table::RECORDED.to_vec(), 1..=Table::RECORDED.len());
    let flows_ms = prop::option::of(1..=100_u64);
    (arbitrary_scenario_with_rings(), record, flows_ms).prop_map(|(scenario, record, flows_ms)| {
        let flows_ns = flows_ms.map(|ms| ms * MS);
        Scenario {
            record: record.into_iter().collect(),
            flows_interval_ns: flows_ns.filter(|ns| *ns != scenario.sample_interval_ns),
            ..scenario
        }
    })
}

/// `h1 - r1 - ... - h2`.
fn named(tcp: Vec<TcpSettings>) -> Vec<Node> {
    let last = tcp.len() - 1;
    let name = |index: usize| match index {
        0 => "h1".to_owned(),
        index if index == last => "h2".to_owned(),
        index => format!("r{index}"),
    };
    tcp.into_iter().enumerate().map(|(index, tcp)| Node { name: name(index), tcp }).collect()
}

fn tcp_settings() -> impl Strategy<Value = TcpSettings> {
    let percent = || 1..=1000_u32;
    let receives = (65_536..=6_291_456_u64, 4096..=65_536_u64);
    let sends = (65_536..=4_194_304_u64, 4096..=65_536_u64, proptest::option::of(1..=1_000_000_u64));
    let settings = (
        receives,
        sends,
        (1..=20_u32, 1..=45_u32, 1..=255_u32),
        [proptest::bool::ANY; 2],
        0..=127_u32,
        [percent(), percent()],
    );
    settings.prop_map(
        |(
            receives,
            sends,
            (initial_window_packets, gso_max_segs, min_tso_segs),
            [slow_start_after_idle, remember_ssthresh],
            syn_linear_timeouts,
            pacing_percent,
        )| {
            let (rmem_max_bytes, rmem_default_bytes) = receives;
            let (wmem_max_bytes, wmem_default_bytes, notsent_lowat_bytes) = sends;
            TcpSettings {
                rmem_max_bytes,
                rmem_default_bytes,
                wmem_max_bytes,
                wmem_default_bytes,
                notsent_lowat_bytes,
                initial_window_packets,
                gso_max_segs,
                min_tso_segs,
                slow_start_after_idle,
                remember_ssthresh,
                syn_linear_timeouts,
                pacing_percent,
            }
        },
    )
}
