//! A running test: its phases, its load and probes, and what it records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bufferscope_verdict::input::{Direction, GoodputSample, Parameters, Phase, Protocol};
use bufferscope_verdict::verdict::Confidence;

use super::load::{Load, Plan};
use super::probes::Probes;
use super::{Offer, Server, Settings, Target};
use crate::client::level::{AT_LEAST_NS, has_levelled};
use crate::client::observe::{handshakes, tcp_probes};
use crate::client::prober::{self, SharedLog};
use crate::client::rates::Rates;
use crate::client::{Event, Measurement, OtherServer, PhaseRecord, Progress, first_hop};
use crate::local::{EndFacts, Local};
use crate::records::{EndRecords, FlowRow, GoodputRow, LocalRow};
use crate::syn_ladder;
use crate::time::{ClockWatch, MS, Readings, SECOND, monotonic_ns, realtime_ns};
use crate::wire::SessionId;
use crate::wire::control::PhaseKind;

const TICK: Duration = Duration::from_millis(100);
/// If nothing is heard for this long, the server or the path to it is gone.
const SILENCE_NS: u64 = 15 * SECOND;
/// A load that transfers nothing for this long has failed.
const STALL_NS: u64 = 5 * SECOND;
/// After a load, queues drain for at most this long before the next phase.
const DRAIN: Duration = Duration::from_secs(10);
const DRAINED_NS: u64 = 2 * SECOND;
/// A verdict needs so many new connections in a phase.
const ENOUGH_HANDSHAKES: usize = 25;
/// A phase transfers no more than this.
const MOST_BYTES: u64 = 16 << 30;
/// Time between two probes of a kind without load, and until its rate is known.
const FIRST_PERIOD_NS: u64 = 100 * MS;
/// Longest time of a test of ndt7, which takes 10 s.
const NDT7_AT_MOST: Duration = Duration::from_secs(15);
/// On slow paths, probes may need more than their part of the capacity: one of each kind a second.
const LONGEST_PERIOD_NS: u64 = SECOND;
/// What a probe on a new connection and one on a connection of the load transfer, by the draft's estimate.
const PROBE_BYTES: f64 = 5000.0 + 1000.0;

pub(super) struct Run<'a> {
    settings: &'a Settings,
    interrupted: &'a AtomicBool,
    server: Server,
    local: Local,
    clock: ClockWatch,
    start_ns: u64,
    start_monotonic_ns: u64,
    hops: SharedLog,
    probes: Probes,
    stop: Arc<AtomicBool>,
    searching: tokio::task::JoinHandle<()>,
    phases: Vec<PhaseRecord>,
    client: EndRecords,
    of_downloads: Vec<FlowRow>,
    /// Bytes of downloads and of uploads in earlier phases.
    moved: [u64; 2],
    uploaded: Vec<GoodputRow>,
    heard: (u64, u64),
    warnings: Vec<String>,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.searching.abort();
    }
}

impl<'a> Run<'a> {
    pub(super) fn begin(settings: &'a Settings, interrupted: &'a AtomicBool, server: Server) -> std::io::Result<Self> {
        let local = Local::towards(server.origin.address.ip(), settings.interface.as_deref())?;
        let (hops, stop) = (SharedLog::default(), Arc::new(AtomicBool::new(false)));
        let searching = tokio::spawn(probe_hops(server.origin.address, hops.clone(), Arc::clone(&stop)));
        let small = match &server.offer {
            Offer::Responsiveness(config) => Some(config.small.clone()),
            Offer::Ndt7 { .. } => None,
        };
        let probes = Probes::start(server.origin.clone(), small, FIRST_PERIOD_NS);
        let now_ns = monotonic_ns();
        Ok(Self {
            settings,
            interrupted,
            server,
            local,
            clock: ClockWatch::start(),
            start_ns: realtime_ns(),
            start_monotonic_ns: now_ns,
            hops,
            probes,
            stop,
            searching,
            phases: Vec::new(),
            client: EndRecords::default(),
            of_downloads: Vec::new(),
            moved: [0; 2],
            uploaded: Vec::new(),
            heard: (0, now_ns),
            warnings: Vec::new(),
        })
    }

