//! `bufferscope-live measure`.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bufferscope_verdict::{Observations, Verdict};
use clap::Args;
use hyper::Uri;
use serde_json::json;

use crate::client::observe::observations;
use crate::client::secure::parse_fingerprint;
use crate::client::{COOL_DOWN, Event, FarEnd, IDLE, Measurement, Settings, measure};
use crate::time::MS;
use crate::wire::DEFAULT_PORT;
use crate::wire::control::PhaseKind;
use crate::wire::load::SendBuffer;
use crate::wire::token::Token;

pub mod monitor;
mod others;
mod table;

/// Its options.
#[derive(Debug, Args)]
pub struct MeasureArguments {
    /// The server: a name or an address, with a port if it is not 47300; or the URL of a server that is not one of bufferscope:
    /// https://HOST[:PORT][/PATH] for responsiveness (RPM), ndt7://HOST[:PORT] or wss://HOST[:PORT]/ndt/v7 for ndt7
    #[arg(value_name = "SERVER")]
    host: String,
    /// The token that `serve` printed; other users of this machine can see it while the test runs, unlike in a file or in the environment
    #[arg(long, env = "BUFFERSCOPE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// Read the token from the first line of a file, such as the one that `serve --token-file` keeps
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// Phases between the idle one and the cool-down, in their order [default: download,upload,both; with a URL: download,upload]
    #[arg(long, value_delimiter = ',', value_name = "PHASES")]
    phases: Vec<Loaded>,
    /// Probe without load
    #[arg(long, conflicts_with = "phases")]
    idle: bool,
    /// Load connections in each direction [default: 4, and more as long as they make the load faster, up to 16]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=64))]
    flows: Option<u16>,
    /// Congestion control of the load, by its name in Linux; empty: the default of each end
    #[arg(long, default_value = "cubic", value_name = "NAME")]
    congestion: String,
    /// Let the load's send buffers grow as the kernel likes, as for most programs, to see how long their data waits there
    #[arg(long)]
    kernel_send_buffer: bool,
    /// After the load, send a flood of UDP packets in each direction, for 5 s at most and at twice the goodput at most, to see the worst case of the buffers; the server must accept it (`serve --accept-flood`)
    #[arg(long, conflicts_with_all = ["idle", "continuous"])]
    flood: bool,
    /// Interface whose queues are looked at [default: the one of the route to the server]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Longest duration of a loaded phase in seconds [default: 30; with --draft 09: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(10..=120))]
    at_most: Option<u64>,
    /// Time between two probes in milliseconds
    #[arg(long, default_value_t = 20, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u64).range(5..=1000))]
    interval: u64,
    /// With the URL of a server: trust any certificate
    #[arg(long, conflicts_with = "fingerprint")]
    insecure: bool,
    /// With the URL of a server: trust the certificate with this SHA-256, 64 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = parse_fingerprint)]
    fingerprint: Option<[u8; 32]>,
    /// With https://: the intervals of the draft's version 09, 5 s, instead of the 1 s of its earlier versions and of most programs
    #[arg(long, value_name = "VERSION")]
    draft: Option<Draft>,
    /// Watch the connection for hours: an echo a second, and no load unless --load-every asks for it
    #[arg(long, conflicts_with = "idle")]
    continuous: bool,
    /// How long to watch, as in 90s, 30min, 12h or 6d [default: until Ctrl-C, 6d at most]
    #[arg(long = "for", value_name = "DURATION", requires = "continuous", value_parser = monitor::duration)]
    lasts: Option<Duration>,
    /// While watching, test with load this often, as in 6h; each test takes a minute or two and waits for its turn
    #[arg(long, value_name = "DURATION", requires = "continuous", value_parser = monitor::duration)]
    load_every: Option<Duration>,
    /// Print what happens as lines of JSON
    #[arg(long)]
    events: bool,
    /// Print one JSON document at the end, which has the keys of the last line of --events except for the observations
    #[arg(long, conflicts_with = "events")]
    json: bool,
    /// Use IPv4
    #[arg(short = '4', conflicts_with = "v6")]
    v4: bool,
    /// Use IPv6
    #[arg(short = '6')]
    v6: bool,
}

/// A version of draft-ietf-ippm-responsiveness whose defaults differ from those that most programs use.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Draft {
    #[value(name = "09")]
    Version09,
}

/// A phase with load.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum Loaded {
    Idle,
    Download,
    Upload,
    Both,
}

/// What a URL may be.
const URLS: &str = "allowed: https://HOST[:PORT][/PATH], ndt7://HOST[:PORT], wss:// or ws://HOST[:PORT]/ndt/v7";
/// The longest duration of a loaded phase, unless another one is asked for.
const AT_MOST_S: u64 = 30;

