//! The observations that a test of a synthetic path makes.

use bufferscope_verdict::input::{
    AnswerKind, Direction, Echo, End, EndName, Ends, FlowSample, GoodputSample, LadderProbe, LinkKind, Lost,
    Observations, Parameters, Phase, PhaseKind, Stage, StageDelay,
};

use super::path::{DOWN, Kind, Path, UP};
use super::random::Random;

const PROBE_MS: f64 = 20.0;

fn ns(ms: f64) -> i64 {
    (ms * 1e6) as i64
}

/// A whole test.
pub(crate) fn observe(path: &Path, random: &mut Random) -> Observations {
    let mut phases = vec![phase(path, random, PhaseKind::Idle, (0.0, path.idle_ms))];
    for (number, kind) in [PhaseKind::Download, PhaseKind::Upload, PhaseKind::Both].into_iter().enumerate() {
        phases.push(phase(path, random, kind, path.load(number)));
    }
    if path.cool_ms > 0.0 {
        let start = path.load(2).1;
        phases.push(phase(path, random, PhaseKind::CoolDown, (start, start + path.cool_ms)));
    }
    let end = |at: usize| End {
        link: if path.wifi && at == 0 { LinkKind::Wifi } else { LinkKind::Ethernet },
        software_stamps: path.stamps[at],
        hops_to_other: Some(path.links[at] as u8),
        ..End::default()
    };
    Observations {
        phases,
        floods: Vec::new(),
        ends: Ends { client: end(0), server: end(1) },
        parameters: Parameters { congestion: Some("cubic".to_owned()), ..Parameters::default() },
    }
}

fn phase(path: &Path, random: &mut Random, kind: PhaseKind, (start, end): (f64, f64)) -> Phase {
    let mut phase = Phase { kind, start_ns: ns(start), end_ns: ns(end), levelled: Some(true), ..Phase::default() };
    let mut t = start + random.within(0.0, PROBE_MS);
    while t < end {
        let at = t + random.within(0.0, 0.5);
        echo(path, random, &mut phase, at);
        t += PROBE_MS;
    }
    for (from, name) in [(0, EndName::Client), (1, EndName::Server)] {
        let mut second = start + random.within(0.0, 300.0);
        while second < end {
            for ttl in 1..path.links[from] {
                let t = second + 1000.0 * ttl as f64 / path.links[from] as f64 + random.within(0.0, 20.0);
                if t < end {
                    ladder(path, random, &mut phase, (from, name), ttl, t);
                }
            }
            second += 1000.0;
        }
    }
    if let Some(inside) = path.modem {
        let mut t = start + random.within(0.0, 250.0);
        while t < end {
            modem(path, random, &mut phase, inside, t);
            t += 250.0;
        }
    }
    for direction in kind.loaded() {
        let at = if *direction == Direction::Up { UP } else { DOWN };
        load(path, random, &mut phase, at, (start, end));
    }
    phase
}

fn loaded(phase: &Phase) -> bool {
    !phase.kind.loaded().is_empty()
}

fn echo(path: &Path, random: &mut Random, phase: &mut Phase, t: f64) {
    let client_qdisc = path.queued(UP, 0, t);
    if path.stamps[0] {
        let delay_ns = ns(client_qdisc + random.exponential(0.01));
        phase.stages.push(StageDelay { t_ns: ns(t), end: EndName::Client, stage: Stage::Qdisc, delay_ns });
    }
    let arrived = path.cross(random, UP, 1..=path.links[UP], t + client_qdisc);
    let sent = arrived + 0.02;
    let server_qdisc = path.queued(DOWN, 0, sent);
    if path.stamps[1] {
        let delay_ns = ns(server_qdisc + random.exponential(0.01));
        let t_ns = ns(sent + path.mapping_ms);
        phase.stages.push(StageDelay { t_ns, end: EndName::Server, stage: Stage::Qdisc, delay_ns });
    }
    let back = path.cross(random, DOWN, 1..=path.links[DOWN], sent + server_qdisc);
    let server_clock = |t: f64| t * (1.0 + path.drift) + path.offset_ms;
    let mut echo = Echo { t_ns: ns(t), rtt_ns: Some(ns(back - t - 0.02)), ..Echo::default() };
    if path.one_way {
        echo.up_ns = Some(ns(server_clock(arrived) - t));
        echo.down_ns = Some(ns(back - server_clock(sent)));
    }
    let losses = match path.kind {
        Kind::Policer => 0.02,
        _ => 0.008,
    };
    if loaded(phase) && random.chance(losses) {
        (echo.rtt_ns, echo.down_ns) = (None, None);
        let up = random.chance(0.5);
        echo.lost = Some(if up { Lost::Up } else { Lost::Down });
        if up {
            echo.up_ns = None;
        }
    }
    phase.echoes.push(echo);
}

