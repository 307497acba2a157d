//! `bufferscope-live serve`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::server::allow::Network;
use crate::server::certificate::{Files, Identity};
use crate::server::handover::Inherited;
use crate::server::limits::Limits;
use crate::server::{Settings, serve_after};
use crate::udp::internet_address;
use crate::wire::DEFAULT_PORT;
use crate::wire::control::SessionLimits;
use crate::wire::token::Token;

/// Its options.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Address to listen on, TCP and UDP, as in `0.0.0.0:47300` or `[::]:47300`; may be repeated [default: port 47300 on all addresses]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// Keep the token and the certificate in this file, which is created if it does not exist; without it, each start has new ones
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Ask for no token; the limits of `--seconds`, `--bytes`, `--bytes-per-hour`, `--tests`, `--tests-per-hour` and `--rate` must then be given
    #[arg(long)]
    public: bool,
    /// Take clients of this network only, as in `192.0.2.0/24`; may be repeated [default: all]
    #[arg(long, value_name = "NETWORK")]
    allow: Vec<Network>,
    /// Longest duration of a test in seconds [default: 180]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(10..=3600))]
    seconds: Option<u64>,
    /// Gigabytes of load of a test, both directions together [default: 200]
    #[arg(long, value_name = "GIGABYTES", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    bytes: Option<u64>,
    /// Gigabytes of load of an address in an hour [default: 1000]
    #[arg(long, value_name = "GIGABYTES", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    bytes_per_hour: Option<u64>,
    /// Tests at the same time; more than one falsify each other [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=64))]
    tests: Option<u16>,
    /// Tests of an address in an hour [default: 60]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tests_per_hour: Option<u64>,
    /// Tests of all addresses in an hour
    #[arg(long, value_name = "NUMBER", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    all_tests_per_hour: u64,
    /// Megabits per second that the server sends, all tests together [default: no limit]
    #[arg(long, value_name = "MBIT/S", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: Option<u64>,
    /// Clients that may wait for their test
    #[arg(long, value_name = "NUMBER", default_value_t = 256, value_parser = clap::value_parser!(u16).range(0..=4096))]
    waiting: u16,
    /// Load connections of a test in each direction
    #[arg(long, value_name = "NUMBER", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=128))]
    flows: u16,
    /// Clients at the same time that watch their connection with `measure --continuous`, 4 of one address at most; they have no load
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u16).range(0..=4096))]
    monitors: u16,
    /// Answer other people's clients too (responsiveness, ndt7, Cloudflare's engine, LibreSpeed), over HTTP/1.1 and HTTP/2: those that have the token's secret in their address, and with `--public` or `--allow` also those without it
    #[arg(long)]
    compatible: bool,
    /// Accept floods of UDP packets, which show the worst case of a buffer (`measure --flood`), up to so many megabits per second, for 5 s in each direction [default: none]
    #[arg(long, value_name = "MBIT/S", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    accept_flood: Option<u64>,
    /// Announce the server on the local network (`_nq._tcp` of DNS-SD), so that clients of responsiveness find it; needs `--compatible`, and `--public` or `--allow`
    #[arg(long, requires = "compatible")]
    announce: bool,
    /// End after the first test
    #[arg(long)]
    once: bool,
    /// The certificate that browsers get, followed by those of its issuers (PEM); SIGHUP reads it again [default: the server's own]
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// The private key of `--certificate` (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Seconds that tests may go on after the first SIGTERM or Ctrl-C; the second one ends them at once
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=3600))]
    grace: u64,
    /// Serve metrics for Prometheus at `http://ADDRESS:PORT/metrics`; readers on other machines need the secret of the token file as a bearer token
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Print the state of the server that runs on this machine and listens on this port [default: 47300]
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "47300", conflicts_with_all = ["listen", "token_file", "public", "once", "metrics"])]
    status: Option<u16>,
    /// Print the state as JSON
    #[arg(long, requires = "status")]
    json: bool,
}

mod asking;

