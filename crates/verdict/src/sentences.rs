//! Five sentences for a person at home: speed, delay, which queue, how sure, and what to do.

use crate::cure::cure;
use crate::input::{Direction, Observations};
use crate::outcome::{name, phase_name};
use crate::verdict::{Answer, Idle, OutcomeKind, PhaseVerdict, Where, WorstCase};
use crate::words::{count, delay, percent, rate, size};

/// A queue that is shorter than this is not worth a place in a sentence beside a longer one.
const NOTICEABLE_NS: i64 = 10_000_000;

/// The five sentences.
pub(crate) fn sentences(
    observations: &Observations,
    idle: &Idle,
    phases: &[PhaseVerdict],
    worst_cases: &[WorstCase],
) -> [String; 5] {
    let worst = worst(phases);
    let slowest = phases.iter().max_by_key(|phase| added(phase));
    [
        speed(phases),
        format!("{}{}", latency(idle, slowest), at_worst(worst_cases)),
        place(worst, phases),
        certainty(worst, phases),
        cure(observations, worst, phases),
    ]
}

/// The phase whose outcome matters most; of several, the one with the longest delay.
fn worst(phases: &[PhaseVerdict]) -> Option<&PhaseVerdict> {
    let rank = |kind: OutcomeKind| match kind {
        OutcomeKind::Queue => 6,
        OutcomeKind::OtherTraffic => 5,
        OutcomeKind::PathChanged => 4,
        OutcomeKind::CannotTell => 3,
        OutcomeKind::NotFilled => 2,
        OutcomeKind::Managed => 1,
        OutcomeKind::Clean => 0,
    };
    phases.iter().max_by_key(|phase| (rank(phase.outcome.kind), !phase.locations.is_empty(), added(phase)))
}

/// The longest added delay that is known.
fn added(phase: &PhaseVerdict) -> Option<i64> {
    phase.numbers.added.p95_ns.or(phase.numbers.added.max_ns)
}

/// The best goodput of a direction.
pub(crate) fn best_rate(phases: &[PhaseVerdict], direction: Direction) -> Option<f64> {
    let numbers = phases.iter().flat_map(|phase| &phase.numbers.directions);
    let rates = numbers.filter(|numbers| numbers.direction == direction).filter_map(|numbers| numbers.goodput);
    rates.map(|goodput| goodput.mean_bps as f64).reduce(f64::max)
}

fn speed(phases: &[PhaseVerdict]) -> String {
    let [down, up] = [Direction::Down, Direction::Up].map(|direction| best_rate(phases, direction).map(rate));
    match (down, up) {
        (Some(down), Some(up)) => format!("Your connection carried {down} of download and {up} of upload."),
        (Some(down), None) => format!("Your connection carried {down} of download; the upload was not measured."),
        (None, Some(up)) => format!("Your connection carried {up} of upload; the download was not measured."),
        (None, None) => "The speed of your connection was not measured.".to_owned(),
    }
}

fn latency(idle: &Idle, worst: Option<&PhaseVerdict>) -> String {
    let Some(unloaded) = idle.rtt.p50_ns else { return "The delay of your connection was not measured.".to_owned() };
    let unloaded = delay(unloaded as f64);
    let Some(phase) = worst else { return format!("A round trip took {unloaded}, without any load.") };
    let under = phase_name(phase.kind);
    let grade = phase.grade.map_or(String::new(), |grade| format!(": grade {}", grade.name()));
    let loaded = phase.numbers.loaded;
    match (loaded.p95_ns, loaded.max_ns) {
        (Some(p95), _) => format!(
            "A round trip took {unloaded} on the idle connection, and up to {} during {under} (1 in 20 took longer){grade}.",
            delay(p95 as f64)
        ),
        (None, Some(max)) => format!(
            "A round trip took {unloaded} on the idle connection, and up to {} during {under}, where {} of the test packets \
             were lost{grade}.",
            delay(max as f64),
            percent(loaded.lost as f64 / loaded.count.max(1) as f64)
        ),
        (None, None) => format!("A round trip took {unloaded} on the idle connection; {under} was not measured."),
    }
}

/// What floods have shown, behind the sentence about the delay.
fn at_worst(worst_cases: &[WorstCase]) -> String {
    let cases = worst_cases.iter().map(|case| {
        let least = if case.full { "" } else { "at least " };
        let bytes = case.bytes.map_or(String::new(), |bytes| format!(" (a buffer of {})", size(bytes as f64)));
        format!("{least}{} to the {}{bytes}", delay(case.delay_ns as f64), name(case.direction))
    });
    let cases: Vec<String> = cases.collect();
    if cases.is_empty() {
        String::new()
    } else {
        format!(" In the worst case, a flood of packets, it adds {}.", cases.join(" and "))
    }
}

