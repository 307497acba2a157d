//! A connection that is watched for hours with few probes and without load: when it was bad, for how long, and in which
//! direction.
//!
//! [`Monitor`] takes the probes one by one and needs the same memory however long it runs. It names no queue: that needs a
//! load of known size. It says in which direction packets were late, and between which hops the delay begins, if enough
//! of them answered.

mod hops;
mod levels;
mod quantiles;
mod summary;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::input::{Direction, Echo, LadderProbe, Lost};
use crate::statistics::{median, whole};
use crate::words::{count, delay, percent};
use hops::Hops;
use levels::{Clocks, Level};
use quantiles::Quantiles;
pub use summary::MonitorSummary;

/// The echoes that decide whether the delay is longer now.
const RECENT: usize = 5;
/// So many of them must be answered.
const LEAST_ANSWERS: usize = 3;
/// The echoes that decide whether packets are lost now ...
const RECENT_LOSS: usize = 20;
/// ... and how many of them must be lost.
const LEAST_LOST: usize = 3;
/// An episode is over when nothing was wrong for this long; until then, what follows belongs to it.
const QUIET_NS: i64 = 30_000_000_000;
/// A direction with this part of the delay is the direction of the delay.
const MOST: f64 = 0.7;
/// The one-way values are used if their uncertainty is a smaller part of the delay than this.
const CERTAIN: f64 = 0.3;
/// Values of an episode that are kept for its medians; of longer ones, every second, every fourth and so on.
const KEPT: usize = 1024;
/// A change of the path this long before or after the delay became longer explains it.
const AROUND_CHANGE_NS: i64 = 60_000_000_000;

/// Something that happened while a connection was watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// What.
    pub kind: EpisodeKind,
    /// When it began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// The direction in which packets were late or lost; missing: both, or not known.
    pub direction: Option<Direction>,
    /// By how much the round trip was longer than the undisturbed one (median of the answered echoes).
    pub added_p50_ns: Option<i64>,
    /// The same of the slowest echo.
    pub added_max_ns: Option<i64>,
    /// Echoes that were sent.
    pub sent: Option<u64>,
    /// Those of them that were lost.
    pub lost: Option<u64>,
    /// The same in words.
    pub text: String,
}

/// The kinds of episodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpisodeKind {
    /// Packets were late.
    Delay,
    /// Packets were lost.
    Loss,
    /// Nothing was measured.
    Gap,
    /// A hop that was not seen before answered: the packets took another path.
    Path,
    /// The server sees this machine at another address.
    Address,
    /// Another client tested its connection to the server.
    OtherTest,
    /// A load that was asked for.
    Load,
}

impl Episode {
    /// An episode of which only the time and the words are known.
    pub fn told(kind: EpisodeKind, start_ns: i64, end_ns: i64, text: impl Into<String>) -> Self {
        Self {
            kind,
            start_ns,
            end_ns,
            direction: None,
            added_p50_ns: None,
            added_max_ns: None,
            sent: None,
            lost: None,
            text: text.into(),
        }
    }
}

/// How much later an echo was in each direction than undisturbed ones. Unlike one-way values, these are free of the
/// difference of the clocks and of its drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Later {
    /// On the way to the server.
    pub up_ns: Option<i64>,
    /// On the way back.
    pub down_ns: Option<i64>,
}

/// What is going on now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Now {
    /// The undisturbed round trip.
    pub base_ns: Option<i64>,
    /// Since when packets are late.
    pub late_since_ns: Option<i64>,
    /// Since when packets are lost.
    pub lossy_since_ns: Option<i64>,
}

/// Watches a connection.
#[derive(Debug, Default)]
pub struct Monitor {
    level: Level,
    clocks: Clocks,
    hops: Hops,
    recent: VecDeque<Sample>,
    late: Option<Late>,
    lossy: Option<Lossy>,
    changed_ns: Option<i64>,
    spread: Quantiles,
    summary: MonitorSummary,
    ended: Vec<Episode>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    t_ns: i64,
    added_ns: Option<f64>,
    later: Later,
    lost: Option<Lost>,
}

