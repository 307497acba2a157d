//! A session: everything that a server knows of one client's test.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bufferscope_verdict::input::Direction;

use super::flood::Floods;
use super::limits::Messages;
use super::status::Bytes;
use super::web::samples::Samples;
use crate::departures::Departures;
use crate::ladder::Ladder;
use crate::load::{Budget, Pace, Shared};
use crate::records::{ArrivalRow, GoodputRow, LadderRow, LocalRow, ServerRecords, StageRow};
use crate::time::{monotonic_ns, realtime_ns};
use crate::wire::SessionId;
use crate::wire::control::{PhaseKind, SessionLimits};
use crate::wire::load::{Key, Purpose};

/// A client's test.
#[derive(Debug)]
pub struct Session {
    /// Its number.
    pub id: SessionId,
    /// What its load connections must show.
    pub key: Key,
    /// The client's address, or its network ([`super::limits::user`]).
    pub address: IpAddr,
    /// What it may use.
    pub limits: SessionLimits,
    /// When it began, on the monotonic clock.
    pub began_ns: u64,
    /// The same on the real-time clock.
    pub began_realtime_ns: u64,
    /// What is left of its bytes.
    pub budget: Arc<Budget>,
    /// Its load connections that exist, those of earlier phases included.
    pub loads: Arc<()>,
    /// Set at its end, for every thread that works for it.
    pub ended: AtomicBool,
    state: Mutex<State>,
    /// What a page has measured, if the client is one.
    page: Mutex<Option<Samples>>,
}

/// What changes during a session.
#[derive(Debug)]
pub struct State {
    /// The phase that the client has announced.
    pub phase: PhaseKind,
    /// The load of the present phase, from the server ...
    pub down: Arc<Shared>,
    /// ... and to it.
    pub up: Arc<Shared>,
    /// Load connections of the phase, downwards and upwards.
    pub flows: [u16; 2],
    /// Bytes received in earlier phases.
    pub received: u64,
    /// The client's address of probes, which has proved to receive them.
    pub probes_from: Option<SocketAddr>,
    /// Whether it has asked since the last probe of the server's own ladder.
    pub may_climb: bool,
    /// Requests that arrived.
    pub arrivals: Vec<ArrivalRow>,
    /// The number of all of them, those of a monitor's earlier reports included.
    pub requests: u64,
    /// If it is a monitor: how many requests it may send.
    pub monitor: Option<Messages>,
    /// The server's own ladder.
    pub ladder: Ladder,
    /// The sequence number of the first row of `ladder_rows`.
    pub ladder_first: u64,
    /// Its probes, by their sequence numbers.
    pub ladder_rows: Vec<LadderRow>,
    /// Stamps of packets sent for this session.
    pub departures: Departures<(bool, u64)>,
    /// What this end has recorded.
    pub stages: Vec<StageRow>,
    /// As well.
    pub goodput: Vec<GoodputRow>,
    /// As well.
    pub local: Vec<LocalRow>,
    /// Records of the loads of earlier phases.
    pub ended_loads: ServerRecords,
    /// Whether another test ran at the same time.
    pub shared: bool,
    /// Its floods.
    pub(super) floods: Floods,
}

/// More rows of a kind are not kept: the session's time bounds them, unless a client floods.
pub const MOST_ROWS: usize = 200_000;
/// As well, between two reports of a monitor.
pub const MOST_MONITOR_ROWS: usize = 2000;
/// As well: these rows are long, and all of them must fit into one answer.
const MOST_FLOW_ROWS: usize = 60_000;
const MOST_FAILURES: usize = 100;

fn append<T>(rows: &mut Vec<T>, more: Vec<T>, most: usize) {
    let room = most.saturating_sub(rows.len());
    rows.extend(more.into_iter().take(room));
}

impl Session {
    /// A new one.
    pub fn new(id: SessionId, key: Key, address: IpAddr, limits: SessionLimits, pace: Option<Arc<Pace>>) -> Self {
        let began_ns = monotonic_ns();
        let budget = Arc::new(Budget::new(limits.bytes));
        let state = State {
            phase: PhaseKind::Idle,
            down: Arc::new(load(&budget, pace.as_ref())),
            up: Arc::new(load(&budget, pace.as_ref())),
            flows: [0; 2],
            received: 0,
            probes_from: None,
            may_climb: false,
            arrivals: Vec::new(),
            requests: 0,
            monitor: None,
            ladder: Ladder::starting_at(began_ns),
            ladder_first: 0,
            ladder_rows: Vec::new(),
            departures: Departures::default(),
            stages: Vec::new(),
            goodput: Vec::new(),
            local: Vec::new(),
            ended_loads: ServerRecords::default(),
            shared: false,
            floods: Floods::default(),
        };
        let began_realtime_ns = realtime_ns();
        let (loads, ended) = (Arc::default(), AtomicBool::new(false));
        Self {
            id,
            key,
            address,
            limits,
            began_ns,
            began_realtime_ns,
            budget,
            loads,
            ended,
            state: Mutex::new(state),
            page: Mutex::default(),
        }
    }