impl MeasureArguments {
    /// The server's URL, unless it is one of bufferscope.
    fn url(&self) -> Option<Result<Uri, String>> {
        self.is_url().then(|| self.host.parse().map_err(|_| format!("{}: {URLS}", self.host)))
    }

    /// Whether the server has a URL, so that it is not one of bufferscope.
    pub fn is_url(&self) -> bool {
        self.host.contains("://")
    }

    /// All phases, with these as the loaded ones if none are named.
    fn phases(&self, loaded: &[Loaded]) -> Vec<PhaseKind> {
        let mut phases = vec![PhaseKind::Idle];
        if !self.idle {
            let chosen = if self.phases.is_empty() { loaded } else { &self.phases };
            phases.extend(chosen.iter().filter_map(|phase| match phase {
                Loaded::Idle => None,
                Loaded::Download => Some(PhaseKind::Download),
                Loaded::Upload => Some(PhaseKind::Upload),
                Loaded::Both => Some(PhaseKind::Both),
            }));
            phases.push(PhaseKind::CoolDown);
        }
        phases
    }
}

/// Runs a test.
pub async fn run(arguments: &MeasureArguments) -> Result<ExitCode, String> {
    let url = arguments.url().transpose()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let (terminated, flag) = (signals()?, Arc::clone(&interrupted));
    tokio::spawn(async move {
        let mut terminated = terminated;
        loop {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            if flag.swap(true, Ordering::Relaxed) {
                // Asked twice, so it does not wait for the server's records.
                std::process::exit(130);
            }
        }
    });
    if let Some(url) = url {
        return others::run(arguments, &url, &interrupted).await;
    }
    let settings = settings(arguments)?;
    if arguments.continuous {
        return monitor::run(arguments, settings, &interrupted).await;
    }
    let printer = Printer::new(arguments, Begun::with(&arguments.host, &settings));
    let measurement =
        measure(&settings, &interrupted, |event| printer.event(&event)).await.map_err(|error| error.to_string())?;
    let observed = observations(&measurement, settings.interval.as_nanos() as u64);
    let verdict = bufferscope_verdict::judge(&observed);
    printer.end(&measurement, &observed, &verdict);
    Ok(if measurement.ended_early.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn signals() -> Result<tokio::signal::unix::Signal, String> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map_err(|error| error.to_string())
}

fn settings(arguments: &MeasureArguments) -> Result<Settings, String> {
    let token: Token = match (&arguments.token, &arguments.token_file) {
        (Some(token), _) => token.parse().map_err(|error| format!("--token: {error}"))?,
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            let first_line = text.lines().next().unwrap_or_default();
            first_line.parse().map_err(|error| format!("{}: {error}", file.display()))?
        }
        (None, None) => {
            return Err("no token: give the one that `bufferscope serve` printed with --token, --token-file or in BUFFERSCOPE_TOKEN".to_owned());
        }
    };
    Ok(Settings {
        server: resolve(&arguments.host, arguments.v4, arguments.v6)?,
        token,
        phases: arguments.phases(&[Loaded::Download, Loaded::Upload, Loaded::Both]),
        flows: arguments.flows,
        congestion: arguments.congestion.clone(),
        send_buffer: if arguments.kernel_send_buffer { SendBuffer::Kernel } else { SendBuffer::Short },
        interface: arguments.interface.clone(),
        at_most: Duration::from_secs(arguments.at_most.unwrap_or(AT_MOST_S)),
        flood: arguments.flood,
        interval: Duration::from_millis(arguments.interval),
        idle: IDLE,
        cool_down: COOL_DOWN,
    })
}

fn resolve(host: &str, v4: bool, v6: bool) -> Result<SocketAddr, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok((address, DEFAULT_PORT).into());
    }
    let found = match host.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => host.to_socket_addrs(),
        Some((_, port)) => return Err(format!("{host}: found the port `{port}`; allowed: a number from 1 to 65535")),
        None => (host, DEFAULT_PORT).to_socket_addrs(),
    };
    let addresses: Vec<_> = found.map_err(|error| format!("{host}: {error}"))?.collect();
    let wanted = addresses.iter().find(|address| (!v4 || address.is_ipv4()) && (!v6 || address.is_ipv6()));
    wanted.copied().ok_or_else(|| format!("{host}: has no address of the wanted kind"))
}

/// Prints what happens: as JSON for a program, or as text.
struct Printer<'a> {
    events: bool,
    json: bool,
    begun: Begun<'a>,
}

impl<'a> Printer<'a> {
    fn new(arguments: &MeasureArguments, begun: Begun<'a>) -> Self {
        Self { events: arguments.events, json: arguments.json, begun }
    }

