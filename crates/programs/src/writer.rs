//! What an application writes, and when: in on and off periods, at a rate, up to a number of bytes, or any combination
//! of these.

use bufferscope_scenario::sizes::MSS_BYTES;
use bufferscope_scenario::{OnOff, TcpTraffic};

use crate::random::{Random, Uniform};

/// An application with a rate writes this often ...
const BEAT_NS: u64 = 10_000_000;
/// ... unless it has less than this to write by then: the payload of a full packet.
const LEAST_BYTES: u64 = MSS_BYTES as u64;
const NS_BYTES: u128 = 8_000_000_000;

/// An application at work.
#[derive(Debug)]
pub(crate) struct Writer {
    rate_bps: Option<u64>,
    /// Bytes left to write; `None`: there is no end.
    left: Option<u64>,
    on_off: Option<OnOff>,
    random: Random,
    writes: bool,
    /// When the current period of writing or silence began, and when it ends.
    since_ns: u64,
    until_ns: u64,
    /// Time since the beginning of the period for which everything has been written.
    covered_ns: u64,
}

/// What it does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Bytes to be written; `u64::MAX`: as many as the connection takes.
    pub(crate) write: u64,
    /// Whether to discard what the connection has not accepted.
    pub(crate) hold: bool,
    /// When the application continues; `None`: it has written everything, or writes as much as it can for ever.
    pub(crate) next_ns: Option<u64>,
}

impl Writer {
    /// An application that begins now; `None` for one that simply writes everything at once.
    pub(crate) fn new(parameters: &TcpTraffic, now_ns: u64, random: Random) -> Option<Self> {
        if parameters.rate_bps.is_none() && parameters.on_off.is_none() {
            return None;
        }
        Some(Self {
            rate_bps: parameters.rate_bps,
            left: parameters.bytes,
            on_off: parameters.on_off,
            random,
            // It has been silent until now.
            writes: false,
            since_ns: now_ns,
            until_ns: now_ns,
            covered_ns: 0,
        })
    }

    /// Carries out what is planned for the time in the last [`Step::next_ns`], or for the beginning of the application.
    pub(crate) fn step(&mut self) -> Step {
        if self.since_ns.saturating_add(self.covered_ns) >= self.until_ns {
            self.turn();
        }
        if !self.writes {
            self.covered_ns = self.until_ns - self.since_ns;
            return Step { write: 0, hold: self.rate_bps.is_none(), next_ns: Some(self.until_ns) };
        }
        let Some(rate_bps) = self.rate_bps else {
            self.covered_ns = self.until_ns - self.since_ns;
            return Step { write: u64::MAX, hold: false, next_ns: Some(self.until_ns) };
        };
        let write = self.beat(rate_bps);
        let has_more = self.left != Some(0);
        Step { write, hold: false, next_ns: has_more.then_some(self.since_ns + self.covered_ns) }
    }

    /// From writing to silence, or back.
    fn turn(&mut self) {
        self.writes = !self.writes;
        self.since_ns = self.until_ns;
        self.covered_ns = 0;
        self.until_ns = match self.on_off {
            None => u64::MAX,
            Some(OnOff { on_ns, off_ns, periods }) => {
                let mean_ns = if self.writes { on_ns } else { off_ns };
                let spell_ns = periods.length_ns(mean_ns, &mut || self.random.bits());
                self.since_ns.saturating_add(spell_ns.max(1))
            }
        };
    }

    /// The bytes that accumulate until the next beat.
    fn beat(&mut self, rate_bps: u64) -> u64 {
        let full_ns = (u128::from(LEAST_BYTES) * NS_BYTES).div_ceil(rate_bps.into()) as u64;
        let before = bytes(rate_bps, self.covered_ns);
        self.covered_ns = (self.covered_ns + full_ns.max(BEAT_NS)).min(self.until_ns - self.since_ns);
        let due = bytes(rate_bps, self.covered_ns) - before;
        let write = self.left.map_or(due, |left| due.min(left));
        self.left = self.left.map(|left| left - write);
        write
    }
}

