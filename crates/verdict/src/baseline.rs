//! The idle path, and what counts as a rise of its delay.

use crate::drift::Drift;
use crate::goodput::{SECOND_NS, goodput};
use crate::input::{Direction, Echo, Observations, Phase, PhaseKind};
use crate::series::Series;
use crate::statistics::{mad, median, quantile, rounded, sorted, spread, whole};
use crate::verdict::{Idle, Spread};

/// No smaller rise counts.
const LEAST_RISE_NS: f64 = 3e6;
/// No shorter queue of the idle path counts.
const LEAST_IDLE_QUEUE_NS: f64 = 5e6;
/// A queue grows and shrinks gradually: from one probe to the next, its delay changes by at most this part of its range.
/// (Jitter that is independent from probe to probe changes by more than a third of it.)
const GRADUAL: f64 = 0.2;
/// Losses show a full queue, too. Then its delay may change by this part of its range, still less than independent jitter ...
const GRADUAL_WITH_LOSSES: f64 = 0.3;
/// ... if at least this part of the idle path's probes is lost, and at least so many ...
const LOST: f64 = 0.01;
const LEAST_LOST: usize = 5;
/// ... while the delay is long: where a probe is lost, the mean rank of the delays before and after it, from 0 to 1, is at least
/// this, and this many standard deviations above that of losses at any time.
const LOST_RANK: f64 = 0.6;
const RANK_DEVIATIONS: f64 = 3.0;
/// The standard deviation of a rank that is uniformly distributed between 0 and 1.
const UNIFORM_DEVIATION: f64 = 0.288_675;
/// A rise must exceed this many median absolute deviations of the idle path ...
const DEVIATIONS: f64 = 3.0;
/// ... and this many full packets at the measured goodput.
const PACKETS: f64 = 2.0;
/// Ethernet header of a full packet.
const FRAME_BYTES: f64 = 14.0;

/// The idle path.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    pub(crate) rtt: Spread,
    /// The median round-trip time.
    pub(crate) rtt_ns: Option<f64>,
    mad_ns: Option<f64>,
    one_way: Option<OneWay>,
    /// How much of the idle delay is a queue that comes and goes, if it is enough to count.
    pub(crate) queue_ns: Option<f64>,
    /// The best goodput of any phase, in bit/s.
    rates: [Option<f64>; 2],
    mtu_bytes: f64,
    stamp_error_ns: f64,
}

/// The one-way values of the idle path.
#[derive(Clone, Copy, Debug)]
struct OneWay {
    drift: Drift,
    /// The medians after removal of the drift, up and down.
    base_ns: [f64; 2],
    mad_ns: [f64; 2],
}

fn index(direction: Direction) -> usize {
    usize::from(direction == Direction::Down)
}

impl Baseline {
    pub(crate) fn of(observations: &Observations) -> Self {
        let mtu_bytes = f64::from(observations.parameters.mtu_bytes.unwrap_or(1500));
        let stamp_error_ns = observations.parameters.stamp_error_ns.unwrap_or(0) as f64;
        let idle: Vec<&Echo> = echoes(&observations.phases, &[PhaseKind::Idle]);
        let rtts = || idle.iter().filter_map(|echo| echo.rtt_ns).map(|rtt| rtt as f64);
        let rtt = spread(rtts(), idle.iter().filter(|echo| echo.rtt_ns.is_none()).count());
        let rtt_ns = median(rtts());
        let mad_ns = rtt_ns.and_then(|center| mad(rtts(), center));
        let rates = [Direction::Up, Direction::Down].map(|direction| {
            let rates = observations.phases.iter().filter_map(|phase| goodput(phase, direction));
            rates.map(|rate| rate.mean_bps as f64).filter(|rate| *rate > 0.0).reduce(f64::max)
        });
        let one_way = rtt_ns.and_then(|limit| OneWay::of(observations, &idle, limit + mad_ns.unwrap_or(0.0)));
        let mut baseline = Self { rtt, rtt_ns, mad_ns, one_way, queue_ns: None, rates, mtu_bytes, stamp_error_ns };
        baseline.queue_ns = baseline.idle_queue(&idle);
        baseline
    }

    /// The delay of the idle path that comes and goes.
    fn idle_queue(&self, idle: &[&Echo]) -> Option<f64> {
        self.slow_idle_queue(idle).or_else(|| self.gradual_idle_queue(idle))
    }

