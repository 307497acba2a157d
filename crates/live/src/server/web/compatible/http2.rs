//! HTTP/2, with every limit of the library set here: its defaults are for servers that trust their clients more.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

use super::{Caller, answer};
use crate::server::Server;
use crate::server::gate::Pass;
use crate::server::web::content::Content;
use crate::server::web::{LONGEST_HEAD, ends_by_itself, files, prepare};

/// Requests of a connection at the same time. Its probes of responsiveness wait as long as the load of the connection.
const STREAMS: u32 = 128;
/// Bytes of uploads that a client may send before they are counted: at least what the kernel's receive buffer holds
/// (the last number of `tcp_rmem`, 6 MiB), so that it is TCP and not HTTP/2 that limits the rate.
const WINDOW: u32 = 8 * 1024 * 1024;
/// The longest frame that a client may send (the smallest limit that the protocol allows).
const FRAME: u32 = 16 * 1024;
/// Bytes of an answer that wait in this program.
const WAITING: usize = 64 * 1024;
/// Streams that a client opened and reset at once ("rapid reset") and whose requests were not answered yet ...
const RESET_BY_CLIENT: usize = 16;
/// ... and those that were reset because of errors of the client: more of them end the connection.
const RESET_BY_SERVER: usize = 16;
/// Bytes of the table that compresses heads.
const TABLE: u32 = 4096;

impl Server {
    /// Serves a connection over HTTP/2 of another program. `socket` is another descriptor of it.
    pub(in crate::server) async fn call(
        self: Arc<Self>,
        stream: TlsStream<TcpStream>,
        socket: OwnedFd,
        from: SocketAddr,
        pass: Pass,
    ) {
        self.call_over(|most| Short { stream, most }, socket, from, pass).await;
    }

    /// The same over any stream, which is made with the number of bytes that it may take at once.
    pub(in crate::server) async fn call_over<S>(
        self: Arc<Self>,
        stream: impl FnOnce(Arc<AtomicUsize>) -> S,
        socket: OwnedFd,
        from: SocketAddr,
        pass: Pass,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if prepare(&socket).is_err() {
            return;
        }
        let caller = Arc::new(Caller::new(&self, &Arc::new(socket), from, true, pass.place()));
        caller.wait();
        let stream = stream(Arc::clone(caller.piece()));
        let answering = Arc::clone(&caller);
        let service = service_fn(move |request| answered(Arc::clone(&answering), request));
        let tasks = Tasks::default();
        let mut http = http2::Builder::new(tasks.clone());
        http.timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_frame_size(FRAME)
            .max_send_buf_size(WAITING)
            .max_pending_accept_reset_streams(RESET_BY_CLIENT)
            .max_local_error_reset_streams(RESET_BY_SERVER)
            .max_header_list_size(LONGEST_HEAD as u32)
            .header_table_size(TABLE);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        ends_by_itself(connection, pass.place(), || {
            caller.look();
            caller.is_over()
        })
        .await;
        tasks.end();
        drop(pass);
    }
}

/// The answer of other people's programs. WebSockets and the page's own requests are sent back to HTTP/1.1: with HTTP/2,
/// browsers have one connection for everything.
async fn answered(caller: Arc<Caller>, request: Request<Incoming>) -> Result<Response<Content>, h2::Error> {
    let path = request.uri().path();
    let is_for_page = files::find(path).is_some() || path.starts_with("/test/");
    match caller.wants(&request) {
        Some(wanted) if !wanted.is_websocket() => return Ok(answer(&caller, wanted, request).await),
        wanted => {
            caller.asks();
            if is_for_page || wanted.is_some() {
                return Err(h2::Reason::HTTP_1_1_REQUIRED.into());
            }
        }
    }
    let mut response = Response::new(Content::from("there is no such page"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    Ok(response)
}

/// The tasks of a connection's streams, which end with it.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

/// A connection of TLS that takes few bytes at once, so that they wait neither in this program nor in the kernel. What one
/// stream has written would delay the others of the connection, and their round trips would be longer than the path's.
struct Short {
    stream: TlsStream<TcpStream>,
    most: Arc<AtomicUsize>,
}

impl Short {
    /// Waits until the kernel has few unsent bytes (`TCP_NOTSENT_LOWAT`). It takes more than that: a write is appended to the
    /// last unsent segment, up to 64 KiB, and only a new segment is refused. poll(2) tells the difference.
    fn poll_room(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.stream.get_ref().0;
        loop {
            std::task::ready!(socket.poll_write_ready(context))?;
            let has_room = || if is_writable(socket)? { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) };
            match socket.try_io(Interest::WRITABLE, has_room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                found => return Poll::Ready(found),
            }
        }
    }

    /// Makes TLS take no more than this, and cuts what is written to it.
    fn cut<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let most = self.most.load(Ordering::Relaxed);
        self.stream.get_mut().1.set_buffer_limit(Some(most));
        &bytes[..bytes.len().min(most)]
    }
}

fn is_writable(socket: &TcpStream) -> io::Result<bool> {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    nix::poll::poll(&mut polled, PollTimeout::ZERO)?;
    Ok(polled[0].any().unwrap_or(false))
}

impl AsyncRead for Short {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Short {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        std::task::ready!(self.poll_room(context))?;
        let bytes = self.cut(bytes);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
