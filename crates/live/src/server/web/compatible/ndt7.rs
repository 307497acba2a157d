//! ndt7, the test of goodput of Measurement Lab (protocol version 0.11): a WebSocket in each direction, for ten seconds.
//!
//! Its documents name BBR, which keeps queues short: its numbers are about goodput and say little about delay under load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bufferscope_endpoint::socket::tcp_info;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::other_tests::Flow;
use super::{Caller, Name, Program, Refused, headers_of};
use crate::load::{Counted, LONGEST_SLEEP, pool};
use crate::server::web::content::Content;
use crate::server::web::requests::websocket;

/// The name of the protocol within WebSockets.
const PROTOCOL: &str = "net.measurementlab.ndt.v7";
/// How long a test sends ...
const TIME: Duration = Duration::from_secs(10);
/// ... and how long its connection lives at most.
const LONGEST: Duration = Duration::from_secs(13);
/// Time between two messages with measurements; the protocol allows ten a second.
const INTERVAL: Duration = Duration::from_millis(250);
/// The first message of a download.
const FIRST_MESSAGE: usize = 1 << 13;
/// Messages grow to this share of what was sent ...
const SHARE: u64 = 16;
/// ... and to this length.
const LONGEST_SENT: usize = 1 << 20;
/// The longest message that a client may send in an upload.
const LONGEST_RECEIVED: usize = 1 << 24;
/// As well in a download, where it sends measurements only.
const LONGEST_MEASUREMENT: usize = 1 << 16;
const BUFFER: usize = 64 * 1024;
/// The congestion control that the protocol asks for, if the kernel has it.
const CONGESTION: &str = "bbr";

/// The two tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Download,
    Upload,
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// A test whose request is answered, and whose connection becomes a WebSocket.
pub(in crate::server::web) struct Begun {
    upgrade: OnUpgrade,
    flow: Flow,
    test: Test,
    server: Option<SocketAddr>,
}

/// Answers the request that opens the WebSocket.
pub(super) async fn open(
    caller: &Arc<Caller>,
    request: Request<Incoming>,
    test: Test,
) -> Result<Response<Content>, Refused> {
    let names_protocol = |headers: &HeaderMap| {
        let mut all = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
        all.any(|text| text.split(',').any(|name| name.trim() == PROTOCOL))
    };
    let answer = websocket(request.headers()).filter(|_| names_protocol(request.headers()));
    let reason = "a WebSocket with the protocol net.measurementlab.ndt.v7 is needed";
    let mut answer = answer.ok_or(Refused::new(StatusCode::BAD_REQUEST, reason))?;
    let flow = caller.flow(Name { program: Program::Ndt7, number: None }, 1).await?;
    headers_of(&mut answer, header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL);
    let server = caller.local();
    caller.set_upgrade(Begun { upgrade: hyper::upgrade::on(request), flow, test, server });
    Ok(answer)
}

/// Runs a test to its end.
pub(in crate::server::web) async fn run(begun: Begun) {
    let Begun { upgrade, flow, test, server } = begun;
    let Ok(upgraded) = upgrade.await else { return };
    let stream = Counted::new(hyper_util::rt::TokioIo::new(upgraded), &flow.other.up);
    let longest = if test == Test::Upload { LONGEST_RECEIVED } else { LONGEST_MEASUREMENT };
    let config = WebSocketConfig::default()
        .max_message_size(Some(longest))
        .max_frame_size(Some(longest))
        .write_buffer_size(0)
        .read_buffer_size(BUFFER);
    if test == Test::Download {
        flow.caller.sends(&flow.other, CONGESTION);
    }
    let running = Running { begun: Instant::now(), moved: 0, flow, test, server };
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    // A client that never reads or never closes ends here, with everything that it holds.
    let _ = tokio::time::timeout(LONGEST, running.run(socket)).await;
}

struct Running {
    begun: Instant,
    /// Bytes of messages so far.
    moved: u64,
    flow: Flow,
    test: Test,
    server: Option<SocketAddr>,
}

type Socket<S> = WebSocketStream<Counted<S>>;

