//! Traffic over UDP: carries out what the programs decide. The transport neither retransmits datagrams nor slows down
//! their senders.

use std::convert::Infallible;

use bufferscope_programs::{
    self as programs, Arrival, Counted, DatagramProgram, DatagramSockets, NetalyzrEstimate, NetalyzrStage, Outcome,
    Transfer,
};
use bufferscope_records::{self as records, EstimateRow, FlowRow, Name, TransferRow};
use bufferscope_scenario::sizes::DATAGRAM_HEADER_BYTES;
use bufferscope_scenario::{End, NodeIndex};

use super::setup::Setup;
use crate::event_queue::Slot;
use crate::network::packet::{Body, Datagram, Direction};
use crate::network::traffic_class::Ecn;
use crate::network::{Network, Outbound};
use crate::observation::recording::AnyRecording;
use crate::random::Random;

/// The programs of one entry of traffic, and the accounts of their flows.
#[derive(Debug)]
pub(crate) struct Datagrams {
    program: DatagramProgram<Random>,
    hosts: Hosts,
    /// The events of its next task, and of the first time-out.
    next: Slot,
    timeout: Slot,
}

/// The two hosts of an entry of traffic.
#[derive(Debug)]
struct Hosts {
    traffic: (u32, Name),
    /// `from` and `to`, each with its row in the routing table.
    nodes: [(NodeIndex, u16); 2],
    /// The flows: their names and accounts.
    flows: Vec<(Name, u32)>,
}

/// The sockets of a program.
struct SimSockets<'a> {
    hosts: &'a Hosts,
    net: &'a mut Network,
    recording: &'a mut AnyRecording<'a>,
}

impl Datagrams {
    /// The programs of an entry of traffic over UDP.
    pub(crate) fn new(setup: &Setup<'_>, net: &mut Network) -> Self {
        // Losses are known at once, so that nothing has to wait for what may have been overtaken.
        let program = DatagramProgram::new(setup.traffic, setup.index as usize, setup.seed, 0, setup.slack())
            .expect("it sends datagrams");
        let flows = (1..=program.flows()).map(|number| setup.flow(number, net)).collect();
        let hosts = Hosts { traffic: (setup.index, setup.name), nodes: setup.nodes(net), flows };
        let [next, timeout] = [setup.slots.begin(setup.index), setup.slots.end(setup.index)];
        let datagrams = Self { program, hosts, next, timeout };
        datagrams.arm(net);
        datagrams
    }

    /// Tasks are due.
    pub(crate) fn begin(&mut self, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let now_ns = net.now();
        let mut sockets = SimSockets { hosts: &self.hosts, net, recording };
        while self.program.next_ns().is_some_and(|next_ns| next_ns <= now_ns) {
            let Ok(()) = self.program.on_time(now_ns, &mut sockets);
        }
        self.arm(net);
        self.arm_timeout(net);
    }

