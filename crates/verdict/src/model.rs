//! The models of where delay is added, and their probabilities given the answers of the hops.
//!
//! A model says for each direction in which the delay rises that one queue adds all of it, or that two queues share it.
//! From it follows which part of the path's delay each hop should show. The errors have a Student's t distribution with
//! three degrees of freedom. Models are weighted with the integral over the share of two queues, which penalises the
//! additional parameters as BIC does. A hop may be wrong as a whole: its own processor may add delay, or its answers may
//! come back on a path of their own.

use std::f64::consts::PI;

use crate::input::{Direction, EndName};
use crate::ladder::Lengths;
use crate::pairing::Answer;

/// The share of a queue is a multiple of a tenth.
const TENTHS: usize = 10;
/// The smallest and the largest share of one of two queues.
const SHARES: std::ops::RangeInclusive<usize> = 2..=8;
/// The probability of two queues before the measurement.
const TWO: f64 = 0.08;
/// The probability that a hop's own processor adds delay to its answers under load ...
const SLOW: f64 = 0.05;
/// ... that its answers come back on a path of their own, without the queues ...
const DETOUR: f64 = 0.02;
/// ... and that its answers mean nothing.
const WRONG: f64 = 0.01;
/// Answers of a hop are not independent of one another: more of them than this do not count as more evidence.
const EFFECTIVE: f64 = 6.0;
/// No location is more certain than this.
pub(crate) const CEILING: f64 = 0.99;
/// Each ladder must be as certain as this to contradict the other.
const CONTRADICTION: f64 = 0.9;
/// The weight of the ladder that is sent in the direction of the load if they contradict each other.
const FORWARD: f64 = 0.7;
/// The delay over which the answers of a hop that is wrong are spread.
const WRONG_NS: f64 = 1e8;

/// The answers of a hop.
#[derive(Clone, Debug)]
pub(crate) struct HopAnswers {
    pub(crate) end: EndName,
    pub(crate) ttl: u8,
    pub(crate) answers: Vec<Answer>,
}

/// What is asked: in which directions the delay rises, and how probable each link is before the measurement.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) lengths: Lengths,
    /// For up and down: a weight for each link from the client; `None` if the delay does not rise.
    pub(crate) priors: [Option<Vec<f64>>; 2],
}

/// The result for one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkPosterior {
    /// For each link from the client, the probability that it has the largest part of the delay.
    pub(crate) links: Vec<f64>,
    /// The probability of two queues.
    pub(crate) two: f64,
    /// The most probable pair: the larger one, the smaller one, and the share of the larger one.
    pub(crate) pair: Option<(usize, usize, f64)>,
    /// Whether the ladders of the two ends contradict each other.
    pub(crate) contradictory: bool,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Posterior {
    pub(crate) directions: [Option<LinkPosterior>; 2],
    /// Why the best model does not use a hop.
    pub(crate) excluded: Vec<Option<&'static str>>,
}

/// The queues of one direction: links from the client (0 is the first) and their shares in tenths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    None,
    One(usize),
    Two(usize, usize, usize),
}

pub(crate) fn index(direction: Direction) -> usize {
    usize::from(direction == Direction::Down)
}

/// Weighs all models.
pub(crate) fn weigh(question: &Question, hops: &[HopAnswers]) -> Posterior {
    let tables: Vec<Table> = hops.iter().map(|hop| Table::new(hop, question)).collect();
    let all: Vec<&Table> = tables.iter().collect();
    let models = Models::weigh(question, &all);
    let mut posterior = Posterior { directions: models.marginals(question), excluded: models.excluded(&tables) };
    reconcile(question, &tables, &mut posterior);
    for direction in posterior.directions.iter_mut().flatten() {
        temper(&mut direction.links);
    }
    posterior
}

/// If the ladders of the two ends contradict each other, the one that is sent in the direction of the load counts more.
fn reconcile(question: &Question, tables: &[Table], posterior: &mut Posterior) {
    let alone = |end: EndName| {
        let some: Vec<&Table> = tables.iter().filter(|table| table.end == end).collect();
        Models::weigh(question, &some).marginals(question)
    };
    let (client, server) = (alone(EndName::Client), alone(EndName::Server));
    for direction in [Direction::Up, Direction::Down] {
        let at = index(direction);
        let (Some(client), Some(server)) = (&client[at], &server[at]) else { continue };
        let Some(both) = &mut posterior.directions[at] else { continue };
        let certain = best(&client.links).1.min(best(&server.links).1) > CONTRADICTION;
        if certain && best(&client.links).0 != best(&server.links).0 {
            let (forward, backward) = if direction == Direction::Up { (client, server) } else { (server, client) };
            let pairs = forward.links.iter().zip(&backward.links);
            both.links = pairs.map(|(forward, backward)| FORWARD * forward + (1.0 - FORWARD) * backward).collect();
            both.contradictory = true;
            both.two = 0.0;
        }
    }
}

fn best(links: &[f64]) -> (usize, f64) {
    let best = links.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    best.unwrap_or((0, 0.0))
}

/// Leaves some probability for errors of the model itself.
fn temper(links: &mut [f64]) {
    let even = 1.0 / links.len().max(1) as f64;
    let top = best(links).1;
    if top > CEILING && even < CEILING {
        let part = (top - CEILING) / (top - even);
        for link in links {
            *link += part * (even - *link);
        }
    }
}

