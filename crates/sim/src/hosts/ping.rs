//! `ping`: ICMP echo requests at an interval, answered by the far host.
//!
//! Every request gets a row, in the order of sending. A request counts as lost as soon as it or its reply is dropped.
//! A request that is not answered within the timeout also counts as lost, even if the answer arrives later.

use bufferscope_programs::{IputilsPing, TIMER_SLACK_NS};
use bufferscope_records::{Name, ProbeRow, Sink};
use bufferscope_scenario::{NodeIndex, PingTiming, PingTraffic};

use super::awaited::Awaited;
use super::setup::Setup;
use crate::network::packet::{Body, Echo, EchoKind};
use crate::network::traffic_class::Ecn;
use crate::network::{Network, Outbound};
use crate::observation::recording::Recording;
use crate::random::Random;
use crate::slots::Slots;

/// IP and ICMP header.
const HEADER_BYTES: u32 = 28;

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
    slots: Slots,
    random: Random,
    /// The program that decides when to send requests. `None` if they are sent at each multiple of the interval.
    iputils: Option<IputilsPing>,
    /// Requests that have no row yet. The outcome of the first of them is always still open.
    probes: Awaited<Probe>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    sent_ns: u64,
    /// When the request reached the far host.
    turned_ns: Option<u64>,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Awaited,
    AnsweredAt(u64),
    Lost,
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
            random: setup.random(),
            iputils: (parameters.timing == PingTiming::Iputils).then(|| IputilsPing::new(parameters.interval_ns)),
            probes: Awaited::new(),
        };
        ping.begin_after(0, net);
        ping
    }

    /// The prober wakes up, usually to send the next request.
    pub(crate) fn begin<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        let now_ns = net.now();
        if self.iputils.as_ref().is_none_or(|iputils| iputils.is_due(now_ns)) {
            self.request(net, recording);
        }
        match &mut self.iputils {
            Some(iputils) => {
                let wakes_ns = iputils.wakes_ns(now_ns, &mut self.random);
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
    pub(crate) fn receive<S: Sink>(&mut self, echo: Echo, net: &mut Network, recording: &mut Recording<S>) {
        let now_ns = net.now();
        match echo.kind {
            EchoKind::Request => {
                if let Some(probe) = self.probes.get_mut(echo.seq) {
                    probe.turned_ns = Some(now_ns);
                }
                self.send(EchoKind::Reply, echo.seq, net, recording);
            }
            EchoKind::Reply => {
                self.conclude(echo.seq, Outcome::AnsweredAt(now_ns), recording);
                if let Some(iputils) = self.iputils.as_mut().filter(|_| now_ns < self.stop_ns) {
                    iputils.answered(echo.seq);
                    self.begin(net, recording);
                }
            }
        }
    }

    /// A message was dropped on the way.
    pub(crate) fn lose<S: Sink>(&mut self, echo: Echo, recording: &mut Recording<S>) {
        self.conclude(echo.seq, Outcome::Lost, recording);
    }

    /// The oldest awaited request may have timed out.
    pub(crate) fn time_out<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        let timeout_ns = self.parameters.timeout_ns;
        for probe in self.probes.iter_mut().take_while(|probe| probe.sent_ns + timeout_ns <= net.now()) {
            if probe.outcome == Outcome::Awaited {
                probe.outcome = Outcome::Lost;
            }
        }
        self.write_rows(recording);
        self.arm_timeout(net);
    }

    /// Whether a request is still awaited.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.probes.is_empty()
    }

    fn request<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        let sent_ns = net.now();
        let seq = self.probes.sent();
        self.probes.push(Probe { sent_ns, turned_ns: None, outcome: Outcome::Awaited });
        if let Some(iputils) = &mut self.iputils {
            iputils.sent(sent_ns);
        }
        self.send(EchoKind::Request, seq, net, recording);
        self.arm_timeout(net);
    }

    fn send<S: Sink>(&self, kind: EchoKind, seq: u64, net: &mut Network, recording: &mut Recording<S>) {
        let [prober, far] = self.nodes;
        let (from, to) = if kind == EchoKind::Request { (prober, far) } else { (far, prober) };
        let packet = Outbound {
            from: from.0,
            destination: to.1,
            flow: self.flow,
            ip_bytes: HEADER_BYTES + self.parameters.payload_bytes,
            ecn: Ecn::NotEct,
            awaited: false,
            frames: 1,
            body: Body::Echo(Echo { ping: self.index, seq, kind }),
        };
        net.send(&packet, recording);
    }

    fn conclude<S: Sink>(&mut self, seq: u64, outcome: Outcome, recording: &mut Recording<S>) {
        if let Some(probe) = self.probes.get_mut(seq).filter(|probe| probe.outcome == Outcome::Awaited) {
            probe.outcome = outcome;
            self.write_rows(recording);
        }
    }

    /// Writes rows from the oldest probe on, up to the first whose outcome is not yet known.
    fn write_rows<S: Sink>(&mut self, recording: &mut Recording<S>) {
        while let Some((seq, probe)) = self.probes.conclude(|probe| probe.outcome != Outcome::Awaited) {
            let answered_ns = match probe.outcome {
                Outcome::AnsweredAt(at_ns) => Some(at_ns),
                Outcome::Awaited | Outcome::Lost => None,
            };
            recording.recorder.probe(ProbeRow {
                probe: self.name,
                seq,
                sent_ns: probe.sent_ns,
                rtt_ns: answered_ns.map(|at_ns| at_ns - probe.sent_ns),
                owd_up_ns: probe.turned_ns.map(|at_ns| at_ns - probe.sent_ns),
                owd_down_ns: answered_ns.zip(probe.turned_ns).map(|(at_ns, turned_ns)| at_ns - turned_ns),
            });
        }
    }

    /// Schedules a request this long after the start.
    fn begin_after(&mut self, after_ns: u64, net: &mut Network) {
        let nominal_ns = self.start_ns + after_ns;
        if nominal_ns < self.stop_ns {
            let at_ns = (nominal_ns + self.random.below(TIMER_SLACK_NS)).min(self.stop_ns - 1);
            net.events.schedule(self.slots.begin(self.index), at_ns.max(net.now()));
        }
    }

    /// One timer for all probes: it waits for the oldest.
    fn arm_timeout(&self, net: &mut Network) {
        let slot = self.slots.end(self.index);
        if let Some(probe) = self.probes.oldest().filter(|_| net.events.scheduled_at(slot).is_none()) {
            net.events.schedule(slot, probe.sent_ns + self.parameters.timeout_ns);
        }
    }
}
