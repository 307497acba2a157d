//! How well the answers of one hop fit each model.
//!
//! A model says which part of the path's delay the hop should show. The errors have a Student's t distribution with three
//! degrees of freedom. A hop may be wrong as a whole: its own processor may add delay, or its answers may come back on a
//! path of their own.

use std::f64::consts::PI;

use crate::input::{Direction, EndName};
use crate::ladder::Lengths;
use crate::pairing::Answer;

/// The share of a queue is a multiple of a tenth.
pub(crate) const TENTHS: usize = 10;
/// The probability that a hop's own processor adds delay to its answers under load ...
const SLOW: f64 = 0.05;
/// ... that its answers come back on a path of their own, without the queues ...
const DETOUR: f64 = 0.02;
/// ... and that its answers mean nothing.
const WRONG: f64 = 0.01;
/// Answers of a hop are not independent of one another: more of them than this do not count as more evidence.
const EFFECTIVE: f64 = 6.0;
/// The delay over which the answers of a hop that is wrong are spread.
const WRONG_NS: f64 = 1e8;

/// The answers of a hop.
#[derive(Clone, Debug)]
pub(crate) struct HopAnswers {
    pub(crate) end: EndName,
    pub(crate) ttl: u8,
    pub(crate) answers: Vec<Answer>,
}

/// The queues of one direction: links from the client (0 is the first) and their shares in tenths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    None,
    One(usize),
    Two(usize, usize, usize),
}

/// The logarithms of a hop's likelihood for each part of the upward and of the downward delay that it should show.
pub(crate) struct Table {
    pub(crate) end: EndName,
    /// For each direction and link, whether an answer passes it; `None`: not known.
    passes: [Vec<Option<bool>>; 2],
    likelihood: Vec<f64>,
    /// Why answers do not count with these parts.
    doubt: Vec<Option<&'static str>>,
}

impl Table {
    /// `lengths` are those of the path.
    pub(crate) fn new(hop: &HopAnswers, lengths: Lengths) -> Self {
        let weight = (EFFECTIVE / hop.answers.len().max(1) as f64).min(1.0);
        let parts = || (0..=TENTHS).flat_map(|up| (0..=TENTHS).map(move |down| (up, down)));
        let sum = |density: &dyn Fn(&Answer) -> f64| weight * hop.answers.iter().map(density).sum::<f64>();
        let wide = |answer: &Answer| WRONG_NS.max(answer.up_ns + answer.down_ns) + 10.0 * answer.sigma_ns;
        let vague = WRONG.ln() + sum(&|answer| -(2.0 * wide(answer)).ln());
        let (mut likelihood, mut doubt) = (Vec::new(), Vec::new());
        for (up, down) in parts() {
            let rest = |answer: &Answer, up: usize, down: usize| {
                let parts = up as f64 * answer.up_ns + down as f64 * answer.down_ns;
                answer.rise_ns - parts / TENTHS as f64
            };
            let fits = |up: usize, down: usize| sum(&|answer| student(rest(answer, up, down), answer.sigma_ns));
            let right = (1.0 - SLOW - DETOUR - WRONG).ln() + fits(up, down);
            let slow = SLOW.ln()
                + sum(&|answer| {
                    let rest = rest(answer, up, down);
                    let late = rest > -2.0 * answer.sigma_ns;
                    if late { -wide(answer).ln() } else { student(rest, answer.sigma_ns) - 2.0 }
                });
            let detour = DETOUR.ln()
                + match hop.end {
                    EndName::Client => fits(up, 0),
                    EndName::Server => fits(0, down),
                };
            likelihood.push(log_sum([right, slow, detour, vague].into_iter()));
            doubt.push(if right >= slow.max(detour).max(vague) {
                None
            } else if slow >= detour.max(vague) {
                Some("its answers are late although later hops are not: its own processor")
            } else if detour >= vague {
                Some("its answers come back on another path")
            } else {
                Some("its answers contradict those of other hops")
            });
        }
        let passes = [Direction::Up, Direction::Down].map(|direction| passes(hop, direction, lengths));
        Self { end: hop.end, passes, likelihood, doubt }
    }

