//! HTTP as a client of any server: connections whose steps are timed, and whose sockets can be asked for statistics.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{MsgFlags, send};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, ProtocolVersion};

use crate::load::{Shared, pool, prepare, set_congestion};

/// The names of the protocols in the handshake of TLS (ALPN), the preferred one first.
pub const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// A connection must be open, with TLS, within this time.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The port of `https`.
const PORT: u16 = 443;
/// Windows of HTTP/2 for a download: more than the longest queue holds. What arrives is discarded at once.
const LOAD_WINDOW: u32 = 32 << 20;
/// Windows for small answers.
const SMALL_WINDOW: u32 = 64 << 10;
/// What hyper keeps of an upload before the connection takes it.
const SEND_BUFFER: usize = 32 << 10;
/// The longest head of an answer.
const LONGEST_HEAD: u32 = 16 << 10;
/// Bounds of a piece of an upload: one frame of HTTP/2, and one record of TLS.
const PIECE: [usize; 2] = [1 << 10, 16 << 10];
const AGENT: &str = concat!("bufferscope/", env!("CARGO_PKG_VERSION"));

/// Why a request to a server has no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// It is silent.
    #[error("{0}: no answer within {secs} s", secs = PATIENCE.as_secs())]
    Silent(SocketAddr),
    /// There is no connection.
    #[error("{0}: {1}")]
    Refused(SocketAddr, io::Error),
    /// Its certificate is not trusted.
    #[error("the server's certificate is not trusted: {0}; if you know the server, use --fingerprint or --insecure")]
    Certificate(String),
    /// TLS fails otherwise.
    #[error("the server does not speak TLS as expected: {0}")]
    Tls(String),
    /// HTTP fails.
    #[error("{0}")]
    Http(String),
    /// The answer is not 200.
    #[error("{0}")]
    Status(String),
    /// Something on this machine failed.
    #[error("{0}")]
    Here(io::Error),
}

/// Where requests go, and how.
#[derive(Clone)]
pub struct Origin {
    /// The address.
    pub address: SocketAddr,
    /// The name in the handshake of TLS.
    pub name: ServerName<'static>,
    /// TLS; `None`: in clear.
    pub tls: Option<Arc<ClientConfig>>,
}

/// The host of a URL without the brackets of an IPv6 address, and its port; `None` if it has no valid ones.
pub fn host_and_port(url: &Uri) -> Option<(&str, u16)> {
    let default = match url.scheme_str()? {
        "http" | "ws" => 80,
        _ => PORT,
    };
    let named = url.host()?;
    // A port that is no number up to 65535 is not the same as no port.
    let after = url.authority()?.as_str().rsplit_once(named)?.1;
    let port = if matches!(after, "" | ":") { default } else { url.port_u16().filter(|port| *port > 0)? };
    let host = named.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then_some((host, port))
}

/// How long the steps of a new connection took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// The handshake of TCP.
    pub connect_ns: Option<u64>,
    /// The handshake of TLS.
    pub tls_ns: Option<u64>,
    /// Its round trips: one with TLS 1.3, two with TLS 1.2.
    pub tls_trips: u64,
}

/// What a connection is for.
#[derive(Clone, Debug)]
pub enum Purpose<'a> {
    /// Small requests.
    Probe,
    /// Load from the server.
    Download,
    /// Load to the server, with a congestion control by its name in Linux; empty: the system's.
    Upload(&'a str),
}

/// How large the pieces of an upload are, which follows its rate.
#[derive(Debug)]
pub struct Tuning(AtomicUsize);

impl Default for Tuning {
    fn default() -> Self {
        Self(AtomicUsize::new(PIECE[1]))
    }
}

