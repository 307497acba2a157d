//! A running test: its phases, its load, and what it records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bufferscope_verdict::input::Direction;

use super::control::Control;
use super::level::{Growth, has_levelled};
use super::prober::{self, Probe, SharedLog};
use super::rates::Rates;
use super::{
    Event, FarEnd, Measurement, OtherServer, PhaseRecord, Progress, Settings, exchanges, first_hop, flows, modem,
};
use crate::load::Shared;
use crate::local::Local;
use crate::records::{EndRecords, GoodputRow, LocalRow, ServerRecords};
use crate::syn_ladder;
use crate::time::{ClockWatch, MS, Readings, SECOND, monotonic_ns, realtime_ns};
use crate::wire::control::{Answer, PhaseKind, Request, Welcome};
use crate::wire::load::{Key, Opening, Purpose, parse_key};

pub(super) const TICK: Duration = Duration::from_millis(100);
/// If nothing is heard for this long, the server or the path to it is gone.
const SILENCE_NS: u64 = 8 * SECOND;
/// UDP must be answered within this time.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// After a load, queues drain for at most this long before the next phase.
const DRAIN: Duration = Duration::from_secs(10);
const FIRST_FLOWS: u16 = 4;
const MORE_FLOWS: u16 = 4;
const MOST_FLOWS: u16 = 16;
/// Without UDP, a verdict needs so many new connections in a phase.
const ENOUGH_HANDSHAKES: usize = 25;
/// So many SYNs to each hop show on the idle path whether TCP takes the hops that UDP takes: routers answer six probes at a burst,
/// and one a second, and those of UDP use the latter.
const SYNS: u32 = 3;
/// The server sends its records within this time.
const RECORDS: Duration = Duration::from_secs(30);

/// A running test.
pub(super) struct TestRun<'a> {
    pub(super) settings: &'a Settings,
    interrupted: &'a AtomicBool,
    control: Control,
    pub(super) welcome: Welcome,
    key: Key,
    local: Local,
    clock: ClockWatch,
    start_ns: u64,
    pub(super) start_monotonic_ns: u64,
    pub(super) log: SharedLog,
    exchanges: exchanges::Exchanges,
    syns: Arc<std::sync::Mutex<syn_ladder::Found>>,
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
    phases: Vec<PhaseRecord>,
    pub(super) client: EndRecords,
    marks: Vec<(bool, u64, u64)>,
    /// Bytes received by the loads of earlier phases.
    received: u64,
    heard: (u64, u64),
    last_alive_ns: u64,
    /// Whether UDP is not answered: then new TCP connections show the round trip.
    pub(super) over_tcp: bool,
    /// When the server said something over TCP, on the monotonic clock.
    said_ns: u64,
    /// Requests that the server has not noted yet.
    pub(super) open_requests: u64,
    /// The highest mean goodput of a phase, down and up, in bit/s.
    pub(super) goodput_bps: [f64; 2],
    pub(super) warnings: Vec<String>,
}

impl<'a> TestRun<'a> {
    pub(super) fn begin(
        settings: &'a Settings,
        interrupted: &'a AtomicBool,
        control: Control,
        welcome: Welcome,
    ) -> std::io::Result<Self> {
        let key = parse_key(&welcome.key).ok_or_else(|| std::io::Error::other("the server sent no key"))?;
        let local = Local::towards(settings.server.ip(), settings.interface.as_deref())?;
        let (log, stop) = (SharedLog::default(), Arc::new(AtomicBool::new(false)));
        let probing = prober::Settings {
            server: settings.server,
            session: welcome.session,
            interval_ns: settings.interval.as_nanos() as u64,
            round_ns: crate::ladder::ROUND_NS,
            silent_at: None,
        };
        let threads = {
            let (log, stop) = (log.clone(), Arc::clone(&stop));
            let (hop_log, hop_stop) = (log.clone(), Arc::clone(&stop));
            let (modem_log, modem_stop, settings_server) = (log.clone(), Arc::clone(&stop), settings.server);
            vec![
                std::thread::spawn(move || prober::run(&probing, &stop, &log)),
                std::thread::spawn(move || first_hop::run(&hop_stop, &hop_log)),
                std::thread::spawn(move || modem::run(settings_server, &modem_stop, &modem_log)),
            ]
        };
        let now_ns = monotonic_ns();
        Ok(Self {
            settings,
            interrupted,
            control,
            key,
            local,
            clock: ClockWatch::start(),
            start_ns: realtime_ns(),
            start_monotonic_ns: now_ns,
            log,
            exchanges: exchanges::Exchanges::default(),
            syns: Arc::default(),
            stop,
            threads,
            phases: Vec::new(),
            client: EndRecords::default(),
            marks: Vec::new(),
            received: 0,
            heard: (0, now_ns),
            last_alive_ns: now_ns,
            over_tcp: false,
            said_ns: now_ns,
            open_requests: 0,
            goodput_bps: [0.0; 2],
            warnings: Vec::new(),
            welcome,
        })
    }

