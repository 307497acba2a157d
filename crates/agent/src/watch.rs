//! The run monitors itself: were samples taken on time, did the CPUs have time to spare, were packets lost where none
//! may be lost?

use std::io;

use bufferscope_endpoint::cpu::{self, CpuTime};
use serde::Serialize;

use crate::warnings::Warnings;

/// A CPU that was busier than this between two checks had no time to spare: packets may have waited for it. The kernel
/// counts in hundredths of a second, so checks that are close together only show that the CPU was never idle for that
/// long.
const SATURATED: f64 = 0.95;
/// If the interval between samples is this many times the requested one, there is a warning.
const THIN: f64 = 1.05;
/// A gap of this many intervals between two samples hides what happened in it, ...
const GAP_INTERVALS: u64 = 5;
/// ... and on a machine that belongs to the run, even a gap of this many shows that the CPU was not available for the
/// packets either.
const OWN_MACHINE_GAP_INTERVALS: u64 = 2;
/// Time between two checks of the CPU load ...
const LOOK_NS: u64 = 1_000_000_000;
/// ... and on a machine that belongs to the run.
const OWN_MACHINE_LOOK_NS: u64 = 50_000_000;

/// Time between two checks of the CPU load.
pub(crate) fn look_interval_ns(own_machine: bool) -> u64 {
    if own_machine { OWN_MACHINE_LOOK_NS } else { LOOK_NS }
}

/// How regularly samples were taken.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sampling {
    /// Time between two samples as the scenario requests it.
    pub asked_ns: u64,
    /// The average time between two samples.
    pub achieved_ns: u64,
    /// The longest time between two samples.
    pub longest_gap_ns: u64,
    #[serde(skip)]
    first_ns: Option<u64>,
    #[serde(skip)]
    last_ns: u64,
    #[serde(skip)]
    intervals: u64,
}

impl Sampling {
    pub(crate) fn new(asked_ns: u64) -> Self {
        Self { asked_ns, achieved_ns: asked_ns, longest_gap_ns: 0, first_ns: None, last_ns: 0, intervals: 0 }
    }

    /// A sample was taken. `due_ns` is when it was due; returns when the next one is due. Missed samples are skipped,
    /// so that a run that is late does not sample in bursts.
    pub(crate) fn taken(&mut self, due_ns: u64, now_ns: u64) -> u64 {
        if let Some(first_ns) = self.first_ns {
            self.intervals += 1;
            self.longest_gap_ns = self.longest_gap_ns.max(now_ns - self.last_ns);
            self.achieved_ns = (now_ns - first_ns) / self.intervals;
        } else {
            self.first_ns = Some(now_ns);
        }
        self.last_ns = now_ns;
        let missed = now_ns.saturating_sub(due_ns) / self.asked_ns;
        due_ns + (missed + 1) * self.asked_ns
    }

    /// Warns if samples were not taken as requested; `samples` is what the warnings call them.
    pub(crate) fn check(&self, samples: &str, own_machine: bool, warnings: &mut Warnings) {
        let ms = |ns: u64| ns as f64 / 1e6;
        if self.achieved_ns as f64 > self.asked_ns as f64 * THIN {
            warnings.add(format!(
                "{samples} were {:.3} ms apart instead of {:.3} ms",
                ms(self.achieved_ns),
                ms(self.asked_ns)
            ));
        }
        let most = if own_machine { OWN_MACHINE_GAP_INTERVALS } else { GAP_INTERVALS };
        if self.longest_gap_ns > most * self.asked_ns {
            warnings
                .add(format!("between two {samples} {:.3} ms passed: the machine was busy", ms(self.longest_gap_ns)));
        }
    }
}

/// How busy the CPUs were.
#[derive(Debug)]
pub(crate) struct CpuWatch {
    start: Vec<CpuTime>,
    last: Vec<CpuTime>,
    last_ns: u64,
    saturated_ns: u64,
    most: f64,
}

/// The CPUs over the whole run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuReport {
    /// Share of the time in which the busiest CPU was not idle.
    pub busiest: f64,
    /// The largest such share between two checks.
    pub most: f64,
    /// How long a CPU had no time to spare.
    pub saturated_s: f64,
}