    /// Runs the phases; returns early with the reason.
    pub(super) async fn run(&mut self, report: &mut impl FnMut(Event<'_>)) -> Result<(), String> {
        report(Event::Start(self.server.origin.address, &self.server.far, self.local.facts()));
        for (at, &kind) in self.settings.phases.iter().enumerate() {
            let is_last = at + 1 == self.settings.phases.len();
            self.phase(kind, report).await?;
            if !kind.loaded().is_empty() && !is_last {
                self.drain().await?;
            }
        }
        Ok(())
    }

    async fn phase(&mut self, kind: PhaseKind, report: &mut impl FnMut(Event<'_>)) -> Result<(), String> {
        let is_loaded = !kind.loaded().is_empty();
        let at_most = match kind {
            PhaseKind::Idle => self.settings.idle,
            PhaseKind::CoolDown => self.settings.cool_down,
            _ if self.settings.target == Target::Ndt7 => self.settings.at_most.min(NDT7_AT_MOST),
            _ => self.settings.at_most,
        };
        let (begun_ns, start_ns) = (monotonic_ns(), realtime_ns());
        report(Event::Phase(kind, begun_ns - self.start_monotonic_ns, at_most.as_secs()));
        self.phases.push(PhaseRecord {
            kind,
            start_ns,
            end_ns: start_ns,
            levelled: (is_loaded && self.settings.target != Target::Ndt7).then_some(false),
            load_failure: None,
        });
        let mut loads: Vec<Load> = kind.loaded().iter().map(|direction| Load::new(self.plan(*direction))).collect();
        for load in &mut loads {
            load.add(match self.settings.target {
                Target::Responsiveness(parameters) => self.settings.flows.unwrap_or(parameters.inp as u16),
                Target::Ndt7 => 1,
            });
        }
        if let Some(load) = loads.first() {
            self.probes.set_load(Some((load.direction() == Direction::Down, load.connections().clone())));
        }
        let mut progress = Stage::new(self.settings.target);
        let mut rates = Rates::default();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let ended = loop {
            ticks.tick().await;
            let elapsed_ns = monotonic_ns() - begun_ns;
            self.sample(&mut loads);
            let moved = self.moved_with(&loads);
            rates.take(elapsed_ns, moved[0], moved[1]);
            if let Err(early) = self.check(moved) {
                break Err(early);
            }
            if elapsed_ns >= at_most.as_nanos() as u64 {
                break Ok(());
            }
            if is_loaded {
                let load_bytes: u64 = loads.iter().map(Load::bytes).sum();
                if let Some(failure) = progress.failure(&mut loads, elapsed_ns, load_bytes) {
                    self.last_phase().load_failure = Some(failure);
                    break Ok(());
                }
                if load_bytes >= MOST_BYTES {
                    self.warnings
                        .push(format!("a phase ended after {} GB, the most that a test transfers", MOST_BYTES >> 30));
                    break Ok(());
                }
                if loads.iter().all(Load::is_done) {
                    break Ok(());
                }
                if progress.interval_is_over(elapsed_ns) && self.interval(kind, &mut loads, &mut progress, elapsed_ns) {
                    self.last_phase().levelled = Some(true);
                    break Ok(());
                }
                self.set_period(rates.last_second().into_iter().flatten().fold(0.0, f64::max));
            }
            report(Event::Progress(Progress {
                t_ns: monotonic_ns() - self.start_monotonic_ns,
                phase: kind,
                rtt_ns: self.last_rtt_ns(),
                rates_bps: rates.last_second(),
                left_s: at_most.as_secs_f64() - elapsed_ns as f64 / SECOND as f64,
            }));
        };
        self.last_phase().end_ns = realtime_ns();
        self.probes.set_load(None);
        self.probes.set_period(FIRST_PERIOD_NS);
        self.moved = self.moved_with(&loads);
        for load in loads {
            let log = load.end();
            self.client.flows.extend(log.flows);
            self.client.failures.extend(log.failures);
            self.client.congestion = log.congestion.or(self.client.congestion.take());
        }
        ended
    }

    fn plan(&self, direction: Direction) -> Plan {
        let (down, up) = match &self.server.offer {
            Offer::Responsiveness(config) => (&config.large, &config.upload),
            Offer::Ndt7 { download, upload } => (download, upload),
        };
        Plan {
            origin: self.server.origin.clone(),
            direction,
            url: if direction == Direction::Down { down.clone() } else { up.clone() },
            is_ndt7: self.settings.target == Target::Ndt7,
            congestion: self.settings.congestion.clone(),
        }
    }

    /// At the end of an interval: adds connections as long as the goodput is not stable. Returns whether the phase is done:
    /// goodput, responsiveness and delay are stable.
    fn interval(&mut self, kind: PhaseKind, loads: &mut [Load], stage: &mut Stage, elapsed_ns: u64) -> bool {
        let phase = self.so_far(kind);
        let (is_stable, rpm) = bufferscope_verdict::responsiveness(&phase, &parameters(self.settings));
        stage.goodput_was_stable |= is_stable;
        if !stage.goodput_was_stable && self.settings.flows.is_none() {
            for load in loads.iter_mut() {
                let room = (stage.most_flows).saturating_sub(load.flows);
                load.add(room.min(stage.more_flows));
            }
        }
        let begun_ns = self.last_phase().start_ns;
        let trips = self.handshakes_since(begun_ns);
        let settled = elapsed_ns >= AT_LEAST_NS && trips.len() >= ENOUGH_HANDSHAKES && has_levelled(&trips, elapsed_ns);
        // Without several requests on a connection, there is no responsiveness to wait for.
        let only_http1 = loads.iter().all(|load| load.connections().only_http1());
        settled && (rpm.confidence == Some(Confidence::High) || only_http1 && is_stable)
    }

    /// The running phase as the verdict takes it, without what responsiveness does not need.
    fn so_far(&self, kind: PhaseKind) -> Phase {
        let now_ns = realtime_ns();
        let start_ns = self.phases.last().map_or(now_ns, |phase| phase.start_ns);
        let time = |t_ns: u64| t_ns.wrapping_sub(self.start_ns) as i64;
        let log = self.probes.log();
        let counted = |rows: &[GoodputRow], direction| {
            let from = rows.partition_point(|row| row.t_ns < start_ns);
            rows[from..]
                .iter()
                .map(|row| GoodputSample { t_ns: time(row.t_ns), direction, bytes: row.bytes })
                .collect::<Vec<_>>()
        };
        let foreign = log.foreign.iter().filter(|exchange| exchange.t_ns >= start_ns);
        let own = log.own.iter().filter(|mark| mark.1 >= start_ns);
        let since = log.handshakes.iter().filter(|handshake| handshake.0 >= start_ns);
        Phase {
            kind,
            start_ns: time(start_ns),
            end_ns: time(now_ns),
            tcp_probes: tcp_probes(foreign, own, time).chain(handshakes(since, time)).collect(),
            goodput: [counted(&self.client.goodput, Direction::Down), counted(&self.uploaded, Direction::Up)].concat(),
            ..Phase::default()
        }
    }

    /// Probes use a part of the capacity, and there are only so many in a second.
    fn set_period(&self, rate_bps: f64) {
        let Target::Responsiveness(parameters) = &self.settings.target else { return };
        let by_capacity = PROBE_BYTES * 8.0 / (rate_bps * parameters.ptc).max(1.0);
        // One of each kind in a period.
        let by_number = 2.0 / f64::from(parameters.mps.max(1));
        let period_ns = (by_capacity.max(by_number) * SECOND as f64) as u64;
        self.probes.set_period(period_ns.min(LONGEST_PERIOD_NS));
    }

    /// Waits until the queues that the load has filled are empty again.
    async fn drain(&mut self) -> Result<(), String> {
        let idle_ns = self.handshakes_since(0).iter().map(|trip| trip.1).min().unwrap_or(0);
        let begun = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(TICK).await;
            self.check(self.moved)?;
            let recent = self.handshakes_since(realtime_ns().saturating_sub(DRAINED_NS));
            let is_empty = recent.len() >= 4 && recent.iter().all(|(_, rtt_ns)| *rtt_ns <= idle_ns * 3 / 2 + 2 * MS);
            if is_empty && begun.elapsed() > Duration::from_secs(1) || begun.elapsed() > DRAIN {
                return Ok(());
            }
        }
    }

    /// Whether the test can go on.
    fn check(&mut self, moved: [u64; 2]) -> Result<(), String> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err("it was interrupted".to_owned());
        }
        let (now_ns, bytes) = (monotonic_ns(), moved[0] + moved[1]);
        if bytes != self.heard.0 {
            self.heard = (bytes, now_ns);
        }
        let heard_ns = self.probes.log().heard_ns.max(self.heard.1);
        if now_ns.saturating_sub(heard_ns) > SILENCE_NS {
            let why = self.probes.log().failures.foreign.1.clone();
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            return Err(format!("the server has answered nothing for {} s{why}", SILENCE_NS / SECOND));
        }
        Ok(())
    }

    fn sample(&mut self, loads: &mut [Load]) {
        for load in loads.iter_mut() {
            load.sample(&mut self.of_downloads);
        }
        let (t_ns, [down, up]) = (realtime_ns(), self.moved_with(loads));
        self.client.goodput.push(GoodputRow { t_ns, bytes: down });
        self.uploaded.push(GoodputRow { t_ns, bytes: up });
        self.client.local.push(LocalRow { t_ns, sample: self.local.sample() });
    }

    fn moved_with(&self, loads: &[Load]) -> [u64; 2] {
        let of = |direction| loads.iter().filter(|load| load.direction() == direction).map(Load::bytes).sum::<u64>();
        [self.moved[0] + of(Direction::Down), self.moved[1] + of(Direction::Up)]
    }

    fn last_phase(&mut self) -> &mut PhaseRecord {
        self.phases.last_mut().expect("a phase runs")
    }

    /// Handshakes since a time: when each was begun after that, and how long it took.
    fn handshakes_since(&self, start_ns: u64) -> Vec<(u64, u64)> {
        let log = self.probes.log();
        let since = log.foreign.iter().filter(|exchange| exchange.t_ns >= start_ns);
        let of_probes = since.map(|exchange| (exchange.t_ns, exchange.connect_ns));
        let all = of_probes.chain(log.handshakes.iter().copied().filter(|handshake| handshake.0 >= start_ns));
        let mut found: Vec<_> = all.filter_map(|(t_ns, rtt_ns)| Some((t_ns - start_ns, rtt_ns?))).collect();
        found.sort_unstable();
        found
    }

    fn last_rtt_ns(&self) -> Option<u64> {
        let log = self.probes.log();
        let last = log.foreign.iter().rev().find_map(|exchange| Some((exchange.t_ns, exchange.connect_ns?)));
        let other = log.handshakes.iter().rev().find_map(|&(t_ns, rtt_ns)| Some((t_ns, rtt_ns?)));
        last.max(other).map(|(_, rtt_ns)| rtt_ns)
    }

    /// Puts everything together.
    pub(super) fn finish(mut self, ended_early: Option<String>) -> Measurement {
        self.stop.store(true, Ordering::Relaxed);
        let mut warnings = std::mem::take(&mut self.warnings);
        if let Some(happened) = self.clock.since(Readings::now()) {
            warnings.push(format!("{happened} during the test: round trips across that moment are wrong"));
        }
        let mut hops = self.hops.lock();
        if let Some(failure) = &hops.failure {
            warnings.push(format!("the hops were not probed: {failure}"));
        } else if hops.distance.is_none() {
            warnings.push("the distance to the server could not be found, so the hops were not probed".to_owned());
        }
        let mut probed = self.probes.log();
        for (what, (count, why)) in [
            ("new connections", &probed.failures.foreign),
            ("requests on the load's connections", &probed.failures.own),
        ] {
            if let Some(why) = why {
                warnings.push(format!("{count} {what} as probes failed; the last one: {why}"));
            }
        }
        let mut client = std::mem::take(&mut self.client);
        client.stages.append(&mut hops.stages);
        client.ladder.append(&mut hops.hop_echoes);
        probed.foreign.sort_by_key(|exchange| exchange.t_ns);
        Measurement {
            start_ns: self.start_ns,
            phases: std::mem::take(&mut self.phases),
            probes: std::mem::take(&mut hops.probes),
            exchanges: std::mem::take(&mut probed.foreign),
            marks: std::mem::take(&mut probed.own),
            client,
            other: OtherServer {
                of_downloads: std::mem::take(&mut self.of_downloads),
                uploaded: std::mem::take(&mut self.uploaded),
                handshakes: std::mem::take(&mut probed.handshakes),
                parameters: parameters(self.settings),
            },
            facts: self.local.facts().clone(),
            distance: hops.distance,
            server: None,
            far: self.server.far.clone(),
            server_facts: EndFacts::default(),
            stamped_by_kernel: false,
            send_errors_ns: std::mem::take(&mut hops.send_errors_ns),
            ended_early,
            warnings,
        }
    }
}