#[derive(Debug)]
struct Late {
    start_ns: i64,
    last_ns: i64,
    added: Thinned,
    up: Thinned,
    down: Thinned,
    qdisc: Thinned,
}

#[derive(Debug)]
struct Lossy {
    start_ns: i64,
    last_ns: i64,
    sent: u64,
    lost: [u64; 3],
    /// Echoes after the last lost one.
    sent_since: u64,
}

impl Monitor {
    /// A stretch of time begins in which the connection is measured without a break. The clocks may differ in another way
    /// than before.
    pub fn begin(&mut self) {
        self.clocks = Clocks::default();
    }

    /// The stretch has ended.
    pub fn end(&mut self) {
        self.close_late(None);
        self.close_lossy();
        self.recent.clear();
    }

    /// So long was measured.
    pub fn measured(&mut self, duration_ns: i64) {
        self.summary.measured_ns += duration_ns.max(0);
    }

    /// Takes an echo that is answered or lost, in the order of sending. Returns how late it was in each direction.
    pub fn echo(&mut self, echo: &Echo) -> Later {
        self.summary.count(echo);
        self.spread.take(echo.rtt_ns);
        let later = echo.rtt_ns.map_or_else(Later::default, |_| self.clocks.later(echo));
        if let Some(rtt_ns) = echo.rtt_ns {
            self.level.take(echo.t_ns, rtt_ns as f64);
            if self.level.is_undisturbed(rtt_ns as f64) {
                self.clocks.take(echo);
            }
        }
        let added_ns = echo.rtt_ns.zip(self.level.base_ns()).map(|(rtt, base)| rtt as f64 - base);
        let lost = echo.rtt_ns.is_none().then(|| echo.lost.unwrap_or(Lost::Unknown));
        let sample = Sample { t_ns: echo.t_ns, added_ns, later, lost };
        if self.recent.len() >= RECENT_LOSS {
            self.recent.pop_front();
        }
        self.recent.push_back(sample);
        self.look_at_delay(sample);
        self.look_at_loss(sample);
        later
    }

    /// Takes the answer of a hop.
    pub fn hop(&mut self, probe: &LadderProbe) {
        let Some(change) = self.hops.take(probe, self.late.is_some()) else { return };
        self.changed_ns = Some(probe.t_ns);
        self.ended.push(Episode::told(EpisodeKind::Path, probe.t_ns, probe.t_ns, change));
        if self.late.as_ref().is_some_and(|late| probe.t_ns.saturating_sub(late.start_ns) <= AROUND_CHANGE_NS) {
            self.close_late(Some("the packets take another path since then"));
            self.level.forget();
            self.hops.forget_delays();
        }
    }

    /// Takes the sojourn time of an echo in this machine's queueing discipline.
    pub fn qdisc(&mut self, delay_ns: i64) {
        if let Some(late) = &mut self.late {
            late.qdisc.take(delay_ns as f64);
        }
    }

    /// The episodes that have ended since the last call.
    pub fn take(&mut self) -> Vec<Episode> {
        let ended = std::mem::take(&mut self.ended);
        for episode in &ended {
            self.summary.take(episode);
        }
        ended
    }

    /// Adds an episode that the caller knows of, such as a gap.
    pub fn add(&mut self, episode: Episode) {
        self.ended.push(episode);
    }

    /// Counts one that is too short to be reported.
    pub fn count(&mut self, episode: &Episode) {
        self.summary.take(episode);
    }

    /// What is going on now.
    pub fn now(&self) -> Now {
        Now {
            base_ns: self.level.base_ns().map(whole),
            late_since_ns: self.late.as_ref().map(|late| late.start_ns),
            lossy_since_ns: self.lossy.as_ref().map(|lossy| lossy.start_ns),
        }
    }

