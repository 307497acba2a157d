//! From what was recorded to what a verdict needs: one clock, and the phase of each row.

use bufferscope_verdict::Observations;
use bufferscope_verdict::input::{
    AnswerKind, Direction, Echo, End, EndName, Ends, Flood, FlowSample, GoodputSample, LadderProbe, LocalSample, Lost,
    Parameters, Phase, StageDelay, TcpProbe, TcpProbeKind,
};

use super::exchanges::Exchange;
use super::{Measurement, PhaseRecord};
use crate::local::EndFacts;
use crate::records::{EndRecords, FloodRow, FlowRow, LadderRow, LocalRow};

/// As [`observed`], of a test with an echo in every interval.
pub fn observations(measurement: &Measurement, interval_ns: u64) -> Observations {
    let mut observed = observed(measurement);
    observed.parameters.probe_interval_ns = Some(signed(interval_ns));
    observed
}

/// The observations of a test, by phase. Times are nanoseconds since its beginning, on the client's clock. Rows from
/// between two phases are left out.
pub fn observed(measurement: &Measurement) -> Observations {
    let clock = Clock::of(measurement);
    let mut phases: Vec<Phase> = measurement.phases.iter().map(|phase| empty(phase, measurement.start_ns)).collect();
    let arrived: std::collections::HashSet<u64> =
        measurement.server.iter().flat_map(|server| server.arrivals.iter().map(|row| row.seq)).collect();
    let knows_arrivals = measurement.server.is_some();
    let mut sort = Sorter { phases: &mut phases };

    for (seq, probe) in measurement.probes.iter().enumerate() {
        let t_ns = clock.client(probe.t_ns);
        if probe.ttl > 0 {
            sort.at(t_ns, |phase| phase.ladder.push(own_hop(probe, t_ns)));
            continue;
        }
        let lost = probe.reply.is_none().then_some(match (knows_arrivals, arrived.contains(&(seq as u64))) {
            (false, _) => Lost::Unknown,
            (true, true) => Lost::Down,
            (true, false) => Lost::Up,
        });
        let echo = Echo {
            t_ns,
            rtt_ns: probe.rtt_ns().map(signed),
            up_ns: probe.reply.map(|reply| reply.arrived_ns.wrapping_sub(probe.t_ns) as i64),
            down_ns: probe.reply.map(|reply| reply.back_ns.wrapping_sub(reply.answered_ns) as i64),
            lost,
        };
        sort.at(t_ns, |phase| phase.echoes.push(echo));
    }
    for row in &measurement.client.tcp_ladder {
        let t_ns = clock.client(row.t_ns);
        sort.at(t_ns, |phase| phase.tcp_ladder.push(hop(row, EndName::Client, t_ns)));
    }
    for probe in tcp_probes(measurement.exchanges.iter(), measurement.marks.iter(), |t_ns| clock.client(t_ns)) {
        sort.at(probe.t_ns, |phase| phase.tcp_probes.push(probe));
    }
    for probe in handshakes(measurement.other.handshakes.iter(), |t_ns| clock.client(t_ns)) {
        sort.at(probe.t_ns, |phase| phase.tcp_probes.push(probe));
    }
    sort.end(&measurement.client, EndName::Client, |t_ns| clock.client(t_ns));
    if let Some(server) = &measurement.server {
        sort.end(&server.end, EndName::Server, |t_ns| clock.server(t_ns));
    }
    let floods = measurement.client.floods.iter().map(|row| flood(measurement, &clock, row)).collect();
    let server_distance = measurement.server.as_ref().and_then(|server| distance(&server.end.ladder));
    for row in &measurement.other.of_downloads {
        let t_ns = clock.client(row.t_ns);
        sort.at(t_ns, |phase| phase.flows.push(flow(row, t_ns, Direction::Down)));
    }
    for row in &measurement.other.uploaded {
        let t_ns = clock.client(row.t_ns);
        let sample = GoodputSample { t_ns, direction: Direction::Up, bytes: row.bytes };
        sort.at(t_ns, |phase| phase.goodput.push(sample));
    }
    let server_facts = measurement.server.as_ref().map_or(&measurement.server_facts, |server| &server.facts);
    Observations {
        phases,
        floods,
        ends: Ends {
            client: end(&measurement.facts, measurement.distance.or_else(|| distance(&measurement.client.tcp_ladder))),
            server: end(server_facts, server_distance),
        },
        parameters: Parameters {
            congestion: measurement
                .client
                .congestion
                .clone()
                .or_else(|| measurement.server.as_ref().and_then(|server| server.end.congestion.clone())),
            ..measurement.other.parameters.clone()
        },
    }
}