fn parameters(settings: &Settings) -> Parameters {
    let (protocol, responsiveness) = match settings.target {
        Target::Responsiveness(parameters) => (Protocol::Responsiveness, Some(parameters)),
        Target::Ndt7 => (Protocol::Ndt7, None),
    };
    Parameters { protocol: Some(protocol), responsiveness, ..Parameters::default() }
}

/// How far a loaded phase is.
struct Stage {
    interval_ns: u64,
    next_ns: u64,
    more_flows: u16,
    most_flows: u16,
    goodput_was_stable: bool,
    /// The bytes of the load, and when they last became more.
    moved: (u64, u64),
}

impl Stage {
    fn new(target: Target) -> Self {
        let (interval_ns, more, most) = match target {
            Target::Responsiveness(parameters) => {
                (u64::try_from(parameters.id_ns).unwrap_or(SECOND).max(1), parameters.inc, parameters.mnp)
            }
            // Its test has one connection, and the server ends it.
            Target::Ndt7 => (u64::MAX, 0, 1),
        };
        Self {
            interval_ns,
            next_ns: interval_ns,
            more_flows: more as u16,
            most_flows: most as u16,
            goodput_was_stable: false,
            moved: (0, 0),
        }
    }

    fn interval_is_over(&mut self, elapsed_ns: u64) -> bool {
        let is_over = elapsed_ns >= self.next_ns;
        if is_over {
            self.next_ns = elapsed_ns - elapsed_ns % self.interval_ns + self.interval_ns;
        }
        is_over
    }