    /// The part of the idle path's probes that was lost.
    pub(crate) fn idle_loss(&self) -> f64 {
        self.rtt.lost as f64 / self.rtt.count.max(1) as f64
    }

    /// No shorter queue of the idle path counts: neither one of a few milliseconds, nor one of a few packets, nor one that may be an
    /// error of the client's stamps.
    fn least_idle_queue_ns(&self) -> f64 {
        LEAST_IDLE_QUEUE_NS
            .max(self.stamp_error_ns)
            .max(self.packets_ns(Direction::Up))
            .max(self.packets_ns(Direction::Down))
    }

    /// A delay that varies over more than the changes from one probe to the next can explain: a sawtooth within seconds.
    fn gradual_idle_queue(&self, idle: &[&Echo]) -> Option<f64> {
        let mut points: Vec<(i64, f64)> =
            idle.iter().filter_map(|echo| Some((echo.t_ns, echo.rtt_ns? as f64))).collect();
        points.sort_by_key(|point| point.0);
        let steps = median(points.windows(2).map(|pair| (pair[1].1 - pair[0].1).abs()))?;
        let values = sorted(points.into_iter().map(|point| point.1));
        let range = quantile(&values, 0.9)? - quantile(&values, 0.1)?;
        // Losses show that it is a queue, however few packets it has room for.
        let (least_ns, gradual) = match drops_when_full(idle) {
            true => (LEAST_IDLE_QUEUE_NS, GRADUAL_WITH_LOSSES),
            false => (self.least_idle_queue_ns(), GRADUAL),
        };
        let is_queue = range > least_ns && steps <= gradual * range;
        is_queue.then(|| Some(quantile(&values, 0.75)? - quantile(&values, 0.01)?)).flatten()
    }

    /// How much longer the delay is in most seconds than in the best one.
    fn slow_idle_queue(&self, idle: &[&Echo]) -> Option<f64> {
        let start_ns = idle.iter().map(|echo| echo.t_ns).min()?;
        let mut points: Vec<(i64, f64)> = idle
            .iter()
            .filter_map(|echo| Some((echo.t_ns.saturating_sub(start_ns) / SECOND_NS, echo.rtt_ns? as f64)))
            .collect();
        points.sort_by_key(|point| point.0);
        let mut lows = Vec::new();
        let mut widths = Vec::new();
        for second in points.chunk_by(|a, b| a.0 == b.0).filter(|second| second.len() >= 5) {
            let values = sorted(second.iter().map(|point| point.1));
            lows.push(quantile(&values, 0.1)?);
            let center = quantile(&values, 0.5)?;
            widths.push(mad(values, center)?);
        }
        let lows = sorted(lows);
        let queue_ns = quantile(&lows, 0.75)? - lows.first()?;
        let least = self.least_idle_queue_ns().max(DEVIATIONS * median(widths)?);
        (queue_ns > least).then_some(queue_ns)
    }

    /// The time of the packets that a rise in a direction must exceed.
    fn packets_ns(&self, direction: Direction) -> f64 {
        let bits = PACKETS * (self.mtu_bytes + FRAME_BYTES) * 8.0;
        self.rates[index(direction)].map_or(0.0, |rate| bits / rate * 1e9)
    }

    /// The best goodput of any phase, in bit/s.
    pub(crate) fn rate(&self, direction: Direction) -> Option<f64> {
        self.rates[index(direction)]
    }

    /// What the rise of the round-trip time must exceed under load in these directions.
    pub(crate) fn threshold_ns(&self, loaded: &[Direction]) -> f64 {
        let packets = loaded.iter().map(|direction| self.packets_ns(*direction)).fold(0.0, f64::max);
        LEAST_RISE_NS.max(DEVIATIONS * self.mad_ns.unwrap_or(0.0)).max(packets)
    }

    /// What the rise of the one-way delay must exceed.
    pub(crate) fn one_way_threshold_ns(&self, direction: Direction) -> f64 {
        let mad_ns = self.one_way.map_or(0.0, |one_way| one_way.mad_ns[index(direction)]);
        LEAST_RISE_NS.max(DEVIATIONS * mad_ns).max(self.packets_ns(direction))
    }

    /// The uncertainty of one-way changes in a phase; `None` if there are none.
    pub(crate) fn drift_error_ns(&self, phase: &Phase) -> Option<f64> {
        let drift = self.one_way?.drift;
        Some(drift.error_ns(phase.start_ns).max(drift.error_ns(phase.end_ns)))
    }

