//! Tests with servers that are not bufferscope's own: responsiveness (draft-ietf-ippm-responsiveness-09) and ndt7.
//!
//! Such a server serves objects or streams, and takes uploads. It answers no probes of ours and sends no records: new
//! connections take the place of echoes, the hops are probed by this end alone, and the verdict says what that leaves open.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bufferscope_verdict::input::Responsiveness;
use hyper::Uri;
use hyper::header::SERVER;
use tokio_rustls::rustls::pki_types::ServerName;

use super::http::{
    Connection, HttpError, Origin, PATIENCE, PROTOCOLS, Purpose, Steps, connect, host_and_port, secure, whole,
};
use super::secure::{Trust, config as tls_config};
use super::{Event, FarEnd, Measurement};
use crate::wire::control::PhaseKind;

pub mod config;
#[cfg(fuzzing)]
pub mod fuzzed;
mod load;
pub mod ndt7;
mod probes;
mod run;

use config::Config;

/// What a user may choose about a test.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the configuration is, or the tests of ndt7 are.
    pub url: Uri,
    /// What the server speaks.
    pub target: Target,
    /// Which servers are trusted.
    pub trust: Trust,
    /// Whether an address may be used: one of IPv4 or IPv6.
    pub family: Family,
    /// The phases, in their order.
    pub phases: Vec<PhaseKind>,
    /// Load connections; `None`: as many as the draft's algorithm takes. ndt7 has one.
    pub flows: Option<u16>,
    /// The congestion control of uploads, by Linux' name; empty: the system's default.
    pub congestion: String,
    /// The interface whose queues are looked at; `None`: the one that the route to the server uses.
    pub interface: Option<String>,
    /// The longest time of a loaded phase.
    pub at_most: Duration,
    /// The time of the idle phase.
    pub idle: Duration,
    /// The time of the phase after the load.
    pub cool_down: Duration,
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Responsiveness, with these parameters.
    Responsiveness(Responsiveness),
    /// ndt7.
    Ndt7,
}

/// Which addresses may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All.
    #[default]
    Any,
    /// Those of IPv4.
    V4,
    /// Those of IPv6.
    V6,
}

/// Why there is no test.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The URL is of no use.
    #[error("{0}")]
    Url(String),
    /// The name has no address.
    #[error("{0}: {1}")]
    Resolve(String, std::io::Error),
    /// The server does not answer as it should.
    #[error("{0}: {1}")]
    Http(String, HttpError),
    /// It answers with something else than a configuration.
    #[error("{0} does not speak responsiveness: {1}")]
    Config(Uri, String),
    /// Something on this machine failed.
    #[error("{0}")]
    Here(String),
}

/// The address of a host.
pub(super) async fn resolve(host: &str, port: u16, family: Family) -> Result<SocketAddr, StartError> {
    let failed = |error| StartError::Resolve(host.to_owned(), error);
    let found = match host.parse::<IpAddr>() {
        Ok(address) => vec![(address, port).into()],
        Err(_) => tokio::time::timeout(PATIENCE, tokio::net::lookup_host((host, port)))
            .await
            .map_err(|_| failed(std::io::ErrorKind::TimedOut.into()))?
            .map_err(failed)?
            .collect::<Vec<_>>(),
    };
    let wanted = found.into_iter().find(|address| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    });
    wanted.ok_or_else(|| StartError::Url(format!("{host}: has no address of the wanted kind")))
}

/// The origin of a URL; `instead` is another host to connect to.
async fn origin(url: &Uri, instead: Option<&str>, settings: &Settings) -> Result<Origin, StartError> {
    let (host, port) =
        host_and_port(url).ok_or_else(|| StartError::Url(format!("{url}: allowed: https://HOST[:PORT][/PATH]")))?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| StartError::Url(format!("{host}: {error}")))?;
    let protocols = if settings.target == Target::Ndt7 { &PROTOCOLS[1..] } else { &PROTOCOLS[..] };
    let tls = match url.scheme_str() {
        Some("ws") => None,
        _ => Some(Arc::new(tls_config(&settings.trust, protocols).map_err(StartError::Here)?)),
    };
    let address = resolve(instead.unwrap_or(host), port, settings.family).await?;
    Ok(Origin { address, name, tls })
}

/// What the test is run with.
struct Server {
    origin: Origin,
    offer: Offer,
    far: FarEnd,
}

/// Where a server's load is.
enum Offer {
    Responsiveness(Config),
    Ndt7 { download: Uri, upload: Uri },
}

/// Whether a server takes connections, which a test that waits for it would find out much later.
async fn reach(origin: &Origin) -> Result<(), HttpError> {
    let opening = async {
        let (stream, _) = connect(origin.address, &Purpose::Probe).await?;
        if let Some(tls) = &origin.tls {
            secure(tls, &origin.name, stream).await?;
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, opening).await.unwrap_or(Err(HttpError::Silent(origin.address)))
}

async fn ask(settings: &Settings) -> Result<Server, StartError> {
    const SHOWN: usize = 100;
    let url = &settings.url;
    let first = origin(url, None, settings).await?;
    if settings.target == Target::Ndt7 {
        reach(&first).await.map_err(|error| StartError::Http(url.to_string(), error))?;
        let [download, upload] = ["download", "upload"].map(|name| ndt7::url(url, name));
        let offer =
            Offer::Ndt7 { download: download.map_err(StartError::Url)?, upload: upload.map_err(StartError::Url)? };
        let far = FarEnd { version: String::new(), kernel: String::new(), seen_as: None };
        return Ok(Server { origin: first, offer, far });
    }
    let failed = |error| StartError::Http(url.to_string(), error);
    let asking = async {
        let mut connection = Connection::open(&first, &Purpose::Probe, &mut Steps::default()).await?;
        let answer = connection.get(url).await?;
        let name = answer.headers().get(SERVER).and_then(|name| name.to_str().ok()).unwrap_or_default();
        let name: String = name.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect();
        Ok((name, whole(answer, config::LONGEST).await?))
    };
    let asked = tokio::time::timeout(PATIENCE * 2, asking).await.unwrap_or(Err(HttpError::Silent(first.address)));
    let (version, bytes) = asked.map_err(failed)?;
    let config = config::parse(&bytes).map_err(|why| StartError::Config(url.clone(), why))?;
    let same = config.test_endpoint.is_none() && host_and_port(&config.large) == host_and_port(url);
    let origin = match same {
        true => first,
        false => origin(&config.large, config.test_endpoint.as_deref(), settings).await?,
    };
    let far = FarEnd { version, kernel: String::new(), seen_as: None };
    Ok(Server { origin, offer: Offer::Responsiveness(config), far })
}

/// Runs a test. `interrupted` asks for its early end. Events go to `report`.
pub async fn measure(
    settings: &Settings,
    interrupted: &AtomicBool,
    mut report: impl FnMut(Event<'_>),
) -> Result<Measurement, StartError> {
    let server = ask(settings).await?;
    let mut run =
        run::Run::begin(settings, interrupted, server).map_err(|error| StartError::Here(error.to_string()))?;
    let ended = run.run(&mut report).await;
    Ok(run.finish(ended.err()))
}
