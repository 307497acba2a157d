//! All that a monitor has seen, in numbers and sentences.

use serde::{Deserialize, Serialize};

use super::{Episode, EpisodeKind};
use crate::grade;
use crate::input::{Direction, Echo, Lost};
use crate::verdict::{Fact, Idle, Spread, Verdict};
use crate::words::{count, delay, percent};

/// Shorter gaps are not worth a sentence: the session was renewed.
const WORTH_A_SENTENCE_NS: i64 = 5_000_000_000;

/// The numbers of a connection that was watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MonitorSummary {
    /// The undisturbed round trip at the end.
    pub base_ns: Option<i64>,
    /// The round trips; percentiles are exact to within 0.6 %.
    pub rtt: Spread,
    /// For how long the connection was measured.
    pub measured_ns: i64,
    /// Gaps, and how long they were in all.
    pub gaps: u64,
    /// Their time.
    pub gaps_ns: i64,
    /// Times in which packets were late, and how long they were in all.
    pub late: u64,
    /// Their time.
    pub late_ns: i64,
    /// Times in which packets were lost.
    pub lossy: u64,
    /// Echoes lost on the way up ...
    pub lost_up: u64,
    /// ... on the way down ...
    pub lost_down: u64,
    /// ... and in one of the two.
    pub lost_unknown: u64,
    /// Tests of other clients of the server in the meantime.
    pub other_tests: u64,
    /// Loads that were asked for.
    pub loads: u64,
    /// The worst time in which packets were late: the one with the most delay, weighted by its length.
    pub worst: Option<Episode>,
}

impl MonitorSummary {
    pub(super) fn count(&mut self, echo: &Echo) {
        if echo.rtt_ns.is_none() {
            match echo.lost {
                Some(Lost::Up) => self.lost_up += 1,
                Some(Lost::Down) => self.lost_down += 1,
                _ => self.lost_unknown += 1,
            }
        }
    }

    pub(super) fn take(&mut self, episode: &Episode) {
        let length_ns = episode.end_ns.saturating_sub(episode.start_ns).max(0);
        match episode.kind {
            EpisodeKind::Delay => {
                self.late += 1;
                self.late_ns += length_ns;
                let weight = |episode: &Episode| {
                    let length_ns = episode.end_ns.saturating_sub(episode.start_ns) as f64;
                    episode.added_p50_ns.unwrap_or(0) as f64 * length_ns
                };
                if self.worst.as_ref().is_none_or(|worst| weight(worst) < weight(episode)) {
                    self.worst = Some(episode.clone());
                }
            }
            EpisodeKind::Loss => self.lossy += 1,
            EpisodeKind::Gap => {
                self.gaps += 1;
                self.gaps_ns += length_ns;
            }
            EpisodeKind::OtherTest => self.other_tests += 1,
            EpisodeKind::Load => self.loads += 1,
            EpisodeKind::Path | EpisodeKind::Address => {}
        }
    }

    /// As the verdict of any measurement; `clock` writes a time of the day.
    pub fn verdict(&self, clock: impl Fn(i64) -> String) -> Verdict {
        let idle = Idle { rtt: self.rtt, ..Idle::default() };
        let fact = |text: &str, value: String| Fact { text: text.to_owned(), value };
        let mut evidence = vec![
            fact("echoes sent", self.rtt.count.to_string()),
            fact("echoes lost on the way up", self.lost_up.to_string()),
            fact("echoes lost on the way down", self.lost_down.to_string()),
            fact("echoes lost, in which direction is not known", self.lost_unknown.to_string()),
        ];
        evidence.extend(self.base_ns.map(|base| fact("undisturbed round trip", delay(base as f64))));
        let mut warnings = Vec::new();
        if self.other_tests > 0 {
            let tests = count(self.other_tests as usize, "other test");
            warnings
                .push(format!("{tests} ran on the server in the meantime; the delay may be that of its connection."));
        }
        Verdict {
            idle,
            phases: Vec::new(),
            worst_cases: Vec::new(),
            grade: None,
            grade_table: grade::table(),
            sentences: [self.time(), self.trips(), self.late(clock), self.lost(), self.next()],
            warnings,
            evidence,
        }
    }

    fn time(&self) -> String {
        let watched = format!("The connection was watched for {}", duration(self.measured_ns));
        if self.gaps_ns < WORTH_A_SENTENCE_NS {
            return format!("{watched}.");
        }
        format!(
            "{watched}; {} more could not be measured, in {}.",
            duration(self.gaps_ns),
            count(self.gaps as usize, "gap")
        )
    }

    fn trips(&self) -> String {
        match (self.rtt.p50_ns, self.rtt.p99_ns) {
            (Some(p50), Some(p99)) => format!(
                "A round trip took {} (median), and 1 in 100 took longer than {}.",
                delay(p50 as f64),
                delay(p99 as f64)
            ),
            (Some(p50), None) => format!("A round trip took {} (median).", delay(p50 as f64)),
            _ => "No echo was answered often enough to say how long a round trip took.".to_owned(),
        }
    }

    fn late(&self, clock: impl Fn(i64) -> String) -> String {
        let Some(worst) = self.worst.as_ref().filter(|_| self.late > 0) else {
            return "Packets were never late for long.".to_owned();
        };
        let way = match worst.direction {
            Some(Direction::Up) => " on the way up",
            Some(Direction::Down) => " on the way down",
            None => "",
        };
        let added = delay(worst.added_p50_ns.unwrap_or(0) as f64);
        let length = duration(worst.end_ns.saturating_sub(worst.start_ns));
        let begins = clock(worst.start_ns);
        let most = format!("by {added}{way} for {length} from {begins} on");
        match self.late {
            1 => format!("Packets were late once, {most}."),
            times => {
                format!("Packets were late {times} times, for {} in all; most of all {most}.", duration(self.late_ns))
            }
        }
    }

    fn lost(&self) -> String {
        let lost = self.lost_up + self.lost_down + self.lost_unknown;
        if lost == 0 {
            return "No packet was lost.".to_owned();
        }
        let part = |lost: u64, of: u64| percent(lost as f64 / of.max(1) as f64);
        if self.lost_unknown * 2 > lost {
            return format!(
                "{} of the packets were lost, most of them in a direction that is not known.",
                part(lost, self.rtt.count)
            );
        }
        let up = part(self.lost_up, self.rtt.count);
        let down = part(self.lost_down, self.rtt.count - self.lost_up.min(self.rtt.count));
        format!("{up} of the packets were lost on the way up, and {down} on the way down.")
    }

    fn next(&self) -> String {
        match self.loads {
            0 => "Without a load, this says nothing about the queues that a load of your own fills: test that with \
                  `bufferscope measure`."
                .to_owned(),
            loads => format!("{} with load in the meantime had a verdict of its own.", count(loads as usize, "test")),
        }
    }
}

/// A duration: `48 s`, `12 min`, `3 h 12 min`.
fn duration(ns: i64) -> String {
    let seconds = (ns.max(0) as f64 / 1e9).round() as i64;
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", (seconds + 30) / 3600, (seconds + 30) % 3600 / 60),
    }
}
