//! What a page has measured, and the verdict from both ends' data.
//!
//! The page sends its samples at the end, in milliseconds since its test began. They are untrusted: their number and
//! their values are bounded, and whatever is wrong with them falsifies nothing but their sender's own verdict.

use std::collections::HashMap;

use bufferscope_verdict::input::{Direction, Observations, PhaseKind};
use bufferscope_verdict::verdict::{Limit, OutcomeKind, PhaseVerdict};
use bufferscope_verdict::{Verdict, judge};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::rtc::WAITED;
use crate::client::observe::observations;
use crate::client::prober::{Probe, Reply};
use crate::client::{FarEnd, Measurement, OtherServer, PhaseRecord};
use crate::local::{EndFacts, LinkKind};
use crate::records::{ArrivalRow, EndRecords, GoodputRow, ServerRecords};
use crate::time::MS;
use crate::wire::control::Welcome;

/// The longest text of samples.
pub const LONGEST_SAMPLES: usize = 2 * 1024 * 1024;
const MOST_PHASES: usize = 16;
const MOST_PINGS: usize = 40_000;
const MOST_COUNTS: usize = 20_000;
/// No test is longer.
const LONGEST_MS: f64 = 2.0 * 3600.0 * 1000.0;
const LONGEST_REASON: usize = 200;

/// A page's samples. Times are milliseconds since its test began.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    /// What carried the pings.
    #[serde(default)]
    way: Way,
    /// The pings that waited in the browser before they were sent, by their numbers.
    #[serde(default)]
    waited: Vec<u32>,
    /// Time between two pings.
    interval_ms: f64,
    phases: Vec<PhaseTimes>,
    /// Each ping by its number: when it was sent, when it came back, and how late the page's timers were in between.
    pings: Vec<(f64, Option<f64>, f64)>,
    /// When a count was made, and the bytes of the load that the page had received in all.
    received: Vec<(f64, u64)>,
    /// Why the test ended early.
    reason: Option<String>,
}

/// What carries the pings of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// A data channel that repeats nothing, over UDP.
    Webrtc,
    /// Connections of TCP, which repeat what is lost.
    #[default]
    Websocket,
}

/// When a phase was.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseTimes {
    kind: PhaseKind,
    start_ms: f64,
    end_ms: f64,
    levelled: Option<bool>,
}

/// These are not samples of a test.
#[derive(Debug, thiserror::Error)]
pub enum NotSamples {
    /// They are not written as samples.
    #[error("not samples of a page: {0}")]
    Unknown(#[from] serde_json::Error),
    /// There are too many of a kind.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// A time that cannot be.
    #[error("a time that cannot be")]
    Time,
}

impl Samples {
    /// Reads samples.
    pub fn parse(text: &[u8]) -> Result<Self, NotSamples> {
        let mut found: Self = serde_json::from_slice(text)?;
        let counts = [
            ("phases", found.phases.len(), MOST_PHASES),
            ("pings", found.pings.len(), MOST_PINGS),
            ("pings that waited", found.waited.len(), MOST_PINGS),
            ("counts", found.received.len(), MOST_COUNTS),
        ];
        if let Some((kind, ..)) = counts.into_iter().find(|(_, number, most)| number > most) {
            return Err(NotSamples::TooMany(kind));
        }
        let phases = found.phases.iter().flat_map(|phase| [phase.start_ms, phase.end_ms]);
        let pings =
            found.pings.iter().flat_map(|&(sent, back, late)| [Some(sent), back, Some(late)].into_iter().flatten());
        let times = phases.chain(pings).chain(found.received.iter().map(|count| count.0)).chain([found.interval_ms]);
        let follow = found.phases.iter().all(|phase| phase.start_ms <= phase.end_ms)
            && found.pings.iter().all(|&(sent, back, _)| back.is_none_or(|back| back >= sent));
        if !follow || times.into_iter().any(|ms| !(0.0..=LONGEST_MS).contains(&ms)) {
            return Err(NotSamples::Time);
        }
        for &seq in &found.waited {
            if let Some(ping) = found.pings.get_mut(seq as usize) {
                // Its round trip is too long by an unknown time.
                ping.2 = LONGEST_MS;
            }
        }
        if let Some(reason) = &mut found.reason {
            *reason = reason.chars().filter(|character| !character.is_control()).take(LONGEST_REASON).collect();
        }
        Ok(found)
    }
}

/// The test that samples belong to.
#[derive(Clone, Debug)]
pub struct Page {
    /// The server's name, as the page calls it.
    pub name: String,
    /// What the server said at its beginning.
    pub welcome: Welcome,
    /// When the session began, on the server's real-time clock.
    pub began_ns: u64,
    /// How long the server took for its answers, by the numbers of the pings; nothing is known of the others.
    pub held_ns: HashMap<u64, u64>,
}

/// What the browser itself did to a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Bottleneck {
    /// The page could not react in time for many of its pings.
    Late,
    /// Its pings became slow and the network did not: the load's own round trips, as the server's kernel measures them, stayed
    /// short.
    Slow,
    /// It did not read as fast as data came.
    Reading,
    /// The upload filled no queue, and only the browser knows whether it could have sent faster.
    Unknown,
}

