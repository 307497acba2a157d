//! Other people's programs: the endpoints that their clients know, over HTTP/1.1 and HTTP/2.
//!
//! Their requests have no session of our protocol. What one client measures is a test all the same ([`other_tests`]): it has
//! its turn in the queue of all clients and uses their limits. It begins with the first request for load, and ends some
//! seconds after the last request. Who may begin one is decided by [`Caller::admit`].

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::content::Content;
use super::requests::{ALWAYS, field, host, is_own};
use crate::time::monotonic_ns;

mod caller;
mod cloudflare;
mod http2;
mod librespeed;
mod load;
pub(super) mod ndt7;
mod nq;
mod other_tests;

pub(super) use caller::Caller;
pub(super) use load::Exact;
pub(in crate::server) use other_tests::OtherTests;
use other_tests::{Name, OtherTest};

/// What a request of another program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    NqConfig,
    NqSmall,
    NqLarge,
    NqUpload,
    Ndt7(ndt7::Test),
    CloudflareDown,
    CloudflareUp,
    LibreSpeedGarbage,
    LibreSpeedEmpty,
    LibreSpeedAddress,
}

/// Other people's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    /// Those of draft-ietf-ippm-responsiveness.
    Nq,
    /// Those of Measurement Lab.
    Ndt7,
    /// Pages with Cloudflare's engine.
    Cloudflare,
    /// LibreSpeed's page and program.
    LibreSpeed,
}

const PATHS: [(&str, What); 16] = [
    ("/.well-known/nq", What::NqConfig),
    ("/config", What::NqConfig),
    ("/api/v1/config", What::NqConfig),
    (nq::SMALL, What::NqSmall),
    (nq::LARGE, What::NqLarge),
    (nq::UPLOAD, What::NqUpload),
    ("/ndt/v7/download", What::Ndt7(ndt7::Test::Download)),
    ("/ndt/v7/upload", What::Ndt7(ndt7::Test::Upload)),
    ("/__down", What::CloudflareDown),
    ("/__up", What::CloudflareUp),
    ("/garbage.php", What::LibreSpeedGarbage),
    ("/empty.php", What::LibreSpeedEmpty),
    ("/getIP.php", What::LibreSpeedAddress),
    ("/backend/garbage.php", What::LibreSpeedGarbage),
    ("/backend/empty.php", What::LibreSpeedEmpty),
    ("/backend/getIP.php", What::LibreSpeedAddress),
];

impl What {
    fn at(path: &str) -> Option<Self> {
        PATHS.iter().find(|(found, _)| *found == path).map(|(_, what)| *what)
    }

    /// Whether pages of other sites may read the answer, if their address has the secret: these programs are such pages.
    fn is_for_pages(self) -> bool {
        match self {
            Self::NqConfig | Self::NqSmall | Self::NqLarge | Self::NqUpload | Self::Ndt7(_) => false,
            Self::CloudflareDown | Self::CloudflareUp => true,
            Self::LibreSpeedGarbage | Self::LibreSpeedEmpty | Self::LibreSpeedAddress => true,
        }
    }

    fn allows(self, method: &Method) -> bool {
        self.methods().split(", ").any(|name| name == method.as_str())
    }

    /// The methods, as an answer names them.
    fn methods(self) -> &'static str {
        match self {
            Self::NqConfig | Self::NqSmall => "GET, HEAD",
            Self::NqLarge | Self::Ndt7(_) => "GET",
            Self::NqUpload => "POST",
            Self::CloudflareDown | Self::LibreSpeedGarbage | Self::LibreSpeedAddress => "GET, OPTIONS",
            Self::CloudflareUp => "POST, OPTIONS",
            Self::LibreSpeedEmpty => "GET, POST, OPTIONS",
        }
    }
}

/// A request of another program.
pub(super) struct Wanted {
    what: What,
    /// The secret that its address has.
    secret: Option<String>,
}

impl Wanted {
    /// Whether the connection is to become a WebSocket, which HTTP/1.1 is needed for.
    fn is_websocket(&self) -> bool {
        matches!(self.what, What::Ndt7(_))
    }

