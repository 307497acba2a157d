//! The requests of browsers, and the answers to them.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::content::Content;
use super::files;
use super::load::{self, Download, LONGEST_UPLOAD, Uploaded};
use super::samples::{LONGEST_SAMPLES, Samples};
use super::visit::{Upgrade, Visit};
use crate::server::accepting::announced;
use crate::server::session::Session;
use crate::server::status::Refused;
use crate::time::monotonic_ns;
use crate::wire::SessionId;
use crate::wire::load::{Purpose, parse_key};

/// What every answer says.
pub(super) static ALWAYS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store, no-transform"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];
/// What it says over TLS beside: browsers then give exact clocks. They ignore it, with a warning, over plain HTTP.
static ISOLATED: [(HeaderName, &str); 2] = [
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
];

/// Answers a request.
pub(super) async fn answer(visit: &Arc<Visit>, request: Request<Incoming>) -> Response<Content> {
    let mut response = route(visit, request).await.unwrap_or_else(refusal);
    let headers = response.headers_mut();
    let more = if visit.is_secure { &ISOLATED[..] } else { &[] };
    for (name, value) in ALWAYS.iter().chain(more) {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Why a request is refused.
struct Refusal(StatusCode, &'static str);

fn refusal(Refusal(status, reason): Refusal) -> Response<Content> {
    let mut response = Response::new(Content::from(reason));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // Whatever else the connection has sent is not read.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static(reason));
    }
    response
}

async fn route(visit: &Arc<Visit>, request: Request<Incoming>) -> Result<Response<Content>, Refusal> {
    let name = host(request.headers()).ok_or(Refusal(StatusCode::BAD_REQUEST, "one Host is needed"))?.to_owned();
    let path = request.uri().path();
    match (request.method(), path) {
        (&Method::GET | &Method::HEAD, path) if files::find(path).is_some() => file(visit, &request),
        (&Method::GET, "/test/control") => control(visit, request, name),
        (&Method::GET, "/test/pings") => pings(visit, request, &name),
        (&Method::GET, "/test/download") => download(visit, request, &name).await,
        (&Method::POST, "/test/upload") => upload(visit, request, &name).await,
        (&Method::POST, "/test/samples") => samples(visit, request, &name).await,
        (_, "/test/upload" | "/test/samples") => Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "POST")),
        (_, path) if path.starts_with("/test/") || files::find(path).is_some() => {
            Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "GET"))
        }
        _ => Err(Refusal(StatusCode::NOT_FOUND, "there is no such page")),
    }
}

/// The name by which the browser calls the server, if there is exactly one.
pub(super) fn host(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::HOST).iter();
    let name = all.next()?.to_str().ok()?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    (all.next().is_none() && (1..=255).contains(&name.len()) && name.bytes().all(is_name)).then_some(name)
}

/// Whether a request comes from the server's own page, as far as the browser says where it comes from.
pub(super) fn is_own(headers: &HeaderMap, name: &str) -> bool {
    let site = headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin");
    site && (!headers.contains_key(header::ORIGIN) || has_own_origin(headers, name))
}

/// Whether a request says that it comes from the server's own page. WebSockets of browsers always say where they come
/// from, and pages of other sites may open them, so there it must be said.
fn has_own_origin(headers: &HeaderMap, name: &str) -> bool {
    let mut all = headers.get_all(header::ORIGIN).iter();
    let origin = all.next().and_then(|origin| origin.to_str().ok()).unwrap_or_default();
    // A proxy before the server may have added TLS.
    let own = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme));
    all.next().is_none() && own.is_some_and(|own| own.eq_ignore_ascii_case(name))
}