    /// Nothing new is sent at `stop_ns` or later.
    pub(crate) fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.program.bring_stop_forward(stop_ns);
    }

    /// A datagram has arrived at its destination.
    pub(crate) fn receive(&mut self, datagram: Datagram, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let at = match datagram.direction {
            Direction::Forward => End::To,
            Direction::Reverse => End::From,
        };
        let now_ns = net.now();
        let arrival = Arrival { at, stream: datagram.stream, number: datagram.seq, at_ns: now_ns };
        let mut sockets = SimSockets { hosts: &self.hosts, net, recording };
        let Ok(()) = self.program.on_arrival(arrival, &mut sockets);
        let Ok(()) = self.program.settle(now_ns, &mut sockets);
        self.arm(net);
    }

    /// A datagram was dropped on the way.
    pub(crate) fn lose(&mut self, datagram: Datagram, net: &mut Network, recording: &mut AnyRecording<'_>) {
        self.program.on_loss(datagram.stream, datagram.seq);
        self.settle(net, recording);
    }

    /// The oldest awaited item may have timed out.
    pub(crate) fn time_out(&mut self, net: &mut Network, recording: &mut AnyRecording<'_>) {
        self.settle(net, recording);
        self.arm_timeout(net);
    }

    /// Samples its flows; returns how many there were.
    pub(crate) fn sample(&self, now_ns: u64, recording: &mut AnyRecording<'_>) -> u64 {
        self.counted(now_ns).map(|row| recording.recorder.flow(row)).count() as u64
    }

    /// Its flows that have begun.
    pub(crate) fn rows(&self, now_ns: u64) -> Vec<FlowRow> {
        self.counted(now_ns).collect()
    }

    /// Records everything that is still open at the end of the duration, except for what is awaited.
    pub(crate) fn finish(&mut self, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let Ok(()) = self.program.finish(&mut SimSockets { hosts: &self.hosts, net, recording });
    }

    /// Whether the outcome of anything that gets a row is still open.
    pub(crate) fn is_waiting(&self) -> bool {
        self.program.is_waiting()
    }

    fn settle(&mut self, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let now_ns = net.now();
        let Ok(()) = self.program.settle(now_ns, &mut SimSockets { hosts: &self.hosts, net, recording });
    }

    fn counted(&self, now_ns: u64) -> impl Iterator<Item = FlowRow> {
        let row = move |(flow, (name, _)): (u32, &(Name, u32))| {
            let Counted { payload_bytes, sent, expected, received } = self.program.counted(flow)?;
            let datagrams = records::Datagrams { payload_bytes: payload_bytes.into(), sent, expected, received };
            Some(FlowRow::of_datagrams(now_ns, *name, datagrams))
        };
        (0..).zip(&self.hosts.flows).filter_map(row)
    }

    /// Plans the event of the next task, unless there is an earlier one. When that is due, the program says how much
    /// longer to wait.
    #[inline]
    fn arm(&self, net: &mut Network) {
        if let Some(next_ns) = self.program.next_ns()
            && net.events.scheduled_at(self.next).is_none_or(|planned_ns| planned_ns > next_ns)
        {
            net.events.schedule(self.next, next_ns.max(net.now()));
        }
    }

    /// One timer for all time-outs: it waits for the first.
    fn arm_timeout(&self, net: &mut Network) {
        if let Some(at_ns) = self.program.first_timeout_ns()
            && net.events.scheduled_at(self.timeout).is_none()
        {
            net.events.schedule(self.timeout, at_ns);
        }
    }
}

impl DatagramSockets for SimSockets<'_> {
    type Error = Infallible;

    fn send(&mut self, from: End, stream: u32, datagram: programs::Datagram) -> Result<bool, Infallible> {
        let Hosts { traffic: (traffic, _), nodes, flows } = self.hosts;
        let (direction, [from, to]) = match from {
            End::From => (Direction::Forward, *nodes),
            End::To => (Direction::Reverse, [nodes[1], nodes[0]]),
        };
        let packet = Outbound {
            from: from.0,
            destination: to.1,
            flow: flows[(stream as usize).min(flows.len() - 1)].1,
            ip_bytes: DATAGRAM_HEADER_BYTES + datagram.payload_bytes,
            ecn: Ecn::NotEct,
            awaited: false,
            frames: 1,
            body: Body::Datagram(Datagram { traffic: *traffic, stream, seq: datagram.number, direction }),
        };
        self.net.send(&packet, self.recording);
        Ok(true)
    }

    fn record_probe(&mut self, flow: Option<u32>, outcome: Outcome) -> Result<(), Infallible> {
        let name = flow.map_or(self.hosts.traffic.1, |flow| self.hosts.flows[flow as usize].0);
        self.recording.probe(name, outcome);
        Ok(())
    }

    fn record_transfer(&mut self, transfer: Transfer) -> Result<(), Infallible> {
        let Transfer { connection, started_ns, finished_ns, bytes } = transfer;
        let traffic = self.hosts.traffic.1;
        let row = TransferRow { traffic, flow: traffic.numbered(connection), started_ns, finished_ns, bytes };
        self.recording.recorder.transfer(row);
        Ok(())
    }

    fn record_estimate(&mut self, estimate: NetalyzrEstimate) -> Result<(), Infallible> {
        let NetalyzrEstimate { stage, started_ns, idle_ns, loaded_ns, rate_bps, sent, received } = estimate;
        let direction = if stage == NetalyzrStage::Up { records::Direction::Up } else { records::Direction::Down };
        let traffic = self.hosts.traffic.1;
        self.recording.recorder.estimate(EstimateRow {
            traffic,
            direction,
            started_ns,
            idle_ns,
            loaded_ns,
            rate_bps,
            sent,
            received,
        });
        Ok(())
    }
}