/// A flood, with the echoes of its time.
fn flood(measurement: &Measurement, clock: &Clock, row: &FloodRow) -> Flood {
    let times = row.start_ns..=row.end_ns;
    let echoes = measurement.probes.iter().filter(|probe| probe.ttl == 0 && times.contains(&probe.t_ns));
    let received = row.received.iter().map(|&(t_ns, bytes)| match row.direction {
        Direction::Up => (clock.server(t_ns), bytes),
        Direction::Down => (clock.client(t_ns), bytes),
    });
    Flood {
        direction: row.direction,
        peak_bps: row.peak_bps,
        start_ns: clock.client(row.start_ns),
        end_ns: clock.client(row.end_ns),
        sent_packets: row.sent_packets,
        received_packets: row.received_packets,
        rtts: echoes.map(|probe| (clock.client(probe.t_ns), probe.rtt_ns().map(signed))).collect(),
        received: received.collect(),
    }
}

/// The probes over TCP: new connections, and round trips within those of the load. `time` maps the client's clock.
pub(super) fn tcp_probes<'a>(
    exchanges: impl Iterator<Item = &'a Exchange>,
    marks: impl Iterator<Item = &'a (bool, u64, u64)>,
    time: impl Fn(u64) -> i64 + Copy,
) -> impl Iterator<Item = TcpProbe> {
    let of_new = exchanges.flat_map(move |exchange| {
        let begun_ns = time(exchange.t_ns);
        let probe =
            |t_ns, kind, rtt_ns: Option<u64>| TcpProbe { t_ns, kind, direction: None, rtt_ns: rtt_ns.map(signed) };
        let connected = exchange.connect_ns.map(|ns| begun_ns.saturating_add(signed(ns)));
        let secured = connected.zip(exchange.tls_ns).map(|(t_ns, ns)| t_ns.saturating_add(signed(ns)));
        [
            Some(probe(begun_ns, TcpProbeKind::Connect, exchange.connect_ns)),
            secured.and(connected).map(|t_ns| probe(t_ns, TcpProbeKind::Tls, exchange.tls_ns)),
            // A connection that failed has no exchange.
            connected.map(|t_ns| probe(secured.unwrap_or(t_ns), TcpProbeKind::Exchange, exchange.exchange_ns)),
        ]
        .into_iter()
        .flatten()
    });
    let within = marks.map(move |&(is_down, sent_ns, rtt_ns)| TcpProbe {
        t_ns: time(sent_ns),
        kind: TcpProbeKind::OnLoad,
        direction: Some(if is_down { Direction::Down } else { Direction::Up }),
        rtt_ns: Some(signed(rtt_ns)),
    });
    of_new.chain(within)
}

/// The handshakes of connections without a request.
pub(super) fn handshakes<'a>(
    found: impl Iterator<Item = &'a (u64, Option<u64>)>,
    time: impl Fn(u64) -> i64,
) -> impl Iterator<Item = TcpProbe> {
    found.map(move |&(t_ns, rtt_ns)| TcpProbe {
        t_ns: time(t_ns),
        kind: TcpProbeKind::Connect,
        direction: None,
        rtt_ns: rtt_ns.map(signed),
    })
}

pub(super) fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

fn empty(phase: &PhaseRecord, start_ns: u64) -> Phase {
    Phase {
        kind: phase.kind,
        start_ns: phase.start_ns.wrapping_sub(start_ns) as i64,
        end_ns: phase.end_ns.wrapping_sub(start_ns) as i64,
        levelled: phase.levelled,
        load_failure: phase.load_failure.clone(),
        ..Phase::default()
    }
}

/// Maps both ends' clocks to nanoseconds since the test's beginning.
struct Clock {
    start_ns: u64,
    /// The server's clock minus the client's, to within half a round trip.
    server_ahead_ns: i64,
}

impl Clock {
    fn of(measurement: &Measurement) -> Self {
        let best =
            measurement.probes.iter().filter_map(|probe| Some((probe.rtt_ns()?, probe))).min_by_key(|(rtt, _)| *rtt);
        let server_ahead_ns = best.and_then(|(rtt_ns, probe)| {
            let reply = probe.reply?;
            Some(reply.arrived_ns.wrapping_sub(probe.t_ns.wrapping_add(rtt_ns / 2)) as i64)
        });
        Self { start_ns: measurement.start_ns, server_ahead_ns: server_ahead_ns.unwrap_or(0) }
    }

    fn client(&self, realtime_ns: u64) -> i64 {
        realtime_ns.wrapping_sub(self.start_ns) as i64
    }