/// A ping is not used if the page's timers were late by more than this while it was on its way, and by more than this part
/// of its round trip.
const LATE_MS: f64 = 4.0;
const LATE_SHARE: f64 = 0.1;
/// The browser is the bottleneck of a phase if it was late for this part of the pings.
const MOST_LATE: f64 = 0.3;
/// The load's own round trips must rise at least by this part of what the pings rise.
const OWN_SHARE: f64 = 0.4;
/// An upload without a queue that is slower than this was hardly limited by a browser.
const FAST_BPS: u64 = 50_000_000;
/// Fewer pings say nothing.
const FEWEST: usize = 20;

/// The verdict and all that it rests on, as the page shows and saves it.
pub fn judged(samples: &Samples, server: ServerRecords, page: &Page) -> serde_json::Value {
    let measurement = measurement(samples, server, page);
    let mut observed = observations(&measurement, (samples.interval_ms * MS as f64) as u64);
    observed.parameters.stamp_error_ns = lateness_ns(samples);
    if observed.phases.iter().all(|phase| phase.ladder.is_empty()) {
        forget_last_link(&mut observed);
    }
    let late: Vec<f64> = samples.phases.iter().map(|phase| late_share(samples, *phase)).collect();
    let mut verdict = judge(&observed);
    let mut found: Vec<Option<Bottleneck>> = observed
        .phases
        .iter()
        .zip(&late)
        .map(|(phase, late)| {
            let judged = verdict.phases.iter().find(|judged| judged.start_ns == phase.start_ns)?;
            bottleneck(judged, *late)
        })
        .collect();
    if found.iter().any(|found| matches!(found, Some(Bottleneck::Late | Bottleneck::Slow))) {
        // What the browser has delayed says nothing about the path.
        for (phase, _) in observed
            .phases
            .iter_mut()
            .zip(&found)
            .filter(|(_, found)| matches!(found, Some(Bottleneck::Late | Bottleneck::Slow)))
        {
            phase.echoes.clear();
        }
        verdict = judge(&observed);
    }
    // A page has no driver to ask.
    verdict.warnings.retain(|warning| !warning.starts_with("The network driver of the client"));
    let loaded = |kind: PhaseKind| !kind.loaded().is_empty();
    found.resize(samples.phases.len(), None);
    let browser: Vec<_> = samples
        .phases
        .iter()
        .zip(late.iter().zip(&found))
        .filter(|(phase, _)| loaded(phase.kind))
        .map(|(phase, (late, bottleneck))| json!({"phase": phase.kind, "late": late, "bottleneck": bottleneck}))
        .collect();
    json!({
        "answer": "judged",
        "browser": browser,
        "effects": effects(&observed, &verdict),
        "events": [start(samples, &measurement, page), end(&measurement, &observed, &verdict)],
    })
}