impl Tuning {
    /// Pieces of this many bytes, within the bounds.
    pub fn set(&self, bytes: usize) {
        self.0.store(bytes.clamp(PIECE[0], PIECE[1]), Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection. Dropping it closes it.
pub struct Connection {
    requests: Requests,
    /// Another descriptor of its socket.
    pub socket: OwnedFd,
    /// The pieces of its upload.
    pub tuning: Arc<Tuning>,
    task: tokio::task::AbortHandle,
}

enum Requests {
    Http1(http1::SendRequest<Content>),
    Http2(http2::SendRequest<Content>),
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Opens a TCP connection; the second descriptor is for options and statistics.
pub async fn connect(address: SocketAddr, purpose: &Purpose<'_>) -> Result<(Wire, OwnedFd), HttpError> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }.map_err(HttpError::Here)?;
    let other = socket.as_fd().try_clone_to_owned().map_err(HttpError::Here)?;
    match purpose {
        Purpose::Probe => socket.set_nodelay(true).map_err(HttpError::Here)?,
        Purpose::Download => prepare(&other).map_err(HttpError::Here)?,
        Purpose::Upload(congestion) => {
            prepare(&other).map_err(HttpError::Here)?;
            if !congestion.is_empty() {
                set_congestion(&other, congestion).map_err(|error| {
                    HttpError::Here(io::Error::other(format!("congestion control `{congestion}`: {error}")))
                })?;
            }
        }
    }
    let stream = socket.connect(address).await.map_err(|error| HttpError::Refused(address, error))?;
    Ok((Wire { stream, waits: matches!(purpose, Purpose::Upload(_)) }, other))
}

/// Does the handshake of TLS.
pub async fn secure(
    tls: &Arc<ClientConfig>,
    name: &ServerName<'static>,
    stream: Wire,
) -> Result<TlsStream<Wire>, HttpError> {
    TlsConnector::from(Arc::clone(tls)).connect(name.clone(), stream).await.map_err(|error| {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(why)) => HttpError::Certificate(certificate_error(why)),
            _ => HttpError::Tls(error.to_string()),
        }
    })
}

fn certificate_error(why: &rustls::CertificateError) -> String {
    use rustls::CertificateError::{ApplicationVerificationFailure, UnknownIssuer};
    match why {
        ApplicationVerificationFailure => "it does not have the fingerprint".to_owned(),
        UnknownIssuer => "no authority of this system has signed it".to_owned(),
        other => other.to_string(),
    }
}

impl Connection {
    /// Opens one, over TLS, with HTTP/2 if the server speaks it. `steps` has the times so far, also if it fails.
    pub async fn open(origin: &Origin, purpose: &Purpose<'_>, steps: &mut Steps) -> Result<Self, HttpError> {
        let opening = Self::open_patiently(origin, purpose, steps);
        tokio::time::timeout(PATIENCE, opening).await.unwrap_or(Err(HttpError::Silent(origin.address)))
    }

    async fn open_patiently(origin: &Origin, purpose: &Purpose<'_>, steps: &mut Steps) -> Result<Self, HttpError> {
        let begun = Instant::now();
        let (stream, socket) = connect(origin.address, purpose).await?;
        steps.connect_ns = Some(begun.elapsed().as_nanos() as u64);
        let tls = origin.tls.as_ref().ok_or_else(|| HttpError::Tls("the URL has none".to_owned()))?;
        let begun = Instant::now();
        let stream = secure(tls, &origin.name, stream).await?;
        steps.tls_ns = Some(begun.elapsed().as_nanos() as u64);
        let session = stream.get_ref().1;
        steps.tls_trips = if session.protocol_version() == Some(ProtocolVersion::TLSv1_3) { 1 } else { 2 };
        let speaks_http2 = session.alpn_protocol() == Some(PROTOCOLS[0]);
        let tuning = Arc::new(Tuning::default());
        let stream = Tuned { stream, tuning: Arc::clone(&tuning) };
        Self::over(stream, speaks_http2, purpose, socket, tuning).await
    }

    /// Begins HTTP over a stream.
    pub(super) async fn over<S>(
        stream: S,
        speaks_http2: bool,
        purpose: &Purpose<'_>,
        socket: OwnedFd,
        tuning: Arc<Tuning>,
    ) -> Result<Self, HttpError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        let failed = |error: hyper::Error| HttpError::Http(described(&error));
        let (requests, task) = if speaks_http2 {
            let window = if matches!(purpose, Purpose::Download) { LOAD_WINDOW } else { SMALL_WINDOW };
            let (requests, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(window)
                .initial_connection_window_size(window)
                .max_send_buf_size(SEND_BUFFER)
                .max_header_list_size(LONGEST_HEAD)
                .handshake(io)
                .await
                .map_err(failed)?;
            (Requests::Http2(requests), tokio::spawn(async move { drop(connection.await) }))
        } else {
            let (requests, connection) =
                http1::Builder::new().max_buf_size(SMALL_WINDOW as usize).handshake(io).await.map_err(failed)?;
            (Requests::Http1(requests), tokio::spawn(async move { drop(connection.await) }))
        };
        Ok(Self { requests, socket, tuning, task: task.abort_handle() })
    }

    /// What other requests on the same connection go through; `None`: it is one of HTTP/1.1, which carries one at a time.
    pub fn multiplexed(&self) -> Option<Multiplexed> {
        match &self.requests {
            Requests::Http2(requests) => Some(Multiplexed(requests.clone())),
            Requests::Http1(_) => None,
        }
    }

    /// Gets an object; the answer must have the status 200.
    pub async fn get(&mut self, url: &Uri) -> Result<Response<Incoming>, HttpError> {
        self.send(Method::GET, url, Content::Empty).await
    }

    /// Sends load until it is asked to stop, or the server answers; that must have a status of success.
    pub async fn post(
        &mut self,
        url: &Uri,
        shared: &Arc<Shared>,
        offset: usize,
    ) -> Result<Response<Incoming>, HttpError> {
        let tuning = Arc::clone(&self.tuning);
        self.send(Method::POST, url, Content::Load(Upload { shared: Arc::clone(shared), tuning, offset })).await
    }

    async fn send(&mut self, method: Method, url: &Uri, content: Content) -> Result<Response<Incoming>, HttpError> {
        let answer = match &mut self.requests {
            Requests::Http2(requests) => {
                requests.ready().await.map_err(|error| HttpError::Http(described(&error)))?;
                requests.send_request(request(method, url.clone(), content)).await
            }
            Requests::Http1(requests) => {
                requests.ready().await.map_err(|error| HttpError::Http(described(&error)))?;
                let form = url.path_and_query().map_or("/", |path| path.as_str());
                let mut request = request(method, form.parse().unwrap_or_default(), content);
                if let Some(host) = url.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
                    request.headers_mut().insert(HOST, host);
                }
                requests.send_request(request).await
            }
        };
        successful(answer.map_err(|error| HttpError::Http(described(&error)))?)
    }
}

/// Sends further requests on a connection of HTTP/2.
#[derive(Clone)]
pub struct Multiplexed(http2::SendRequest<Content>);

impl Multiplexed {
    /// Gets an object; the answer must have the status 200.
    pub async fn get(&mut self, url: &Uri) -> Result<Response<Incoming>, HttpError> {
        self.0.ready().await.map_err(|error| HttpError::Http(described(&error)))?;
        let answer = self.0.send_request(request(Method::GET, url.clone(), Content::Empty)).await;
        successful(answer.map_err(|error| HttpError::Http(described(&error)))?)
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

fn request(method: Method, url: Uri, content: Content) -> Request<Content> {
    let is_load = matches!(content, Content::Load(_));
    let mut request = Request::new(content);
    *request.method_mut() = method;
    *request.uri_mut() = url;
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if is_load {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    }
    request
}

/// The answer, if its status is one of success. Redirects are none: the draft forbids them, and what they lead to is another path.
fn successful(answer: Response<Incoming>) -> Result<Response<Incoming>, HttpError> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let mut text = format!("the server answered {status}");
    if status.is_redirection() {
        text.push_str(": a redirect, which is not followed");
    }
    let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse::<u32>().ok());
    if let Some(seconds) = seconds.filter(|_| busy) {
        text.push_str(&format!(": try again in {seconds} s"));
    }
    Err(HttpError::Status(text))
}

/// An error of HTTP with its cause.
fn described(error: &hyper::Error) -> String {
    if error.is_canceled() || error.is_closed() || error.is_incomplete_message() {
        return "the server closed the connection".to_owned();
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Reads the whole body of an answer, which must not be longer than `most` bytes.
pub async fn whole(answer: Response<Incoming>, most: usize) -> Result<Vec<u8>, HttpError> {
    let mut body = answer.into_body();
    let mut found = Vec::new();
    while let Some(piece) = next(&mut body).await? {
        if found.len() + piece.len() > most {
            return Err(HttpError::Http(format!("the answer is longer than {most} bytes")));
        }
        found.extend_from_slice(&piece);
    }
    Ok(found)
}

/// The next piece of a body; `None` at its end.
pub async fn next(body: &mut Incoming) -> Result<Option<Bytes>, HttpError> {
    loop {
        match std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(error)) => return Err(HttpError::Http(described(&error))),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// The body of a request.
enum Content {
    Empty,
    Load(Upload),
}

/// Load to a server, until it is asked to stop.
struct Upload {
    shared: Arc<Shared>,
    tuning: Arc<Tuning>,
    offset: usize,
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self::Load(load) = &mut *self else { return Poll::Ready(None) };
        if load.shared.stops() {
            return Poll::Ready(None);
        }
        let (pool, bytes) = (pool(), load.tuning.get());
        load.offset = (load.offset + bytes) % (pool.len() - PIECE[1]);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&pool[load.offset..load.offset + bytes])))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Load(_) => SizeHint::default(),
        }
    }
}

