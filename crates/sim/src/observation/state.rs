//! The state of a simulation between two steps.

use bufferscope_records::{FlowRow, FlowState, Recorder, Sink};
use bufferscope_scenario::Scenario;
use serde::Serialize;

use super::summary::{PortPackets, ports};
use crate::network::port::Port;

/// The state of a network at one time, before any event at that time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// The time.
    pub now_ns: u64,
    /// Ports in the order of the scenario's links, forward first.
    pub ports: Vec<PortState>,
    /// The flows with an established connection that is not closed, and those over UDP that have begun.
    pub flows: Vec<SenderState>,
}

/// The state of a port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortState {
    /// The counts of its packets since the start.
    #[serde(flatten)]
    pub packets: PortPackets,
    /// Bytes waiting in its queue, link-layer overhead included.
    pub queued_bytes: u64,
    /// Bytes waiting in its ring, or in the driver of a port on the air, likewise; 0 if it has neither.
    pub ring_bytes: u64,
    /// Bytes that left its queue since the start, link-layer overhead included; 0 if it has no queue.
    pub sent_bytes: u64,
    /// The rate at which the next frame will be sent, in bits per second; `None`: packets pass without being
    /// serialised.
    pub rate_bps: Option<u64>,
    /// Propagation delay.
    pub delay_ns: u64,
    /// The name of its queueing discipline; `None` if it has no rate, and so no queue.
    pub qdisc: Option<&'static str>,
}

/// The state of the sending side of a flow. The quantities are those of the table `flows`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SenderState {
    /// `<traffic>/<number>`.
    pub flow: String,
    /// Congestion window; `None`: not TCP.
    pub cwnd_bytes: Option<u64>,
    /// Slow-start threshold; `None`: still unlimited, or not TCP.
    pub ssthresh_bytes: Option<u64>,
    /// Payload in flight: sent and neither acknowledged (over UDP, arrived) nor marked lost.
    pub inflight_bytes: u64,
    /// Smoothed round-trip time; `None`: not measured yet, or not TCP.
    pub srtt_ns: Option<u64>,
    /// Smallest round-trip time of the last five minutes; `None`: not measured yet, or not TCP.
    pub min_rtt_ns: Option<u64>,
    /// Pacing rate in bits per second; `None`: not paced.
    pub pacing_bps: Option<u64>,
    /// Delivery rate measured last, in bits of payload per second; `None`: not measured yet, or not TCP.
    pub delivery_rate_bps: Option<u64>,
    /// Payload acknowledged (over UDP, arrived) since the start.
    pub delivered_bytes: u64,
    /// Segments retransmitted since the start; `None`: not TCP.
    pub retransmits: Option<u64>,
    /// Segments marked lost and not retransmitted yet; over UDP, datagrams still missing.
    pub lost: u64,
    /// State of the congestion control; `None`: not TCP.
    pub state: Option<&'static str>,
}

impl SenderState {
    pub(crate) fn new<S: Sink>(row: &FlowRow, recorder: &Recorder<S>) -> Self {
        Self {
            flow: recorder.text(row.flow),
            cwnd_bytes: row.cwnd_bytes,
            ssthresh_bytes: row.ssthresh_bytes,
            inflight_bytes: row.inflight_bytes,
            srtt_ns: row.srtt_ns,
            min_rtt_ns: row.min_rtt_ns,
            pacing_bps: row.pacing_bps,
            delivery_rate_bps: row.delivery_rate_bps,
            delivered_bytes: row.delivered_bytes,
            retransmits: row.retransmits,
            lost: row.lost,
            state: row.state.map(FlowState::as_str),
        }
    }
}

/// The state of every port. `scenario` has their present parameters.
pub(crate) fn ports_at(now_ns: u64, scenario: &Scenario, network: &[Port]) -> Vec<PortState> {
    let parameters = scenario.links.iter().flat_map(|link| [&link.forward, &link.reverse]);
    let state = |((packets, port), parameters): ((PortPackets, &Port), &bufferscope_scenario::Port)| PortState {
        packets,
        queued_bytes: port.queue.as_ref().map_or(0, |queue| queue.backlog().bytes),
        ring_bytes: port.ring.as_ref().map_or(0, |ring| ring.waiting().bytes())
            + port.radio.as_ref().map_or(0, |radio| radio.backlog().bytes),
        sent_bytes: port.queue.as_ref().map_or(0, |queue| queue.counts.sent_bytes),
        rate_bps: port.link.rate_bps(now_ns),
        delay_ns: parameters.delay_ns,
        qdisc: parameters.rate.as_ref().map(|_| parameters.queue.kind().name),
    };
    ports(scenario, network).into_iter().zip(network).zip(parameters).map(state).collect()
}
