//! The page: HTTP/1.1 and WebSockets on the same port as everything else, in clear and over TLS.
//!
//! A browser's test is a test like any other. Its control connection is a WebSocket whose messages are passed on to the
//! code of any client ([`control`]), so the token, the queue and all limits are the same. Its load are requests that a
//! session's key opens ([`load`]), and its probes are messages over another WebSocket ([`ping`]). At the end the server
//! reaches the verdict ([`samples`]), because the page has no program for that.
//!
//! Other people's programs are answered too, if the server's owner wants that ([`compatible`]).
//!
//! `hyper` reads and writes HTTP, because the headers of strangers are where hand-written servers go wrong; it is used
//! without its client and pools. `tungstenite` does the same for the frames of WebSockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::control::PATIENCE_MS;
use super::gate::{Pass, Place};
use super::running::RECORDS_TIME;
use super::{SAMPLE, Server};

pub(super) mod compatible;
mod content;
pub mod control;
mod files;
mod load;
mod ping;
mod requests;
pub mod rtc;
pub mod samples;
mod visit;

use compatible::{Caller, ndt7};
use visit::{Upgrade, Visit};

/// The longest head of a request.
const LONGEST_HEAD: usize = 8 * 1024;
const MOST_HEADERS: usize = 64;
/// A request must come within this time after the one before it: browsers keep connections open that they do not need, and those
/// of many pages would keep others out.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(4);
/// What is read or written at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// The name of the protocol in the handshake of TLS (ALPN).
pub(super) const ALPN: &[u8] = b"http/1.1";
/// As well, that of HTTP/2.
pub(super) const ALPN_2: &[u8] = b"h2";

/// What clients of HTTP may name in the handshake of TLS. The page needs HTTP/1.1, because with HTTP/2 a browser has a
/// single connection for all of its load.
pub(super) fn protocols(settings: &super::Settings) -> &'static [&'static [u8]] {
    if settings.compatible { &[ALPN_2, ALPN] } else { &[ALPN] }
}

/// Whether a connection in clear that begins with this byte is one of HTTP: the first letter of a method, which is not
/// that of the protocol's own connections ([`crate::wire::load::Opening`]).
pub(super) fn is_http(first: u8) -> bool {
    first.is_ascii_uppercase() && first != crate::wire::load::MAGIC[0]
}

/// Serves a connection until it ends, until it must make room for another one, or until `is_over`, which is asked ten times a
/// second; returns whether it ended.
async fn ends_by_itself(connection: impl Future, place: &Place, mut is_over: impl FnMut() -> bool) -> bool {
    let mut connection = std::pin::pin!(connection);
    let mut ticks = tokio::time::interval(SAMPLE);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = &mut connection => return true,
            () = place.must_leave() => return false,
            _ = ticks.tick() => {
                if is_over() {
                    return false;
                }
            }
        }
    }
}

/// Sends at once, and gives up a peer that acknowledges nothing.
fn prepare(socket: &OwnedFd) -> nix::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt};
    setsockopt(socket, sockopt::TcpUserTimeout, &PATIENCE_MS)?;
    setsockopt(socket, sockopt::TcpNoDelay, &true)
}

impl Server {
    /// Waits until every page has its verdict, or takes too long to read it.
    pub(super) async fn let_pages_end(&self) {
        let until = tokio::time::Instant::now() + RECORDS_TIME;
        while Arc::strong_count(&self.pages) > 1 && tokio::time::Instant::now() < until {
            tokio::time::sleep(SAMPLE).await;
        }
    }

    /// Serves a browser's connection. `socket` is another descriptor of it.
    pub(super) async fn visit<S>(
        self: Arc<Self>,
        stream: S,
        socket: OwnedFd,
        from: SocketAddr,
        is_secure: bool,
        pass: Pass,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if prepare(&socket).is_err() {
            return;
        }
        let server = Arc::clone(&self);
        let socket = Arc::new(socket);
        let place = Arc::clone(pass.place());
        let caller = Arc::new(Caller::new(&server, &socket, from, is_secure, &place));
        let visit = Arc::new(Visit::new(self, socket, from, is_secure, pass));
        let answering = (Arc::clone(&visit), Arc::clone(&caller));
        let service = service_fn(move |request| {
            let (visit, caller) = answering.clone();
            async move {
                Ok::<_, Infallible>(match caller.wants(&request) {
                    Some(wanted) => compatible::answer(&caller, wanted, request).await,
                    None => {
                        caller.works();
                        requests::answer(&visit, request).await
                    }
                })
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(server.settings.limits.opening.min(BETWEEN_REQUESTS))
            .max_header_size(LONGEST_HEAD)
            .max_headers(MOST_HEADERS)
            .max_buf_size(BUFFER_BYTES);
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let is_over = || {
            visit.look();
            caller.look();
            visit.is_over() && caller.is_over()
        };
        if !ends_by_itself(connection, &place, is_over).await {
            return;
        }
        if let Some(begun) = caller.upgrade() {
            ndt7::run(begun).await;
            return;
        }
        match visit.upgrade() {
            Some(Upgrade::Control { upgrade, name }) => {
                // Its further connections are known by its address only.
                let _known = is_secure.then(|| server.secure_pages.enter(from.ip(), None));
                if let (Ok(upgraded), Some(pass)) = (upgrade.await, visit.pass()) {
                    control::run(&server, TokioIo::new(upgraded), name, from, visit.local(), pass).await;
                }
            }
            Some(Upgrade::Pings { upgrade, session }) => {
                if let Ok(upgraded) = upgrade.await {
                    ping::answer(TokioIo::new(upgraded), &session, server.settings.limits.silence).await;
                }
            }
            None => {}
        }
    }
}
