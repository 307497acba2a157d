//! A test that runs: its messages, the samples of the server's own queues, and its records.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::control::{does_not_read, say, timed_out};
use super::life::Stage;
use super::limits::Messages;
use super::session::{MOST_ROWS, Session};
use super::status::Outcome;
use super::{SAMPLE, Server, log};
use crate::local::{EndFacts, Local};
use crate::records::{GoodputRow, LocalRow};
use crate::time::{SECOND, monotonic_ns, realtime_ns};
use crate::wire::control::{Answer, ControlError, LONGEST_REQUEST, Request, Welcome};

/// A client takes the records within this time, or it is gone.
pub(super) const RECORDS_TIME: Duration = Duration::from_secs(30);
/// After a limit has ended a test, the client may ask for the records within this time.
const FAREWELL: Duration = Duration::from_secs(10);

impl Server {
    /// A client's test, from the welcome to the records.
    pub(super) async fn run<S>(
        &self,
        stream: &mut S,
        session: &Arc<Session>,
        from: SocketAddr,
    ) -> Result<Outcome, ControlError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let mut local = Local::towards(from.ip(), None)?;
        let flood_bps = self.settings.limits.flood_bps;
        let facts = EndFacts { accepts_flood_bps: flood_bps, ..local.facts().clone() };
        let welcome = Welcome {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session: session.id,
            key: session.key.iter().map(|byte| format!("{byte:02x}")).collect(),
            seen_as: from.ip().to_string(),
            limits: session.limits,
            end: facts,
            shares: session.state().shared,
            monitor: false,
        };
        say(stream, Answer::Welcome(Box::new(welcome))).await?;
        let mut ends = tokio::time::Instant::now() + Duration::from_secs(session.limits.seconds);
        let mut messages = Messages::new(self.settings.limits.messages_per_s);
        let (mut reader, mut writer) = tokio::io::split(stream);
        // Reading a message must not be cancelled half way, so it has a task's future of its own.
        let silence = self.settings.limits.silence;
        let mut reading = Box::pin(next(&mut reader, silence));
        let mut sampling = tokio::time::interval(SAMPLE);
        sampling.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut outcome = Outcome::Done;
        loop {
            let reason = tokio::select! {
                found = &mut reading => {
                    let (request, reader) = found?;
                    reading = Box::pin(next(reader, silence));
                    if !messages.allows(monotonic_ns()) {
                        session.end();
                        let reason = "the client sends too many messages".to_owned();
                        say(&mut writer, Answer::Refused { reason }).await?;
                        return Ok(Outcome::Failed);
                    }
                    match request {
                        Request::Phase { phase } => session.state().begin(phase),
                        Request::Alive => {}
                        Request::Flood { direction, bps } => {
                            if let Err(reason) = session.accept_flood(direction, bps, flood_bps) {
                                session.end();
                                say(&mut writer, Answer::Refused { reason }).await?;
                                return Ok(Outcome::Failed);
                            }
                        }
                        Request::Finish => break,
                        Request::Hello { .. } => {
                            return Err(io::Error::other("a second hello").into());
                        }
                        Request::Report => {
                            return Err(io::Error::other("a report of what is no monitor").into());
                        }
                    }
                    say(&mut writer, Answer::Noted).await?;
                    continue;
                }
                _ = sampling.tick(), if !session.has_ended() => {
                    let sample = LocalRow { t_ns: realtime_ns(), sample: local.sample() };
                    let mut state = session.state();
                    if state.local.len() < MOST_ROWS {
                        state.local.push(sample);
                        let row = GoodputRow { t_ns: realtime_ns(), bytes: state.received_bytes() };
                        state.goodput.push(row);
                    }
                    if session.budget.left() > 0 {
                        continue;
                    }
                    limit(format_args!("{} bytes", session.limits.bytes))
                }
                () = tokio::time::sleep_until(ends) => limit(format_args!("{} s", session.limits.seconds)),
                () = self.life.reaches(Stage::Ending), if !session.has_ended() => "the server is about to end".to_owned(),
            };
            if session.has_ended() {
                // The client has not asked for its records.
                return Ok(outcome);
            }
            session.end();
            outcome = Outcome::Limited;
            ends = tokio::time::Instant::now() + FAREWELL;
            say(&mut writer, Answer::Refused { reason }).await?;
        }
        let mut records = session.state().records();
        records.facts = local.facts().clone();
        let records = Answer::Records(Box::new(records));
        let sent = crate::wire::control::send(&mut writer, &records);
        tokio::time::timeout(RECORDS_TIME, sent).await.map_err(|_| does_not_read())??;
        Ok(outcome)
    }
}

fn limit(what: std::fmt::Arguments<'_>) -> String {
    format!("the server's limit of {what} for this test is reached")
}

/// A test that runs; its end is the end of this, whatever ends it.
pub(super) struct Running<'a> {
    pub(super) server: &'a Server,
    pub(super) session: Arc<Session>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let session = &self.session;
        session.end();
        {
            let mut sessions = self.server.sessions.lock();
            self.server.counters.loaded(session.load_bytes());
            sessions.remove(&session.id);
        }
        let now_ns = monotonic_ns();
        let left = session.budget.left();
        self.server.give_back(session.address, left);
        let (seconds, bytes) = ((now_ns - session.began_ns) / SECOND, session.limits.bytes - left);
        log(format_args!("a test has ended after {seconds} s and {bytes} bytes of load"));
        self.server.finished.notify_one();
    }
}

/// The next request of a client, which must not be silent for too long.
pub(super) async fn next<R>(reader: &mut R, silence: Duration) -> Result<(Request, &mut R), ControlError>
where
    R: tokio::io::AsyncRead + Unpin,
{
    let request = tokio::time::timeout(silence, crate::wire::control::receive(reader, LONGEST_REQUEST)).await;
    Ok((request.map_err(|_| timed_out())??, reader))
}