impl Running {
    async fn run<S: AsyncRead + AsyncWrite + Unpin>(mut self, mut socket: Socket<S>) {
        let finished = match self.test {
            Test::Download => self.send(&mut socket).await,
            Test::Upload => self.receive(&mut socket).await,
        };
        if finished.is_ok() {
            let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
            let _ = socket.close(Some(frame)).await;
            // The client's answer, and what was on its way.
            while let Some(Ok(_)) = socket.next().await {}
        }
    }

    fn is_over(&self) -> bool {
        self.begun.elapsed() >= TIME || self.flow.other.has_ended() || self.flow.other.down.stops()
    }

    async fn send<S: AsyncRead + AsyncWrite + Unpin>(&mut self, socket: &mut Socket<S>) -> Result<(), Error> {
        let down = Arc::clone(&self.flow.other.down);
        let (mut sink, mut source) = socket.split();
        // What the client measured is of no use to the server, but its control frames are answered.
        let reading = async { while let Some(Ok(_)) = source.next().await {} };
        let sending = async {
            let mut length = FIRST_MESSAGE;
            let mut due = Instant::now();
            while !self.is_over() {
                if Instant::now() >= due {
                    due = Instant::now() + INTERVAL;
                    self.flow.caller.look();
                    sink.send(Message::text(self.measurement().to_string())).await?;
                }
                if let Some(wait) = down.pace.as_ref().and_then(|pace| pace.wait()) {
                    tokio::time::sleep(wait.min(LONGEST_SLEEP)).await;
                    continue;
                }
                if length < LONGEST_SENT && length as u64 * SHARE <= self.moved {
                    length *= 2;
                }
                sink.send(Message::Binary(Bytes::from_static(&pool()[..length]))).await?;
                down.has_sent(length as u64);
                self.moved += length as u64;
                self.flow.caller.moves();
            }
            Ok(())
        };
        tokio::select! {
            sent = sending => sent,
            () = reading => Err(Error::ConnectionClosed),
        }
    }

    async fn receive<S: AsyncRead + AsyncWrite + Unpin>(&mut self, socket: &mut Socket<S>) -> Result<(), Error> {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let first = self.flow.other.up.received.load(std::sync::atomic::Ordering::Relaxed);
        loop {
            tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(Message::Close(_))) | None => return Ok(()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error),
                },
                _ = ticks.tick() => {
                    // Counted as they arrive: a message may be long.
                    let received = self.flow.other.up.received.load(std::sync::atomic::Ordering::Relaxed);
                    self.moved = received - first;
                    if self.flow.other.has_ended() || self.flow.other.up.stops() {
                        return Ok(());
                    }
                    // The client ends the test; its last messages may still be on their way.
                    if self.begun.elapsed() < TIME + INTERVAL {
                        let text = self.measurement().to_string();
                        socket.send(Message::text(text)).await?;
                    }
                    self.flow.caller.moves();
                }
            }
        }
    }

    /// A measurement, as the protocol writes it: times in microseconds.
    fn measurement(&self) -> Value {
        let elapsed = self.begun.elapsed().as_micros() as u64;
        let mut measurement = json!({
            "AppInfo": {"ElapsedTime": elapsed, "NumBytes": self.moved},
            "ConnectionInfo": {
                "Client": self.flow.caller.from.to_string(),
                "Server": self.server.map(|address| address.to_string()),
                "UUID": format!("{:016x}", self.flow.other.id().0),
            },
            "Origin": "server",
            "Test": self.test.name(),
        });
        if let Ok(info) = tcp_info(self.flow.caller.socket()) {
            measurement["TCPInfo"] = json!({
                "BusyTime": info.busy_us,
                "BytesAcked": info.bytes_acked,
                "BytesReceived": info.bytes_received,
                "BytesSent": info.bytes_sent,
                "BytesRetrans": info.bytes_retrans,
                "ElapsedTime": elapsed,
                "MinRTT": info.min_rtt_us,
                "RTT": info.rtt_us,
                "RTTVar": info.rttvar_us,
                "RWndLimited": info.rwnd_limited_us,
                "SndBufLimited": info.sndbuf_limited_us,
            });
        }
        measurement
    }
}