/// No hop has answered, so the number of links is not known: what is known of the last one would only make the guess about the
/// others look certain.
fn forget_last_link(observed: &mut Observations) {
    let server = &mut observed.ends.server;
    (server.link, server.link_bps, server.qdisc) = (LinkKind::Unknown, None, None);
    for sample in observed.phases.iter_mut().flat_map(|phase| &mut phase.local) {
        sample.qdisc_bytes = None;
    }
}

fn start(samples: &Samples, measurement: &Measurement, page: &Page) -> serde_json::Value {
    json!({
        "event": "start",
        "version": env!("CARGO_PKG_VERSION"),
        "host": page.name,
        "address": page.name,
        "realtime_ns": page.began_ns,
        "phases": samples.phases.iter().map(|phase| phase.kind).collect::<Vec<_>>(),
        "parameters": {"congestion": null, "flows": null, "interval_ms": samples.interval_ms, "pings": samples.way},
        "server": {"version": page.welcome.version, "kernel": measurement.far.kernel},
        "client": {"kernel": "unknown: a page in a browser"},
        "seen_as": page.welcome.seen_as,
    })
}

fn end(measurement: &Measurement, observed: &Observations, verdict: &Verdict) -> serde_json::Value {
    json!({
        "event": "end",
        "complete": measurement.ended_early.is_none(),
        "reason": measurement.ended_early,
        "observations": observed,
        "verdict": verdict,
        "accuracy": {"rx_stamps": "page", "timing_error_p99_ns": observed.parameters.stamp_error_ns},
    })
}

/// How late the page's timers were: in 99 of 100 pings, no later than this.
fn lateness_ns(samples: &Samples) -> Option<i64> {
    let mut late: Vec<f64> = samples.pings.iter().map(|ping| ping.2).filter(|late| *late < LONGEST_MS).collect();
    late.sort_unstable_by(f64::total_cmp);
    late.len().checked_sub(1).map(|last| (late[last * 99 / 100] * MS as f64) as i64)
}

/// The same as the program would have recorded.
fn measurement(samples: &Samples, server: ServerRecords, page: &Page) -> Measurement {
    let at = |ms: f64| page.began_ns.saturating_add((ms * MS as f64) as u64);
    let arrived: HashMap<u64, u64> = server.arrivals.iter().map(|row| (row.seq, row.arrived_ns)).collect();
    let backs: Vec<Option<f64>> = samples.pings.iter().map(|ping| ping.1).collect();
    let came: Vec<Option<u64>> = (0..backs.len()).map(|number| arrived.get(&(number as u64)).copied()).collect();
    let (mut probes, mut arrivals) = (Vec::new(), Vec::new());
    for (number, &(sent_ms, back_ms, late_ms)) in samples.pings.iter().enumerate() {
        if back_ms.is_some_and(|back_ms| is_late(back_ms - sent_ms, late_ms)) {
            continue;
        }
        let held_ns = page.held_ns.get(&(number as u64)).copied().unwrap_or(0);
        if held_ns == WAITED {
            continue;
        }
        // TCP has repeated a ping that was lost; which direction lost it shows in what the server saw.
        let repeats = samples.way == Way::Websocket;
        let repeated = (repeats && is_overtaken(&backs, number), repeats && is_overtaken(&came, number));
        let (back_ms, arrived_ns) = match repeated {
            (_, true) => (None, None),
            (true, false) => (None, came[number]),
            (false, false) => (back_ms, came[number]),
        };
        let reply = back_ms.zip(arrived_ns).map(|(back_ms, arrived_ns)| {
            let answered_ns = arrived_ns + held_ns;
            Reply { back_ns: at(back_ms), arrived_ns, answered_ns, load_bytes: 0 }
        });
        arrivals.extend(arrived_ns.map(|arrived_ns| ArrivalRow { seq: probes.len() as u64, arrived_ns }));
        probes.push(Probe { t_ns: at(sent_ms), ttl: 0, reply, error: None });
    }
    let goodput = samples.received.iter().map(|&(ms, bytes)| GoodputRow { t_ns: at(ms), bytes }).collect();
    let phases = samples.phases.iter().map(|phase| PhaseRecord {
        kind: phase.kind,
        start_ns: at(phase.start_ms),
        end_ns: at(phase.end_ms),
        levelled: phase.levelled,
        load_failure: None,
    });
    let unknown = ["the queues of this device", "the kind of its link", "the hops of the path"];
    Measurement {
        start_ns: page.began_ns,
        phases: phases.collect(),
        probes,
        exchanges: Vec::new(),
        marks: Vec::new(),
        client: EndRecords { goodput, ..EndRecords::default() },
        facts: EndFacts {
            unknown: unknown.map(|what| format!("{what}: a browser does not report them")).to_vec(),
            ..EndFacts::default()
        },
        distance: None,
        server: Some(ServerRecords { arrivals, ..server }),
        other: OtherServer::default(),
        far: FarEnd::of(&page.welcome),
        server_facts: page.welcome.end.clone(),
        stamped_by_kernel: false,
        send_errors_ns: Vec::new(),
        ended_early: samples.reason.clone(),
        warnings: Vec::new(),
    }
}