    /// More rows of a kind are not kept.
    pub fn most_rows(&self) -> usize {
        if self.is_monitor() { MOST_MONITOR_ROWS } else { MOST_ROWS }
    }

    /// Its state, for a moment.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is that of a monitor, which has no load.
    pub fn is_monitor(&self) -> bool {
        self.limits.flows == 0
    }

    /// Takes a connection for the load that the phase has for this purpose: that load, and what counts the connection as long as
    /// it lives. `None` if the phase has no such load, or there are too many connections.
    pub fn admit(&self, purpose: Purpose) -> Option<(Arc<Shared>, Arc<()>)> {
        // Connections of an earlier phase take a moment to end.
        if Arc::strong_count(&self.loads) > 3 * usize::from(self.limits.flows) {
            return None;
        }
        let load = self.state().admit(purpose, self.limits.flows)?;
        Some((load, Arc::clone(&self.loads)))
    }

    /// Gets ready for a flood of at most so many bit/s, if the server accepts that; the error says why it does not.
    pub fn accept_flood(&self, direction: Direction, bps: u64, most_bps: Option<u64>) -> Result<(), String> {
        self.state().floods.accept(direction, bps, most_bps)
    }

    /// Keeps what a page has measured.
    pub fn set_page_samples(&self, samples: Samples) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = Some(samples);
    }

    /// What a page has measured.
    pub fn take_page_samples(&self) -> Option<Samples> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Its load so far.
    pub fn load_bytes(&self) -> Bytes {
        let received = self.state().received_bytes();
        let all = self.limits.bytes.saturating_sub(self.budget.left());
        Bytes { sent: all.saturating_sub(received), received }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends it and its load.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.state().stop_load();
    }
}

/// A load that has not begun.
fn load(budget: &Arc<Budget>, pace: Option<&Arc<Pace>>) -> Shared {
    Shared { budget: Some(Arc::clone(budget)), pace: pace.cloned(), ..Shared::default() }
}

impl State {
    /// Ends the present phase's load, and begins another phase.
    pub fn begin(&mut self, phase: PhaseKind) {
        self.stop_load();
        self.phase = phase;
    }

    /// Whether the phase has the load of this purpose.
    pub fn expects(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Download => self.phase.loads(Direction::Down),
            Purpose::Upload => self.phase.loads(Direction::Up),
            Purpose::Exchange => false,
        }
    }

    /// The load that a connection of this purpose belongs to; `None` if the phase has no such load, or too many
    /// connections.
    fn admit(&mut self, purpose: Purpose, most: u16) -> Option<Arc<Shared>> {
        let belongs = self.expects(purpose);
        let (load, count) = match purpose {
            Purpose::Download => (&self.down, &mut self.flows[0]),
            Purpose::Upload => (&self.up, &mut self.flows[1]),
            Purpose::Exchange => return None,
        };
        (belongs && *count < most).then(|| {
            *count += 1;
            Arc::clone(load)
        })
    }

    /// Bytes of the load that have arrived so far, in all phases.
    pub fn received_bytes(&self) -> u64 {
        self.received + self.up.received.load(Ordering::Relaxed)
    }

    /// The server's own probe with a sequence number, if it is still known.
    pub fn ladder_row(&mut self, seq: u64) -> Option<&mut LadderRow> {
        let at = usize::try_from(seq.checked_sub(self.ladder_first)?).ok()?;
        self.ladder_rows.get_mut(at)
    }

    fn stop_load(&mut self) {
        self.flows = [0; 2];
        self.received = self.received_bytes();
        for load in [&mut self.down, &mut self.up] {
            let next = Shared { budget: load.budget.clone(), pace: load.pace.clone(), ..Shared::default() };
            let load = std::mem::replace(load, Arc::new(next));
            load.stop.store(true, Ordering::Relaxed);
            let log = load.take_log();
            let end = &mut self.ended_loads.end;
            append(&mut end.flows, log.flows, MOST_FLOW_ROWS);
            append(&mut end.stages, log.stages, MOST_ROWS);
            append(&mut end.failures, log.failures, MOST_FAILURES);
            end.congestion = log.congestion.or(end.congestion.take());
        }
    }

    /// Everything that was recorded.
    pub fn records(&mut self) -> ServerRecords {
        self.stop_load();
        let mut records = std::mem::take(&mut self.ended_loads);
        records.end.ladder = self.ladder_rows.clone();
        records.end.stages.append(&mut self.stages);
        records.end.goodput = std::mem::take(&mut self.goodput);
        records.end.local = std::mem::take(&mut self.local);
        records.arrivals = std::mem::take(&mut self.arrivals);
        records.shared = self.shared;
        records
    }
}