const MEGA: u64 = 1_000_000;
const GIGA: u64 = 1_000_000_000;

/// Serves until it is interrupted.
pub async fn run(arguments: &ServeArguments) -> Result<ExitCode, String> {
    if let Some(port) = arguments.status {
        return asking::print_status(port, arguments.json).await;
    }
    limits(arguments)?;
    if arguments.announce && !arguments.public && arguments.allow.is_empty() {
        return Err("--announce invites clients that know no token, so it needs --allow NETWORK or --public".to_owned());
    }
    if arguments.public && arguments.token_file.is_none() && arguments.metrics.is_some_and(|at| !at.ip().is_loopback())
    {
        return Err(
            "--metrics of a public server at an address of other machines needs --token-file: readers show its secret"
                .to_owned(),
        );
    }
    let before = Inherited::take().await.map_err(|error| format!("nothing to take over: {error}"))?;
    let of_before = before.as_ref().map(|before| (before.identity.clone(), before.token.clone()));
    let (identity, token) = match (&arguments.token_file, &of_before) {
        (Some(file), _) => kept(file)?,
        (None, Some(known)) => known.clone(),
        (None, None) => fresh()?,
    };
    let files = arguments.certificate.clone().zip(arguments.key.clone());
    let certificate = files.map(|(certificate, key)| Files::read(certificate, key).map(Arc::new)).transpose()?;
    let names = certificate.as_ref().map(|files| files.names()).unwrap_or_default();
    let metrics = arguments.metrics.map(|address| (address, token.clone()));
    let token = if arguments.public { token.public() } else { token };
    let mut settings = Settings {
        listen: arguments.listen.clone(),
        limits: limits(arguments)?,
        allow: arguments.allow.clone(),
        compatible: arguments.compatible,
        announce: arguments.announce,
        once: arguments.once,
        metrics,
        certificate: certificate.clone(),
        grace: Duration::from_secs(arguments.grace),
    };
    if settings.listen.is_empty() {
        settings.listen.push((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT).into());
        if has_ipv6() {
            settings.listen.push((Ipv6Addr::UNSPECIFIED, DEFAULT_PORT).into());
        }
    }
    let listen = settings.listen.clone();
    let shown = token.to_string();
    let is_known = of_before.is_some_and(|(_, known)| known == token);
    let print = |addresses: &[SocketAddr]| {
        if !is_known {
            print_lines(addresses, &shown, &names);
        }
    };
    let served = serve_after(before, settings, identity, token, print).await;
    served.map(|()| ExitCode::SUCCESS).map_err(|error| {
        let addresses: Vec<_> = listen.iter().map(SocketAddr::to_string).collect();
        format!("cannot listen on {}: {error}", addresses.join(" and "))
    })
}

/// The limits that the options choose. A public server has none that its owner did not choose.
fn limits(arguments: &ServeArguments) -> Result<Limits, String> {
    let needed = [
        ("--seconds", arguments.seconds.is_some()),
        ("--bytes", arguments.bytes.is_some()),
        ("--bytes-per-hour", arguments.bytes_per_hour.is_some()),
        ("--tests", arguments.tests.is_some()),
        ("--tests-per-hour", arguments.tests_per_hour.is_some()),
        ("--rate", arguments.rate.is_some()),
    ];
    let missing: Vec<_> = needed.into_iter().filter_map(|(name, is_given)| (!is_given).then_some(name)).collect();
    if arguments.public && !missing.is_empty() {
        return Err(format!(
            "--public lets everybody use this machine's connection, so every limit must be chosen; missing: {}",
            missing.join(", ")
        ));
    }
    let default = Limits::default();
    Ok(Limits {
        session: SessionLimits {
            seconds: arguments.seconds.unwrap_or(default.session.seconds),
            flows: arguments.flows,
            bytes: arguments.bytes.map_or(default.session.bytes, |gigabytes| gigabytes * GIGA),
            rate_bps: arguments.rate.map(|megabits| megabits * MEGA),
        },
        tests: arguments.tests.map_or(default.tests, usize::from),
        waiting: usize::from(arguments.waiting),
        monitors: usize::from(arguments.monitors),
        flood_bps: arguments.accept_flood.map(|megabits| megabits * MEGA),
        bytes_per_hour: arguments.bytes_per_hour.map_or(default.bytes_per_hour, |gigabytes| gigabytes * GIGA),
        tests_per_hour: arguments.tests_per_hour.unwrap_or(default.tests_per_hour),
        all_tests_per_hour: arguments.all_tests_per_hour,
        ..default
    })
}