/// A ping that so many later ones overtake, on other connections, was lost: queues do not change the order of packets.
const OVERTAKEN: usize = 3;
/// It is looked at so many later ones.
const LATER: usize = 400;

/// Whether later pings have come before this one.
fn is_overtaken<T: PartialOrd + Copy>(came: &[Option<T>], number: usize) -> bool {
    let Some(own) = came[number] else { return false };
    let later = came[number + 1..].iter().take(LATER).flatten();
    later.filter(|other| **other < own).take(OVERTAKEN).count() == OVERTAKEN
}

/// Whether a ping measures the page's own lateness.
fn is_late(rtt_ms: f64, late_ms: f64) -> bool {
    late_ms > LATE_MS && late_ms > LATE_SHARE * rtt_ms
}

/// The part of a phase's pings that the page was too late for.
fn late_share(samples: &Samples, phase: PhaseTimes) -> f64 {
    let of_phase = samples.pings.iter().filter(|ping| (phase.start_ms..=phase.end_ms).contains(&ping.0));
    let late: Vec<bool> =
        of_phase.filter_map(|&(sent, back, late)| back.map(|back| is_late(back - sent, late))).collect();
    match late.len() {
        0 => 0.0,
        all => late.iter().filter(|late| **late).count() as f64 / all as f64,
    }
}

/// Whether the browser limited a loaded phase.
fn bottleneck(phase: &PhaseVerdict, late: f64) -> Option<Bottleneck> {
    if late > MOST_LATE {
        return Some(Bottleneck::Late);
    }
    let of = |direction| phase.numbers.directions.iter().find(|numbers| numbers.direction == direction);
    let down = of(Direction::Down).filter(|numbers| numbers.loaded);
    let rise_ns = phase.numbers.added.p50_ns.zip(phase.numbers.threshold_ns);
    let rise_ns = rise_ns.filter(|(rise_ns, threshold_ns)| rise_ns > threshold_ns).map(|(rise_ns, _)| rise_ns as f64);
    let own_ns = down.and_then(|numbers| numbers.load?.rtt_rise_ns).map(|own_ns| own_ns as f64);
    let pings = phase.numbers.loaded.count as usize >= FEWEST;
    if let (Some(rise_ns), Some(own_ns), true) = (rise_ns, own_ns, pings)
        && own_ns < OWN_SHARE * rise_ns
    {
        return Some(Bottleneck::Slow);
    }
    match (phase.outcome.kind, phase.outcome.limit) {
        (OutcomeKind::NotFilled, Some(Limit::ReceiveWindow)) => Some(Bottleneck::Reading),
        (OutcomeKind::Clean, _) => {
            let up = of(Direction::Up).filter(|numbers| numbers.loaded).and_then(|numbers| numbers.goodput);
            up.filter(|goodput| goodput.mean_bps >= FAST_BPS).map(|_| Bottleneck::Unknown)
        }
        _ => None,
    }
}

