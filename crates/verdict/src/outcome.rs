//! What happened in a loaded phase: a queue, a managed queue, an unfilled path, someone else's traffic, another path, nothing.

use crate::baseline::Baseline;
use crate::goodput::goodput;
use crate::input::{Direction, LinkKind, Observations, Phase, PhaseKind};
use crate::local::busiest;
use crate::model::index;
use crate::numbers::{Added, DIRECTIONS};
use crate::verdict::{Limit, Load, Numbers, Outcome, OutcomeKind};
use crate::words::{delay, percent};

/// Fewer answered echoes do not suffice.
const LEAST_ECHOES: usize = 20;
/// The load's own round-trip time must rise at least this much if nothing else does.
const LEAST_OWN_RISE_NS: f64 = 5e6;
/// Flow queueing delays others a little, by the packets of other queues: by less than this ...
const SHORT_NS: f64 = 1e7;
/// ... and the load itself by more than this many times as much.
const ISOLATED: f64 = 4.0;
/// Flow queueing drops packets of the longest queue, so hardly any probe: at most this part of them ...
const HARDLY_LOST: f64 = 0.01;
/// ... or this many times as many as packets of the load.
const SPARED: f64 = 0.1;
/// If so many probes had to be lost were they treated like the load, and hardly any is, the losses show flow queueing.
const DUE_LOSSES: f64 = 10.0;
/// Then the load itself must wait this many times as long as others.
const APART: f64 = 2.0;
/// A limit that holds for this part of the time is the limit.
const HALF: f64 = 0.5;
/// A processor that is busier than this is the limit ...
const BUSY: f64 = 0.95;
/// ... and so is a client that sends fewer of its probes than this part.
pub(crate) const PUNCTUAL: f64 = 0.9;
/// Retransmissions per segment that show a policer, if there is no delay. CUBIC at full windows of an ordinary path has fewer.
const LOSSY: f64 = 0.005;
/// Losses of the idle path that are worth mentioning beside those under load.
const LOSSY_IDLE: f64 = 0.01;
/// Congestion marks per segment that show an AQM.
const MARKED: f64 = 0.001;
/// A queue of the idle path that is this part of the delay under load is someone else's.
const OTHERS: f64 = 0.5;
/// An acknowledgement of 78 bytes for every second segment of 1448 bytes: the part of the goodput that returns.
const ACKNOWLEDGEMENTS: f64 = 78.0 / (2.0 * 1448.0);
/// Congestion controls that keep queues short.
const LOW_DELAY: [&str; 11] = ["bbr", "bbr1", "bbr2", "bbr3", "vegas", "nv", "dctcp", "prague", "cdg", "lp", "ledbat"];

/// The outcome, and the directions whose queue is to be located.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) outcome: Outcome,
    pub(crate) asked: Vec<Direction>,
    pub(crate) warnings: Vec<String>,
}

/// What the outcome depends on.
pub(crate) struct Case<'a> {
    pub(crate) observations: &'a Observations,
    pub(crate) phase: &'a Phase,
    pub(crate) baseline: &'a Baseline,
    pub(crate) added: &'a Added,
    pub(crate) numbers: &'a Numbers,
    pub(crate) path_changed: bool,
}

fn found(kind: OutcomeKind, text: impl Into<String>) -> Finding {
    let outcome = Outcome { kind, limit: None, text: text.into() };
    Finding { outcome, asked: Vec::new(), warnings: Vec::new() }
}

fn managed(own_ns: f64, others: &str) -> Finding {
    let own = delay(own_ns);
    let text = format!("the load's own round-trip time rises by {own}, and other packets {others}: flow queueing");
    found(OutcomeKind::Managed, text)
}

fn others(queue_ns: f64) -> Finding {
    let text = format!(
        "other traffic already filled a queue before the load: {} came and went on the idle path",
        delay(queue_ns)
    );
    found(OutcomeKind::OtherTraffic, text)
}

