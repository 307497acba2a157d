//! `bufferscope-live measure --continuous`.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bufferscope_endpoint::clock::local_time;
use bufferscope_verdict::Observations;
use bufferscope_verdict::input::{Ends, Parameters, Phase, PhaseKind};
use bufferscope_verdict::monitor::{Episode, EpisodeKind};
use serde_json::json;

use super::{Begun, MeasureArguments, accuracy, end, print_line, resolve};
use crate::client::monitor::{Happening, Loaded, State, Watched, monitor};
use crate::client::{Event, FarEnd, Settings, monitor as client};
use crate::time::{MS, SECOND, realtime_ns};

/// Time between two echoes, unless `--interval` is given.
const INTERVAL: Duration = Duration::from_secs(1);
/// No test with load follows another one sooner.
const LEAST_BETWEEN_LOADS: Duration = Duration::from_secs(300);

/// For how long a connection can be watched.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(6 * 86_400);

/// A duration such as `90s`, `30min`, `12h` or `6d`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit.trim() {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("found `{text}`; allowed: a number with s, min, h or d, as in 12h")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("found `{text}`; allowed: a number with its unit, as in 12h"))?;
    let found = Duration::try_from_secs_f64(number * seconds).unwrap_or(Duration::MAX);
    match (SHORTEST..=LONGEST).contains(&found) {
        true => Ok(found),
        false => Err(format!("found `{text}`; allowed: 10s to 6d")),
    }
}

/// Watches a connection.
pub(super) async fn run(
    arguments: &MeasureArguments,
    load: Settings,
    interrupted: &AtomicBool,
) -> Result<ExitCode, String> {
    if arguments.load_every.is_some_and(|every| every < LEAST_BETWEEN_LOADS) {
        return Err(format!("--load-every: allowed: {} min and more", LEAST_BETWEEN_LOADS.as_secs() / 60));
    }
    let find = || resolve(&arguments.host, arguments.v4, arguments.v6);
    let settings = client::Settings {
        resolve: &find,
        token: load.token.clone(),
        interface: load.interface.clone(),
        interval: INTERVAL,
        lasts: Some(arguments.lasts.unwrap_or(LONGEST)),
        loads: arguments.load_every.map(|every| (every, load.clone())),
    };
    let mut printer = Printer {
        arguments,
        load: &load,
        began_ns: realtime_ns(),
        t_ns: 0,
        is_terminal: io::stderr().is_terminal(),
        phase: None,
    };
    let watched = monitor(&settings, interrupted, |happening| printer.take(&happening))
        .await
        .map_err(|error| error.to_string())?;
    printer.end(&watched);
    Ok(ExitCode::SUCCESS)
}

/// Prints what happens: as JSON for a program, or as text with local times.
struct Printer<'a> {
    arguments: &'a MeasureArguments,
    load: &'a Settings,
    /// When the monitor began, on the real-time clock, as that is set now.
    began_ns: u64,
    /// The monitor's time.
    t_ns: i64,
    is_terminal: bool,
    /// The phase of a test with load that runs.
    phase: Option<PhaseKind>,
}

