//! Observations without noise: a path of 4 links, 20 ms, 10 Mbit/s.

use bufferscope_verdict::input::{
    AnswerKind, Direction, Echo, End, EndName, Ends, FlowSample, GoodputSample, LadderProbe, Observations, Phase,
    PhaseKind, Stage, StageDelay,
};
use bufferscope_verdict::verdict::{PhaseVerdict, Place, Where};
use bufferscope_verdict::{Verdict, judge};

pub(crate) const MS: i64 = 1_000_000;
pub(crate) const SECOND: i64 = 1000 * MS;
pub(crate) const IDLE_MS: i64 = 20;
pub(crate) const LINKS: u8 = 4;

/// An idle phase of 10 s, and one loaded phase of 10 s.
#[derive(Clone)]
pub(crate) struct Test {
    pub(crate) observations: Observations,
}

impl Test {
    /// A load that adds delays in the two directions.
    pub(crate) fn new(kind: PhaseKind, up_ms: f64, down_ms: f64) -> Self {
        let mut idle = Phase { kind: PhaseKind::Idle, end_ns: 10 * SECOND, ..Phase::default() };
        idle.echoes = echoes(0, 0.0, 0.0);
        let (start_ns, end_ns) = (10 * SECOND, 20 * SECOND);
        let mut loaded = Phase { kind, start_ns, end_ns, levelled: Some(true), ..Phase::default() };
        loaded.echoes = echoes(start_ns, up_ms, down_ms);
        let end = || End { hops_to_other: Some(LINKS), software_stamps: true, ..End::default() };
        let ends = Ends { client: end(), server: end() };
        let test = Self { observations: Observations { phases: vec![idle, loaded], ends, ..Observations::default() } };
        kind.loaded().iter().fold(test, |test, direction| test.rate(*direction, 10_000_000))
    }

    pub(crate) fn idle(&mut self) -> &mut Phase {
        &mut self.observations.phases[0]
    }

    pub(crate) fn loaded(&mut self) -> &mut Phase {
        &mut self.observations.phases[1]
    }

    /// A constant goodput.
    pub(crate) fn rate(mut self, direction: Direction, bps: i64) -> Self {
        self.loaded().goodput.retain(|sample| sample.direction != direction);
        for tenth in 0..=100 {
            let (t_ns, bytes) = (10 * SECOND + tenth * 100 * MS, (bps / 80 * tenth) as u64);
            self.loaded().goodput.push(GoodputSample { t_ns, direction, bytes });
        }
        self
    }

    /// A ladder whose hops rise by these delays; `None`: silent.
    pub(crate) fn ladder(mut self, end: EndName, rises_ms: [Option<f64>; 3]) -> Self {
        for (ttl, rise) in (1..).zip(rises_ms) {
            let Some(rise) = rise else { continue };
            for second in 0..10 {
                for (phase, rise) in [(0, 0.0), (1, rise)] {
                    let probe = LadderProbe {
                        t_ns: (second + 10 * i64::from(phase as u8)) * SECOND + i64::from(ttl) * 100 * MS,
                        end,
                        ttl,
                        address: Some(format!("192.0.2.{ttl}")),
                        rtt_ns: Some(5 * MS * i64::from(ttl) + ns(rise)),
                        kind: AnswerKind::Exceeded,
                        mpls: false,
                    };
                    self.observations.phases[phase].ladder.push(probe);
                }
            }
        }
        self
    }

    /// Timestamps of a stage under load; 0 on the idle path.
    pub(crate) fn stage(mut self, end: EndName, stage: Stage, delay_ms: f64) -> Self {
        for index in 0..100 {
            for (phase, delay) in [(0, 0.0), (1, delay_ms)] {
                let t_ns = 10 * SECOND * i64::from(phase as u8) + index * 100 * MS;
                self.observations.phases[phase].stages.push(StageDelay { t_ns, end, stage, delay_ns: ns(delay) });
            }
        }
        self
    }

    /// One connection, sampled every 100 ms; `change` sets what differs, given the seconds since the start.
    pub(crate) fn flow(mut self, direction: Direction, change: impl Fn(&mut FlowSample, f64)) -> Self {
        for tenth in 0..=100 {
            let mut sample = FlowSample {
                t_ns: 10 * SECOND + tenth * 100 * MS,
                direction,
                flow: 1,
                srtt_ns: IDLE_MS * MS,
                min_rtt_ns: IDLE_MS * MS,
                cwnd_bytes: 30_000,
                notsent_bytes: 0,
                retransmits: 0,
                delivered_bytes: (tenth * 125_000) as u64,
                busy_us: (tenth * 100_000) as u64,
                rwnd_limited_us: 0,
                sndbuf_limited_us: 0,
                delivered_ce: 0,
            };
            change(&mut sample, tenth as f64 / 10.0);
            self.loaded().flows.push(sample);
        }
        self
    }

    pub(crate) fn judge(&self) -> Verdict {
        judge(&self.observations)
    }

    /// The verdict about the loaded phase.
    pub(crate) fn phase(&self) -> PhaseVerdict {
        self.judge().phases.remove(0)
    }

    /// The answer for the only direction with a queue.
    pub(crate) fn place(&self) -> Where {
        let mut phase = self.phase();
        assert_eq!(phase.locations.len(), 1, "{phase:?}");
        phase.locations.remove(0)
    }
}

/// The kinds of the locations of an answer.
pub(crate) fn places(found: &Where) -> Vec<Place> {
    found.answer.locations.iter().map(|location| location.place).collect()
}

pub(crate) fn ns(ms: f64) -> i64 {
    (ms * MS as f64).round() as i64
}

/// An echo every 20 ms for 10 s. The server's clock is 1000 s ahead.
fn echoes(start_ns: i64, up_ms: f64, down_ms: f64) -> Vec<Echo> {
    let echo = |index: i64| Echo {
        t_ns: start_ns + index * 20 * MS,
        rtt_ns: Some(IDLE_MS * MS + ns(up_ms) + ns(down_ms)),
        up_ns: Some(1000 * SECOND + IDLE_MS / 2 * MS + ns(up_ms)),
        down_ns: Some(-1000 * SECOND + IDLE_MS / 2 * MS + ns(down_ms)),
        lost: None,
    };
    (0..500).map(echo).collect()
}
