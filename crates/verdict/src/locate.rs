//! In which queue the delay of a phase is: prepares the question for the models, and turns their answer into locations.

use crate::baseline::Baseline;
use crate::goodput::{goodput, steady_from};
use crate::input::{Direction, End, EndName, LinkKind, Observations, Phase, Stage};
use crate::ladder::{Hop, Lengths, modem};
use crate::likelihood::{HopAnswers, TENTHS, Table};
use crate::local;
use crate::location::{Modem, Path, answer, candidates, certain, likely, qdisc};
use crate::model::{LinkPosterior, Posterior, Question, index, weigh};
use crate::numbers::{Added, DIRECTIONS};
use crate::pairing::{PathDelay, pair, widen};
use crate::series::Series;
use crate::statistics::median;
use crate::verdict::Where;

/// Fewer answers with echoes near them do not count.
const LEAST_PAIRED: usize = 3;
/// Delays shorter than this are not worth another queue ...
const LEAST_NS: f64 = 3e6;
/// ... and neither are smaller parts of the delay.
const LEAST_SHARE: f64 = 0.15;
/// The probability of what timestamps show directly.
const STAMPED: f64 = 0.97;
/// Before the measurement, the probability that a queue between the line and the router is in the modem: its port is fast.
const MODEM_DOWN: f64 = 0.1;
/// A link at least this many times as fast as the goodput is hardly the bottleneck; it may be slower behind a switch.
const FAST: f64 = 4.0;
const FAST_WEIGHT: f64 = 0.2;
/// The part of a link's probability that its queueing discipline gets if timestamps show that it is not there.
const UNLIKELY: f64 = 0.01;
/// Wi-Fi carries about this part of the rate that the driver reports.
const WIFI_PART: f64 = 0.6;

/// The result.
#[derive(Debug, Default)]
pub(crate) struct Located {
    pub(crate) locations: Vec<Where>,
    /// For each hop, why the models do not use it.
    pub(crate) excluded: Vec<Option<&'static str>>,
    /// Directions in which the ladders contradict each other.
    pub(crate) contradictory: Vec<Direction>,
}

/// All that is needed to locate the queues of one phase.
pub(crate) struct Case<'a> {
    pub(crate) observations: &'a Observations,
    pub(crate) phase: &'a Phase,
    pub(crate) baseline: &'a Baseline,
    pub(crate) added: &'a Added,
    pub(crate) hops: &'a [Hop],
    pub(crate) lengths: Lengths,
}

/// What one direction adds, and what the sender's own queueing discipline adds to it.
struct Side {
    direction: Direction,
    /// The median delay.
    delay_ns: f64,
    /// The delay in the sender's queueing discipline, from timestamps.
    own: Option<Series>,
    own_ns: f64,
    /// The rest, at the time at which packets entered the direction; `None` if nothing remains.
    rest: Option<Series>,
}