    /// What an address asks for. The secret of the token may be the first part of its path, or the field `access_token`
    /// of its query, as in ndt7.
    fn parse(path: &str, query: &str) -> Option<Self> {
        if let Some(what) = What::at(path) {
            return Some(Self { what, secret: field(query, "access_token").map(str::to_owned) });
        }
        let secret = path.strip_prefix('/')?.split_once('/')?.0;
        let what = What::at(&path[secret.len() + 1..])?;
        Some(Self { what, secret: Some(secret.to_owned()) })
    }
}

/// Why a request gets no answer of its kind.
#[derive(Clone, Debug)]
struct Refused {
    status: StatusCode,
    reason: String,
    /// When it may be repeated.
    after: Option<Duration>,
}

/// Another test may take this long.
const BUSY: Duration = Duration::from_secs(30);
/// The ledger forgets in steps of this length.
const HOUR: Duration = Duration::from_secs(300);

impl Refused {
    fn new(status: StatusCode, reason: &str) -> Self {
        Self { status, reason: reason.to_owned(), after: None }
    }

    /// Another test runs.
    fn busy() -> Self {
        let reason = "another test runs on this server, and tests that run together falsify each other".to_owned();
        Self { status: StatusCode::TOO_MANY_REQUESTS, reason, after: Some(BUSY) }
    }

    /// A limit is reached.
    fn limited(reason: String, after: Duration) -> Self {
        Self { status: StatusCode::TOO_MANY_REQUESTS, reason, after: Some(after) }
    }

    fn response(self) -> Response<Content> {
        let mut response = Response::new(Content::Whole(Some(self.reason.into())));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        // Whatever else an HTTP/1.1 connection has sent is not read. HTTP/2 has no such field; hyper drops it there.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if let Some(after) = self.after {
            headers.insert(header::RETRY_AFTER, after.as_secs().into());
        }
        response
    }
}

/// What an answer to a page of another site says.
static SHARED: [(HeaderName, &str); 4] = [
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (header::ACCESS_CONTROL_EXPOSE_HEADERS, "server-timing, retry-after"),
    (HeaderName::from_static("timing-allow-origin"), "*"),
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
];
/// What a browser may ask before a request with a body of another kind (a "preflight").
static BEFORE: [(HeaderName, &str); 2] =
    [(header::ACCESS_CONTROL_ALLOW_HEADERS, "content-encoding, content-type"), (header::ACCESS_CONTROL_MAX_AGE, "600")];

/// Answers a request of another program.
pub(super) async fn answer(caller: &Arc<Caller>, wanted: Wanted, request: Request<Incoming>) -> Response<Content> {
    let Wanted { what, .. } = wanted;
    let _answering = caller.request();
    let mut response = answered(caller, &wanted, request).await.unwrap_or_else(Refused::response);
    let is_shared = what.is_for_pages() && response.status() != StatusCode::FORBIDDEN && wanted.secret.is_some();
    let headers = response.headers_mut();
    for (name, value) in ALWAYS.iter().chain(if is_shared { &SHARED[..] } else { &[] }) {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        headers_of(&mut response, header::ALLOW, what.methods());
    }
    response
}

fn headers_of(response: &mut Response<Content>, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

async fn answered(
    caller: &Arc<Caller>,
    wanted: &Wanted,
    request: Request<Incoming>,
) -> Result<Response<Content>, Refused> {
    let Wanted { what, secret } = wanted;
    if !what.allows(request.method()) {
        return Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, what.methods()));
    }
    let name = authority(&request).ok_or(Refused::new(StatusCode::BAD_REQUEST, "one Host is needed"))?.to_owned();
    caller.admit(secret.as_deref(), request.headers(), &name).await?;
    if request.method() == Method::OPTIONS {
        return Ok(preflight(caller, *what));
    }
    let query = request.uri().query();
    match *what {
        What::NqConfig => nq::config(caller, secret.as_deref(), &name),
        What::NqSmall => nq::small(caller, query),
        What::NqLarge => nq::large(caller, query).await,
        What::NqUpload => nq::upload(caller, request).await,
        What::Ndt7(test) => ndt7::open(caller, request, test).await,
        What::CloudflareDown => cloudflare::down(caller, query).await,
        What::CloudflareUp => cloudflare::up(caller, request).await,
        What::LibreSpeedGarbage => librespeed::garbage(caller, query).await,
        What::LibreSpeedEmpty => librespeed::empty(caller, request).await,
        What::LibreSpeedAddress => librespeed::address(caller),
    }
}

