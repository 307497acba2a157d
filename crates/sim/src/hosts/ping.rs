//! `ping`: ICMP echo requests at an interval, answered by the far host.
//!
//! Every request gets a row, in the order of sending. A request counts as lost as soon as it or its reply is dropped.
//! A request that is not answered within the timeout also counts as lost, even if the answer arrives later.

use bufferscope_programs::{IputilsPing, Probes, Stage, TIMER_SLACK_NS, late_ns};
use bufferscope_records::Name;
use bufferscope_scenario::sizes::DATAGRAM_HEADER_BYTES;
use bufferscope_scenario::{NodeIndex, PingTiming, PingTraffic};

use super::setup::Setup;
use crate::network::packet::{Body, Echo, EchoKind};
use crate::network::traffic_class::Ecn;
use crate::network::{Network, Outbound};
use crate::observation::recording::AnyRecording;
use crate::random::Random;
use crate::timer_slots::TimerSlots;

/// One prober and its outstanding requests.
#[derive(Debug)]
pub(crate) struct Ping {
    name: Name,
    index: u32,
    flow: u32,
    /// The prober and the host that answers, each with its row in the routing table.
    nodes: [(NodeIndex, u16); 2],
    parameters: PingTraffic,
    start_ns: u64,
    stop_ns: u64,
    slots: TimerSlots,
    slack: Random,
    /// The program that decides when to send requests. `None` if they are sent at each multiple of the interval.
    iputils: Option<IputilsPing>,
    probes: Probes,
}

impl Ping {
    pub(crate) fn new(setup: &Setup<'_>, parameters: &PingTraffic, net: &mut Network) -> Self {
        let (_, flow) = setup.flow(1, net);
        let mut ping = Self {
            name: setup.name,
            index: setup.index,
            flow,
            nodes: setup.nodes(net),
            parameters: parameters.clone(),
            start_ns: setup.traffic.start_ns,
            stop_ns: setup.traffic.stop_ns,
            slots: setup.slots,
            slack: setup.slack(),
            iputils: (parameters.timing == PingTiming::Iputils).then(|| IputilsPing::new(parameters.interval_ns)),
            probes: Probes::new(Stage::Back, parameters.timeout_ns),
        };
        ping.begin_after(0, net);
        ping
    }

    /// The prober wakes up, usually to send the next request.
    pub(crate) fn begin(&mut self, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let now_ns = net.now();
        if self.iputils.as_ref().is_none_or(|iputils| iputils.is_due(now_ns)) {
            self.request(net, recording);
        }
        match &mut self.iputils {
            Some(iputils) => {
                let wakes_ns = iputils.wakes_ns(now_ns, &mut self.slack);
                if wakes_ns < self.stop_ns {
                    net.events.schedule(self.slots.begin(self.index), wakes_ns);
                } else {
                    net.events.cancel(self.slots.begin(self.index));
                }
            }
            None => self.begin_after(self.probes.sent() * self.parameters.interval_ns, net),
        }
    }

    /// No request is sent at `stop_ns` or later.
    pub(crate) fn bring_stop_forward(&mut self, stop_ns: u64, net: &mut Network) {
        self.stop_ns = stop_ns;
        let slot = self.slots.begin(self.index);
        if net.events.scheduled_at(slot).is_some_and(|at_ns| at_ns >= stop_ns) {
            net.events.cancel(slot);
        }
    }

    /// A message has arrived at its destination.
    pub(crate) fn receive(&mut self, echo: Echo, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let now_ns = net.now();
        match echo.kind {
            EchoKind::Request => {
                self.probes.see(echo.seq, Stage::Far, now_ns);
                self.send(EchoKind::Reply, echo.seq, net, recording);
            }
            EchoKind::Reply => {
                self.probes.see(echo.seq, Stage::Back, now_ns);
                self.write_rows(now_ns, recording);
                if let Some(iputils) = self.iputils.as_mut().filter(|_| now_ns < self.stop_ns) {
                    iputils.answered(echo.seq);
                    self.begin(net, recording);
                }
            }
        }
    }

    /// A message was dropped on the way.
    pub(crate) fn lose(&mut self, echo: Echo, net: &Network, recording: &mut AnyRecording<'_>) {
        self.probes.lose(echo.seq);
        self.write_rows(net.now(), recording);
    }

    /// The oldest awaited request may have timed out.
    pub(crate) fn time_out(&mut self, net: &mut Network, recording: &mut AnyRecording<'_>) {
        self.write_rows(net.now(), recording);
        self.arm_timeout(net);
    }

    /// Whether a request is still awaited.
    pub(crate) fn is_waiting(&self) -> bool {
        self.probes.are_awaited()
    }

    fn request(&mut self, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let sent_ns = net.now();
        let seq = self.probes.sent();
        self.probes.push(sent_ns);
        if let Some(iputils) = &mut self.iputils {
            iputils.sent(sent_ns);
        }
        self.send(EchoKind::Request, seq, net, recording);
        self.arm_timeout(net);
    }

    fn send(&self, kind: EchoKind, seq: u64, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let [prober, far] = self.nodes;
        let (from, to) = if kind == EchoKind::Request { (prober, far) } else { (far, prober) };
        let packet = Outbound {
            from: from.0,
            destination: to.1,
            flow: self.flow,
            ip_bytes: DATAGRAM_HEADER_BYTES + self.parameters.payload_bytes,
            ecn: Ecn::NotEct,
            awaited: false,
            frames: 1,
            body: Body::Echo(Echo { ping: self.index, seq, kind }),
        };
        net.send(&packet, recording);
    }

    fn write_rows(&mut self, now_ns: u64, recording: &mut AnyRecording<'_>) {
        while let Some(outcome) = self.probes.settled(now_ns) {
            recording.probe(self.name, outcome);
        }
    }

    /// Schedules a request this long after the start.
    fn begin_after(&mut self, after_ns: u64, net: &mut Network) {
        let nominal_ns = self.start_ns + after_ns;
        if nominal_ns < self.stop_ns {
            let at_ns = late_ns(nominal_ns, TIMER_SLACK_NS, self.stop_ns, &mut self.slack);
            net.events.schedule(self.slots.begin(self.index), at_ns.max(net.now()));
        }
    }

    /// One timer for all probes: it waits for the oldest.
    fn arm_timeout(&self, net: &mut Network) {
        let slot = self.slots.end(self.index);
        if let Some(at_ns) = self.probes.first_timeout_ns().filter(|_| net.events.scheduled_at(slot).is_none()) {
            net.events.schedule(slot, at_ns);
        }
    }
}