impl Case<'_> {
    /// Locates the queues of the directions in `asked`, which must rise.
    pub(crate) fn locate(&self, asked: &[Direction]) -> Located {
        if asked.is_empty() {
            return Located::default();
        }
        let sides = DIRECTIONS.map(|direction| self.side(direction));
        let rest = |at: usize| sides[at].as_ref().and_then(|side| side.rest.clone());
        let path = PathDelay { up: rest(0).unwrap_or_default(), down: rest(1).unwrap_or_default() };
        let priors = [0, 1].map(|at| rest(at).map(|_| self.prior(DIRECTIONS[at])));
        let mut answers: Vec<Vec<_>> = self
            .hops
            .iter()
            .map(|hop| {
                let own = self.own(hop.end);
                let usual = own.as_ref().and_then(|own| median(own.values())).unwrap_or(0.0);
                pair(hop, &path, |t_ns| own.as_ref().map_or(0.0, |own| own.at(t_ns).unwrap_or(usual)))
            })
            .collect();
        widen(&mut answers);
        let (used, hops): (Vec<usize>, Vec<HopAnswers>) = std::iter::zip(self.hops, answers)
            .enumerate()
            .filter(|(_, (_, answers))| answers.len() >= LEAST_PAIRED)
            .map(|(index, (hop, answers))| (index, HopAnswers { end: hop.end, ttl: hop.ttl, answers }))
            .unzip();
        let modem = self.modem(&path);
        let posterior = weigh(&Question { lengths: self.lengths, priors }, &hops);
        let mut excluded = vec![None; self.hops.len()];
        for (hop, reason) in used.iter().zip(&posterior.excluded) {
            excluded[*hop] = *reason;
        }
        let located = asked.iter().filter_map(|direction| {
            let at = index(*direction);
            self.place(sides[at].as_ref()?, posterior.directions[at].as_ref(), modem.as_ref())
        });
        Located { locations: located.collect(), excluded, contradictory: contradictory(&posterior, asked) }
    }

    fn own(&self, end: EndName) -> Option<Series> {
        local::stage(&self.observations.phases, self.phase, end, Stage::Qdisc)
    }

    fn side(&self, direction: Direction) -> Option<Side> {
        if !self.added.rising[index(direction)] {
            return None;
        }
        // Packets enter the downward direction when they have passed the upward one.
        let half_ns = self.baseline.rtt_ns? / 2.0;
        let up = self.added.one_way[0].as_ref();
        let entered = |t_ns: i64| match direction {
            Direction::Up => t_ns,
            Direction::Down => {
                let queued = up.and_then(|up| up.at(t_ns)).unwrap_or(0.0).max(0.0);
                t_ns.saturating_add((half_ns + queued) as i64)
            }
        };
        let own = self.own(direction.sender());
        let typical = own.as_ref().and_then(|own| median(own.values())).unwrap_or(0.0);
        let series = self.added.of_direction(direction);
        let rest = Series::new(series.points().iter().map(|&(t_ns, delay)| {
            let entered = entered(t_ns);
            let own = own.as_ref().map_or(0.0, |own| own.at(entered).unwrap_or(typical));
            (entered, delay - own)
        }));
        let from = steady_from(self.phase);
        let delay_ns = median(series.values_from(from))?;
        let own_ns = own.as_ref().and_then(|own| median(own.values_from(from))).unwrap_or(0.0);
        // If the sender's own queue is worth naming, the rest must be worth it too.
        let named = worth_naming(own_ns, delay_ns);
        let least = LEAST_NS.max(LEAST_SHARE * delay_ns);
        let remains = !named || median(rest.values_from(from)).is_some_and(|rest| rest > least);
        Some(Side { direction, delay_ns, own, own_ns, rest: remains.then_some(rest) })
    }

    fn length(&self, direction: Direction) -> u8 {
        self.lengths.get(direction.sender())
    }

    fn rate(&self, direction: Direction) -> Option<f64> {
        let here = goodput(self.phase, direction).map(|rate| rate.mean_bps as f64).filter(|rate| *rate > 0.0);
        here.filter(|_| self.phase.kind.loaded().contains(&direction)).or_else(|| self.baseline.rate(direction))
    }

    /// How probable each link is before the ladders are looked at: all alike, except for what is known of the first and the
    /// last one.
    fn prior(&self, direction: Direction) -> Vec<f64> {
        let mut weights = vec![1.0; usize::from(self.length(direction))];
        let rate = self.rate(direction);
        let (client, server) = (&self.observations.ends.client, &self.observations.ends.server);
        if let Some(first) = weights.first_mut() {
            *first *= link_weight(client, rate);
        }
        if let Some(last) = weights.last_mut() {
            *last *= link_weight(server, rate);
        }
        weights
    }

    /// The modem behind the router, and the probabilities that a queue at its link is in it, up and down.
    fn modem(&self, path: &PathDelay) -> Option<(String, [f64; 2])> {
        let hop = modem(&self.observations.phases, self.phase, self.hops)?;
        let own = self.own(EndName::Client);
        let usual = own.as_ref().and_then(|own| median(own.values())).unwrap_or(0.0);
        let mut answers = [pair(&hop, path, |t_ns| own.as_ref().map_or(0.0, |own| own.at(t_ns).unwrap_or(usual)))];
        widen(&mut answers);
        let [answers] = answers;
        if answers.len() < LEAST_PAIRED {
            return None;
        }
        let table = Table::new(&HopAnswers { end: EndName::Client, ttl: hop.ttl, answers }, self.lengths);
        let shares = DIRECTIONS.map(|direction| {
            let (whole, none) = (table.of_part(direction, TENTHS), table.of_part(direction, 0));
            // Up, probes to the modem pass the router's queue and not that of the modem; down, its replies pass its own.
            let (inside, outside) = match direction {
                Direction::Up => (none, whole),
                Direction::Down => (whole + MODEM_DOWN.ln(), none + (1.0 - MODEM_DOWN).ln()),
            };
            let share = 1.0 / (1.0 + (outside - inside).exp());
            if share.is_finite() { share } else { 0.5 }
        });
        Some((hop.address?, shares))
    }

    fn place(
        &self,
        side: &Side,
        posterior: Option<&LinkPosterior>,
        modem: Option<&(String, [f64; 2])>,
    ) -> Option<Where> {
        let direction = side.direction;
        let address = |hop: u8| self.address(hop);
        let client_link = self.observations.ends.client.link;
        let modem = modem.map(|(address, shares)| Modem { address, share: shares[index(direction)] });
        let path = Path { links: self.length(direction), direction, client_link, modem, address: &address };
        let share = (side.own_ns / side.delay_ns).clamp(0.0, 1.0);
        let even = || vec![1.0 / f64::from(path.links); usize::from(path.links)];
        let links = posterior.map_or_else(even, |posterior| posterior.links.clone());
        if share > 0.5 {
            let scaled: Vec<f64> = links.iter().map(|link| link * (1.0 - STAMPED)).collect();
            let all = candidates(&path, STAMPED, &scaled);
            let part = if posterior.is_some() { share } else { 1.0 };
            let second =
                posterior.map(|posterior| answer(&path, &candidates(&path, 0.0, &posterior.links), 1.0 - share));
            return Some(Where { direction, answer: answer(&path, &all, part), posterior: all, second });
        }
        let posterior = posterior?;
        let (own, links) = self.split(side, links);
        let all = candidates(&path, own, &links);
        let second = if worth_naming(side.own_ns, side.delay_ns) {
            Some(certain(&path, qdisc(&path), STAMPED, share))
        } else {
            posterior.pair.map(|(_, smaller, larger_share)| {
                let location = likely(&path, u8::try_from(smaller + 1).unwrap_or(u8::MAX));
                certain(&path, location, posterior.two.min(crate::model::CEILING), 1.0 - larger_share)
            })
        };
        let part = 1.0 - second.as_ref().map_or(0.0, |second| second.share);
        Some(Where { direction, answer: answer(&path, &all, part), posterior: all, second })
    }

    /// Splits the probability of the sender's own link between its queueing discipline and its driver. Timestamps show which of
    /// them it is; without them the backlog does, or nothing.
    fn split(&self, side: &Side, mut links: Vec<f64>) -> (f64, Vec<f64>) {
        let end = side.direction.sender();
        // What timestamps show is subtracted already, and `noqueue` has no queue.
        let without = self.observations.ends.get(end).qdisc.as_deref() == Some("noqueue");
        let part = if side.own.is_some() || without {
            UNLIKELY
        } else {
            let rate = self.rate(side.direction).unwrap_or(0.0);
            local::backlog_share(self.phase, end, rate, side.delay_ns).unwrap_or(0.5)
        };
        let link = match side.direction {
            Direction::Up => links.first_mut(),
            Direction::Down => links.last_mut(),
        };
        let own = link.map_or(0.0, |link| {
            let own = *link * part;
            *link -= own;
            own
        });
        (own, links)
    }

    /// The address of a hop, counted from the client, from either ladder.
    fn address(&self, hop: u8) -> Option<String> {
        let of = |end: EndName, ttl: u8| {
            let mut hops = self.hops.iter().filter(|other| other.end == end && other.ttl == ttl);
            hops.find_map(|hop| hop.address.clone())
        };
        of(EndName::Client, hop).or_else(|| {
            let same = self.lengths.client == self.lengths.server;
            of(EndName::Server, self.lengths.server.checked_sub(hop).filter(|_| same)?)
        })
    }
}

