//! How a server ends: it takes no new clients, lets the tests that run end, and ends itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::{Server, log};

/// After the last moment for tests, their clients take their records within this time.
const LAST_WORDS: Duration = Duration::from_secs(15);
/// It is looked whether there are clients this often.
const LOOK: Duration = Duration::from_millis(50);

/// What a server does; it only goes on from one to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It takes clients.
    Serving,
    /// A new process takes new clients.
    Replaced,
    /// It takes no clients, and those that wait are sent away.
    Stopping,
    /// The tests that run must end.
    Ending,
}

/// The stage, which can be waited for.
#[derive(Debug)]
pub(super) struct Life(watch::Sender<Stage>);

impl Default for Life {
    fn default() -> Self {
        Self(watch::Sender::new(Stage::Serving))
    }
}

impl Life {
    pub(super) fn stage(&self) -> Stage {
        *self.0.borrow()
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.0.send_if_modified(|now| {
            let is_later = stage > *now;
            *now = stage.max(*now);
            is_later
        });
    }

    /// Waits until it has come to this stage.
    pub(super) async fn reaches(&self, stage: Stage) {
        let _ = self.0.subscribe().wait_for(|now| *now >= stage).await;
    }
}

/// The signals that end a server.
pub(super) struct Ends([Signal; 2]);

impl Ends {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]))
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

impl Server {
    /// Sends waiting clients and monitors away, and lets the tests that run end until the time of grace is over.
    pub(super) async fn stop(&self) {
        self.life.enter(Stage::Stopping);
        let grace = self.settings.grace;
        let (running, waiting) = (self.queue.running(), self.queue.waiting());
        if running > 0 {
            log(format_args!(
                "no more tests; {running} running may take {} s more, {waiting} waiting are sent away; a second signal ends them",
                grace.as_secs()
            ));
        }
        if tokio::time::timeout(grace, self.drained()).await.is_err() {
            self.life.enter(Stage::Ending);
            let _ = tokio::time::timeout(LAST_WORDS, self.drained()).await;
        }
    }

    /// Waits until another process takes new clients.
    pub(super) async fn is_replaced(&self) {
        let _ = self.life.0.subscribe().wait_for(|_| self.successor.get().is_some()).await;
    }

    /// Waits until there are neither clients nor connections that may still become clients.
    pub(super) async fn has_no_clients(&self) {
        while self.gate.count() > 0 {
            self.drained().await;
            tokio::time::sleep(LOOK).await;
        }
        self.drained().await;
    }

    /// Waits until there are no clients.
    pub(super) async fn drained(&self) {
        let has_clients = || {
            let pages = Arc::strong_count(&self.pages) > 1;
            let before = self.predecessor.as_ref().is_some_and(|before| before.has_sessions());
            !self.queue.is_empty() || self.monitors.count() > 0 || pages || before
        };
        while has_clients() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_life_only_goes_on() {
        let life = Life::default();
        life.enter(Stage::Stopping);
        life.enter(Stage::Replaced);
        assert_eq!(life.stage(), Stage::Stopping);
        life.reaches(Stage::Replaced).await;
        life.reaches(Stage::Stopping).await;
        let ending = tokio::time::timeout(LOOK, life.reaches(Stage::Ending)).await;
        assert!(ending.is_err(), "not yet");
    }
}
