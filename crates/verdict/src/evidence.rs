//! The facts that a verdict rests on, and what limits it.

use crate::baseline::Baseline;
use crate::input::{Echo, EndName, LinkKind, Observations, PhaseKind, Stage};
use crate::ladder::Lengths;
use crate::outcome::{PUNCTUAL, name, phase_name, sent_probes};
use crate::statistics::median;
use crate::verdict::{Fact, Idle, PhaseVerdict, Place};
use crate::words::{count, delay, percent, rate};

/// The facts.
pub(crate) fn evidence(idle: &Idle, phases: &[PhaseVerdict]) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |text: String, value: String| facts.push(Fact { text, value });
    let mut ns = |text: String, value: Option<i64>| {
        if let Some(value) = value {
            add(text, delay(value as f64));
        }
    };
    ns("median round-trip time of the idle path".to_owned(), idle.rtt.p50_ns);
    for phase in phases {
        let load = phase_name(phase.kind);
        ns(format!("median added delay, {load}"), phase.numbers.added.p50_ns);
        ns(format!("a rise of the delay must exceed, {load}"), phase.numbers.threshold_ns);
        for numbers in &phase.numbers.directions {
            let way = name(numbers.direction);
            ns(format!("median change of the {way} delay, {load}"), numbers.added.p50_ns);
            ns(
                format!("rise of the load's own round-trip time ({way}), {load}"),
                numbers.load.and_then(|load| load.rtt_rise_ns),
            );
        }
        for stage in &phase.stages {
            let end = end_name(stage.end);
            let place = match stage.stage {
                Stage::SendBuffer => "send buffer",
                Stage::Qdisc => "queueing discipline",
                Stage::Driver => "driver, by byte queue limits",
            };
            ns(format!("median delay in the {end}'s {place}, {load}"), stage.delay.p50_ns);
        }
        for hop in phase.hops.iter().filter(|hop| hop.used) {
            let (end, ttl) = (end_name(hop.end), hop.ttl);
            ns(format!("rise at hop {ttl} from the {end}, {load}"), hop.rise_ns);
        }
    }
    for phase in phases {
        for numbers in &phase.numbers.directions {
            if let Some(goodput) = numbers.goodput {
                let text = format!("{} goodput, {}", name(numbers.direction), phase_name(phase.kind));
                facts.push(Fact { text, value: rate(goodput.mean_bps as f64) });
            }
        }
    }
    facts
}

fn end_name(end: EndName) -> &'static str {
    match end {
        EndName::Client => "client",
        EndName::Server => "server",
    }
}

/// What limits the verdict as a whole.
pub(crate) fn warnings(
    observations: &Observations,
    baseline: &Baseline,
    lengths: Lengths,
    phases: &[PhaseVerdict],
) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: String| warnings.push(text);
    if !lengths.known && !phases.is_empty() {
        warn("The number of hops is not known, because none of them answered.".to_owned());
    }
    if lengths.client != lengths.server {
        warn(format!(
            "The two directions differ in length: {} up, {} down.",
            count(usize::from(lengths.client), "link"),
            count(usize::from(lengths.server), "link")
        ));
    }
    if observations.ends.client.link == LinkKind::Tunnel {
        warn("The test went through a tunnel or VPN: its hops are those of the tunnel.".to_owned());
    }
    if let Some(queue_ns) = baseline.queue_ns {
        warn(format!("The idle path was not idle: a queue of {} came and went.", delay(queue_ns)));
    }
    for end in [EndName::Client, EndName::Server] {
        let unclear = phases.iter().flat_map(|phase| &phase.locations).any(|found| {
            let places: Vec<Place> = found.answer.locations.iter().map(|location| location.place).collect();
            match end {
                EndName::Client => [Place::ClientQdisc, Place::ClientDriver].iter().all(|place| places.contains(place)),
                EndName::Server => [Place::ServerQdisc, Place::ServerDriver].iter().all(|place| places.contains(place)),
            }
        });
        if unclear && !observations.ends.get(end).software_stamps {
            let name = end_name(end);
            warn(format!(
                "The network driver of the {name} does not stamp packets, so its queue is not seen separately."
            ));
        }
    }
    for phase in observations.phases.iter().filter(|phase| !phase.kind.loaded().is_empty()) {
        if let Some(sent) = sent_probes(observations, phase).filter(|sent| *sent < PUNCTUAL) {
            let (part, load) = (percent(sent), phase_name(phase.kind));
            warn(format!("This machine was busy and sent only {part} of its test packets during {load}."));
        }
    }
    // Handshakes are too seldom to show interruptions: one lost is a second of silence.
    let has_echoes = observations.parameters.protocol.is_none();
    for phase in observations.phases.iter().filter(|_| has_echoes) {
        if let Some(silent_ns) = longest_silence_ns(&phase.echoes) {
            let part = match phase.kind {
                PhaseKind::Idle => "the idle phase",
                PhaseKind::CoolDown => "the cool-down",
                load => phase_name(load),
            };
            warn(format!("The connection was interrupted for {} during {part}.", delay(silent_ns as f64)));
        }
    }
    for phase in phases {
        let load = phase_name(phase.kind);
        let excluded = phase.hops.iter().filter(|hop| hop.note.is_some()).count();
        if excluded > 0 {
            let hops = count(excluded, "hop");
            warn(format!("{hops} could not be used during {load}; see the notes of the hops."));
        }
        if phase.numbers.added.censored {
            let part = phase.numbers.loaded.lost as f64 / phase.numbers.loaded.count.max(1) as f64;
            warn(format!("{} of the probes were lost during {load}: some percentiles are not known.", percent(part)));
        }
        if phase.numbers.levelled == Some(false) {
            warn(format!("Goodput or delay was still rising at the end of {load}: the queue may become longer."));
        }
    }
    warnings
}

/// In a shorter time without answers, a full queue may have dropped every probe.
const SHORTEST_SILENCE_NS: i64 = 1_000_000_000;
/// A handshake whose SYN was lost takes seconds, and the next one waits for it: so many of the usual times between two probes.
const SPACINGS: f64 = 16.0;

/// The longest time in which no echo was answered, if some were before and after it.
fn longest_silence_ns(echoes: &[Echo]) -> Option<i64> {
    let mut answered: Vec<i64> = echoes.iter().filter(|echo| echo.rtt_ns.is_some()).map(|echo| echo.t_ns).collect();
    answered.sort_unstable();
    let sent = answered.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64);
    let usual_ns = median(sent).unwrap_or(0.0) * SPACINGS;
    let shortest_ns = SHORTEST_SILENCE_NS.max(usual_ns.min(i64::MAX as f64) as i64);
    let silences = answered.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let longest_ns = silences.max().filter(|silence_ns| *silence_ns >= shortest_ns)?;
    // Time without echoes is not time without answers.
    echoes.iter().any(|echo| echo.rtt_ns.is_none()).then_some(longest_ns)
}