    /// Why the load has failed, if it has.
    fn failure(&mut self, loads: &mut [Load], elapsed_ns: u64, bytes: u64) -> Option<String> {
        if let Some(failure) = loads.iter_mut().find_map(|load| load.failure().map(str::to_owned)) {
            return Some(failure);
        }
        if bytes > self.moved.0 {
            self.moved = (bytes, elapsed_ns);
        }
        (elapsed_ns - self.moved.1 > STALL_NS).then(|| format!("nothing was transferred for {} s", STALL_NS / SECOND))
    }
}

/// Finds the distance to the server, and then probes the hops before it on threads of their own.
async fn probe_hops(server: std::net::SocketAddr, log: SharedLog, stop: Arc<AtomicBool>) {
    let asked = Arc::clone(&stop);
    let searching = tokio::task::spawn_blocking(move || {
        let found = Mutex::default();
        // Each hop once: only the distance is of interest here.
        let _ = syn_ladder::run(server, Some(1), &asked, &found);
        found.into_inner().unwrap_or_else(PoisonError::into_inner).distance
    });
    let Ok(Some(found)) = searching.await else { return };
    let settings = prober::Settings {
        server,
        session: SessionId(realtime_ns()),
        interval_ns: u64::MAX,
        round_ns: crate::ladder::ROUND_NS,
        silent_at: Some(found),
    };
    let (hop_log, hop_stop) = (log.clone(), Arc::clone(&stop));
    std::thread::spawn(move || prober::run(&settings, &stop, &log));
    std::thread::spawn(move || first_hop::run(&hop_stop, &hop_log));
}
