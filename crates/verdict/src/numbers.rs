//! The numbers of a loaded phase.

use crate::baseline::Baseline;
use crate::goodput::{goodput, steady_from};
use crate::input::{Direction, Lost, Phase};
use crate::load::load;
use crate::series::Series;
use crate::statistics::{median, rounded, spread, whole};
use crate::verdict::{Buffer, DirectionNumbers, Numbers, Spread};

/// A buffer has filled when the delay reaches this part of its later median.
const FILLED: f64 = 0.8;
/// The length of the bins in which that is looked for.
const FILL_BIN_NS: i64 = 250_000_000;
/// The size of an IP packet per payload: 1500 / 1448 bytes (TCP with timestamps).
pub(crate) const HEADER_FACTOR: f64 = 1500.0 / 1448.0;

/// A direction with this part of a short rise has most of it.
const MOST_OF_RISE: f64 = 0.7;

/// The delays that a loaded phase adds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Added {
    pub(crate) total: Series,
    /// Up and down; `None` if one-way changes cannot be used.
    pub(crate) one_way: [Option<Series>; 2],
    /// The medians, when the load is steady.
    pub(crate) total_ns: Option<f64>,
    /// Whether the round-trip time rises.
    pub(crate) rises: bool,
    /// Whether the delay of a direction rises.
    pub(crate) rising: [bool; 2],
}

pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

impl Added {
    pub(crate) fn of(phase: &Phase, baseline: &Baseline) -> Self {
        let from = steady_from(phase);
        let steady = |series: &Series| median(series.values_from(from));
        let total = baseline.added(phase).unwrap_or_default();
        let one_way = match DIRECTIONS.map(|direction| baseline.added_one_way(phase, direction)) {
            [Some(up), Some(down)] => [Some(up), Some(down)],
            _ => [None, None],
        };
        let total_ns = steady(&total);
        let one_way_ns = [0, 1].map(|at| one_way[at].as_ref().and_then(steady));
        let loaded = phase.kind.loaded();
        let total_rises = total_ns.is_some_and(|rise| rise > baseline.threshold_ns(loaded));
        let rising = match one_way_ns {
            _ if !total_rises => [false; 2],
            [Some(up), Some(down)] => by_one_way([up, down], loaded, baseline),
            // Without one-way changes, the delay is in the direction of the load.
            _ => DIRECTIONS.map(|direction| loaded == [direction]),
        };
        // Two rises that are each too short are no rise; without one-way changes there is only the sum.
        let rises = total_rises && (rising != [false; 2] || one_way[0].is_none());
        Self { total, one_way, total_ns, rises, rising }
    }

    /// The delay that a direction adds: its one-way change, or all of the round trip.
    pub(crate) fn of_direction(&self, direction: Direction) -> &Series {
        self.one_way[crate::model::index(direction)].as_ref().unwrap_or(&self.total)
    }
}

/// The directions whose delay rises. If the round-trip time rises and each direction too little, that of the load counts if it
/// has most of the rise.
fn by_one_way(rises: [f64; 2], loaded: &[Direction], baseline: &Baseline) -> [bool; 2] {
    let above = [0, 1].map(|at| rises[at] > baseline.one_way_threshold_ns(DIRECTIONS[at]));
    if above != [false; 2] {
        return above;
    }
    [0, 1].map(|at| loaded == [DIRECTIONS[at]] && rises[at] > MOST_OF_RISE * (rises[0] + rises[1]))
}

/// The numbers of a phase.
pub(crate) fn numbers(phase: &Phase, baseline: &Baseline, added: &Added) -> Numbers {
    let rtts = || phase.echoes.iter().filter_map(|echo| echo.rtt_ns).map(|rtt| rtt as f64);
    let lost = phase.echoes.iter().filter(|echo| echo.rtt_ns.is_none()).count();
    let known = baseline.rtt_ns.is_some();
    Numbers {
        idle_p50_ns: baseline.rtt.p50_ns,
        loaded: spread(rtts(), lost),
        added: if known { spread(added.total.values(), lost) } else { Spread::default() },
        threshold_ns: known.then(|| whole(baseline.threshold_ns(phase.kind.loaded()))),
        directions: DIRECTIONS.map(|direction| of_direction(phase, baseline, added, direction)).to_vec(),
        levelled: phase.levelled,
    }
}

fn of_direction(phase: &Phase, baseline: &Baseline, added: &Added, direction: Direction) -> DirectionNumbers {
    let at = crate::model::index(direction);
    let lost_here = if direction == Direction::Up { Lost::Up } else { Lost::Down };
    let lost = phase.echoes.iter().filter(|echo| echo.lost == Some(lost_here)).count();
    let unclear = phase.echoes.iter().filter(|echo| match echo.lost {
        None => echo.rtt_ns.is_none(),
        Some(lost) => lost == Lost::Unknown,
    });
    // An echo that was lost on the way up never went down.
    let sent = match direction {
        Direction::Up => phase.echoes.len(),
        Direction::Down => phase.echoes.iter().filter(|echo| echo.lost != Some(Lost::Up)).count(),
    };
    let loaded = phase.kind.loaded().contains(&direction);
    let rate = goodput(phase, direction).filter(|_| loaded && phase.load_failure.is_none());
    let rises = added.rising[at];
    let buffer = rises.then(|| standing(phase, added.of_direction(direction))).flatten().map(|delay| Buffer {
        delay_ns: whole(delay),
        bytes: rate.map(|rate| (delay.max(0.0) / 1e9 * rate.mean_bps as f64 / 8.0 * HEADER_FACTOR).round() as u64),
        header_factor: rounded(HEADER_FACTOR),
    });
    DirectionNumbers {
        direction,
        loaded,
        added: added.one_way[at].as_ref().map_or_else(Spread::default, |series| spread(series.values(), lost)),
        loss: (unclear.count() == 0 && sent > 0).then(|| rounded(lost as f64 / sent as f64)),
        threshold_ns: baseline.rtt_ns.map(|_| whole(baseline.one_way_threshold_ns(direction))),
        rises,
        fill_ns: rises.then(|| fill(phase, added.of_direction(direction))).flatten(),
        goodput: rate,
        buffer,
        load: load(phase, direction, baseline.rtt_ns),
    }
}

/// The median of the second half.
fn later(phase: &Phase, series: &Series) -> Option<f64> {
    let half = phase.start_ns.saturating_add(phase.end_ns.saturating_sub(phase.start_ns).max(0) / 2);
    median(series.values_from(half))
}

/// From the beginning of the load until the buffer has filled.
fn fill(phase: &Phase, series: &Series) -> Option<i64> {
    let enough = FILLED * later(phase, series)?;
    let bin = |t_ns: i64| t_ns.saturating_sub(phase.start_ns) / FILL_BIN_NS;
    let bins = series.points().chunk_by(|a, b| bin(a.0) == bin(b.0));
    let mut filled =
        bins.filter(|points| median(points.iter().map(|point| point.1)).is_some_and(|delay| delay >= enough));
    filled.next().map(|points| points[0].0.saturating_sub(phase.start_ns).max(0))
}

/// The median after the buffer has filled.
fn standing(phase: &Phase, series: &Series) -> Option<f64> {
    let filled = fill(phase, series)?;
    median(series.values_from(phase.start_ns.saturating_add(filled)))
}