fn ladder(path: &Path, random: &mut Random, phase: &mut Phase, (from, name): (usize, EndName), ttl: usize, t: f64) {
    let hop = &path.hops[from][ttl - 1];
    if !random.chance(hop.answers) {
        return;
    }
    let turn = hop.tunnel.map_or(ttl, |last| last + 1).min(path.links[from]);
    let back = if from == 0 {
        let own = path.queued(UP, 0, t);
        let there = path.cross(random, UP, 1..=turn, t + own);
        // Beyond the first two links the way back may be longer than the way there.
        let extra = path.links[DOWN] - path.links[UP];
        let enters = if turn <= 2 { turn } else { turn + extra };
        if hop.detour { there + path.idle(DOWN, 1..=enters) } else { path.cross(random, DOWN, 1..=enters, there) }
    } else {
        let own = path.queued(DOWN, 0, t);
        let links = path.links[DOWN];
        let there = path.cross(random, DOWN, links + 1 - turn..=links, t + own);
        let extra = path.links[DOWN] - path.links[UP];
        let enters = if turn <= 2 { turn } else { turn.saturating_sub(extra).max(2) };
        let back = path.links[UP] + 1 - enters..=path.links[UP];
        if hop.detour { there + path.idle(UP, back) } else { path.cross(random, UP, back, there) }
    };
    let slow = if loaded(phase) && hop.slow_ms > 0.0 { hop.slow_ms * random.within(0.3, 1.0) } else { 0.0 };
    let rtt = back - t + hop.processing_ms + random.exponential(0.1) + slow;
    let changed = path.kind == Kind::PathChanged && loaded(phase) && ttl >= 2;
    let network = if changed { 9 } else { 0 };
    // The mapping of the server's clock is not exact.
    let shift = if from == 1 { path.mapping_ms + random.within(-5.0, 5.0) } else { 0.0 };
    phase.ladder.push(LadderProbe {
        t_ns: ns(t + shift),
        end: name,
        ttl: ttl as u8,
        address: Some(format!("10.{network}.{from}.{ttl}")),
        rtt_ns: Some(ns(rtt)),
        kind: AnswerKind::Exceeded,
        mpls: hop.tunnel.is_some(),
    });
}

/// A probe to the modem's own address: it passes what is queued in the router, and its reply what the modem has queued.
fn modem(path: &Path, random: &mut Random, phase: &mut Phase, inside: [bool; 2], t: f64) {
    let there = path.cross(random, UP, 1..=1, t + path.queued(UP, 0, t));
    let there = there + if inside[UP] { 0.0 } else { path.queued(UP, 2, there) } + random.magnitude(0.05, 0.5);
    let left = there + if inside[DOWN] { path.queued(DOWN, 2, there) } else { 0.0 };
    let back = path.cross(random, DOWN, 1..=1, left);
    phase.ladder.push(LadderProbe {
        t_ns: ns(t),
        end: EndName::Client,
        ttl: 2,
        address: Some("192.168.100.1".to_owned()),
        rtt_ns: Some(ns(back - t)),
        kind: AnswerKind::Modem,
        mpls: false,
    });
}

fn load(path: &Path, random: &mut Random, phase: &mut Phase, direction: usize, (start, end): (f64, f64)) {
    let name = if direction == UP { Direction::Up } else { Direction::Down };
    let base: f64 = path.delays.iter().flatten().sum::<f64>() + 2.0 * path.jitter_ms;
    let part = if path.kind == Kind::ReceiveWindow { 0.4 } else { random.within(0.93, 0.96) };
    let rate = path.rate_bps[direction] * part;
    let mut t = start;
    while t <= end {
        let since = t - start;
        let bytes = (rate * since / 8000.0) as u64;
        phase.goodput.push(GoodputSample { t_ns: ns(t), direction: name, bytes });
        let queued: f64 = (0..=path.links[direction]).map(|link| path.queued(direction, link, t)).sum();
        let own = if path.kind == Kind::FlowQueueing { random.within(15.0, 80.0) + 2.0 * 12e6 / rate } else { 0.0 };
        let lost = if path.kind == Kind::Policer { 0.03 } else { 0.001 };
        let part = if path.kind == Kind::ReceiveWindow { 0.9 } else { 0.0 };
        phase.flows.push(FlowSample {
            t_ns: ns(t),
            direction: name,
            flow: 1,
            srtt_ns: ns(base + queued + own),
            min_rtt_ns: ns(base),
            cwnd_bytes: 100_000,
            notsent_bytes: 0,
            retransmits: (bytes as f64 / 1448.0 * lost) as u64,
            delivered_bytes: bytes,
            busy_us: (since * 1e3) as u64,
            rwnd_limited_us: (since * 1e3 * part) as u64,
            sndbuf_limited_us: 0,
            delivered_ce: 0,
        });
        t += 100.0;
    }
}