fn bytes(rate_bps: u64, ns: u64) -> u64 {
    (u128::from(rate_bps) * u128::from(ns) / NS_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::{Congestion, Periods, Sending};

    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;

    fn parameters(bytes: Option<u64>, rate_bps: Option<u64>, on_off: Option<OnOff>) -> TcpTraffic {
        let sending =
            Sending { congestion: Congestion::Cubic, window_packets: None, target_ns: None, ecn: false, pacing: false };
        TcpTraffic { flows: 1, stagger_ns: 0, bytes, transfers: 1, rate_bps, on_off, sending }
    }

    fn writer(parameters: &TcpTraffic) -> Writer {
        Writer::new(parameters, 5 * MS, Random::new(1, 0)).unwrap()
    }

    /// All steps before `end_ns`, with their times.
    fn steps(mut writer: Writer, end_ns: u64) -> Vec<(u64, Step)> {
        let (mut steps, mut at_ns) = (Vec::new(), Some(5 * MS));
        while let Some(now_ns) = at_ns.filter(|ns| *ns < end_ns) {
            let step = writer.step();
            steps.push((now_ns, step));
            at_ns = step.next_ns;
        }
        steps
    }

    #[test]
    fn who_writes_all_at_once_needs_no_writer() {
        assert!(Writer::new(&parameters(Some(1000), None, None), 0, Random::new(1, 0)).is_none());
    }

    #[test]
    fn a_rate_comes_to_its_bytes_in_beats_of_ten_milliseconds() {
        // 5 Mbit/s are 6250 bytes in 10 ms.
        let steps = steps(writer(&parameters(None, Some(5_000_000), None)), SECOND + 5 * MS);
        assert_eq!(steps.len(), 100);
        for (n, (at_ns, step)) in (0..).zip(&steps) {
            assert_eq!((*at_ns, step.write, step.hold), (5 * MS + n * 10 * MS, 6250, false));
        }
    }

    #[test]
    fn a_slow_rate_waits_for_a_full_packet() {
        // 1448 bytes at 64 kbit/s take 181 ms.
        let steps = steps(writer(&parameters(None, Some(64_000), None)), SECOND);
        assert!(steps.iter().all(|(_, step)| step.write == 1448), "{steps:?}");
        assert_eq!(steps.iter().map(|step| step.0).collect::<Vec<_>>(), [5, 186, 367, 548, 729, 910].map(|ms| ms * MS));
    }

    #[test]
    fn a_file_at_a_rate_has_an_end() {
        let steps = steps(writer(&parameters(Some(15_000), Some(5_000_000), None)), SECOND);
        assert_eq!(steps.iter().map(|(_, step)| step.write).collect::<Vec<_>>(), [6250, 6250, 2500]);
        assert_eq!(steps[2].1.next_ns, None);
    }

    #[test]
    fn fixed_bursts_alternate() {
        let on_off = OnOff { on_ns: 100 * MS, off_ns: 250 * MS, periods: Periods::Fixed };
        let steps = steps(writer(&parameters(None, None, Some(on_off))), 500 * MS);
        let on = |next_ms| Step { write: u64::MAX, hold: false, next_ns: Some(next_ms * MS) };
        let off = |next_ms| Step { write: 0, hold: true, next_ns: Some(next_ms * MS) };
        assert_eq!(steps, [(5 * MS, on(105)), (105 * MS, off(355)), (355 * MS, on(455)), (455 * MS, off(705))]);
    }

    #[test]
    fn a_burst_at_a_rate_writes_what_the_rate_comes_to_and_takes_nothing_back() {
        // 25 ms at 8 Mbit/s: 25,000 bytes in beats of 10, 10 and 5 ms.
        let on_off = OnOff { on_ns: 25 * MS, off_ns: 75 * MS, periods: Periods::Fixed };
        let steps = steps(writer(&parameters(None, Some(8_000_000), Some(on_off))), 205 * MS);
        let expected =
            [(5, 10_000), (15, 10_000), (25, 5000), (30, 0), (105, 10_000), (115, 10_000), (125, 5000), (130, 0)];
        assert_eq!(steps.iter().map(|(at_ns, step)| (at_ns / MS, step.write)).collect::<Vec<_>>(), expected);
        assert!(steps.iter().all(|(_, step)| !step.hold));
    }

    #[test]
    fn exponential_bursts_have_their_means() {
        let on_off = OnOff { on_ns: 10 * MS, off_ns: 30 * MS, periods: Periods::Exponential };
        let steps = steps(writer(&parameters(None, None, Some(on_off))), 1000 * SECOND);
        let length = |(at_ns, step): &(u64, Step)| (step.next_ns.unwrap() - at_ns) as f64 / MS as f64;
        let mean = |hold| {
            let lengths: Vec<f64> = steps.iter().filter(|(_, step)| step.hold == hold).map(length).collect();
            lengths.iter().sum::<f64>() / lengths.len() as f64
        };
        // 25,000 of each: four standard errors are 2.5 %.
        assert!((mean(false) / 10.0 - 1.0).abs() < 0.025, "{}", mean(false));
        assert!((mean(true) / 30.0 - 1.0).abs() < 0.025, "{}", mean(true));
    }
}