impl Case<'_> {
    /// The outcome.
    pub(crate) fn outcome(&self) -> Finding {
        if let Some(reason) = self.insufficient() {
            return found(OutcomeKind::CannotTell, reason);
        }
        if self.path_changed {
            let text = "more than half of the hops had another address under load, so delays before and during it cannot be compared";
            return found(OutcomeKind::PathChanged, text);
        }
        match self.added.total_ns.filter(|_| self.added.rises) {
            Some(rise_ns) => self.risen(rise_ns),
            None => self.flat(),
        }
    }

    fn insufficient(&self) -> Option<String> {
        if let Some(failure) = &self.phase.load_failure {
            return Some(format!("the load failed: {failure}"));
        }
        self.too_few().map(str::to_owned)
    }

    fn too_few(&self) -> Option<&'static str> {
        if self.baseline.rtt_ns.is_none() || self.baseline.rtt.count - self.baseline.rtt.lost < LEAST_ECHOES as u64 {
            return Some("too few probes were answered on the idle path");
        }
        if self.added.total.len() < LEAST_ECHOES {
            return Some("too few probes were answered under load");
        }
        self.numbers.added.p50_ns.is_none().then_some("more than half of the probes were lost under load")
    }

    fn risen(&self, rise_ns: f64) -> Finding {
        if let Some(queue_ns) = self.baseline.queue_ns.filter(|queue_ns| *queue_ns >= OTHERS * rise_ns) {
            return others(queue_ns);
        }
        let loaded = self.phase.kind.loaded();
        let short = rise_ns < SHORT_NS && self.shows_flow_queueing();
        if let Some(own) = self.own_rise_ns().filter(|own| short && *own > ISOLATED * rise_ns) {
            return managed(own, &format!("wait for only {}", delay(rise_ns)));
        }
        let one_way = self.added.one_way[0].is_some();
        let rising = || DIRECTIONS.into_iter().filter(|direction| self.added.rising[index(*direction)]);
        let related = |direction: &Direction| loaded.contains(direction) || self.carries_acknowledgements(*direction);
        let asked: Vec<Direction> = rising().filter(related).collect();
        let mut warnings = Vec::new();
        if one_way && asked.is_empty() {
            let text =
                "the delay rises in the direction that carries no load: another program or user fills a queue there";
            return found(OutcomeKind::OtherTraffic, text);
        }
        if asked.is_empty() {
            warnings.push(
                "The clocks of the two ends cannot be compared, so the delay under load in both directions at once cannot be \
                 split between them."
                    .to_owned(),
            );
        }
        for direction in rising() {
            let name = name(direction);
            if !related(&direction) {
                let why = match self.observations.ends.client.link {
                    LinkKind::Wifi => "the two directions share the radio channel, or other traffic is there",
                    _ => "other traffic is there",
                };
                warnings.push(format!("The {name} delay rises too, although it carries no load: {why}."));
            } else if !loaded.contains(&direction) {
                warnings
                    .push(format!("The {name} queue consists of acknowledgements of the load in the other direction."));
            }
        }
        if self.baseline.queue_ns.is_some() {
            warnings.push("Other traffic was on the idle path.".to_owned());
        }
        let text = format!("the load adds {} to the round-trip time (median)", delay(rise_ns));
        Finding { asked, warnings, ..found(OutcomeKind::Queue, text) }
    }

    /// Whether acknowledgements of the load need at least half of the rate of a direction.
    fn carries_acknowledgements(&self, direction: Direction) -> bool {
        let data = goodput(self.phase, direction.opposite()).map(|rate| rate.mean_bps as f64);
        data.zip(self.baseline.rate(direction)).is_some_and(|(data, rate)| data * ACKNOWLEDGEMENTS >= HALF * rate)
    }

    /// What the connections of the load say, in the directions that are loaded.
    fn loads(&self) -> Vec<Load> {
        self.numbers.directions.iter().filter(|numbers| numbers.loaded).filter_map(|numbers| numbers.load).collect()
    }

    /// The rise of the load's own round-trip time.
    fn own_rise_ns(&self) -> Option<f64> {
        self.loads().iter().filter_map(|load| load.rtt_rise_ns).max().map(|rise| rise as f64)
    }

    /// Whether a rise of the load's own round-trip time shows flow queueing: not if this machine was late, or probes are lost, too.
    fn shows_flow_queueing(&self) -> bool {
        sent_probes(self.observations, self.phase).is_none_or(|sent| sent >= PUNCTUAL) && self.spares_probes()
    }

    /// Whether the probes are lost far less often than the packets of the load, as with flow queueing.
    fn spares_probes(&self) -> bool {
        self.losses().all(|(load, probes)| probes <= HARDLY_LOST.max(SPARED * load))
    }

    /// Whether the losses alone show flow queueing: many probes had to be among them otherwise.
    fn drops_only_the_load(&self) -> bool {
        let count = self.numbers.loaded.count as f64;
        self.losses().all(|(load, probes)| load * count >= DUE_LOSSES && probes <= SPARED * load)
    }

    /// The parts of the load's packets and of the probes that were lost, for each loaded direction.
    fn losses(&self) -> impl Iterator<Item = (f64, f64)> {
        let all = &self.numbers.loaded;
        let any = all.lost as f64 / all.count.max(1) as f64;
        self.numbers.directions.iter().filter(|numbers| numbers.loaded).map(move |numbers| {
            let load = numbers.load.and_then(|load| load.retransmits).unwrap_or(0.0);
            (load, numbers.loss.unwrap_or(any))
        })
    }

    fn flat(&self) -> Finding {
        if let Some(queue_ns) = self.baseline.queue_ns {
            return others(queue_ns);
        }
        let loads = self.loads();
        let least_ns = match self.drops_only_the_load() {
            true => LEAST_OWN_RISE_NS.max(APART * self.added.total_ns.unwrap_or(0.0)),
            false => LEAST_OWN_RISE_NS.max(self.baseline.threshold_ns(self.phase.kind.loaded())),
        };
        let full = limited_by_an_end(&loads).is_none();
        if let Some(own) = self.own_rise_ns().filter(|own| full && *own > least_ns && self.shows_flow_queueing()) {
            return managed(own, "do not wait");
        }
        if let Some(marks) = loads.iter().filter_map(|load| load.marks).reduce(f64::max).filter(|part| *part > MARKED) {
            let text =
                format!("{} of the load's packets were marked instead of queued: an AQM with ECN", percent(marks));
            return found(OutcomeKind::Managed, text);
        }
        match self.limit(&loads) {
            Some((limit, text)) => Finding {
                outcome: Outcome { kind: OutcomeKind::NotFilled, limit: Some(limit), text },
                asked: Vec::new(),
                warnings: Vec::new(),
            },
            None => found(OutcomeKind::Clean, "the load filled the path, and the delay did not rise"),
        }
    }

    /// Why the load may not have filled the path.
    fn limit(&self, loads: &[Load]) -> Option<(Limit, String)> {
        let limit = |limit, text: String| Some((limit, text));
        if let Some(found) = limited_by_an_end(loads) {
            return Some(found);
        }
        if let Some(busy) = busiest(self.phase).filter(|busy| *busy > BUSY) {
            return limit(
                Limit::Cpu,
                format!("a processor of one of the two machines was busy for {} of the time", percent(busy)),
            );
        }
        if let Some(sent) = sent_probes(self.observations, self.phase).filter(|sent| *sent < PUNCTUAL) {
            return limit(
                Limit::Cpu,
                format!("this machine was too busy to send more than {} of its test packets", percent(sent)),
            );
        }
        if let Some(part) = most(loads, |load| load.busy).filter(|part| *part < HALF) {
            return limit(
                Limit::Sender,
                format!("the sending program had data for only {} of the time", percent(part)),
            );
        }
        let congestion = self.observations.parameters.congestion.as_deref().unwrap_or_default();
        if LOW_DELAY.contains(&congestion) {
            return limit(Limit::LowDelayControl, format!("the congestion control {congestion} keeps queues short"));
        }
        if let Some(part) = most(loads, |load| load.retransmits).filter(|part| *part > LOSSY) {
            let idle = self.baseline.idle_loss();
            let text = if idle >= LOSSY_IDLE {
                format!(
                    "{} of the packets were lost without delay, and {} of the test packets already before the load: a lossy \
                     link, or a short queue that others fill",
                    percent(part),
                    percent(idle)
                )
            } else {
                format!(
                    "{} of the packets were lost without delay: a policer, a very short queue or a lossy link",
                    percent(part)
                )
            };
            return limit(Limit::Policer, text);
        }
        (self.phase.levelled == Some(false))
            .then(|| (Limit::Unknown, "the goodput was still growing at the end of the phase".to_owned()))
    }
}