    /// Runs the phases; returns early with the reason.
    pub(super) async fn run(&mut self, report: &mut impl FnMut(Event<'_>)) -> Result<(), Early> {
        report(Event::Start(self.settings.server, &FarEnd::of(&self.welcome), self.local.facts()));
        self.await_first_echo().await?;
        let (server, opening) = (self.settings.server, self.opening(Purpose::Exchange, 0));
        let (stop, exchanges) = (Arc::clone(&self.stop), Arc::clone(&self.exchanges));
        self.threads.push(std::thread::spawn(move || exchanges::run(server, &opening, &stop, &exchanges)));
        // Where UDP comes through, the hops of TCP are only compared with its hops; else they are the ladder.
        let (stop, syns) = (Arc::clone(&self.stop), Arc::clone(&self.syns));
        let enough = (!self.over_tcp).then_some(SYNS);
        self.threads.push(std::thread::spawn(move || {
            // Without sockets, the hops of TCP are not known.
            let _ = syn_ladder::run(server, enough, &stop, &syns);
        }));
        for (at, &kind) in self.settings.phases.iter().enumerate() {
            let is_last = at + 1 == self.settings.phases.len();
            if kind == PhaseKind::CoolDown && self.settings.flood {
                self.floods(report).await?;
            }
            self.phase(kind, report).await?;
            if (kind.loads(Direction::Down) || kind.loads(Direction::Up)) && !is_last {
                self.drain().await?;
            }
        }
        Ok(())
    }

    async fn await_first_echo(&mut self) -> Result<(), Early> {
        let until = tokio::time::Instant::now() + HANDSHAKE;
        while tokio::time::Instant::now() < until {
            if self.log.lock().probes.iter().any(|probe| probe.reply.is_some()) {
                return Ok(());
            }
            self.check().await?;
            tokio::time::sleep(TICK / 4).await;
        }
        self.over_tcp = true;
        Ok(())
    }

    async fn phase(&mut self, kind: PhaseKind, report: &mut impl FnMut(Event<'_>)) -> Result<(), Early> {
        self.request(&Request::Phase { phase: kind }).await?;
        let is_loaded = kind.loads(Direction::Down) || kind.loads(Direction::Up);
        let at_most = match kind {
            PhaseKind::Idle => self.settings.idle,
            PhaseKind::CoolDown => self.settings.cool_down,
            _ => self.settings.at_most,
        };
        let begun_ns = monotonic_ns();
        report(Event::Phase(kind, begun_ns - self.start_monotonic_ns, at_most.as_secs()));
        let start_ns = realtime_ns();
        self.phases.push(PhaseRecord {
            kind,
            start_ns,
            end_ns: start_ns,
            levelled: is_loaded.then_some(false),
            load_failure: None,
        });
        let mut loads = Loads::default();
        let first = self.settings.flows.unwrap_or(FIRST_FLOWS);
        self.add_flows(kind, &mut loads, first);
        let mut growth = Growth::default();
        let mut rates = Rates::default();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let ended = loop {
            ticks.tick().await;
            let elapsed_ns = monotonic_ns() - begun_ns;
            if let Err(early) = self.check().await {
                break Err(early);
            }
            self.sample(&loads);
            let down = self.received + loads.down.received.load(Ordering::Relaxed);
            rates.take(elapsed_ns, down, self.uploaded(&loads));
            if elapsed_ns >= at_most.as_nanos() as u64 {
                break Ok(());
            }
            if is_loaded {
                let fastest = rates.last_second().into_iter().flatten().fold(0.0, f64::max);
                if self.settings.flows.is_none() && loads.flows < MOST_FLOWS && growth.is_wanted(elapsed_ns, fastest) {
                    self.add_flows(kind, &mut loads, MORE_FLOWS);
                }
                let trips = self.echoes_since(start_ns);
                if has_levelled(&trips, elapsed_ns) && (!self.over_tcp || trips.len() >= ENOUGH_HANDSHAKES) {
                    self.last_phase().levelled = Some(true);
                    break Ok(());
                }
            }
            let left_s = at_most.as_secs_f64() - elapsed_ns as f64 / SECOND as f64;
            report(Event::Progress(Progress {
                t_ns: monotonic_ns() - self.start_monotonic_ns,
                phase: kind,
                rtt_ns: self.last_rtt_ns(),
                rates_bps: rates.last_second(),
                left_s,
            }));
        };
        self.last_phase().end_ns = realtime_ns();
        let directions = [Direction::Down, Direction::Up];
        for ((most, rate), direction) in self.goodput_bps.iter_mut().zip(rates.mean()).zip(directions) {
            *most = most.max(rate.filter(|_| kind.loads(direction)).unwrap_or(0.0));
        }
        self.end_load(loads);
        ended
    }

    /// Waits until the queues that the load has filled are empty again.
    pub(super) async fn drain(&mut self) -> Result<(), Early> {
        self.request(&Request::Phase { phase: PhaseKind::Idle }).await?;
        let idle_ns = self.idle_rtt_ns();
        let begun = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(TICK).await;
            self.check().await?;
            let (span_ns, enough) = if self.over_tcp { (2 * SECOND, 4) } else { (500 * MS, 5) };
            let recent = self.echoes_since(realtime_ns().saturating_sub(span_ns));
            let is_empty =
                recent.len() >= enough && recent.iter().all(|(_, rtt_ns)| *rtt_ns <= idle_ns * 3 / 2 + 2 * MS);
            if is_empty && begun.elapsed() > Duration::from_secs(1) || begun.elapsed() > DRAIN {
                return Ok(());
            }
        }
    }

    /// Whether the test can go on.
    pub(super) async fn check(&mut self) -> Result<(), Early> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Early::of("it was interrupted"));
        }
        let now_ns = monotonic_ns();
        let heard = {
            let log = self.log.lock();
            if let Some(failure) = &log.failure {
                return Err(Early::of(format!("the probes' socket failed: {failure}")));
            }
            log.heard_ns
        };
        let received = self.received_now();
        if received != self.heard.0 {
            self.heard = (received, now_ns);
        }
        let heard_ns = heard.max(self.heard.1).max(if self.over_tcp { self.said_ns } else { 0 });
        if now_ns.saturating_sub(heard_ns) > SILENCE_NS {
            return Err(Early::without_server(format!(
                "nothing was heard of the server for {} s",
                SILENCE_NS / SECOND
            )));
        }
        if now_ns - self.last_alive_ns > SECOND {
            self.last_alive_ns = now_ns;
            self.request(&Request::Alive).await?;
        }
        while let Some(answer) = self.control.poll() {
            match answer {
                Ok(Answer::Refused { reason }) => return Err(Early::of(reason)),
                Ok(_) => {
                    self.said_ns = now_ns;
                    self.open_requests = self.open_requests.saturating_sub(1);
                }
                Err(_) => return Err(Early::without_server("the server closed the connection")),
            }
        }
        Ok(())
    }

    pub(super) async fn request(&mut self, request: &Request) -> Result<(), Early> {
        self.open_requests += 1;
        self.control.ask(request, Duration::from_nanos(SILENCE_NS)).await.map_err(Early::of)
    }

    fn opening(&self, purpose: Purpose, index: u16) -> Opening {
        let congestion = self.settings.congestion.clone();
        let send_buffer = self.settings.send_buffer;
        Opening { session: self.welcome.session, key: self.key, purpose, send_buffer, index, congestion }
    }

    fn add_flows(&self, kind: PhaseKind, loads: &mut Loads, more: u16) {
        let most = self.welcome.limits.flows.min(self.settings.flows.unwrap_or(MOST_FLOWS));
        let until = (loads.flows + more).min(most);
        for index in loads.flows..until {
            let down = kind.loads(Direction::Down).then_some((Purpose::Download, &loads.down));
            let up = kind.loads(Direction::Up).then_some((Purpose::Upload, &loads.up));
            for (purpose, shared) in down.into_iter().chain(up) {
                if let Err(error) = flows::start(self.settings.server, self.opening(purpose, index), shared) {
                    shared.fail(format!("no thread for a load connection: {error}"));
                }
            }
        }
        loads.flows = until;
    }

    fn sample(&mut self, loads: &Loads) {
        let t_ns = realtime_ns();
        let bytes = self.received + loads.down.received.load(Ordering::Relaxed);
        self.client.goodput.push(GoodputRow { t_ns, bytes });
        self.client.local.push(LocalRow { t_ns, sample: self.local.sample() });
    }

    fn end_load(&mut self, loads: Loads) {
        self.received += loads.down.received.load(Ordering::Relaxed);
        for (is_down, shared) in [(true, loads.down), (false, loads.up)] {
            shared.stop.store(true, Ordering::Relaxed);
            let log = shared.take_log();
            self.client.flows.extend(log.flows);
            self.client.stages.extend(log.stages);
            self.client.failures.extend(log.failures);
            self.client.congestion = log.congestion.or(self.client.congestion.take());
            self.marks.extend(log.marks.into_iter().map(|(t_ns, rtt_ns)| (is_down, t_ns, rtt_ns)));
        }
    }

    fn last_phase(&mut self) -> &mut PhaseRecord {
        self.phases.last_mut().expect("a phase runs")
    }

    /// Round trips of the echoes since a time: when each was sent after that, and how long it took.
    pub(super) fn echoes_since(&self, start_ns: u64) -> Vec<(u64, u64)> {
        if self.over_tcp {
            let found = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
            let since = found.iter().filter(|exchange| exchange.t_ns >= start_ns);
            return since.filter_map(|exchange| Some((exchange.t_ns - start_ns, exchange.connect_ns?))).collect();
        }
        let log = self.log.lock();
        let from = log.probes.partition_point(|probe| probe.t_ns < start_ns);
        let echoes = log.probes[from..].iter().filter(|probe| probe.ttl == 0);
        echoes.filter_map(|probe| Some((probe.t_ns - start_ns, probe.rtt_ns()?))).collect()
    }

    fn idle_rtt_ns(&self) -> u64 {
        if self.over_tcp {
            return self.echoes_since(0).iter().map(|(_, rtt_ns)| *rtt_ns).min().unwrap_or(0);
        }
        let log = self.log.lock();
        log.probes.iter().filter(|probe| probe.ttl == 0).filter_map(Probe::rtt_ns).min().unwrap_or(0)
    }

    pub(super) fn last_rtt_ns(&self) -> Option<u64> {
        if self.over_tcp {
            let found = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
            return found.iter().rev().find_map(|exchange| exchange.connect_ns);
        }
        let log = self.log.lock();
        log.probes.iter().rev().filter(|probe| probe.ttl == 0).take(200).find_map(Probe::rtt_ns)
    }

    /// Bytes that the server has received, by its last reply; without UDP, those of this phase that TCP acknowledges.
    fn uploaded(&self, loads: &Loads) -> u64 {
        if self.over_tcp {
            return loads.up.acknowledged.load(Ordering::Relaxed);
        }
        let log = self.log.lock();
        log.probes.iter().rev().take(200).find_map(|probe| probe.reply).map_or(0, |reply| reply.load_bytes)
    }

    fn received_now(&self) -> u64 {
        self.client.goodput.last().map_or(0, |row| row.bytes)
    }

    /// Asks the server for its records, and puts everything together.
    pub(super) async fn finish(mut self, early: Option<Early>) -> Measurement {
        if early.is_none() {
            self.await_last_echoes().await;
        }
        let has_server = early.as_ref().is_none_or(|early| early.has_server);
        let server = match has_server {
            true => tokio::time::timeout(RECORDS, self.ask_for_records()).await.ok().flatten(),
            false => None,
        };
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread of the exchanges may still wait for a connection, whose outcome no longer matters.
            if thread.is_finished() {
                let _ = thread.join();
            }
        }
        let mut warnings = std::mem::take(&mut self.warnings);
        if let Some(found) = self.clock.since(Readings::now()) {
            warnings.push(format!("{found} during the test: round trips across that moment are wrong"));
        }
        let mut ended_early = early.map(|early| early.reason);
        if server.is_none() && ended_early.is_none() {
            ended_early = Some("the server did not send its records".to_owned());
        }
        if self.over_tcp {
            warnings.push(format!(
                "the server answers over TCP but not over UDP: does a firewall let UDP port {} through?",
                self.settings.server.port()
            ));
        }
        if server.as_ref().is_some_and(|server| server.shared) || self.welcome.shares {
            warnings.push("another test used the server at the same time".to_owned());
        }
        if let Some(bps) = self.welcome.limits.rate_bps {
            warnings.push(format!(
                "the server sends at most {} Mbit/s: a faster connection is not filled",
                bps as f64 / 1e6
            ));
        }
        let mut log = self.log.lock();
        let mut client = std::mem::take(&mut self.client);
        client.stages.append(&mut log.stages);
        client.ladder.append(&mut log.hop_echoes);
        let exchanges = std::mem::take(&mut *self.exchanges.lock().unwrap_or_else(PoisonError::into_inner));
        client.tcp_ladder = std::mem::take(&mut self.syns.lock().unwrap_or_else(PoisonError::into_inner).rows);
        Measurement {
            start_ns: self.start_ns,
            phases: std::mem::take(&mut self.phases),
            probes: std::mem::take(&mut log.probes),
            exchanges,
            marks: std::mem::take(&mut self.marks),
            client,
            facts: self.local.facts().clone(),
            distance: log.distance,
            server,
            other: OtherServer::default(),
            far: FarEnd::of(&self.welcome),
            server_facts: self.welcome.end.clone(),
            stamped_by_kernel: log.stamped_by_kernel.unwrap_or(false),
            send_errors_ns: std::mem::take(&mut log.send_errors_ns),
            ended_early,
            warnings,
        }
    }

    /// Waits until every request of the last phase has reached the server or is lost: the server records none that arrive
    /// after its records are asked for. A later request that was answered shows it.
    async fn await_last_echoes(&self) {
        let Some(end_ns) = self.phases.last().map(|phase| phase.end_ns) else { return };
        let begun = tokio::time::Instant::now();
        while self.echoes_since(end_ns).is_empty()
            && begun.elapsed() < DRAIN
            && self.log.lock().failure.is_none()
            && !self.interrupted.load(Ordering::Relaxed)
        {
            tokio::time::sleep(TICK / 4).await;
        }
    }

    async fn ask_for_records(&mut self) -> Option<ServerRecords> {
        self.control.send(&Request::Finish).await.ok()?;
        loop {
            match self.control.answer().await.ok()? {
                Answer::Records(records) => return Some(*records),
                Answer::Refused { .. } => return None,
                _ => {}
            }
        }
    }
}

/// Why a test ends before its last phase.
pub(super) struct Early {
    reason: String,
    /// Whether the server can still be asked for its records.
    has_server: bool,
}

impl Early {
    fn of(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), has_server: true }
    }

    fn without_server(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), has_server: false }
    }
}

/// The loads of a phase.
#[derive(Debug, Default)]
struct Loads {
    down: Arc<Shared>,
    up: Arc<Shared>,
    flows: u16,
}
