//! Pairs the answers of hops with the delay of the whole path at the same time, so that a queue that varies does not blur
//! the step from one hop to the next.

use crate::input::EndName;
use crate::ladder::Hop;
use crate::series::{NEAR_NS, Series};
use crate::statistics::{SIGMA_PER_MAD, mad, median};

/// Times of crossing a queue are known to within half the round-trip time of the hop, but no worse than this.
const MOST_LAG_NS: f64 = 1e8;
/// No answer is more certain than this ...
const LEAST_SIGMA_NS: f64 = 3e5;
/// ... and than this part of the delay.
const RELATIVE_SIGMA: f64 = 0.08;

/// The added delay of the whole path in each direction, at the time at which the packet entered that direction. Empty if
/// the delay does not rise in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathDelay {
    pub(crate) up: Series,
    pub(crate) down: Series,
}

/// One answer of a hop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Its round-trip time minus the hop's idle median.
    pub(crate) rise_ns: f64,
    /// What all queues of a direction added at that time.
    pub(crate) up_ns: f64,
    pub(crate) down_ns: f64,
    /// The scale of its error.
    pub(crate) sigma_ns: f64,
}

/// The answers of a hop with the delays of the path at their times. `own_ns` is the delay in the qdisc of the end that sent
/// the probes, which `path` does not contain.
pub(crate) fn pair(hop: &Hop, path: &PathDelay, own_ns: impl Fn(i64) -> f64) -> Vec<Answer> {
    let Some(base_ns) = hop.base_ns.filter(|_| hop.note.is_none()) else { return Vec::new() };
    let back_ns = (base_ns / 2.0) as i64;
    let (forward, backward) = match hop.end {
        EndName::Client => (&path.up, &path.down),
        EndName::Server => (&path.down, &path.up),
    };
    let width_ns = NEAR_NS.saturating_add((base_ns / 2.0).clamp(0.0, MOST_LAG_NS) as i64);
    hop.loaded
        .iter()
        .filter_map(|&(t_ns, rtt_ns)| {
            let ahead = at(forward, t_ns)?;
            let returned_ns = t_ns.saturating_add(back_ns).saturating_add(ahead.max(0.0) as i64);
            let behind = at(backward, returned_ns)?;
            let blur = blur(forward, t_ns, width_ns) + blur(backward, returned_ns, width_ns);
            let (up_ns, down_ns) = match hop.end {
                EndName::Client => (ahead, behind),
                EndName::Server => (behind, ahead),
            };
            let sigma_ns = hop.sigma_ns.max(LEAST_SIGMA_NS) + RELATIVE_SIGMA * (up_ns + down_ns).max(0.0) + blur / 2.0;
            Some(Answer { rise_ns: rtt_ns - base_ns - own_ns(t_ns), up_ns, down_ns, sigma_ns })
        })
        .collect()
}

/// Makes answers as uncertain as those of most hops are under load. The spread of one hop does not count, because it may come
/// from its own processor.
pub(crate) fn widen(hops: &mut [Vec<Answer>]) {
    let usual = median(hops.iter().filter_map(|answers| loaded_spread(answers))).unwrap_or(0.0);
    for answer in hops.iter_mut().flatten() {
        answer.sigma_ns = answer.sigma_ns.max(usual);
    }
}

/// The delay at a time; 0 in a direction without a rise.
fn at(series: &Series, t_ns: i64) -> Option<f64> {
    if series.len() == 0 { Some(0.0) } else { series.at(t_ns) }
}

/// How much the delay changes around a time.
fn blur(series: &Series, t_ns: i64, width_ns: i64) -> f64 {
    let (before, after) = (series.at(t_ns.saturating_sub(width_ns)), series.at(t_ns.saturating_add(width_ns)));
    before.zip(after).map_or(0.0, |(before, after)| (after - before).abs())
}

/// The spread of the answers under load that no queue of the path explains: around the best of none, up, down, and both.
fn loaded_spread(answers: &[Answer]) -> Option<f64> {
    let explained: [(f64, f64); 4] = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)];
    let spreads = explained.into_iter().filter_map(|(up, down)| {
        let rest = || answers.iter().map(move |answer| answer.rise_ns - up * answer.up_ns - down * answer.down_ns);
        mad(rest(), median(rest())?)
    });
    spreads.reduce(f64::min).map(|spread| spread * SIGMA_PER_MAD)
}
