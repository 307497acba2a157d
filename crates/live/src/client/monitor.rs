//! `bufferscope-live measure --continuous`: watches a connection for hours with few probes, and with load only on request.
//! Its memory is bounded: a sample is passed on as soon as it is answered or counts as lost.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bufferscope_verdict::input::{End, Phase};
use bufferscope_verdict::monitor::{Episode, EpisodeKind, Monitor, MonitorSummary, Now};
use bufferscope_verdict::{Observations, Verdict};

use super::control::{ConnectError, Control};
use super::{Event, Measurement};
use crate::local::EndFacts;
use crate::time::{SECOND, boot_ns};
use crate::wire::control::Welcome;
use crate::wire::token::Token;

mod load;
mod samples;
mod stretch;

use stretch::{Ended, Stretch};

/// What a user may choose.
pub struct Settings<'a> {
    /// Finds the server's address, each time that it is needed: addresses change.
    pub resolve: &'a dyn Fn() -> Result<SocketAddr, String>,
    /// Its token.
    pub token: Token,
    /// The interface whose queues are looked at; `None`: the one that the route to the server uses.
    pub interface: Option<String>,
    /// Time between two echoes.
    pub interval: Duration,
    /// Ends after this time; `None`: when it is interrupted.
    pub lasts: Option<Duration>,
    /// Runs a test with load this often, as these settings say; `None`: never.
    pub loads: Option<(Duration, super::Settings)>,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Happening<'a> {
    /// The server has answered for the first time: its address, its welcome, and this end.
    Start(SocketAddr, &'a Welcome, &'a EndFacts),
    /// The state, about once a second.
    State(State<'a>),
    /// Samples of which it is known whether they were lost. Their one-way values are how much later each echo was than undisturbed ones.
    Samples(Phase),
    /// Something that began and ended.
    Episode(&'a Episode),
    /// Something that the user should know.
    Warning(String),
    /// What happens during a test with load.
    Loading(Event<'a>),
    /// A test with load is over.
    Loaded(&'a Loaded),
}

/// What is going on.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// Since the monitor's beginning.
    pub t_ns: i64,
    /// The last echo's round trip.
    pub rtt_ns: Option<u64>,
    /// What was wrong until now.
    pub now: Now,
    /// Since when nothing is measured, and why.
    pub gap: Option<(i64, &'a str)>,
    /// Until the monitor ends.
    pub left: Option<Duration>,
}

/// A test with load and its verdict.
#[derive(Debug)]
pub struct Loaded {
    /// What was measured.
    pub measurement: Measurement,
    /// As observations.
    pub observations: Observations,
    /// The verdict.
    pub verdict: Verdict,
}

/// What remains of a monitor, besides what was handed over.
#[derive(Debug)]
pub struct Watched {
    /// The stretches of time in which the connection was measured without a break.
    pub stretches: Vec<(i64, i64)>,
    /// The two ends, as they were at last.
    pub ends: [End; 2],
    /// The numbers.
    pub summary: MonitorSummary,
    /// Whether the kernel stamped what arrived.
    pub stamped_by_kernel: bool,
    /// Times from reading the clock to the kernel's stamp.
    pub send_errors_ns: Vec<u64>,
}

/// Time between two states.
const STATE: Duration = Duration::from_secs(1);
/// After a failed attempt to connect, the next one waits for this long ...
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// ... doubled each time, up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Shorter gaps are counted, but are no event: a session was renewed.
const LEAST_GAP_NS: i64 = 2 * SECOND as i64;
/// More stretches are not distinguished.
const MOST_STRETCHES: usize = 10_000;
/// Timing errors are kept for so many packets.
const ERRORS_KEPT: usize = 20_000;

/// The present time of a monitor that began at `start_ns` of the clock that also runs while the machine is suspended.
fn since(start_ns: u64) -> i64 {
    boot_ns().saturating_sub(start_ns) as i64
}

/// A monitor between and during stretches.
struct Watch<'a> {
    settings: &'a Settings<'a>,
    interrupted: &'a AtomicBool,
    start_ns: u64,
    monitor: Monitor,
    stretches: Vec<(i64, i64)>,
    seen_as: Option<String>,
    /// The last test of another client on the server, which may go on.
    other_test: Option<(i64, i64)>,
    next_load_ns: i64,
    ends: [End; 2],
    stamped_by_kernel: bool,
    send_errors_ns: Vec<u64>,
}

/// Watches a connection until it is interrupted or its time is over. Fails only if the server cannot be reached at the beginning.
pub async fn monitor(
    settings: &Settings<'_>,
    interrupted: &AtomicBool,
    mut report: impl FnMut(Happening<'_>),
) -> Result<Watched, ConnectError> {
    let mut watch = Watch {
        settings,
        interrupted,
        start_ns: boot_ns(),
        monitor: Monitor::default(),
        stretches: Vec::new(),
        seen_as: None,
        other_test: None,
        next_load_ns: settings.loads.as_ref().map_or(i64::MAX, |(every, _)| every.as_nanos() as i64),
        ends: [End::default(), End::default()],
        stamped_by_kernel: true,
        send_errors_ns: Vec::new(),
    };
    let mut connected = Some(watch.connect().await?);
    let mut gap: Option<(i64, String)> = None;
    loop {
        let next = match connected.take() {
            Some(connected) => Some(connected),
            None => watch.reconnect(&mut gap, &mut report).await,
        };
        let Some((server, control, welcome)) = next else { break };
        let mut stretch = match Stretch::begin(&watch, server, control, welcome) {
            Ok(stretch) => stretch,
            Err(error) if watch.stretches.is_empty() && gap.is_none() => return Err(ConnectError::Here(error)),
            Err(error) => {
                gap.get_or_insert_with(|| (since(watch.start_ns), error.to_string())).1 = error.to_string();
                tokio::time::sleep(FIRST_WAIT).await;
                continue;
            }
        };
        if let Some((from_ns, reason)) = gap.take() {
            watch.end_gap([from_ns, stretch.start_ns], reason, &mut report);
        }
        watch.begin_stretch(&stretch, &mut report);
        let ended = stretch.run(&mut watch, &mut report).await;
        let to_ns = stretch.finish(&mut watch, &ended, &mut report);
        match ended {
            Ended::Wanted => break,
            Ended::Lost(reason) => gap = Some((to_ns, reason)),
        }
    }
    if let Some((from_ns, reason)) = gap.take() {
        watch.end_gap([from_ns, watch.now_ns()], reason, &mut report);
    }
    watch.end_other_test();
    watch.tell_episodes(&mut report);
    Ok(Watched {
        stretches: watch.stretches,
        ends: watch.ends,
        summary: watch.monitor.summary(),
        stamped_by_kernel: watch.stamped_by_kernel,
        send_errors_ns: watch.send_errors_ns,
    })
}

impl Watch<'_> {
    fn now_ns(&self) -> i64 {
        since(self.start_ns)
    }

    /// Whether it is to end.
    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.left().is_some_and(|left| left.is_zero())
    }

    fn left(&self) -> Option<Duration> {
        let gone = Duration::from_nanos(self.now_ns().max(0) as u64);
        self.settings.lasts.map(|lasts| lasts.saturating_sub(gone))
    }

    async fn connect(&self) -> Result<(SocketAddr, Control, Welcome), ConnectError> {
        let here = |error: String| ConnectError::Here(std::io::Error::other(error));
        let server = (self.settings.resolve)().map_err(here)?;
        let (control, welcome) = Control::watch(server, &self.settings.token).await?;
        Ok((server, control, welcome))
    }

    /// Tries until the server answers; `None`: the monitor is to end.
    async fn reconnect(
        &self,
        gap: &mut Option<(i64, String)>,
        report: &mut impl FnMut(Happening<'_>),
    ) -> Option<(SocketAddr, Control, Welcome)> {
        let mut wait = FIRST_WAIT;
        let why = gap.as_ref().map_or(String::new(), |(_, reason)| reason.clone());
        loop {
            let attempt = self.connect();
            tokio::pin!(attempt);
            let error = loop {
                tokio::select! {
                    found = &mut attempt => match found {
                        Ok(connected) => return Some(connected),
                        Err(error) => break error,
                    },
                    () = tokio::time::sleep(STATE) => {
                        self.tell_gap(gap, report);
                        if self.is_over() {
                            return None;
                        }
                    }
                }
            };
            if let Some((_, reason)) = gap {
                *reason = match why.as_str() {
                    "" => short(&error),
                    why => format!("{why}; {}", short(&error)),
                };
            }
            let until = tokio::time::Instant::now() + wait;
            while tokio::time::Instant::now() < until {
                self.tell_gap(gap, report);
                if self.is_over() {
                    return None;
                }
                tokio::time::sleep(STATE.min(wait)).await;
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    fn tell_gap(&self, gap: &Option<(i64, String)>, report: &mut impl FnMut(Happening<'_>)) {
        let gap = gap.as_ref().map(|(from_ns, reason)| (*from_ns, reason.as_str()));
        let now = self.monitor.now();
        report(Happening::State(State { t_ns: self.now_ns(), rtt_ns: None, now, gap, left: self.left() }));
    }

    fn end_gap(&mut self, [from_ns, to_ns]: [i64; 2], reason: String, report: &mut impl FnMut(Happening<'_>)) {
        let episode = Episode::told(EpisodeKind::Gap, from_ns, to_ns, format!("nothing was measured: {reason}"));
        if to_ns - from_ns >= LEAST_GAP_NS {
            self.monitor.add(episode);
            self.tell_episodes(report);
        } else {
            self.monitor.count(&episode);
        }
    }

    fn begin_stretch(&mut self, stretch: &Stretch, report: &mut impl FnMut(Happening<'_>)) {
        let seen_as = &stretch.welcome().seen_as;
        match &self.seen_as {
            None => report(Happening::Start(stretch.server(), stretch.welcome(), stretch.facts())),
            Some(before) if before != seen_as => {
                let text = format!("the server sees this machine at {seen_as}, before at {before}");
                let now_ns = self.now_ns();
                self.monitor.add(Episode::told(EpisodeKind::Address, now_ns, now_ns, text));
                self.tell_episodes(report);
            }
            Some(_) => {}
        }
        self.seen_as = Some(seen_as.clone());
        self.monitor.begin();
    }

    fn end_stretch(&mut self, from_ns: i64, to_ns: i64) {
        self.monitor.measured(to_ns - from_ns);
        if self.stretches.len() < MOST_STRETCHES {
            self.stretches.push((from_ns, to_ns));
        } else if let Some(last) = self.stretches.last_mut() {
            last.1 = to_ns;
        }
    }

    fn tell_episodes(&mut self, report: &mut impl FnMut(Happening<'_>)) {
        for episode in self.monitor.take() {
            report(Happening::Episode(&episode));
        }
    }
}

/// Why there is no connection, in few words.
fn short(error: &ConnectError) -> String {
    match error {
        ConnectError::Silent(_) => "no answer".to_owned(),
        ConnectError::Refused(_, error) | ConnectError::Here(error) => error.to_string(),
        ConnectError::AnotherServer(_) => "the server has another certificate than the token names".to_owned(),
        ConnectError::NotOurs(_, what) => what.clone(),
        ConnectError::Declined(reason) => format!("the server refuses: {reason}"),
    }
}
