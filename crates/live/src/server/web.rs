//! The page: HTTP/1.1 and WebSockets on the same port as everything else, in clear and over TLS.
//!
//! A browser's test is a test like any other. Its control connection is a WebSocket whose messages are passed on to the
//! code of any client ([`control`]), so the token, the queue and all limits are the same. Its load are requests that a
//! session's key opens ([`load`]), and its probes are messages over another WebSocket ([`ping`]). At the end the server
//! reaches the verdict ([`samples`]), because the page has no program for that.
//!
//! `hyper` reads and writes HTTP, because the headers of strangers are where hand-written servers go wrong; it is used
//! without its client, HTTP/2 and pools. `tungstenite` does the same for the frames of WebSockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::control::PATIENCE_MS;
use super::gate::Pass;
use super::running::RECORDS_TIME;
use super::{SAMPLE, Server};

mod content;
pub mod control;
mod files;
mod load;
mod ping;
mod requests;
pub(super) mod rtc;
pub mod samples;
mod visit;

use visit::{Upgrade, Visit};

/// The longest head of a request.
const LONGEST_HEAD: usize = 8 * 1024;
const MOST_HEADERS: usize = 64;
/// What is read or written at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// The name of the protocol in the handshake of TLS (ALPN).
pub(super) const ALPN: &[u8] = b"http/1.1";

/// Whether a connection in clear that begins with this byte is one of HTTP: the first letter of a method, which is not
/// that of the protocol's own connections ([`crate::wire::load::Opening`]).
pub(super) fn is_http(first: u8) -> bool {
    first.is_ascii_uppercase() && first != crate::wire::load::MAGIC[0]
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
        use nix::sys::socket::{setsockopt, sockopt};
        let prepared = setsockopt(&socket, sockopt::TcpUserTimeout, &PATIENCE_MS)
            .and_then(|()| setsockopt(&socket, sockopt::TcpNoDelay, &true));
        if prepared.is_err() {
            return;
        }
        let server = Arc::clone(&self);
        let visit = Arc::new(Visit::new(self, socket, from, is_secure, pass));
        let answering = Arc::clone(&visit);
        let service = service_fn(move |request| {
            let visit = Arc::clone(&answering);
            async move { Ok::<_, Infallible>(requests::answer(&visit, request).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(server.settings.limits.opening)
            .max_header_size(LONGEST_HEAD)
            .max_headers(MOST_HEADERS)
            .max_buf_size(BUFFER_BYTES);
        {
            let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
            let mut ticks = tokio::time::interval(SAMPLE);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = &mut connection => break,
                    _ = ticks.tick() => {
                        visit.look();
                        if visit.is_over() {
                            return;
                        }
                    }
                }
            }
        }
        match visit.upgrade() {
            Some(Upgrade::Control { upgrade, name }) => {
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