/// A TCP connection. That of an upload is written to only if the kernel says that it takes more: otherwise, it adds to the
/// last packet of the send buffer what fits into it, however small `TCP_NOTSENT_LOWAT` is.
pub struct Wire {
    stream: TcpStream,
    waits: bool,
}

impl Wire {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut polled = [PollFd::new(self.stream.as_fd(), PollFlags::POLLOUT)];
        nix::poll::poll(&mut polled, PollTimeout::ZERO)?;
        match polled[0].revents() {
            Some(ready) if !ready.is_empty() => Ok(send(self.stream.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL)?),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !self.waits {
            return Pin::new(&mut self.stream).poll_write(context, bytes);
        }
        loop {
            match self.stream.poll_write_ready(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
            match self.stream.try_io(Interest::WRITABLE, || self.write(bytes)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A connection of TLS that keeps no more in its buffer than a piece of the upload, so that a probe does not wait there.
struct Tuned {
    stream: TlsStream<Wire>,
    tuning: Arc<Tuning>,
}

impl Tuned {
    fn limited(&mut self) -> Pin<&mut TlsStream<Wire>> {
        self.stream.get_mut().1.set_buffer_limit(Some(self.tuning.get()));
        Pin::new(&mut self.stream)
    }
}

impl AsyncRead for Tuned {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Tuned {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.limited().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.limited().poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_that_of_the_url_or_of_its_scheme_and_never_another() {
        let of = |text: &str| {
            let url: Uri = text.parse().unwrap();
            host_and_port(&url).map(|(host, port)| (host.to_owned(), port))
        };
        let found = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(of("https://example.org/a:1"), found("example.org", 443));
        assert_eq!(of("https://example.org:/"), found("example.org", 443));
        assert_eq!(of("ws://example.org"), found("example.org", 80));
        assert_eq!(of("https://[2001:db8::1]:4043/"), found("2001:db8::1", 4043));
        assert_eq!(of("https://[2001:db8::1]"), found("2001:db8::1", 443));
        for wrong in ["https://example.org:99999", "https://example.org:0/", "https://[2001:db8::1]:65536", "/path"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