    /// All in all, after [`Self::end`] and [`Self::take`].
    pub fn summary(&self) -> MonitorSummary {
        let mut summary = self.summary.clone();
        summary.base_ns = self.level.base_ns().map(whole);
        summary.rtt = self.spread.spread();
        summary
    }

    fn look_at_delay(&mut self, sample: Sample) {
        let Some(limit_ns) = self.level.limit_ns() else { return };
        let is_late = sample.added_ns.is_some_and(|added| added > limit_ns);
        if let Some(late) = &mut self.late {
            if is_late {
                late.last_ns = sample.t_ns;
                late.take(&sample);
            } else if sample.t_ns.saturating_sub(late.last_ns) > QUIET_NS {
                self.close_late(None);
            }
            return;
        }
        let last = || self.recent.iter().rev().take(RECENT);
        let answered: Vec<f64> = last().filter_map(|sample| sample.added_ns).collect();
        if answered.len() < LEAST_ANSWERS || median(answered).is_none_or(|added| added <= limit_ns) {
            return;
        }
        let since: Vec<Sample> =
            last().filter(|sample| sample.added_ns.is_some_and(|added| added > limit_ns)).copied().collect();
        let Some(first) = since.last() else { return };
        let mut late = Late::since(first.t_ns);
        late.last_ns = sample.t_ns;
        since.iter().rev().for_each(|sample| late.take(sample));
        self.late = Some(late);
    }

    fn close_late(&mut self, because: Option<&str>) {
        let Some(late) = self.late.take() else { return };
        let base = self.level.base_ns();
        let (Some(added_ns), Some(_)) = (late.added.median(), base) else { return };
        let direction = late.direction(self.clocks.error_ns(late.last_ns), added_ns);
        let behind = self.hops.begins(added_ns);
        self.hops.episode_is_over();
        let near = |changed: i64| changed.saturating_sub(late.start_ns).saturating_abs() <= AROUND_CHANGE_NS;
        let why = because.map(str::to_owned).or_else(|| {
            if late.qdisc.median().is_some_and(|in_qdisc| in_qdisc > added_ns / 2.0) {
                return Some("they waited in this machine's queueing discipline".to_owned());
            }
            if self.changed_ns.is_some_and(near) {
                return Some("the path changed at that time".to_owned());
            }
            behind.map(|behind| format!("traffic filled a queue: the delay begins {behind}"))
        });
        let way = match direction {
            Some(Way::Up) => " on the way up",
            Some(Way::Down) => " on the way down",
            Some(Way::Both) => ", in both directions",
            None => ", in which direction is not known",
        };
        let max_ns = late.added.max;
        let text = format!(
            "packets were {} late (median), {} at most{way}{}",
            delay(added_ns),
            delay(max_ns),
            why.map_or(String::new(), |why| format!("; {why}"))
        );
        self.ended.push(Episode {
            direction: direction.and_then(Way::direction),
            added_p50_ns: Some(whole(added_ns)),
            added_max_ns: Some(whole(max_ns)),
            ..Episode::told(EpisodeKind::Delay, late.start_ns, late.last_ns, text)
        });
    }

    fn look_at_loss(&mut self, sample: Sample) {
        if let Some(lossy) = &mut self.lossy {
            lossy.take(&sample);
            if sample.t_ns.saturating_sub(lossy.last_ns) > QUIET_NS {
                self.close_lossy();
            }
            return;
        }
        let lost = self.recent.iter().filter(|sample| sample.lost.is_some()).count();
        if lost < LEAST_LOST {
            return;
        }
        let Some(first) = self.recent.iter().position(|sample| sample.lost.is_some()) else { return };
        let start_ns = self.recent[first].t_ns;
        let mut lossy = Lossy { start_ns, last_ns: start_ns, sent: 0, lost: [0; 3], sent_since: 0 };
        self.recent.range(first..).for_each(|sample| lossy.take(sample));
        self.lossy = Some(lossy);
        // The same losses open no second episode.
        self.recent.iter_mut().for_each(|sample| sample.lost = None);
    }