/// Whether a part of a delay is long enough for a queue of its own.
fn worth_naming(part_ns: f64, delay_ns: f64) -> bool {
    part_ns > 0.5 * delay_ns || part_ns > LEAST_NS.max(LEAST_SHARE * delay_ns)
}

fn contradictory(posterior: &Posterior, asked: &[Direction]) -> Vec<Direction> {
    let directions = asked.iter().copied();
    directions
        .filter(|direction| posterior.directions[index(*direction)].as_ref().is_some_and(|found| found.contradictory))
        .collect()
}

/// How probable a queue at an end's own link is, compared with another link.
fn link_weight(end: &End, goodput_bps: Option<f64>) -> f64 {
    let Some(goodput) = goodput_bps else { return 1.0 };
    let rate = end.link_bps.map(|rate| rate as f64).filter(|rate| *rate > 0.0);
    match end.link {
        LinkKind::Ethernet if rate.is_some_and(|rate| rate >= FAST * goodput) => FAST_WEIGHT,
        LinkKind::Wifi => {
            let expected = end.expected_wifi_bps.map(|rate| rate as f64).filter(|rate| *rate > 0.0);
            match expected.or(rate.map(|rate| rate * WIFI_PART)).map(|expected| goodput / expected) {
                Some(part) if part < 1.0 / FAST => FAST_WEIGHT,
                Some(part) if part > WIFI_PART => 3.0,
                _ => 1.0,
            }
        }
        _ => 1.0,
    }
}