fn place(worst: Option<&PhaseVerdict>, phases: &[PhaseVerdict]) -> String {
    let Some(phase) = worst else { return "Without a load, the test says nothing about queues.".to_owned() };
    match phase.outcome.kind {
        OutcomeKind::Queue => {
            let queues: Vec<String> = queues(phases).into_iter().map(wait).collect();
            if queues.is_empty() {
                "Packets wait in a queue under load, but the test cannot tell where.".to_owned()
            } else {
                format!("{}.", capital(&queues.join("; ")))
            }
        }
        OutcomeKind::Managed => "Only the load itself waits: a device on the way manages its queue well.".to_owned(),
        OutcomeKind::Clean => "No queue builds up on the way, even at full load.".to_owned(),
        OutcomeKind::NotFilled => format!(
            "The {} did not fill your connection, so the test cannot tell how long its queues become.",
            phase_name(phase.kind)
        ),
        OutcomeKind::OtherTraffic => {
            "Other programs or people used the connection during the test, and their packets were in the queue."
                .to_owned()
        }
        OutcomeKind::PathChanged => {
            "The packets took another path during the load, so the test cannot tell where they waited.".to_owned()
        }
        OutcomeKind::CannotTell => "The test cannot tell whether packets wait in a queue.".to_owned(),
    }
}

/// For each direction its queue: in the phase that loaded only this direction, or else in any.
pub(crate) fn queues(phases: &[PhaseVerdict]) -> Vec<&Where> {
    let found = |direction: Direction| {
        let all = || {
            let queues = phases.iter().flat_map(|phase| phase.locations.iter().map(move |queue| (phase, queue)));
            queues.filter(move |(_, queue)| queue.direction == direction)
        };
        let alone = all().find(|(phase, _)| phase.kind.loaded() == [direction]);
        alone.or_else(|| all().next())
    };
    let mut queues: Vec<(i64, &Where)> = [Direction::Down, Direction::Up]
        .into_iter()
        .filter_map(found)
        .map(|(phase, queue)| (standing(phase, queue.direction), queue))
        .collect();
    queues.sort_by_key(|queue| -queue.0);
    let long = queues.iter().filter(|queue| queue.0 >= NOTICEABLE_NS).count();
    queues.truncate(long.max(1));
    queues.into_iter().map(|queue| queue.1).collect()
}

fn standing(phase: &PhaseVerdict, direction: Direction) -> i64 {
    let numbers = phase.numbers.directions.iter().find(|numbers| numbers.direction == direction);
    numbers.and_then(|numbers| numbers.buffer).map_or(0, |buffer| buffer.delay_ns.clamp(0, i64::MAX - 1))
}

fn wait(queue: &Where) -> String {
    let (direction, place) = (name(queue.direction), at(&queue.answer));
    match &queue.second {
        Some(second) => format!(
            "{direction} packets wait {place} ({} of the delay) and {} ({})",
            percent(queue.answer.share),
            at(second),
            percent(second.share)
        ),
        None => format!("{direction} packets wait {place}"),
    }
}

/// The place of an answer without its probability.
fn at(answer: &Answer) -> String {
    let text =
        answer.text.rsplit_once(" (").filter(|(_, tail)| tail.ends_with("%)")).map_or(&*answer.text, |split| split.0);
    if let Some(where_) = text.strip_prefix("cannot tell") {
        return format!("in a queue, but the test cannot tell{where_}");
    }
    let within = if text.contains("packet queue") && answer.locations.len() == 1 { "in" } else { "at" };
    match text.strip_suffix(": cannot tell which") {
        Some(places) => format!("{within} {places} (the test cannot tell which)"),
        None => format!("{within} {text}"),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn certainty(worst: Option<&PhaseVerdict>, phases: &[PhaseVerdict]) -> String {
    let Some(phase) = worst else { return "There were no observations to judge.".to_owned() };
    let probes = count(phase.numbers.loaded.count as usize, "test packet");
    if phase.outcome.kind != OutcomeKind::Queue {
        return format!("This rests on {probes} under load: {}.", phase.outcome.text);
    }
    let answers: u64 = phase.hops.iter().filter(|hop| hop.used).map(|hop| hop.loaded_count).sum();
    let answers = match answers {
        0 => "no answers".to_owned(),
        answers => count(answers as usize, "answer"),
    };
    let queues = queues(phases);
    let sure = queues.iter().map(|queue| queue.answer.probability).reduce(f64::min);
    let vague = queues.iter().any(|queue| queue.answer.text.starts_with("cannot tell"));
    let several = queues.iter().any(|queue| queue.answer.locations.len() > 1);
    match sure {
        Some(sure) if several && !vague => format!(
            "That it is one of these is {} certain: there were {probes} under load and {answers} from devices on the way.",
            percent(sure)
        ),
        Some(sure) if !vague => format!(
            "The place is {} certain: {probes} under load and {answers} from devices on the way show where the delay begins.",
            percent(sure)
        ),
        _ => format!(
            "The queue is certain but its place is not: there were {probes} under load and {answers} from devices on the way."
        ),
    }
}
