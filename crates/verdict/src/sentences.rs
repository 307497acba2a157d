//! Five sentences for a person at home: speed, delay, which queue, how sure, and what to do.

use crate::cure::cure;
use crate::input::{Direction, Observations};
use crate::outcome::{name, phase_name};
use crate::verdict::{Idle, OutcomeKind, PhaseVerdict, Where};
use crate::words::{count, delay, percent, rate};

/// The five sentences.
pub(crate) fn sentences(observations: &Observations, idle: &Idle, phases: &[PhaseVerdict]) -> [String; 5] {
    let worst = worst(phases);
    [speed(phases), latency(idle, worst), place(worst, phases), certainty(worst), cure(observations, worst, phases)]
}

/// The phase with the longest delay; of several phases, those with a queue come first.
pub(crate) fn worst(phases: &[PhaseVerdict]) -> Option<&PhaseVerdict> {
    phases.iter().max_by_key(|phase| {
        let added = phase.numbers.added.p95_ns.or(phase.numbers.added.max_ns);
        // Alone, a direction shows its queue better than together with the other.
        (phase.outcome.is_queue() && !phase.locations.is_empty(), added)
    })
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
    let Some(phase) = worst else { return format!("A round trip took {unloaded}; no load was measured.") };
    let under = phase_name(phase.kind);
    let grade = phase.grade.map_or(String::new(), |grade| format!(": grade {}", grade.name()));
    match (phase.numbers.loaded.p95_ns, phase.numbers.loaded.max_ns) {
        (Some(p95), _) => format!(
            "A round trip took {unloaded} while the connection was idle, and up to {} during {under} (only 1 in 20 took \
             longer){grade}.",
            delay(p95 as f64)
        ),
        (None, Some(max)) => format!(
            "A round trip took {unloaded} while the connection was idle, and up to {} during {under}, where {} of the test \
             packets were lost{grade}.",
            delay(max as f64),
            percent(phase.numbers.loaded.lost as f64 / phase.numbers.loaded.count.max(1) as f64)
        ),
        (None, None) => {
            format!("A round trip took {unloaded} while the connection was idle; {under} was not measured.")
        }
    }
}

fn place(worst: Option<&PhaseVerdict>, phases: &[PhaseVerdict]) -> String {
    let Some(phase) = worst else { return "Nothing can be said about queues without a load.".to_owned() };
    match phase.outcome.kind {
        OutcomeKind::Queue => match queues(phases).as_slice() {
            [] => "Packets wait in a queue under load, but the test cannot tell where.".to_owned(),
            queues => {
                let named: Vec<String> = queues.iter().map(|queue| wait(queue)).collect();
                format!("{}.", capital(&named.join("; ")))
            }
        },
        OutcomeKind::Managed => "No one has to wait: a device on the way already manages its queue well.".to_owned(),
        OutcomeKind::Clean => "No queue builds up on the way, even at full load.".to_owned(),
        OutcomeKind::NotFilled => {
            "The test did not fill your connection, so it cannot tell how long its queues are.".to_owned()
        }
        OutcomeKind::OtherTraffic => {
            "Other programs or people used the connection during the test, and their packets were in the queue."
                .to_owned()
        }
        OutcomeKind::PathChanged => {
            "The test cannot tell where packets wait, because they took another path during the load.".to_owned()
        }
        OutcomeKind::CannotTell => "The test cannot tell whether packets wait in a queue.".to_owned(),
    }
}

/// For each direction the queue of the phase that loaded only this direction, or else of any.
pub(crate) fn queues(phases: &[PhaseVerdict]) -> Vec<&Where> {
    let found = |direction: Direction| {
        let all = || {
            let queues = phases.iter().flat_map(|phase| phase.locations.iter().map(move |queue| (phase, queue)));
            queues.filter(move |(_, queue)| queue.direction == direction)
        };
        let alone = all().find(|(phase, _)| phase.kind.loaded() == [direction]);
        alone.or_else(|| all().next()).map(|(_, queue)| queue)
    };
    [Direction::Down, Direction::Up].into_iter().filter_map(found).collect()
}

fn wait(queue: &Where) -> String {
    let direction = name(queue.direction);
    let second = match &queue.second {
        Some(second) if second.locations.len() == 1 => {
            format!(
                ", and {} of the time in a second queue, {}",
                percent(second.share),
                without_probability(&second.text)
            )
        }
        _ => String::new(),
    };
    let text = without_probability(&queue.answer.text);
    if text.starts_with("cannot tell") {
        format!("{direction} packets wait in a queue, but the test {text}{second}")
    } else {
        format!("{direction} packets wait at {text}{second}")
    }
}

fn without_probability(text: &str) -> &str {
    text.rsplit_once(" (").filter(|(_, tail)| tail.ends_with("%)")).map_or(text, |(head, _)| head)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn certainty(worst: Option<&PhaseVerdict>) -> String {
    let Some(phase) = worst else { return "This is certain: there is nothing to judge.".to_owned() };
    let echoes = phase.numbers.loaded.count as usize;
    let hops = phase.hops.iter().filter(|hop| hop.used).count();
    match phase.outcome.kind {
        OutcomeKind::Queue => {
            let sure = phase.locations.iter().map(|queue| queue.answer.probability).reduce(f64::min);
            let sure = sure
                .map_or("The place is not known".to_owned(), |sure| format!("The place is {} certain", percent(sure)));
            let seen = if hops == 0 {
                "no device on the way answered often enough".to_owned()
            } else {
                format!("{} on the way answered", count(hops, "device"))
            };
            format!("{sure}: {} crossed the connection during the load, and {seen}.", count(echoes, "test packet"))
        }
        _ => format!("This rests on {} during the load: {}.", count(echoes, "test packet"), phase.outcome.text),
    }
}
