//! What changes in one end of a connection, for a log (in the kernel, the tracepoints of `include/trace/events/tcp.h` and
//! `sock.h`).
//!
//! The sender notes what can't be seen afterwards, such as the reason of a reduction, as it happens. Everything else is
//! compared after each action with how it was before. So a phase of a congestion control that begins and ends in one
//! action does not show.

mod connection;
mod transition;

use super::sample::Sample;
pub use crate::transport::congestion::Epoch;
use crate::transport::congestion::Report;
pub use connection::ConnectionState;
pub(super) use connection::Ends;
pub use transition::{Expiry, Limit, Metrics, Sign, SlowStartEnd, Transition, Trigger, WindowChange, Windows};

/// Whether there are journals. A web page has no log and has to be small.
pub(super) const AVAILABLE: bool = cfg!(not(target_family = "wasm"));

/// What an end has noted, and how it was after the previous action.
#[derive(Debug)]
pub(super) struct Journal {
    transitions: Vec<Transition>,
    connection: ConnectionState,
    /// The windows when something was last noted; `None` at the beginning.
    noted: Option<Windows>,
    /// How the end was after the previous action; `None` at the beginning.
    before: Option<Now>,
    /// The measurements that were passed on last.
    reported: Option<Metrics>,
    /// The next measurements are due when this has been acknowledged.
    round_end: u64,
    /// Packets marked lost so far.
    pub(super) lost: u64,
}

/// How an end is after an action.
#[derive(Debug)]
pub(super) struct Now {
    pub(super) report: Report,
    pub(super) limit: Limit,
    /// It grows by slow start, once acknowledgements arrive.
    pub(super) in_slow_start: bool,
    pub(super) sample: Sample,
    /// SND.UNA and SND.NXT.
    pub(super) una: u64,
    pub(super) nxt: u64,
}

impl Journal {
    /// A journal of an end in this state.
    pub(super) fn new(connection: ConnectionState) -> Self {
        Self { transitions: Vec::new(), connection, noted: None, before: None, reported: None, round_end: 0, lost: 0 }
    }

    /// Notes a change, after which the windows are `after`.
    pub(super) fn note(&mut self, after: Windows, transition: impl FnOnce(WindowChange) -> Transition) {
        let before = self.noted.replace(after).unwrap_or(after);
        self.transitions.push(transition(WindowChange { before, after }));
    }

    /// The handshake has progressed to `handshake`, and the close to `ends`.
    pub(super) fn advance(&mut self, handshake: ConnectionState, ends: Ends) {
        while let Some(new) = self.connection.next(handshake, ends) {
            self.transitions.push(Transition::Connection { old: self.connection, new });
            self.connection = new;
        }
    }

    /// Compares with the end of the previous action, and passes on all that has changed since.
    pub(super) fn conclude(&mut self, now: Now, see: &mut dyn FnMut(&Transition)) {
        match self.before.take() {
            Some(before) => self.compare(&before, &now),
            None => self.transitions.extend(now.report.phase.map(|new| Transition::Phase { old: None, new })),
        }
        let round_is_over = now.una >= self.round_end;
        if round_is_over {
            self.round_end = now.nxt;
        }
        let metrics = Metrics::of(&now.sample);
        let differs = self.reported.is_some_and(|reported| reported.is_set_otherwise(&metrics));
        if !self.transitions.is_empty() || (round_is_over && differs) {
            self.transitions.push(Transition::Metrics(metrics));
            self.reported = Some(metrics);
        }
        self.noted = Some(metrics.windows);
        self.before = Some(now);
        self.transitions.drain(..).for_each(|transition| see(&transition));
    }

    fn compare(&mut self, before: &Now, now: &Now) {
        let windows = Windows::of(&now.sample);
        match (before.in_slow_start, now.in_slow_start) {
            (true, false) => {
                let reason = slow_start_end(before, now);
                self.transitions.push(Transition::SlowStartEnded { reason, windows });
            }
            (false, true) => self.transitions.push(Transition::SlowStartBegan { windows }),
            _ => {}
        }
        if let Some(new) = now.report.phase.filter(|_| now.report.phase != before.report.phase) {
            self.transitions.push(Transition::Phase { old: before.report.phase, new });
        }
        if let Some(epoch) = now.report.epoch.filter(|_| now.report.epoch != before.report.epoch) {
            self.transitions.push(Transition::Epoch(epoch));
        }
        if now.limit != before.limit {
            self.transitions.push(Transition::Limit { old: before.limit, new: now.limit });
        }
    }
}

fn slow_start_end(before: &Now, now: &Now) -> SlowStartEnd {
    match now.report.slow_start {
        Some(sign) if before.report.slow_start.is_none() => sign.into(),
        _ if before.sample.ssthresh_bytes == now.sample.ssthresh_bytes => SlowStartEnd::Grown,
        _ => SlowStartEnd::Threshold,
    }
}
