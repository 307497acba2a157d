//! Monitors: clients that watch their connection for hours. They have no load and take no turn in the queue of the tests;
//! their number and their probes are bounded instead.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::control::{does_not_read, drawn, say};
use super::life::Stage;
use super::limits::{Messages, user};
use super::running::{RECORDS_TIME, next};
use super::session::{Session, State};
use super::status::Refused;
use super::{Server, log};
use crate::ladder::{Ladder, SPARSE_ROUND_NS};
use crate::local::Local;
use crate::records::{LocalRow, ServerRecords};
use crate::time::{SECOND, monotonic_ns, realtime_ns};
use crate::wire::control::{Answer, ControlError, Request, SessionLimits, Welcome};

/// Probes of a monitor per second, on average.
const PROBES_PER_S: u64 = 20;
/// Time between two looks at whether a test runs.
const LOOK: Duration = Duration::from_secs(1);
/// The server's queues are sampled at every fifth look.
const LOOKS_PER_SAMPLE: u64 = 5;
/// An answer to the server's own probe comes within this time.
const SETTLED_NS: u64 = 15 * SECOND;
/// Tests in a report.
const MOST_TESTS: usize = 64;

/// A monitor that is connected; its end is the end of this.
struct Watching<'a> {
    server: &'a Server,
    session: Arc<Session>,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.session.end();
        self.server.sessions.lock().remove(&self.session.id);
        log(format_args!("a monitor has left after {} s", (monotonic_ns() - self.session.began_ns) / SECOND));
    }
}

impl Server {
    /// A monitor, from the welcome to its end.
    pub(super) async fn watch<S>(&self, stream: &mut S, from: SocketAddr) -> Result<(), ControlError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let Some(_place) = self.monitors.enter(from.ip(), None) else {
            self.counters.refused(Refused::Monitors);
            let reason = "the server has as many monitors as it takes: try again later".to_owned();
            return say(stream, Answer::Refused { reason }).await;
        };
        let (id, key) = drawn()?;
        let longest = self.settings.limits.monitor_session;
        let limits = SessionLimits { seconds: longest.as_secs(), flows: 0, bytes: 0, rate_bps: None };
        let session = Arc::new(Session::new(id, key, user(from.ip()), limits, None));
        {
            let mut state = session.state();
            state.ladder = Ladder::with_round(session.began_ns, SPARSE_ROUND_NS);
            state.monitor = Some(Messages::new(PROBES_PER_S));
        }
        self.sessions.lock().insert(id, Arc::clone(&session));
        let watching = Watching { server: self, session };
        let session = &watching.session;
        let mut local = Local::towards(from.ip(), None)?;
        let welcome = Welcome {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session: session.id,
            key: String::new(),
            seen_as: from.ip().to_string(),
            limits: session.limits,
            end: local.facts().clone(),
            shares: false,
            monitor: true,
        };
        say(stream, Answer::Welcome(Box::new(welcome))).await?;
        self.counters.monitor();
        log(format_args!("a monitor begins"));
        let ends = tokio::time::Instant::now() + longest;
        let mut messages = Messages::new(self.settings.limits.messages_per_s);
        let (mut reader, mut writer) = tokio::io::split(stream);
        let silence = self.settings.limits.silence;
        let mut reading = Box::pin(next(&mut reader, silence));
        let mut looking = tokio::time::interval(LOOK);
        looking.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut tests = Tests::default();
        let mut looks = 0_u64;
        loop {
            tokio::select! {
                found = &mut reading => {
                    let (request, reader) = found?;
                    reading = Box::pin(next(reader, silence));
                    let refusal = match request {
                        _ if !messages.allows(monotonic_ns()) => "the client sends too many messages",
                        Request::Alive => {
                            say(&mut writer, Answer::Noted).await?;
                            continue;
                        }
                        Request::Report | Request::Finish => {
                            let mut records = session.state().report();
                            records.facts = local.facts().clone();
                            records.tests = tests.take();
                            let answer = Answer::Records(Box::new(records));
                            let sent = crate::wire::control::send(&mut writer, &answer);
                            tokio::time::timeout(RECORDS_TIME, sent).await.map_err(|_| does_not_read())??;
                            if request == Request::Finish {
                                return Ok(());
                            }
                            continue;
                        }
                        Request::Phase { .. } | Request::Flood { .. } => "a monitor has no load",
                        Request::Hello { .. } => "a second hello",
                    };
                    return say(&mut writer, Answer::Refused { reason: refusal.to_owned() }).await;
                }
                _ = looking.tick() => {
                    tests.look(realtime_ns(), self.runs_test());
                    if looks.is_multiple_of(LOOKS_PER_SAMPLE) {
                        let sample = LocalRow { t_ns: realtime_ns(), sample: local.sample() };
                        let mut state = session.state();
                        if state.local.len() < session.most_rows() {
                            state.local.push(sample);
                        }
                    }
                    looks += 1;
                }
                () = self.life.reaches(Stage::Stopping) => return self.send_away(&mut writer).await,
                () = tokio::time::sleep_until(ends) => {
                    let reason = format!("the session of a monitor ends after {} s", longest.as_secs());
                    return say(&mut writer, Answer::Refused { reason }).await;
                }
            }
        }
    }

    /// Whether any test runs now.
    fn runs_test(&self) -> bool {
        self.sessions.lock().values().any(|session| !session.is_monitor() && !session.has_ended())
    }
}

/// The times in which tests ran.
#[derive(Debug, Default)]
struct Tests {
    found: Vec<[u64; 2]>,
    runs: bool,
}

impl Tests {
    fn look(&mut self, now_ns: u64, runs: bool) {
        if runs {
            let has_room = self.found.len() < MOST_TESTS;
            match self.found.last_mut().filter(|_| self.runs) {
                Some(last) => last[1] = now_ns,
                None if has_room => self.found.push([now_ns; 2]),
                None => {}
            }
        }
        self.runs = runs;
    }

    /// A test that still runs is in the next report again, from its last time here on.
    fn take(&mut self) -> Vec<[u64; 2]> {
        let found = std::mem::take(&mut self.found);
        if self.runs {
            self.found.extend(found.last().map(|last| [last[1]; 2]));
        }
        found
    }
}

impl State {
    /// What was recorded since the last report. Probes of the server's ladder that may still be answered stay.
    fn report(&mut self) -> ServerRecords {
        let settled_ns = realtime_ns().saturating_sub(SETTLED_NS);
        let settled = self.ladder_rows.partition_point(|row| row.t_ns < settled_ns);
        let mut records = ServerRecords { arrivals: std::mem::take(&mut self.arrivals), ..ServerRecords::default() };
        records.end.ladder = self.ladder_rows.drain(..settled).collect();
        records.end.stages = std::mem::take(&mut self.stages);
        records.end.local = std::mem::take(&mut self.local);
        self.ladder_first += settled as u64;
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_runs_over_several_reports_is_told_without_a_break() {
        let mut tests = Tests::default();
        (0..3).for_each(|second| tests.look(second, second > 0));
        assert_eq!(tests.take(), [[1, 2]]);
        (3..6).for_each(|second| tests.look(second, second < 5));
        assert_eq!(tests.take(), [[2, 4]]);
        (6..9).for_each(|second| tests.look(second, second == 8));
        assert_eq!(tests.take(), [[8, 8]]);
        (0..1000_u64).for_each(|second| tests.look(second, second.is_multiple_of(2)));
        assert!(tests.take().len() <= MOST_TESTS);
    }
}