impl CpuWatch {
    /// To be called shortly before the run's time 0.
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self::starting_with(cpu::read()?))
    }

    fn starting_with(start: Vec<CpuTime>) -> Self {
        Self { last: start.clone(), start, last_ns: 0, saturated_ns: 0, most: 0.0 }
    }

    /// To be called repeatedly; `now_ns` is the time of the run.
    pub(crate) fn look(&mut self, now_ns: u64) -> io::Result<()> {
        self.see(now_ns, cpu::read()?);
        Ok(())
    }

    fn see(&mut self, now_ns: u64, now: Vec<CpuTime>) {
        let share = busiest(&now, &self.last);
        if share > SATURATED {
            self.saturated_ns += now_ns.saturating_sub(self.last_ns);
        }
        self.most = self.most.max(share);
        self.last = now;
        self.last_ns = now_ns;
    }

    pub(crate) fn report(&self, warnings: &mut Warnings) -> CpuReport {
        let [saturated_s, watched_s] = [self.saturated_ns, self.last_ns].map(|ns| ns as f64 / 1e9);
        if self.saturated_ns > 0 {
            warnings.add(format!(
                "a CPU was saturated for {saturated_s:.1} of {watched_s:.1} seconds: rates and delays may be the machine's instead \
                 of the network's"
            ));
        }
        CpuReport { busiest: busiest(&self.last, &self.start), most: self.most, saturated_s }
    }
}

fn busiest(now: &[CpuTime], before: &[CpuTime]) -> f64 {
    now.iter().zip(before).map(|(now, before)| now.busy_since(*before)).fold(0.0, f64::max)
}

/// Number of packets that this machine's CPUs dropped because they could not keep up (the second, hexadecimal column of
/// `/proc/net/softnet_stat`). All namespaces share those queues.
pub(crate) fn softnet_drops() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/net/softnet_stat")?;
    parse_softnet(&text).ok_or_else(|| io::Error::other("/proc/net/softnet_stat is not as expected"))
}

fn parse_softnet(text: &str) -> Option<u64> {
    let dropped = |line: &str| u64::from_str_radix(line.split_ascii_whitespace().nth(1)?, 16).ok();
    text.lines().try_fold(0_u64, |sum, line| sum.checked_add(dropped(line)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_late_sample_is_not_followed_by_those_it_missed() {
        let mut sampling = Sampling::new(10);
        assert_eq!(sampling.taken(0, 0), 10);
        assert_eq!(sampling.taken(10, 37), 40);
        assert_eq!(sampling.taken(40, 40), 50);
        assert_eq!((sampling.longest_gap_ns, sampling.achieved_ns), (37, 20));
    }

    #[test]
    fn thin_samples_cause_a_warning() {
        let mut warnings = Warnings::default();
        let mut sampling = Sampling::new(10_000_000);
        sampling.taken(0, 0);
        sampling.taken(10_000_000, 80_000_000);
        sampling.check("samples of flows", false, &mut warnings);
        let texts = warnings.into_texts();
        assert_eq!(texts.len(), 2);
        assert_eq!(texts[0], "samples of flows were 80.000 ms apart instead of 10.000 ms");
    }

    /// Of ten checks, a tenth of a second apart, the fourth finds the second CPU without idle time. On average that CPU
    /// is idle.
    #[test]
    fn a_cpu_that_is_saturated_for_a_moment_causes_a_warning() {
        let mut watch = CpuWatch::starting_with(vec![CpuTime::default(); 2]);
        for look in 1..=10_u64 {
            let busy = if look >= 4 { look + 9 } else { look };
            watch.see(look * 100_000_000, vec![CpuTime::new(look, look * 10), CpuTime::new(busy, look * 10)]);
        }
        let mut warnings = Warnings::default();
        let report = watch.report(&mut warnings);
        assert_eq!((report.saturated_s, report.most, report.busiest), (0.1, 1.0, 0.19));
        assert!(warnings.into_texts()[0].starts_with("a CPU was saturated for 0.1 of 1.0 seconds"));
    }

    #[test]
    fn a_gap_causes_a_warning_sooner_where_the_machine_is_the_runs_own() {
        let mut sampling = Sampling::new(10);
        for now_ns in [0, 10, 35, 40, 50, 60] {
            sampling.taken(now_ns, now_ns);
        }
        let warns = |own_machine: bool| {
            let mut warnings = Warnings::default();
            sampling.check("samples", own_machine, &mut warnings);
            warnings.into_texts().iter().any(|text| text.starts_with("between two samples"))
        };
        assert_eq!([true, false].map(warns), [true, false]);
    }

    #[test]
    fn drops_of_all_cpus_are_added() {
        assert_eq!(parse_softnet("0000000a 00000003 00000000\n0000000b 00000010 00000000\n"), Some(3 + 16));
        assert_eq!(parse_softnet("0000000a\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "([0-9a-fx]{0,20} ?){0,8}\n?([0-9a-f]{8} ){0,3}") {
            let _ = parse_softnet(&text);
        }
    }
}