fn fresh() -> Result<(Identity, Token), String> {
    let identity = Identity::generate().map_err(|error| format!("no certificate: {error}"))?;
    let token = Token::generate(identity.certificate());
    Ok((identity, token))
}

/// What a token file keeps: the token is its first line, the certificate and its key are the second.
fn kept(file: &Path) -> Result<(Identity, Token), String> {
    let name = file.display();
    match std::fs::read_to_string(file) {
        Ok(text) => {
            let (token, identity) = text.split_once('\n').unwrap_or((&text, ""));
            let token: Token = token.parse().map_err(|error| format!("{name}: {error}"))?;
            let identity: Identity = serde_json::from_str(identity).map_err(|error| {
                format!("{name}: not a token file of `serve`: its second line has no certificate: {error}")
            })?;
            let token = token.with_certificate(identity.certificate());
            Ok((identity, token))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (identity, token) = fresh()?;
            let text = serde_json::to_string(&identity).map_err(|error| error.to_string())?;
            // Only its owner may read it, from the first moment on.
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(file)
                .and_then(|mut file| writeln!(file, "{token}\n{text}"))
                .map_err(|error| format!("{name}: {error}"))?;
            Ok((identity, token))
        }
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn has_ipv6() -> bool {
    std::net::UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

/// Prints how to connect from another machine.
fn print_lines(listening: &[SocketAddr], token: &str, names: &[String]) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "Waiting for tests. On the machine whose connection you want to test:");
    let (mut lines, mut pages): (Vec<String>, Vec<String>) = Default::default();
    // Browsers do not send what is behind the #; the page needs no fingerprint.
    let secret = token.split('-').next().unwrap_or_default();
    for address in listening {
        let hosts = if address.ip().is_unspecified() { own_addresses(address.is_ipv6()) } else { vec![address.ip()] };
        for host in hosts {
            let shown = match (address.port(), host) {
                (DEFAULT_PORT, host) => host.to_string(),
                (port, host) => SocketAddr::new(host, port).to_string(),
            };
            lines.push(format!("  bufferscope measure {shown} --token {token}"));
            pages.push(format!("http://{}/#{secret}", SocketAddr::new(host, address.port())));
        }
    }
    // Browsers trust the certificate for these names only.
    if let (false, Some(address)) = (names.is_empty(), listening.first()) {
        pages = names.iter().map(|name| format!("https://{name}:{}/#{secret}", address.port())).collect();
    }
    if lines.is_empty() {
        lines.push(format!("  bufferscope measure HOST --token {token}"));
        if pages.is_empty() {
            pages.push(format!("http://HOST:{DEFAULT_PORT}/#{secret}"));
        }
    }
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out, "Or open the page on a phone or any computer:");
    for page in pages {
        let _ = writeln!(out, "  {page}");
    }
    let _ = out.flush();
}

/// The addresses of this machine that others can reach.
fn own_addresses(is_ipv6: bool) -> Vec<IpAddr> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    let addresses = interfaces.filter_map(|interface| Some(internet_address(&interface.address?)?.ip()));
    addresses
        .filter(|address| match address {
            IpAddr::V4(v4) => !is_ipv6 && !v4.is_loopback() && !v4.is_link_local(),
            IpAddr::V6(v6) => is_ipv6 && !v6.is_loopback() && !v6.is_unicast_link_local(),
        })
        .collect()
}