impl Printer<'_> {
    fn take(&mut self, happening: &Happening<'_>) {
        match (happening, self.arguments.events) {
            (Happening::Start(server, welcome, facts), true) => {
                let settings = Settings {
                    server: *server,
                    phases: vec![PhaseKind::Idle],
                    interval: INTERVAL,
                    ..self.load.clone()
                };
                let begun = Begun::with(&self.arguments.host, &settings);
                let mut event = begun.event(settings.server, &FarEnd::of(welcome), &facts.kernel);
                event["continuous"] = json!(true);
                print_line(&event);
            }
            (Happening::Start(server, ..), false) => {
                self.text(&format!("watching the connection to {server}; Ctrl-C ends it"))
            }
            (Happening::State(state), events) => {
                self.t_ns = state.t_ns;
                self.began_ns = realtime_ns().saturating_add_signed(state.t_ns.saturating_neg());
                if events {
                    print_line(&state_event(state));
                } else {
                    self.moving(state);
                }
            }
            (Happening::Samples(phase), true) => print_line(&json!({"event": "samples", "phase": phase})),
            (Happening::Samples(_), false) => {}
            (Happening::Episode(episode), true) => print_line(&json!({"event": "episode", "episode": episode})),
            (Happening::Episode(episode), false) => self.episode(episode),
            (Happening::Warning(text), true) => print_line(&json!({"event": "warning", "text": text})),
            (Happening::Warning(text), false) => self.text(&format!("warning: {text}")),
            (Happening::Loading(event), events) => self.loading(event, events),
            (Happening::Loaded(loaded), true) => self.loaded(loaded),
            (Happening::Loaded(loaded), false) => {
                self.phase = None;
                for sentence in &loaded.verdict.sentences {
                    self.text(&format!("  {sentence}"));
                }
            }
        }
    }

    fn loading(&mut self, event: &Event<'_>, events: bool) {
        let ms = |ns: u64| ns as f64 / MS as f64;
        match event {
            Event::Queued(position) if events => print_line(&json!({"event": "queued", "position": position})),
            Event::Phase(phase, t_ns, at_most_s) if events => {
                print_line(&json!({"event": "phase", "phase": phase, "t_ns": t_ns, "at_most_s": at_most_s}));
            }
            Event::Phase(phase, ..) => self.phase = Some(*phase),
            Event::Progress(progress) if events => print_line(&json!({
                "event": "progress",
                "t_ns": progress.t_ns,
                "phase": progress.phase,
                "rtt_ms": progress.rtt_ns.map(ms),
                "down_mbit": progress.rates_bps[0].map(|bps| bps / 1e6),
                "up_mbit": progress.rates_bps[1].map(|bps| bps / 1e6),
                "left_s": progress.left_s,
            })),
            Event::Warning(text) => self.take(&Happening::Warning(text.clone())),
            Event::Queued(_) | Event::Progress(_) | Event::Start(..) => {}
        }
    }

    /// A test with load is printed as two events in one: the same as those of a test of its own.
    fn loaded(&mut self, loaded: &Loaded) {
        self.phase = None;
        let measurement = &loaded.measurement;
        let begun = Begun::with(&self.arguments.host, self.load);
        let mut began = begun.event(self.load.server, &measurement.far, &measurement.facts.kernel);
        began["realtime_ns"] = json!(measurement.start_ns);
        let ended = end(measurement, &loaded.observations, &loaded.verdict);
        print_line(&json!({"event": "loaded", "start": began, "end": ended}));
    }

    /// Standard output has the episodes, unless it has a document.
    fn episode(&self, episode: &Episode) {
        if self.arguments.json {
            return self.text(&self.line(episode));
        }
        let _ = write!(io::stderr(), "{}", self.clear());
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{}", self.line(episode));
        let _ = out.flush();
    }

    /// An episode on one line: `20:15:03 to 20:27:40, 12 min: packets were 180 ms late (median), ... on the way down`.
    fn line(&self, episode: &Episode) -> String {
        let from = self.clock(episode.start_ns);
        let lasted_s = (episode.end_ns - episode.start_ns).max(0) / SECOND as i64;
        if matches!(episode.kind, EpisodeKind::Path | EpisodeKind::Address) {
            return format!("{from}: {}", episode.text);
        }
        let lasted = if lasted_s < 120 { format!("{lasted_s} s") } else { format!("{} min", (lasted_s + 30) / 60) };
        format!("{from} to {}, {lasted}: {}", self.clock(episode.end_ns), episode.text)
    }

    /// A time of the monitor as local time, with the day if that is another one than today.
    fn clock(&self, t_ns: i64) -> String {
        let stamp = |ns: u64| local_time(ns / SECOND).map(|time| time.to_string());
        let (then, now) = (stamp(self.began_ns.saturating_add_signed(t_ns)), stamp(realtime_ns()));
        match (then, now) {
            (Some(then), Some(now)) if then.get(..10) == now.get(..10) => then.get(11..).unwrap_or_default().to_owned(),
            (Some(then), _) => then,
            (None, _) => format!("{} s", t_ns / SECOND as i64),
        }
    }

    /// The line that is written again and again on a terminal.
    fn moving(&self, state: &State<'_>) {
        if !self.is_terminal {
            return;
        }
        let ms = |ns: i64| format!("{:.1} ms", ns as f64 / MS as f64);
        let text = match (state.gap, self.phase, state.rtt_ns) {
            (Some((from_ns, reason)), ..) => format!("not measured since {}: {reason}", self.clock(from_ns)),
            (None, Some(phase), _) => format!("a test with load: {}", phase.name()),
            (None, None, Some(rtt_ns)) => {
                let base = state.now.base_ns.map_or(String::new(), |base| format!(" (undisturbed {})", ms(base)));
                let late =
                    state.now.late_since_ns.map_or(String::new(), |from| format!(", late since {}", self.clock(from)));
                let lossy = state
                    .now
                    .lossy_since_ns
                    .map_or(String::new(), |from| format!(", losses since {}", self.clock(from)));
                format!("round trip {}{base}{late}{lossy}", ms(rtt_ns as i64))
            }
            (None, None, None) => "no answer".to_owned(),
        };
        let mut out = io::stderr().lock();
        let _ = write!(out, "{}{} {text}", self.clear(), self.clock(state.t_ns));
        let _ = out.flush();
    }

    fn clear(&self) -> &'static str {
        if self.is_terminal { "\r\x1b[K" } else { "" }
    }

    fn text(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{}{text}", self.clear());
    }

    fn end(&self, watched: &Watched) {
        let verdict = watched.summary.verdict(|t_ns| self.clock(t_ns));
        if !self.arguments.events && !self.arguments.json {
            let mut out = io::stdout().lock();
            let _ = write!(io::stderr(), "{}", self.clear());
            for sentence in &verdict.sentences {
                let _ = writeln!(out, "{sentence}");
            }
            return;
        }
        let stretch =
            |&(start_ns, end_ns): &(i64, i64)| Phase { kind: PhaseKind::Idle, start_ns, end_ns, ..Phase::default() };
        let [client, server] = watched.ends.clone();
        let observed = Observations {
            phases: watched.stretches.iter().map(stretch).collect(),
            ends: Ends { client, server },
            parameters: Parameters { probe_interval_ns: Some(INTERVAL.as_nanos() as i64), ..Parameters::default() },
            floods: Vec::new(),
        };
        let event = json!({
            "event": "end",
            "complete": true,
            "reason": null,
            "observations": observed,
            "verdict": verdict,
            "monitor": watched.summary,
            "accuracy": accuracy(watched.stamped_by_kernel, &watched.send_errors_ns),
        });
        if self.arguments.json { super::print_document(event) } else { print_line(&event) }
    }
}

fn state_event(state: &State<'_>) -> serde_json::Value {
    json!({
        "event": "state",
        "t_ns": state.t_ns,
        "rtt_ms": state.rtt_ns.map(|ns| ns as f64 / MS as f64),
        "base_ms": state.now.base_ns.map(|ns| ns as f64 / MS as f64),
        "late_since_ns": state.now.late_since_ns,
        "lossy_since_ns": state.now.lossy_since_ns,
        "gap_since_ns": state.gap.map(|(from_ns, _)| from_ns),
        "gap_reason": state.gap.map(|(_, reason)| reason),
        "left_s": state.left.map(|left| left.as_secs_f64()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_limits() {
        let seconds = |text| duration(text).map(|found| found.as_secs());
        assert_eq!(["90s", "1.5min", "12h", "6d"].map(seconds), [Ok(90), Ok(90), Ok(43_200), Ok(518_400)]);
        for wrong in ["", "12", "h", "-3h", "1e9d", "5s", "7d", "3 weeks", "..s"] {
            assert!(duration(wrong).unwrap_err().contains("allowed"), "{wrong}");
        }
    }
}