/// What the delay of a phase means, in numbers from which the page makes sentences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Effects {
    phase: PhaseKind,
    /// The parts of the pings that exceed the idle round trip by more than 30 and 50 ms.
    above_30_ms: f64,
    above_50_ms: f64,
    /// The delay of a call from mouth to ear in one direction: half of the round trip that 95 % of the pings keep, and 40 ms
    /// for packets and their playout.
    call_ms: Option<f64>,
    /// The time for the round trips of a page of 100 kB, at the median round trip.
    page_ms: Option<f64>,
}

/// Round trips of a page of 100 kB over one new connection: the handshake, then windows of 10, 20 and 40 segments.
const PAGE_TRIPS: f64 = 4.0;
/// A packet of 20 ms, and as much for its playout.
const CALL_OWN_MS: f64 = 40.0;

fn effects(observed: &Observations, verdict: &Verdict) -> Vec<Effects> {
    let Some(idle_ns) = verdict.idle.rtt.p50_ns else { return Vec::new() };
    let of = |phase: &PhaseVerdict| {
        let echoes = &observed.phases.iter().find(|other| other.start_ns == phase.start_ns)?.echoes;
        let part_above = |limit_ms: i64| {
            let above = echoes
                .iter()
                .filter(|echo| echo.rtt_ns.is_none_or(|rtt_ns| rtt_ns.saturating_sub(idle_ns) > limit_ms * MS as i64));
            above.count() as f64 / echoes.len() as f64
        };
        let ms = |ns: i64| ns as f64 / MS as f64;
        (echoes.len() >= FEWEST).then(|| Effects {
            phase: phase.kind,
            above_30_ms: part_above(30),
            above_50_ms: part_above(50),
            call_ms: phase.numbers.loaded.p95_ns.map(|p95_ns| ms(p95_ns) / 2.0 + CALL_OWN_MS),
            page_ms: phase.numbers.loaded.p50_ns.map(|p50_ns| ms(p50_ns) * PAGE_TRIPS),
        })
    };
    verdict.phases.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use bufferscope_verdict::verdict::Grade;
    use proptest::prelude::*;

    use super::*;
    use crate::records::FlowRow;
    use crate::wire::SessionId;
    use crate::wire::control::SessionLimits;

    const BEGAN_NS: u64 = 1_700_000_000_000_000_000;

    /// A test with an idle phase of 5 s and an upload or download of 10 s, whose round trips are 20 ms and so many more under
    /// load; the server's clock is an hour ahead.
    fn planted(kind: &str, added_ms: f64, late_ms: f64) -> (Samples, ServerRecords) {
        let (mut pings, mut arrivals) = (Vec::new(), Vec::new());
        for number in 0..760_u64 {
            let sent = number as f64 * 25.0;
            let is_loaded = (5000.0..15000.0).contains(&sent);
            let jitter = (number * 7 % 10) as f64 / 20.0;
            let one_way = 10.0 + jitter + if is_loaded && kind == "upload" { added_ms } else { 0.0 };
            let rtt = 20.0 + jitter + if is_loaded { added_ms } else { 0.0 };
            pings.push(json!([sent, sent + rtt, if is_loaded { late_ms } else { 0.0 }]));
            let arrived_ns = BEGAN_NS + 3600 * 1_000_000_000 + ((sent + one_way) * 1e6) as u64;
            arrivals.push(ArrivalRow { seq: number, arrived_ns });
        }
        let text = json!({
            "interval_ms": 25.0,
            "phases": [
                {"kind": "idle", "start_ms": 0.0, "end_ms": 5000.0, "levelled": null},
                {"kind": kind, "start_ms": 5000.0, "end_ms": 15000.0, "levelled": true},
                {"kind": "cool_down", "start_ms": 15500.0, "end_ms": 19000.0, "levelled": null},
            ],
            "pings": pings,
            "received": (0..190).map(|tenth| json!([f64::from(tenth) * 100.0, tenth * 100_000])).collect::<Vec<_>>(),
            "reason": null,
        });
        let samples = Samples::parse(text.to_string().as_bytes()).unwrap();
        (samples, ServerRecords { arrivals, ..ServerRecords::default() })
    }

    fn page() -> Page {
        let welcome = Welcome {
            version: "0".to_owned(),
            session: SessionId(1),
            key: String::new(),
            seen_as: "192.0.2.1".to_owned(),
            limits: SessionLimits { seconds: 180, flows: 8, bytes: 1, rate_bps: None },
            end: EndFacts {
                link: LinkKind::Ethernet,
                link_bps: Some(10_000_000_000),
                qdisc: Some("noqueue".to_owned()),
                ..EndFacts::default()
            },
            shares: false,
            monitor: false,
        };
        Page { name: "192.0.2.7:47300".to_owned(), welcome, began_ns: BEGAN_NS, held_ns: HashMap::new() }
    }

    fn verdict(judged: &serde_json::Value) -> Verdict {
        serde_json::from_value(judged["events"][1]["verdict"].clone()).unwrap()
    }

    #[test]
    fn a_queue_is_found_and_its_place_is_not_guessed() {
        for (kind, direction) in [("upload", Direction::Up), ("download", Direction::Down)] {
            let (samples, server) = planted(kind, 150.0, 0.0);
            let judged = judged(&samples, server, &page());
            let verdict = verdict(&judged);
            let phase = &verdict.phases[0];
            assert_eq!((phase.outcome.kind, verdict.grade), (OutcomeKind::Queue, Some(Grade::C)));
            let added_ns = phase.numbers.added.p50_ns.unwrap();
            assert!((149..=151).contains(&(added_ns / 1_000_000)), "{added_ns}");
            assert_eq!(phase.locations.len(), 1, "{kind}");
            assert_eq!(phase.locations[0].direction, direction);
            assert_eq!(phase.locations[0].answer.text, "cannot tell where between this machine and the server");
            assert!(verdict.sentences[3].contains("its place is not"), "{}", verdict.sentences[3]);
            assert_eq!(judged["browser"][0]["bottleneck"], serde_json::Value::Null);
            assert!(judged["effects"][0]["above_50_ms"].as_f64() > Some(0.99));
        }
    }

    #[test]
    fn a_clean_path_has_no_queue() {
        let (samples, server) = planted("download", 0.0, 0.0);
        let verdict = verdict(&judged(&samples, server, &page()));
        assert_eq!((verdict.phases[0].outcome.kind, verdict.grade), (OutcomeKind::Clean, Some(Grade::APlus)));
    }

    #[test]
    fn a_browser_that_is_late_is_the_bottleneck_and_no_queue() {
        let (samples, server) = planted("upload", 150.0, 60.0);
        let judged = judged(&samples, server, &page());
        assert_eq!(judged["browser"][0]["bottleneck"], "late");
        assert_eq!(verdict(&judged).phases[0].outcome.kind, OutcomeKind::CannotTell);
    }

    #[test]
    fn a_browser_that_is_slow_while_the_load_is_not_is_the_bottleneck_and_no_queue() {
        let rows = |own_ms: u64| {
            (50..150).map(move |tenth| FlowRow {
                t_ns: BEGAN_NS + 3600 * 1_000_000_000 + tenth * 100_000_000,
                srtt_ns: (20 + own_ms) * MS,
                min_rtt_ns: Some(20 * MS),
                busy_us: (tenth - 50) * 100_000,
                delivered_bytes: (tenth - 50) * 100_000,
                ..FlowRow::default()
            })
        };
        let outcome = |own_ms| {
            let (samples, mut server) = planted("download", 150.0, 0.0);
            server.end.flows = rows(own_ms).collect();
            let judged = judged(&samples, server, &page());
            (judged["browser"][0]["bottleneck"].clone(), verdict(&judged).phases[0].outcome.kind)
        };
        assert_eq!(outcome(1), (json!("slow"), OutcomeKind::CannotTell));
        assert_eq!(outcome(149), (json!(null), OutcomeKind::Queue));
    }

    #[test]
    fn a_ping_that_later_ones_overtake_was_lost_in_its_direction() {
        for (up_ms, down_ms, lost) in [(300, 0, "up"), (0, 300, "down")] {
            let (mut samples, mut server) = planted("upload", 0.0, 0.0);
            for number in (220..600).step_by(10) {
                samples.pings[number].1 = samples.pings[number].1.map(|back| back + f64::from(up_ms + down_ms));
                server.arrivals[number].arrived_ns += u64::from(up_ms as u32) * MS;
            }
            let judged = judged(&samples, server, &page());
            let echoes = judged["events"][1]["observations"]["phases"][1]["echoes"].as_array().unwrap();
            let lost_there = echoes.iter().filter(|echo| echo["lost"] == lost && echo["rtt_ns"].is_null()).count();
            assert!((36..=38).contains(&lost_there), "{lost_there}");
            let verdict = verdict(&judged);
            assert_ne!(verdict.phases[0].outcome.kind, OutcomeKind::Queue);
            assert!(verdict.phases[0].numbers.added.max_ns < Some(10_000_000));
        }
    }

    #[test]
    fn samples_are_bounded() {
        let text = |phases: &str, pings: &str, received: &str| {
            format!(
                r#"{{"interval_ms": 25, "phases": [{phases}], "pings": [{pings}], "received": [{received}], "reason": null}}"#
            )
        };
        let parse =
            |phases: &str, pings: &str, received: &str| Samples::parse(text(phases, pings, received).as_bytes());
        let phase = r#"{"kind": "idle", "start_ms": 0, "end_ms": 1, "levelled": null}"#;
        assert!(parse(phase, "[0, 1, 0], [1, null, 0]", "[0, 1]").is_ok());
        assert!(matches!(parse(&[phase; MOST_PHASES + 1].join(","), "", ""), Err(NotSamples::TooMany("phases"))));
        assert!(matches!(parse("", &["[0,1,0]"; MOST_PINGS + 1].join(","), ""), Err(NotSamples::TooMany("pings"))));
        assert!(matches!(parse("", "", &["[0,1]"; MOST_COUNTS + 1].join(",")), Err(NotSamples::TooMany("counts"))));
        for wrong in ["[1, 0, 0]", "[-1, 0, 0]", "[0, 1e300, 0]", "[0, 1, -1]"] {
            assert!(matches!(parse("", wrong, ""), Err(NotSamples::Time)), "{wrong}");
        }
        let backwards = r#"{"kind": "idle", "start_ms": 2, "end_ms": 1, "levelled": null}"#;
        assert!(matches!(parse(backwards, "", ""), Err(NotSamples::Time)));
        for wrong in ["", "{}", "[]", r#"{"interval_ms": "25"}"#, "{\"more\": 1}", "[[[["] {
            assert!(matches!(Samples::parse(wrong.as_bytes()), Err(NotSamples::Unknown(_))), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_samples_have_a_verdict(
            pings in proptest::collection::vec((0.0..100_000.0, proptest::option::of(0.0..100_000.0), 0.0..100.0), 0..200),
            times in proptest::collection::vec((0.0..100_000.0, 0.0..100_000.0), 0..8),
            received in proptest::collection::vec((0.0..100_000.0, any::<u64>()), 0..50),
        ) {
            let kinds = [PhaseKind::Idle, PhaseKind::Download, PhaseKind::Upload, PhaseKind::Both];
            let samples = Samples {
                way: if times.len() % 2 == 1 { Way::Webrtc } else { Way::Websocket },
                waited: Vec::new(),
                interval_ms: 25.0,
                phases: times.iter().enumerate().map(|(number, (a, b))| PhaseTimes {
                    kind: kinds[number % 4], start_ms: f64::min(*a, *b), end_ms: f64::max(*a, *b), levelled: None,
                }).collect(),
                pings: pings.into_iter().map(|(sent, rtt, late): (f64, Option<f64>, f64)| (sent, rtt.map(|rtt| sent + rtt), late)).collect(),
                received,
                reason: None,
            };
            let arrivals = (0..200).map(|seq| ArrivalRow { seq, arrived_ns: BEGAN_NS + seq }).collect();
            let judged = judged(&samples, ServerRecords { arrivals, ..ServerRecords::default() }, &page());
            prop_assert!(judged["events"][1]["verdict"]["sentences"].is_array());
        }
    }
}
