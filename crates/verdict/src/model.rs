//! The models of where delay is added, and their probabilities given the answers of the hops.
//!
//! A model says for each direction in which the delay rises that one queue adds all of it, or that two queues share it.
//! From it follows which part of the path's delay each hop should show. Models are weighted with the integral over the
//! share of two queues, which penalises the additional parameters as BIC does.

use crate::input::{Direction, EndName};
use crate::ladder::Lengths;
use crate::likelihood::{HopAnswers, Steps, TENTHS, Table, log_sum};

/// The smallest and the largest share of one of two queues.
const SHARES: std::ops::RangeInclusive<usize> = 2..=8;
/// The probability of two queues before the measurement.
const TWO: f64 = 0.08;
/// No location is more certain than this.
pub(crate) const CEILING: f64 = 0.99;
/// Each ladder must be as certain as this to contradict the other.
const CONTRADICTION: f64 = 0.9;
/// The weight of the ladder that is sent in the direction of the load if they contradict each other.
const FORWARD: f64 = 0.7;

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
    /// If two are more probable than one: the larger one, the smaller one, and the share of the larger one.
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

pub(crate) fn index(direction: Direction) -> usize {
    usize::from(direction == Direction::Down)
}

/// Weighs all models.
pub(crate) fn weigh(question: &Question, hops: &[HopAnswers]) -> Posterior {
    let tables: Vec<Table> = hops.iter().map(|hop| Table::new(hop, question.lengths)).collect();
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
            (both.two, both.pair) = (0.0, None);
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
            let is_two = |steps: &Steps| matches!(steps, Steps::Two(..));
            let two: f64 = self.models.iter().filter(|model| is_two(&model.0[at])).map(|model| model.1).sum();
            let pair = self.best_pair(at).filter(|_| two > 0.5);
            let mut posterior = LinkPosterior { links: vec![0.0; links], two, pair, contradictory: false };
            for (steps, probability) in &self.models {
                match steps[at] {
                    Steps::None => {}
                    Steps::One(link) => posterior.links[link] += probability,
                    Steps::Two(a, b, share) => match pair {
                        // Whichever of two nearly equal queues is the larger one, the most probable model names it.
                        Some((larger, smaller, _)) if larger.min(smaller) == a && larger.max(smaller) == b => {
                            posterior.links[larger] += probability;
                        }
                        _ if share * 2 == TENTHS => {
                            posterior.links[a] += probability / 2.0;
                            posterior.links[b] += probability / 2.0;
                        }
                        _ => posterior.links[if share * 2 > TENTHS { a } else { b }] += probability,
                    },
                }
            }
            Some(posterior)
        })
    }

    /// The most probable pair of queues in a direction: the larger one, the smaller one, and the share of the larger one.
    fn best_pair(&self, at: usize) -> Option<(usize, usize, f64)> {
        let pairs = self.models.iter().filter(|model| matches!(model.0[at], Steps::Two(..)));
        match pairs.max_by(|a, b| a.1.total_cmp(&b.1))?.0[at] {
            Steps::Two(a, b, share) => {
                let larger = if share * 2 >= TENTHS { a } else { b };
                Some((larger, a + b - larger, share.max(TENTHS - share) as f64 / TENTHS as f64))
            }
            Steps::None | Steps::One(_) => None,
        }
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