    /// The added round-trip times of a phase.
    pub(crate) fn added(&self, phase: &Phase) -> Option<Series> {
        let base = self.rtt_ns?;
        Some(Series::new(phase.echoes.iter().filter_map(|echo| Some((echo.t_ns, echo.rtt_ns? as f64 - base)))))
    }

    /// The changes of the one-way delay in a phase; `None` if they are too uncertain.
    pub(crate) fn added_one_way(&self, phase: &Phase, direction: Direction) -> Option<Series> {
        let one_way = self.one_way?;
        if self.drift_error_ns(phase)? > self.one_way_threshold_ns(direction) / 2.0 {
            return None;
        }
        let base = one_way.base_ns[index(direction)];
        let points = phase.echoes.iter().filter_map(|echo| {
            let value = value(echo, direction)? as f64;
            Some((echo.t_ns, one_way.drift.removed(echo.t_ns, direction, value) - base))
        });
        let series = Series::new(points);
        (series.len() > 0).then_some(series)
    }

    /// For the verdict.
    pub(crate) fn idle(&self, phases: &[Phase]) -> Idle {
        let errors = phases.iter().filter(|phase| !phase.kind.loaded().is_empty());
        let error = errors.filter_map(|phase| self.drift_error_ns(phase)).reduce(f64::max);
        Idle {
            rtt: self.rtt,
            mad_ns: self.mad_ns.map(whole),
            queue_ns: self.queue_ns.map(whole),
            drift_ppm: self.one_way.map(|one_way| rounded(one_way.drift.slope * 1e6)),
            drift_error_ns: error.map(whole),
        }
    }
}

impl OneWay {
    fn of(observations: &Observations, idle: &[&Echo], rtt_limit_ns: f64) -> Option<Self> {
        // Echoes as fast as those of the idle path have met no queue in either direction, in whichever phase.
        let all = observations.phases.iter().flat_map(|phase| &phase.echoes);
        let drift = Drift::fit(all, rtt_limit_ns)?;
        let removed = |direction: Direction| -> Option<(f64, f64)> {
            let values: Vec<f64> = idle
                .iter()
                .filter_map(|echo| Some(drift.removed(echo.t_ns, direction, value(echo, direction)? as f64)))
                .collect();
            let base = median(values.iter().copied())?;
            Some((base, mad(values, base)?))
        };
        let ((up, up_mad), (down, down_mad)) = (removed(Direction::Up)?, removed(Direction::Down)?);
        Some(Self { drift, base_ns: [up, down], mad_ns: [up_mad, down_mad] })
    }
}

/// Whether probes of the idle path are lost when the delay is long, as in a queue that others have filled; a lossy link loses
/// them at any time.
fn drops_when_full(idle: &[&Echo]) -> bool {
    let mut echoes: Vec<&Echo> = idle.to_vec();
    echoes.sort_by_key(|echo| echo.t_ns);
    let delays = sorted(echoes.iter().filter_map(|echo| echo.rtt_ns).map(|rtt| rtt as f64));
    let lost = echoes.len() - delays.len();
    if lost < LEAST_LOST || (lost as f64) < LOST * echoes.len() as f64 {
        return false;
    }
    let is_lost = |echo: Option<&&Echo>| echo.is_some_and(|echo| echo.rtt_ns.is_none());
    let beside = |at: usize| is_lost(echoes.get(at + 1)) || at.checked_sub(1).is_some_and(|at| is_lost(echoes.get(at)));
    let ranks: Vec<f64> = echoes
        .iter()
        .enumerate()
        .filter(|(at, _)| beside(*at))
        .filter_map(|(_, echo)| echo.rtt_ns)
        .map(|rtt| delays.partition_point(|delay| *delay <= rtt as f64) as f64 / delays.len().max(1) as f64)
        .collect();
    let count = ranks.len() as f64;
    let mean = ranks.iter().sum::<f64>() / count.max(1.0);
    mean >= LOST_RANK && (mean - 0.5) * count.sqrt() >= RANK_DEVIATIONS * UNIFORM_DEVIATION
}

fn value(echo: &Echo, direction: Direction) -> Option<i64> {
    match direction {
        Direction::Up => echo.up_ns,
        Direction::Down => echo.down_ns,
    }
}

fn echoes<'a>(phases: &'a [Phase], kinds: &[PhaseKind]) -> Vec<&'a Echo> {
    phases.iter().filter(|phase| kinds.contains(&phase.kind)).flat_map(|phase| &phase.echoes).collect()
}