    fn event(&self, event: &Event<'_>) {
        let ms = |ns: u64| ns as f64 / MS as f64;
        let mbit = |bps: Option<f64>| bps.map(|bps| bps / 1e6);
        match event {
            Event::Queued(position) if self.events => self.line(&json!({"event": "queued", "position": position})),
            Event::Queued(position) => self.text(&format!("waiting: {position} before this test")),
            Event::Start(address, far, facts) if self.events => {
                self.line(&self.begun.event(*address, far, &facts.kernel));
            }
            Event::Start(address, ..) => self.text(&format!("testing the connection to {address}")),
            Event::Phase(phase, t_ns, at_most_s) if self.events => self.line(&json!({
                "event": "phase", "phase": phase, "t_ns": t_ns, "at_most_s": at_most_s,
            })),
            Event::Phase(phase, _, at_most_s) => self.text(&format!("{}: at most {at_most_s} s", phase.name())),
            Event::Progress(progress) if self.events => self.line(&json!({
                "event": "progress",
                "t_ns": progress.t_ns,
                "phase": progress.phase,
                "rtt_ms": progress.rtt_ns.map(ms),
                "down_mbit": mbit(progress.rates_bps[0]),
                "up_mbit": mbit(progress.rates_bps[1]),
                "left_s": progress.left_s,
            })),
            Event::Progress(_) => {}
            Event::Warning(text) if self.events => self.line(&json!({"event": "warning", "text": text})),
            Event::Warning(text) => self.text(&format!("warning: {text}")),
        }
    }

    fn end(&self, measurement: &Measurement, observed: &Observations, verdict: &Verdict) {
        let warnings = measurement.warnings.iter().chain(&measurement.client.failures);
        let of_server = measurement.server.iter().flat_map(|server| &server.end.failures);
        let mut shown: Vec<&String> = Vec::new();
        for warning in warnings.chain(of_server) {
            if !shown.contains(&warning) {
                shown.push(warning);
                self.event(&Event::Warning(warning.clone()));
            }
        }
        if self.events {
            self.line(&end(measurement, observed, verdict));
            return;
        }
        if let Some(reason) = &measurement.ended_early {
            self.text(&format!("the test ended early: {reason}"));
        }
        if self.json {
            print_document(end(measurement, observed, verdict));
            return;
        }
        let mut out = io::stdout().lock();
        for sentence in &verdict.sentences {
            let _ = writeln!(out, "{sentence}");
        }
        let _ = write!(out, "\n{}", table::numbers(verdict, observed));
    }

    fn line(&self, event: &serde_json::Value) {
        print_line(event);
    }

    fn text(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// A line of JSON on standard output.
fn print_line(event: &serde_json::Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{event}");
    let _ = out.flush();
}

/// The last event as a document of its own, without the observations, which are long.
fn print_document(mut event: serde_json::Value) {
    if let Some(keys) = event.as_object_mut() {
        keys.retain(|key, _| key != "event" && key != "observations");
    }
    print_line(&event);
}

/// What is known of a test before it begins.
struct Begun<'a> {
    host: &'a str,
    phases: &'a [PhaseKind],
    parameters: serde_json::Value,
}

impl<'a> Begun<'a> {
    /// A test with a server of bufferscope.
    fn with(host: &'a str, settings: &'a Settings) -> Self {
        let parameters = json!({
            "congestion": settings.congestion,
            "flows": settings.flows,
            "at_most_s": settings.at_most.as_secs(),
            "interval_ms": settings.interval.as_millis() as u64,
        });
        Self { host, phases: &settings.phases, parameters }
    }

    /// The event with which the test begins.
    fn event(&self, address: SocketAddr, far: &FarEnd, kernel: &str) -> serde_json::Value {
        json!({
            "event": "start",
            "version": env!("CARGO_PKG_VERSION"),
            "host": self.host,
            "address": address.to_string(),
            "realtime_ns": crate::time::realtime_ns(),
            "phases": self.phases,
            "parameters": self.parameters,
            "server": {"version": far.version, "kernel": far.kernel},
            "client": {"kernel": kernel},
            "seen_as": far.seen_as,
        })
    }
}

/// The event with which a test ends.
fn end(measurement: &Measurement, observed: &Observations, verdict: &Verdict) -> serde_json::Value {
    json!({
        "event": "end",
        "complete": measurement.ended_early.is_none(),
        "reason": measurement.ended_early,
        "observations": observed,
        "verdict": verdict,
        "accuracy": accuracy(measurement.stamped_by_kernel, &measurement.send_errors_ns),
    })
}

/// How exact the times are.
fn accuracy(stamped_by_kernel: bool, send_errors_ns: &[u64]) -> serde_json::Value {
    json!({
        "rx_stamps": if stamped_by_kernel { "kernel" } else { "user" },
        "timing_error_p99_ns": p99(send_errors_ns),
    })
}

/// The 99th percentile; `None` without values.
fn p99(values: &[u64]) -> Option<u64> {
    let mut values = values.to_vec();
    let at = values.len().checked_sub(1)? * 99 / 100;
    Some(*values.select_nth_unstable(at).1)
}