    fn close_lossy(&mut self) {
        let Some(lossy) = self.lossy.take() else { return };
        let [up, down, unknown] = lossy.lost;
        let lost = up + down + unknown;
        let direction = match (up, down, unknown) {
            (_, 0, 0) => Some(Direction::Up),
            (0, _, 0) => Some(Direction::Down),
            _ => None,
        };
        let way = match (direction, unknown) {
            (Some(Direction::Up), _) => " on the way up".to_owned(),
            (Some(Direction::Down), _) => " on the way down".to_owned(),
            (None, 0) => format!(", {up} on the way up and {down} on the way down"),
            (None, _) => ", in which direction is not known".to_owned(),
        };
        let part = percent(lost as f64 / lossy.sent.max(1) as f64);
        let text = format!("{lost} of {} were lost ({part}){way}", count(lossy.sent as usize, "packet"));
        self.ended.push(Episode {
            direction,
            sent: Some(lossy.sent),
            lost: Some(lost),
            ..Episode::told(EpisodeKind::Loss, lossy.start_ns, lossy.last_ns, text)
        });
    }
}

/// Where packets were late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
    Both,
}

impl Way {
    fn direction(self) -> Option<Direction> {
        match self {
            Self::Up => Some(Direction::Up),
            Self::Down => Some(Direction::Down),
            Self::Both => None,
        }
    }
}

impl Late {
    fn since(start_ns: i64) -> Self {
        let [added, up, down, qdisc] = std::array::from_fn(|_| Thinned::default());
        Self { start_ns, last_ns: start_ns, added, up, down, qdisc }
    }

    fn take(&mut self, sample: &Sample) {
        let later = (sample.later.up_ns, sample.later.down_ns);
        if let (Some(added), (Some(up), Some(down))) = (sample.added_ns, later) {
            self.up.take(up as f64);
            self.down.take(down as f64);
            self.added.take(added);
        } else if let Some(added) = sample.added_ns {
            self.added.take(added);
        }
    }

    /// The direction of the delay; `None`: the clocks are too uncertain.
    fn direction(&self, error_ns: Option<f64>, added_ns: f64) -> Option<Way> {
        let (up, down) = (self.up.median()?, self.down.median()?);
        if error_ns? > CERTAIN * added_ns {
            return None;
        }
        Some(match up / (up + down).max(1.0) {
            part if part >= MOST => Way::Up,
            part if part <= 1.0 - MOST => Way::Down,
            _ => Way::Both,
        })
    }
}

impl Lossy {
    fn take(&mut self, sample: &Sample) {
        self.sent_since += 1;
        let Some(lost) = sample.lost else { return };
        self.sent += std::mem::take(&mut self.sent_since);
        self.last_ns = sample.t_ns;
        self.lost[match lost {
            Lost::Up => 0,
            Lost::Down => 1,
            Lost::Unknown => 2,
        }] += 1;
    }
}

/// Values for a median, in bounded memory: if there are too many, every second one is forgotten, and from then on only
/// every second one is taken.
#[derive(Debug)]
struct Thinned {
    values: Vec<f64>,
    every: u64,
    seen: u64,
    max: f64,
}

impl Default for Thinned {
    fn default() -> Self {
        Self { values: Vec::new(), every: 1, seen: 0, max: 0.0 }
    }
}

impl Thinned {
    fn take(&mut self, value: f64) {
        self.max = self.max.max(value);
        if self.seen.is_multiple_of(self.every) {
            self.values.push(value);
        }
        self.seen += 1;
        if self.values.len() > KEPT {
            let mut at = 0;
            self.values.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
    }

    fn median(&self) -> Option<f64> {
        median(self.values.iter().copied())
    }
}

#[cfg(test)]
mod tests;