    /// The logarithm of the likelihood of a model. Where it is not known whether the hop passes a link, both are as probable.
    pub(crate) fn log(&self, steps: [Steps; 2]) -> f64 {
        let (ups, downs) = (self.parts(0, steps[0]), self.parts(1, steps[1]));
        let single = ups.len() == 1 && downs.len() == 1;
        if single {
            return self.likelihood[ups.get(0) * (TENTHS + 1) + downs.get(0)];
        }
        let all = (0..ups.len()).flat_map(|up| (0..downs.len()).map(move |down| (up, down)));
        let logs = all.map(|(up, down)| self.likelihood[ups.get(up) * (TENTHS + 1) + downs.get(down)]);
        log_sum(logs) - ((ups.len() * downs.len()) as f64).ln()
    }

    /// The logarithm of the likelihood that the answers show this part of the delay in one direction, in tenths, and all or nothing of
    /// that in the other.
    pub(crate) fn of_part(&self, direction: Direction, part: usize) -> f64 {
        let of = |other: usize| {
            let (up, down) = if direction == Direction::Up { (part, other) } else { (other, part) };
            self.likelihood[up * (TENTHS + 1) + down]
        };
        log_sum([of(0), of(TENTHS)].into_iter())
    }

    /// Why the answers do not count in a model, as far as it says what they should be.
    pub(crate) fn doubt(&self, steps: [Steps; 2]) -> Option<&'static str> {
        let (ups, downs) = (self.parts(0, steps[0]), self.parts(1, steps[1]));
        if ups.len() * downs.len() > 1 {
            return None;
        }
        self.doubt[ups.get(0) * (TENTHS + 1) + downs.get(0)]
    }

    /// The parts of a direction's delay, in tenths, that the hop may show.
    fn parts(&self, at: usize, steps: Steps) -> Parts {
        let passes = |link: usize| self.passes[at].get(link).copied().flatten();
        let parts = |link: usize, tenths: usize| match passes(link) {
            Some(passes) => Parts::one(tenths * usize::from(passes)),
            None => Parts::either(0, tenths),
        };
        match steps {
            Steps::None => Parts::one(0),
            Steps::One(link) => parts(link, TENTHS),
            Steps::Two(a, b, share) => parts(a, share).plus(parts(b, TENTHS - share)),
        }
    }
}

/// Up to four possible parts.
#[derive(Clone, Copy)]
struct Parts {
    parts: [usize; 4],
    count: usize,
}

impl Parts {
    fn one(part: usize) -> Self {
        Self { parts: [part, 0, 0, 0], count: 1 }
    }

    fn either(a: usize, b: usize) -> Self {
        Self { parts: [a, b, 0, 0], count: 2 }
    }

    fn plus(self, other: Self) -> Self {
        let mut sum = Self { parts: [0; 4], count: self.count * other.count };
        for (index, part) in sum.parts[..sum.count].iter_mut().enumerate() {
            *part = self.parts[index / other.count] + other.parts[index % other.count];
        }
        sum
    }

    fn len(self) -> usize {
        self.count
    }

    fn get(self, index: usize) -> usize {
        self.parts[index]
    }
}

/// Whether the answers of a hop pass each link in a direction. Probes pass the links up to their TTL. Answers are assumed to
/// come back through the same routers; if the two directions differ in length, links near the hop are not known.
fn passes(hop: &HopAnswers, direction: Direction, lengths: Lengths) -> Vec<Option<bool>> {
    let (length, other) = match direction {
        Direction::Up => (i16::from(lengths.client), i16::from(lengths.server)),
        Direction::Down => (i16::from(lengths.server), i16::from(lengths.client)),
    };
    let forward = direction.sender() == hop.end;
    let ttl = i16::from(hop.ttl);
    let slack = if forward { 0 } else { (length - other).abs() };
    (1..=length)
        .map(|link| {
            let from_end = if hop.end == EndName::Client { link } else { length - link + 1 };
            let known = slack == 0 || from_end <= 2 || (from_end - ttl).abs() > slack;
            known.then_some(from_end <= ttl)
        })
        .collect()
}

/// The logarithm of the density of Student's t distribution with three degrees of freedom.
fn student(rest: f64, sigma: f64) -> f64 {
    // Gamma(2) / (sqrt(3 pi) Gamma(3/2)) = 2 / (pi sqrt(3))
    let factor = 2.0 / (PI * 3.0_f64.sqrt());
    factor.ln() - sigma.ln() - 2.0 * (1.0 + (rest / sigma).powi(2) / 3.0).ln()
}

/// The logarithm of the sum of numbers whose logarithms are given.
pub(crate) fn log_sum(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if most.is_finite() { most + values.map(|value| (value - most).exp()).sum::<f64>().ln() } else { most }
}
