//! `bufferscope-live serve`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::server::certificate::Identity;
use crate::server::{Settings, serve};
use crate::wire::DEFAULT_PORT;
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
    /// Longest duration of a test in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(10..=3600))]
    seconds: u64,
    /// Tests at the same time; more than one falsify each other
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    tests: u16,
    /// End after the first test
    #[arg(long)]
    once: bool,
}

/// What a server's token file holds.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    /// The token, as it is printed.
    pub(super) token: String,
    identity: Identity,
}

/// Serves until it is interrupted.
pub async fn run(arguments: &ServeArguments) -> Result<ExitCode, String> {
    let (identity, token) = match &arguments.token_file {
        Some(file) => kept(file)?,
        None => fresh()?,
    };
    let mut settings = Settings {
        listen: arguments.listen.clone(),
        tests: usize::from(arguments.tests),
        once: arguments.once,
        ..Settings::default()
    };
    settings.limits.seconds = arguments.seconds;
    if settings.listen.is_empty() {
        settings.listen.push((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT).into());
        if has_ipv6() {
            settings.listen.push((Ipv6Addr::UNSPECIFIED, DEFAULT_PORT).into());
        }
    }
    let listen = settings.listen.clone();
    let shown = token.to_string();
    let served = serve(settings, identity, token, |addresses| print_lines(addresses, &shown)).await;
    served.map(|()| ExitCode::SUCCESS).map_err(|error| {
        let addresses: Vec<_> = listen.iter().map(SocketAddr::to_string).collect();
        format!("cannot listen on {}: {error}", addresses.join(" and "))
    })
}

fn fresh() -> Result<(Identity, Token), String> {
    let identity = Identity::generate().map_err(|error| format!("no certificate: {error}"))?;
    let token = Token::generate(identity.certificate());
    Ok((identity, token))
}

fn kept(file: &Path) -> Result<(Identity, Token), String> {
    let name = file.display();
    match std::fs::read(file) {
        Ok(text) => {
            let kept: Kept = serde_json::from_slice(&text)
                .map_err(|error| format!("{name}: not a token file of bufferscope: {error}"))?;
            let token: Token = kept.token.parse().map_err(|error| format!("{name}: {error}"))?;
            let token = token.with_certificate(kept.identity.certificate());
            Ok((kept.identity, token))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (identity, token) = fresh()?;
            let kept = Kept { token: token.to_string(), identity };
            let text = serde_json::to_vec(&kept).map_err(|error| error.to_string())?;
            // Only its owner may read it, from the first moment on.
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(file)
                .and_then(|mut file| file.write_all(&text))
                .map_err(|error| format!("{name}: {error}"))?;
            Ok((kept.identity, token))
        }
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn has_ipv6() -> bool {
    std::net::UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

/// Prints how to connect from another machine.
fn print_lines(listening: &[SocketAddr], token: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "Waiting for tests. On the machine whose connection you want to test:");
    let mut lines: Vec<String> = Vec::new();
    for address in listening {
        let hosts = if address.ip().is_unspecified() { own_addresses(address.is_ipv6()) } else { vec![address.ip()] };
        for host in hosts {
            let shown = match (address.port(), host) {
                (DEFAULT_PORT, host) => host.to_string(),
                (port, host) => SocketAddr::new(host, port).to_string(),
            };
            lines.push(format!("  bufferscope measure {shown} --token {token}"));
        }
    }
    if lines.is_empty() {
        lines.push(format!("  bufferscope measure HOST --token {token}"));
    }
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    let _ = out.flush();
}

/// The addresses of this machine that others can reach.
fn own_addresses(is_ipv6: bool) -> Vec<IpAddr> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())))
    });
    addresses
        .filter(|address| match address {
            IpAddr::V4(v4) => !is_ipv6 && !v4.is_loopback() && !v4.is_link_local(),
            IpAddr::V6(v6) => is_ipv6 && !v6.is_loopback() && !v6.is_unicast_link_local(),
        })
        .collect()
}