fn file(visit: &Visit, request: &Request<Incoming>) -> Result<Response<Content>, Refusal> {
    let file = files::find(request.uri().path()).ok_or(Refusal(StatusCode::NOT_FOUND, "there is no such page"))?;
    let mut response = Response::new(Content::from(file.text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    if !visit.has_file() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// The session whose key a request shows.
fn session(visit: &Visit, request: &Request<Incoming>, name: &str) -> Result<Arc<Session>, Refusal> {
    let found = known(visit, request, name)?;
    if found.has_ended() { Err(NO_TEST) } else { Ok(found) }
}

const NO_TEST: Refusal = Refusal(StatusCode::FORBIDDEN, "there is no such test");

/// The same, also if a limit has ended its load: it may still ask for the verdict.
fn known(visit: &Visit, request: &Request<Incoming>, name: &str) -> Result<Arc<Session>, Refusal> {
    if !is_own(request.headers(), name) {
        return Err(Refusal(StatusCode::FORBIDDEN, "requests of other sites are not answered"));
    }
    let query = request.uri().query().unwrap_or_default();
    let number = field(query, "session").filter(|text| text.len() == 16);
    let number = number.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or(NO_TEST)?;
    let key = field(query, "key").and_then(parse_key).ok_or(NO_TEST)?;
    visit.server.sessions.of_client(SessionId(number), &key, visit.from.ip()).ok_or(NO_TEST)
}

/// A field of a query.
pub(super) fn field<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').filter_map(|field| field.split_once('=')).find(|(found, _)| *found == name).map(|(_, value)| value)
}

fn control(visit: &Arc<Visit>, request: Request<Incoming>, name: String) -> Result<Response<Content>, Refusal> {
    let response = switching(&request, &name)?;
    // Over TLS it was counted at the handshake.
    if !visit.is_secure && !visit.server.ledger.connects(visit.from.ip(), monotonic_ns()) {
        visit.server.counters.refused(Refused::Connections);
        return Err(Refusal(StatusCode::TOO_MANY_REQUESTS, "this address has connected too often in the past hour"));
    }
    visit.set_upgrade(Upgrade::Control { upgrade: hyper::upgrade::on(request), name });
    Ok(response)
}

fn pings(visit: &Arc<Visit>, request: Request<Incoming>, name: &str) -> Result<Response<Content>, Refusal> {
    let response = switching(&request, name)?;
    let session = session(visit, &request, name)?;
    visit.set_upgrade(Upgrade::Pings { upgrade: hyper::upgrade::on(request), session });
    Ok(response)
}

/// The answer that makes a WebSocket of the connection, if the server's own page asks for it.
fn switching(request: &Request<Incoming>, name: &str) -> Result<Response<Content>, Refusal> {
    if !has_own_origin(request.headers(), name) {
        return Err(Refusal(StatusCode::FORBIDDEN, "WebSockets of other sites are not accepted"));
    }
    websocket(request.headers()).ok_or(Refusal(StatusCode::BAD_REQUEST, "a WebSocket is needed"))
}

/// The answer that makes a WebSocket of the connection (RFC 6455, section 4.2); `None` if the request is for none.
pub(super) fn websocket(headers: &HeaderMap) -> Option<Response<Content>> {
    let has = |name: HeaderName, word: &str| {
        let mut words =
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
        words.any(|found| found.trim().eq_ignore_ascii_case(word))
    };
    let is_right = has(header::CONNECTION, "upgrade")
        && has(header::UPGRADE, "websocket")
        && has(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| is_right)?;
    let mut response = Response::new(Content::Whole(None));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok()?;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Some(response)
}

const NO_LOAD: Refusal = Refusal(StatusCode::CONFLICT, "the present phase has no such load, or enough of it");

async fn download(visit: &Visit, request: Request<Incoming>, name: &str) -> Result<Response<Content>, Refusal> {
    let session = session(visit, &request, name)?;
    announced(&session, Purpose::Download).await;
    let index =
        field(request.uri().query().unwrap_or_default(), "flow").and_then(|text| text.parse().ok()).unwrap_or(0);
    let shared = visit.carry(&session, Purpose::Download, index).ok_or(NO_LOAD)?;
    let mut response = Response::new(Content::Load(Box::new(Download::new(shared, index))));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Ok(response)
}

async fn upload(visit: &Visit, request: Request<Incoming>, name: &str) -> Result<Response<Content>, Refusal> {
    const TOO_LONG: Refusal = Refusal(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long");
    let session = session(visit, &request, name)?;
    if length(request.headers()).is_some_and(|length| length > LONGEST_UPLOAD) {
        return Err(TOO_LONG);
    }
    announced(&session, Purpose::Upload).await;
    let shared = visit.carry(&session, Purpose::Upload, 0).ok_or(NO_LOAD)?;
    match load::receive(request.into_body(), &shared).await {
        Uploaded::Whole => Ok(Response::new(Content::Whole(None))),
        Uploaded::TooLong => Err(TOO_LONG),
        Uploaded::Cut => Err(NO_LOAD),
    }
}

pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn samples(visit: &Visit, request: Request<Incoming>, name: &str) -> Result<Response<Content>, Refusal> {
    const TOO_LONG: Refusal = Refusal(StatusCode::PAYLOAD_TOO_LARGE, "the samples are too long");
    let session = known(visit, &request, name)?;
    visit.extend();
    if length(request.headers()).is_some_and(|length| length > LONGEST_SAMPLES as u64) {
        return Err(TOO_LONG);
    }
    let text = load::collect(request.into_body(), LONGEST_SAMPLES).await.ok_or(TOO_LONG)?;
    let samples =
        Samples::parse(&text).map_err(|_| Refusal(StatusCode::BAD_REQUEST, "these are no samples of a test"))?;
    session.set_page_samples(samples);
    Ok(Response::new(Content::Whole(None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_page_of_another_site_is_recognised() {
        let name = "192.0.2.7:47300";
        for own in ["http://192.0.2.7:47300", "https://192.0.2.7:47300"] {
            assert!(has_own_origin(&headers(&[("origin", own)]), name));
        }
        let others = [
            "null",
            "",
            "192.0.2.7:47300",
            "http://192.0.2.7",
            "http://192.0.2.7:47300.example.org",
            "ftp://192.0.2.7:47300",
        ];
        for other in others {
            assert!(!has_own_origin(&headers(&[("origin", other)]), name), "{other}");
            assert!(!is_own(&headers(&[("origin", other)]), name), "{other}");
        }
        assert!(!has_own_origin(&headers(&[]), name), "a WebSocket must say where it comes from");
        assert!(is_own(&headers(&[]), name), "a GET of a page has no origin");
        assert!(!is_own(&headers(&[("sec-fetch-site", "cross-site")]), name));
        assert!(!is_own(&headers(&[("sec-fetch-site", "same-site")]), name));
    }

    #[test]
    fn a_name_is_one_name() {
        assert_eq!(host(&headers(&[("host", "[2001:db8::1]:47300")])), Some("[2001:db8::1]:47300"));
        for wrong in ["", "a b", "a/b", "a@b", "<b>"] {
            assert_eq!(host(&headers(&[("host", wrong)])), None, "{wrong}");
        }
        assert_eq!(host(&headers(&[])), None);
    }

    #[test]
    fn a_field_of_a_query_is_found_by_its_whole_name() {
        assert_eq!(field("session=1&key=2", "key"), Some("2"));
        assert_eq!(field("session=1&monkey=2&key", "key"), None);
    }
}