/// The logarithms of a hop's likelihood for each part of the upward and of the downward delay that it should show.
struct Table {
    end: EndName,
    /// For each direction and link, whether an answer passes it; `None`: not known.
    passes: [Vec<Option<bool>>; 2],
    likelihood: Vec<f64>,
    /// Why answers do not count with these parts.
    doubt: Vec<Option<&'static str>>,
}

impl Table {
    fn new(hop: &HopAnswers, question: &Question) -> Self {
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
        let passes = [Direction::Up, Direction::Down].map(|direction| passes(hop, direction, question));
        Self { end: hop.end, passes, likelihood, doubt }
    }

    /// The logarithm of the likelihood of a model. Where it is not known whether the hop passes a link, both are as probable.
    fn log(&self, steps: [Steps; 2]) -> f64 {
        let (ups, downs) = (self.parts(0, steps[0]), self.parts(1, steps[1]));
        let single = ups.len() == 1 && downs.len() == 1;
        if single {
            return self.likelihood[ups.get(0) * (TENTHS + 1) + downs.get(0)];
        }
        let all = (0..ups.len()).flat_map(|up| (0..downs.len()).map(move |down| (up, down)));
        let logs = all.map(|(up, down)| self.likelihood[ups.get(up) * (TENTHS + 1) + downs.get(down)]);
        log_sum(logs) - ((ups.len() * downs.len()) as f64).ln()
    }

    /// Why the answers do not count in a model, as far as it says what they should be.
    fn doubt(&self, steps: [Steps; 2]) -> Option<&'static str> {
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
fn passes(hop: &HopAnswers, direction: Direction, question: &Question) -> Vec<Option<bool>> {
    let lengths = question.lengths;
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
    factor.ln() - sigma.ln() - 2.0 * (rest / sigma).powi(2).mul_add(1.0 / 3.0, 1.0).ln()
}

fn log_sum(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if most.is_finite() { most + values.map(|value| (value - most).exp()).sum::<f64>().ln() } else { most }
}

/// All models with their probabilities.
struct Models {
    models: Vec<([Steps; 2], f64)>,
}

impl Models {
    fn weigh(question: &Question, tables: &[&Table]) -> Self {
        let [up, down] = [0, 1].map(|at| steps(question.priors[at].as_deref()));
        let single = |steps: &Steps| !matches!(steps, Steps::Two(..));
        let mut models: Vec<([Steps; 2], f64)> = Vec::new();
        for (first, first_prior) in &up {
            for (second, second_prior) in &down {
                // Two queues in both directions at once are not considered: too many models for too few answers.
                if single(first) || single(second) {
                    let both = [*first, *second];
                    let log = tables.iter().map(|table| table.log(both)).sum::<f64>();
                    models.push((both, first_prior.ln() + second_prior.ln() + log));
                }
            }
        }
        let all = log_sum(models.iter().map(|model| model.1));
        for model in &mut models {
            model.1 = (model.1 - all).exp();
        }
        Self { models }
    }

    fn best(&self) -> [Steps; 2] {
        let best = self.models.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or([Steps::None; 2], |best| best.0)
    }

    fn marginals(&self, question: &Question) -> [Option<LinkPosterior>; 2] {
        [0, 1].map(|at| {
            let links = question.priors[at].as_ref()?.len();
            let mut posterior = LinkPosterior { links: vec![0.0; links], ..LinkPosterior::default() };
            let mut most = 0.0;
            for (steps, probability) in &self.models {
                match steps[at] {
                    Steps::None => {}
                    Steps::One(link) => posterior.links[link] += probability,
                    Steps::Two(a, b, share) => {
                        posterior.two += probability;
                        let even = share * 2 == TENTHS;
                        let larger = if share * 2 >= TENTHS { a } else { b };
                        posterior.links[larger] += if even { probability / 2.0 } else { *probability };
                        if even {
                            posterior.links[b] += probability / 2.0;
                        }
                        if *probability > most {
                            most = *probability;
                            let part = share.max(TENTHS - share) as f64 / TENTHS as f64;
                            posterior.pair = Some((larger, a + b - larger, part));
                        }
                    }
                }
            }
            Some(posterior)
        })
    }

    fn excluded(&self, tables: &[Table]) -> Vec<Option<&'static str>> {
        let best = self.best();
        tables.iter().map(|table| table.doubt(best)).collect()
    }
}

/// The models of one direction with their probabilities before the measurement.
fn steps(prior: Option<&[f64]>) -> Vec<(Steps, f64)> {
    let Some(prior) = prior else { return vec![(Steps::None, 1.0)] };
    let all: f64 = prior.iter().sum();
    let mut steps: Vec<(Steps, f64)> =
        prior.iter().enumerate().map(|(link, weight)| (Steps::One(link), (1.0 - TWO) * weight / all)).collect();
    let pairs = || (0..prior.len()).flat_map(|a| (a + 1..prior.len()).map(move |b| (a, b)));
    let weights: f64 = pairs().map(|(a, b)| prior[a] * prior[b]).sum();
    for (a, b) in pairs() {
        let weight = TWO * prior[a] * prior[b] / weights / SHARES.count() as f64;
        steps.extend(SHARES.map(|share| (Steps::Two(a, b, share), weight)));
    }
    steps
}