    fn server(&self, realtime_ns: u64) -> i64 {
        self.client(realtime_ns).wrapping_sub(self.server_ahead_ns)
    }
}

pub(super) fn own_hop(probe: &super::Probe, t_ns: i64) -> LadderProbe {
    let row = match (&probe.error, probe.rtt_ns()) {
        (Some(error), None) => error.clone(),
        (_, rtt_ns) => LadderRow {
            t_ns: probe.t_ns,
            ttl: probe.ttl,
            address: None,
            rtt_ns,
            kind: if rtt_ns.is_some() { AnswerKind::Destination } else { AnswerKind::Exceeded },
            mpls: false,
        },
    };
    hop(&row, EndName::Client, t_ns)
}

pub(super) fn hop(row: &LadderRow, end: EndName, t_ns: i64) -> LadderProbe {
    LadderProbe {
        t_ns,
        end,
        ttl: row.ttl,
        address: row.address.clone(),
        rtt_ns: row.rtt_ns.map(signed),
        kind: row.kind,
        mpls: row.mpls,
    }
}

fn distance(ladder: &[LadderRow]) -> Option<u8> {
    ladder.iter().filter(|row| row.kind == AnswerKind::Destination).map(|row| row.ttl).min()
}

pub(super) fn end(facts: &EndFacts, hops_to_other: Option<u8>) -> End {
    End {
        link: facts.link,
        link_bps: facts.link_bps,
        expected_wifi_bps: facts.expected_wifi_bps,
        qdisc: facts.qdisc.clone(),
        ring_packets: facts.ring_packets,
        bql: facts.bql,
        software_stamps: facts.software_stamps.unwrap_or(false),
        hops_to_other,
        unknown: facts.unknown.clone(),
    }
}

/// Puts rows into the phases that they belong to.
struct Sorter<'a> {
    phases: &'a mut [Phase],
}

impl Sorter<'_> {
    fn at(&mut self, t_ns: i64, put: impl FnOnce(&mut Phase)) {
        if let Some(phase) = self.phases.iter_mut().find(|phase| (phase.start_ns..=phase.end_ns).contains(&t_ns)) {
            put(phase);
        }
    }

    fn end(&mut self, found: &EndRecords, name: EndName, time: impl Fn(u64) -> i64) {
        let (sends, receives) = match name {
            EndName::Client => (Direction::Up, Direction::Down),
            EndName::Server => (Direction::Down, Direction::Up),
        };
        // Of the client's ladder these are the first hop's echoes; the rest is in its probes.
        for row in &found.ladder {
            let t_ns = time(row.t_ns);
            self.at(t_ns, |phase| phase.ladder.push(hop(row, name, t_ns)));
        }
        for row in &found.stages {
            let t_ns = time(row.t_ns);
            let delay = StageDelay { t_ns, end: name, stage: row.stage, delay_ns: signed(row.delay_ns) };
            self.at(t_ns, |phase| phase.stages.push(delay));
        }
        for row in &found.flows {
            let t_ns = time(row.t_ns);
            self.at(t_ns, |phase| phase.flows.push(flow(row, t_ns, sends)));
        }
        for row in &found.goodput {
            let t_ns = time(row.t_ns);
            let sample = GoodputSample { t_ns, direction: receives, bytes: row.bytes };
            self.at(t_ns, |phase| phase.goodput.push(sample));
        }
        for row in &found.local {
            let t_ns = time(row.t_ns);
            self.at(t_ns, |phase| phase.local.push(local_sample(row, t_ns, name)));
        }
    }
}

fn flow(row: &FlowRow, t_ns: i64, direction: Direction) -> FlowSample {
    FlowSample {
        t_ns,
        direction,
        flow: u32::from(row.flow),
        srtt_ns: signed(row.srtt_ns),
        min_rtt_ns: signed(row.min_rtt_ns.unwrap_or(0)),
        cwnd_bytes: row.cwnd_bytes,
        notsent_bytes: row.notsent_bytes,
        retransmits: row.retransmits,
        delivered_bytes: row.delivered_bytes,
        busy_us: row.busy_us,
        rwnd_limited_us: row.rwnd_limited_us,
        sndbuf_limited_us: row.sndbuf_limited_us,
        delivered_ce: row.delivered_ce,
    }
}

pub(super) fn local_sample(row: &LocalRow, t_ns: i64, end: EndName) -> LocalSample {
    LocalSample {
        t_ns,
        end,
        qdisc_bytes: row.sample.qdisc_bytes,
        qdisc_drops: row.sample.qdisc_drops,
        ring_bytes: row.sample.ring_bytes,
        cpu_busy: row.sample.cpu_busy,
        softirq: row.sample.softirq,
    }
}
