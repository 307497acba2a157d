//! Tests with load in the midst of a monitor: each waits for its turn like any other, and has a verdict of its own. What the
//! monitor's own probes see in the meantime is not kept: it is the delay of that load.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use bufferscope_verdict::monitor::{Episode, EpisodeKind};

use super::{Happening, Loaded, Watch};
use crate::client::control::ConnectError;
use crate::client::observe::observations;
use crate::client::{Event, Measurement, Progress, Settings, measure};
use crate::time::SECOND;
use crate::wire::control::PhaseKind;

/// After a test, its packets are gone from every queue within this time.
const DRAINED_NS: i64 = 3 * SECOND as i64;
/// Earlier loads no longer matter.
const KEPT: usize = 8;

type Found = (Result<Measurement, ConnectError>, u64);

/// What a running test has said.
#[derive(Debug, Default)]
struct Said {
    has_begun: bool,
    queued: Option<usize>,
    phase: Option<(PhaseKind, u64, u64)>,
    progress: Option<Progress>,
    warnings: Vec<String>,
}

/// A test that waits or runs.
pub(super) struct LoadTest<'a> {
    running: Pin<Box<dyn Future<Output = Found> + 'a>>,
    said: Rc<RefCell<Said>>,
}

impl<'a> LoadTest<'a> {
    pub(super) fn begin(settings: &'a Settings, server: SocketAddr, interrupted: &'a AtomicBool) -> Self {
        let said = Rc::new(RefCell::new(Said::default()));
        let hears = Rc::clone(&said);
        let running = async move {
            let settings = Settings { server, ..settings.clone() };
            let found = measure(&settings, interrupted, |event| {
                let mut said = hears.borrow_mut();
                match event {
                    Event::Start(..) => said.has_begun = true,
                    Event::Queued(position) => said.queued = Some(position),
                    Event::Phase(kind, t_ns, at_most_s) => said.phase = Some((kind, t_ns, at_most_s)),
                    Event::Progress(progress) => said.progress = Some(progress),
                    Event::Warning(text) => said.warnings.push(text),
                }
            })
            .await;
            (found, settings.interval.as_nanos() as u64)
        };
        Self { running: Box::pin(running), said }
    }

    /// Waits for the end of a test; without one, for ever.
    pub(super) async fn ends(test: &mut Option<Self>) -> Option<Found> {
        match test {
            Some(test) => Some(test.running.as_mut().await),
            None => std::future::pending().await,
        }
    }

    /// Runs it to its end.
    pub(super) async fn result(self) -> Found {
        self.running.await
    }
}

/// When loads were in the network, as far as it still matters.
#[derive(Debug, Default)]
pub(super) struct Loads {
    times: Vec<(i64, i64)>,
    runs: bool,
}

impl Loads {
    /// Whether a load may have delayed what was sent at a time.
    pub(super) fn cover(&self, t_ns: i64) -> bool {
        self.times.iter().any(|(from, to)| (*from..=*to).contains(&t_ns))
    }

    /// Hands on what a test has said.
    pub(super) fn take(&mut self, now_ns: i64, test: &LoadTest<'_>, report: &mut impl FnMut(Happening<'_>)) {
        let mut said = test.said.borrow_mut();
        if said.has_begun && !self.runs {
            self.runs = true;
            if self.times.len() >= KEPT {
                self.times.remove(0);
            }
            // The test began since the last look.
            self.times.push((now_ns - SECOND as i64, i64::MAX));
        }
        if let Some(position) = said.queued.take() {
            report(Happening::Loading(Event::Queued(position)));
        }
        if let Some((kind, t_ns, at_most_s)) = said.phase.take() {
            report(Happening::Loading(Event::Phase(kind, t_ns, at_most_s)));
        }
        if let Some(progress) = said.progress.take() {
            report(Happening::Loading(Event::Progress(progress)));
        }
        for text in said.warnings.drain(..) {
            report(Happening::Loading(Event::Warning(text)));
        }
    }

    /// A test is over.
    pub(super) fn end(
        &mut self,
        watch: &mut Watch<'_>,
        now_ns: i64,
        found: Option<Found>,
        report: &mut impl FnMut(Happening<'_>),
    ) {
        self.runs = false;
        let from_ns = match self.times.last_mut() {
            Some((from, to)) if *to == i64::MAX => {
                *to = now_ns + DRAINED_NS;
                *from
            }
            _ => now_ns,
        };
        match found {
            Some((Ok(measurement), interval_ns)) => {
                let observations = observations(&measurement, interval_ns);
                let verdict = bufferscope_verdict::judge(&observations);
                let text = format!("a test with load: {}", verdict.sentences[2]);
                report(Happening::Loaded(&Loaded { measurement, observations, verdict }));
                watch.monitor.add(Episode::told(EpisodeKind::Load, from_ns, now_ns, text));
                watch.tell_episodes(report);
            }
            Some((Err(error), _)) => report(Happening::Warning(format!("no test with load: {error}"))),
            None => report(Happening::Warning("the test with load did not end in time".to_owned())),
        }
    }
}
