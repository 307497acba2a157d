//! Metrics over HTTP, at an address that the owner chooses.
//!
//! Programs of the same machine may read them. Others need the secret of the server's token file, as a bearer token
//! (RFC 6750), also if the server is public.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::metrics::{KIND, metrics};
use crate::server::Server;
use crate::wire::token::Token;

/// Its path.
pub const PATH: &str = "/metrics";
/// Connections at the same time; others wait.
const MOST_CONNECTIONS: usize = 8;
/// A connection lasts no longer.
const LONGEST: Duration = Duration::from_secs(10);
const LONGEST_HEAD: usize = 8 * 1024;
const MOST_HEADERS: usize = 32;

/// Serves metrics; `secret` is what readers on other machines need.
pub(in crate::server) async fn serve(server: Arc<Server>, listener: TcpListener, secret: Token) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= MOST_CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, from)) => {
                let (server, secret) = (Arc::clone(&server), secret.clone());
                connections.spawn(tokio::time::timeout(LONGEST, connection(server, stream, from, secret)));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(server: Arc<Server>, stream: TcpStream, from: SocketAddr, secret: Token) {
    let is_here = from.ip().to_canonical().is_loopback();
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let is_known = is_here || bearer(request.headers()).is_some_and(|shown| secret.admits(shown));
        let response = answer(&server, request.method(), request.uri().path(), is_known);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(LONGEST).max_headers(MOST_HEADERS).max_buf_size(LONGEST_HEAD);
    let _ = http.keep_alive(false).serve_connection(TokioIo::new(stream), service).await;
}

fn answer(server: &Server, method: &Method, path: &str, is_known: bool) -> Response<String> {
    let (status, kind, text) = match (method, path) {
        _ if !is_known => (StatusCode::UNAUTHORIZED, "text/plain", "the secret of the token file is needed".to_owned()),
        (&Method::GET, PATH) => (StatusCode::OK, KIND, metrics(&server.status())),
        (_, PATH) => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET".to_owned()),
        _ => (StatusCode::NOT_FOUND, "text/plain", format!("there is only {PATH}")),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The token of a request (RFC 6750, section 2.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_is_found_whatever_the_case_of_its_scheme() {
        let of = |text: &'static str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(text))]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(of("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(of("bearer  abc").as_deref(), Some("abc"));
        assert_eq!((of("Basic abc"), of("Bearer"), bearer(&HeaderMap::new())), (None, None, None));
    }
}