fn preflight(caller: &Caller, what: What) -> Response<Content> {
    caller.asks();
    let mut response = Response::new(Content::Whole(None));
    *response.status_mut() = StatusCode::NO_CONTENT;
    headers_of(&mut response, header::ACCESS_CONTROL_ALLOW_METHODS, what.methods());
    for (name, value) in &BEFORE {
        headers_of(&mut response, name.clone(), value);
    }
    response
}

/// The name by which the client calls the server: HTTP/2 has it in the address of the request.
fn authority<T>(request: &Request<T>) -> Option<&str> {
    match request.uri().authority() {
        Some(authority) if !authority.as_str().contains('@') => Some(authority.as_str()),
        Some(_) => None,
        None => host(request.headers()),
    }
}

/// Whether the address of the request was typed into a browser.
fn is_typed(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site == "none") && !headers.contains_key(header::ORIGIN)
}

impl Caller {
    /// What a request asks for, if it is one of other people's programs and the server answers them.
    pub(super) fn wants<T>(&self, request: &Request<T>) -> Option<Wanted> {
        let uri = request.uri();
        let is_on = self.server.settings.compatible;
        is_on.then(|| Wanted::parse(uri.path(), uri.query().unwrap_or_default())).flatten()
    }

    /// Decides whether a client may measure.
    ///
    /// These clients know no token, so it is a part of the address that they are given; whoever has it may measure, and
    /// pages of other sites too. Without it, only a server that its owner opened answers: to everybody (`--public`), or to
    /// networks (`--allow`); and then not to pages of other sites, which could start tests through a visitor's browser.
    async fn admit(&self, secret: Option<&str>, headers: &HeaderMap, name: &str) -> Result<(), Refused> {
        let Some(secret) = secret else {
            let is_open = self.server.token.secret().is_empty() || !self.server.settings.allow.is_empty();
            return match (is_open, is_own(headers, name) || is_typed(headers)) {
                (true, true) => Ok(()),
                (true, false) => {
                    let reason = "requests of other sites need the server's token in their address";
                    Err(Refused::new(StatusCode::FORBIDDEN, reason))
                }
                (false, _) => {
                    let reason = "the address needs the secret of the server's token: `bufferscope serve` prints it";
                    Err(Refused::new(StatusCode::FORBIDDEN, reason))
                }
            };
        };
        if self.server.token.admits(secret) {
            return Ok(());
        }
        // One after the other, and then the connection ends, however many requests it carries at the same time.
        let _guess = self.guessing.lock().await;
        tokio::time::sleep(self.server.ledger.shows_wrong_token(self.from.ip(), monotonic_ns())).await;
        self.leave();
        Err(Refused::new(StatusCode::FORBIDDEN, "the token is not this server's"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_may_have_the_secret_in_its_path_or_its_query() {
        let parse = |path, query| Wanted::parse(path, query).map(|wanted| (wanted.what, wanted.secret));
        assert_eq!(parse("/.well-known/nq", ""), Some((What::NqConfig, None)));
        assert_eq!(parse("/api/v1/config", "a=b&access_token=x"), Some((What::NqConfig, Some("x".to_owned()))));
        assert_eq!(parse("/abc/api/v1/config", ""), Some((What::NqConfig, Some("abc".to_owned()))));
        assert_eq!(parse("//config", ""), Some((What::NqConfig, Some(String::new()))));
        for other in ["", "/", "config", "/a/b/config", "/test/download", "/config/", "/.well-known/nq/x"] {
            assert_eq!(parse(other, ""), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_address_is_one_of_ours_or_not(
            path in "(/|[a-z.]|\\PC){0,20}(/config|/__down)?",
            query in "(access_token|[&=a]|\\PC){0,9}",
        ) {
            if let Some(wanted) = Wanted::parse(&path, &query) {
                let is_its_path = |(found, what): &(&str, What)| *what == wanted.what && path.ends_with(found);
                prop_assert!(PATHS.iter().any(is_its_path));
            }
        }
    }
}