/// The largest value of several loads.
fn most(loads: &[Load], field: fn(&Load) -> Option<f64>) -> Option<f64> {
    loads.iter().filter_map(field).reduce(f64::max)
}

/// A window or a buffer of an end that limited the load for most of the time. Then acknowledgements that wait for more data may
/// lengthen the load's own round trips, and no queue does.
fn limited_by_an_end(loads: &[Load]) -> Option<(Limit, String)> {
    let limits = [
        (Limit::ReceiveWindow, "the receiver's window", most(loads, |load| load.rwnd_limited)),
        (Limit::Sender, "the sender's buffer", most(loads, |load| load.sndbuf_limited)),
    ];
    limits.into_iter().find_map(|(limit, what, part)| {
        let part = part.filter(|part| *part > HALF)?;
        Some((limit, format!("{what} limited the load for {} of the time", percent(part))))
    })
}

/// The part of a phase's probes that the client sent, of those that were due; `None` if the time between probes is not known.
pub(crate) fn sent_probes(observations: &Observations, phase: &Phase) -> Option<f64> {
    let interval_ns = observations.parameters.probe_interval_ns.filter(|interval_ns| *interval_ns > 0)?;
    let due = phase.end_ns.saturating_sub(phase.start_ns) / interval_ns;
    (due > 0).then(|| (phase.echoes.len() as f64 / due as f64).min(1.0))
}

/// The name of a direction in sentences.
pub(crate) fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "upload",
        Direction::Down => "download",
    }
}

/// The name of a phase in sentences.
pub(crate) fn phase_name(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Idle => "idle",
        PhaseKind::Download => "download",
        PhaseKind::Upload => "upload",
        PhaseKind::Both => "download and upload together",
        PhaseKind::CoolDown => "cool-down",
    }
}
