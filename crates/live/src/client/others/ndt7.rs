//! A client of ndt7, Measurement Lab's test of goodput: one WebSocket for a download, one for an upload, 10 s each. The server
//! reports its `TCP_INFO` in messages among the data.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bufferscope_verdict::input::Direction;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::{Request, Uri};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::client::http::{HttpError, Origin, PATIENCE, Purpose, connect, host_and_port, secure};
use crate::load::{Counted, Shared, pool};
use crate::records::FlowRow;
use crate::time::realtime_ns;

/// Where the tests are if a URL names no path.
const PATH: &str = "/ndt/v7";
const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";
/// The time of a test.
const TEST: Duration = Duration::from_secs(10);
/// A server closes its download by then.
const LONGEST: Duration = Duration::from_secs(15);
/// After an upload, the server's last messages come within this time.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// The specification's longest message.
const LONGEST_MESSAGE: usize = 16 << 20;
/// Messages of an upload begin with this size, and grow with what was sent.
const FIRST_MESSAGE: usize = 8 << 10;
const LAST_MESSAGE: usize = 256 << 10;
const GROWTH: u64 = 16;
/// Payload of a full segment.
const SEGMENT_BYTES: u64 = 1448;
/// A server sends a message every 100 ms or more seldom; more are not kept.
const MOST_ROWS: usize = 1_000;

/// The tests' common URL, from what a user types: `ndt7://HOST`, or `wss://HOST/ndt/v7`.
pub fn base(url: &Uri) -> Result<Uri, String> {
    let (host, _) = host_and_port(url).ok_or_else(|| format!("{url}: allowed: ndt7://HOST[:PORT]"))?;
    let path = url.path().trim_end_matches('/');
    let path = ["/download", "/upload"].into_iter().find_map(|test| path.strip_suffix(test)).unwrap_or(path);
    let path = if path.is_empty() { PATH } else { path };
    let query = url.query().map_or(String::new(), |query| format!("?{query}"));
    let scheme = if url.scheme_str() == Some("ws") { "ws" } else { "wss" };
    let authority = url.authority().map_or(host, |authority| authority.as_str());
    format!("{scheme}://{authority}{path}{query}").parse().map_err(|error| format!("{url}: {error}"))
}

/// The URL of a test.
pub(super) fn url(base: &Uri, test: &str) -> Result<Uri, String> {
    let mut parts = base.clone().into_parts();
    let query = base.query().map_or(String::new(), |query| format!("?{query}"));
    let path = format!("{}/{test}{query}", base.path().trim_end_matches('/'));
    parts.path_and_query = Some(path.parse().map_err(|error| format!("{base}: {error}"))?);
    Uri::from_parts(parts).map_err(|error| format!("{base}: {error}"))
}

/// A server's message. Times are microseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Measurement {
    #[serde(rename = "TCPInfo")]
    tcp_info: Option<TcpInfo>,
}

/// The part of `TCP_INFO` that is of use here.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct TcpInfo {
    #[serde(rename = "RTT")]
    rtt: u64,
    #[serde(rename = "MinRTT")]
    min_rtt: u64,
    bytes_acked: u64,
    bytes_retrans: u64,
    busy_time: u64,
    #[serde(rename = "RWndLimited")]
    rwnd_limited: u64,
    #[serde(rename = "SndBufLimited")]
    snd_buf_limited: u64,
}

/// A message of a server as a sample of its connection; `None`: it has none.
pub fn row(text: &str, t_ns: u64) -> Option<FlowRow> {
    let info = serde_json::from_str::<Measurement>(text).ok()?.tcp_info?;
    Some(FlowRow {
        t_ns,
        srtt_ns: info.rtt.saturating_mul(1000),
        min_rtt_ns: (info.min_rtt > 0).then(|| info.min_rtt.saturating_mul(1000)),
        delivered_bytes: info.bytes_acked,
        retransmits: info.bytes_retrans.div_ceil(SEGMENT_BYTES),
        busy_us: info.busy_time,
        rwnd_limited_us: info.rwnd_limited,
        sndbuf_limited_us: info.snd_buf_limited,
        ..FlowRow::default()
    })
}

/// A test that has begun.
pub(super) struct Test {
    sink: SplitSink<WebSocketStream<Counted<Box<dyn Stream>>>, Message>,
    stream: SplitStream<WebSocketStream<Counted<Box<dyn Stream>>>>,
}

impl Test {
    /// Opens the WebSocket of a test. What arrives on it is counted.
    pub(super) async fn open(
        origin: &Origin,
        url: &Uri,
        direction: Direction,
        congestion: &str,
        shared: &Arc<Shared>,
    ) -> Result<(Self, OwnedFd), HttpError> {
        let opening = async {
            let purpose = match direction {
                Direction::Down => Purpose::Download,
                Direction::Up => Purpose::Upload(congestion),
            };
            let (tcp, socket) = connect(origin.address, &purpose).await?;
            let stream: Box<dyn Stream> = match &origin.tls {
                Some(tls) => Box::new(secure(tls, &origin.name, tcp).await?),
                None => Box::new(tcp),
            };
            Ok((Self::over(stream, url, shared).await?, socket))
        };
        timeout(PATIENCE, opening).await.unwrap_or(Err(HttpError::Silent(origin.address)))
    }

    /// Opens the WebSocket over a stream.
    pub(super) async fn over(stream: Box<dyn Stream>, url: &Uri, shared: &Arc<Shared>) -> Result<Self, HttpError> {
        let config =
            WebSocketConfig::default().max_message_size(Some(LONGEST_MESSAGE)).max_frame_size(Some(LONGEST_MESSAGE));
        let counted = Counted::new(stream, shared);
        let (socket, _) = client_async_with_config(request(url)?, counted, Some(config)).await.map_err(described)?;
        let (sink, stream) = socket.split();
        Ok(Self { sink, stream })
    }

    /// Receives until the server ends the test. Its messages go to `report`.
    pub(super) async fn download(mut self, mut report: impl FnMut(FlowRow)) -> Result<(), HttpError> {
        let mut rows = 0;
        let until = Instant::now() + LONGEST;
        while let Ok(message) = tokio::time::timeout_at(until, self.stream.next()).await {
            match message {
                Some(Ok(Message::Text(text))) => {
                    if let Some(row) = row(&text, realtime_ns()).filter(|_| rows < MOST_ROWS) {
                        rows += 1;
                        report(row);
                    }
                }
                Some(Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed)) | None => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(described(error)),
            }
        }
        // The server should have ended it; what was received counts all the same.
        Ok(())
    }

    /// Sends for the time of a test.
    pub(super) async fn upload(self, shared: &Arc<Shared>) -> Result<(), HttpError> {
        let Self { mut sink, mut stream } = self;
        let reading = async {
            loop {
                match stream.next().await {
                    Some(Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed)) | None => return Ok(()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(described(error)),
                }
            }
        };
        let sending = async {
            let (until, mut sent, mut bytes) = (Instant::now() + TEST, 0_u64, FIRST_MESSAGE);
            while Instant::now() < until && !shared.stops() {
                let message = Message::Binary(Bytes::from_static(&pool()[..bytes]));
                match tokio::time::timeout_at(until, sink.send(message)).await {
                    Ok(Ok(())) => sent += bytes as u64,
                    Ok(Err(error)) => return Err(described(error)),
                    Err(_) => break,
                }
                if bytes < LAST_MESSAGE && sent / GROWTH >= bytes as u64 {
                    bytes *= 2;
                }
            }
            let _ = timeout(LAST_WORDS, sink.close()).await;
            Ok(())
        };
        tokio::pin!(reading);
        tokio::select! {
            ended = &mut reading => return ended,
            sent = sending => sent?,
        }
        timeout(LAST_WORDS, reading).await.unwrap_or(Ok(()))
    }
}

fn request(url: &Uri) -> Result<Request<()>, HttpError> {
    let host = url.authority().map_or("", |authority| authority.as_str());
    Request::get(url)
        .header("Host", host)
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", generate_key())
        .header("Sec-WebSocket-Protocol", SUBPROTOCOL)
        .header("User-Agent", concat!("bufferscope/", env!("CARGO_PKG_VERSION")))
        .body(())
        .map_err(|error| HttpError::Http(error.to_string()))
}

fn described(error: tungstenite::Error) -> HttpError {
    match error {
        tungstenite::Error::Http(answer) => HttpError::Status(format!("the server answered {}", answer.status())),
        tungstenite::Error::Protocol(error) => HttpError::Status(format!("the server does not speak ndt7: {error}")),
        other => HttpError::Http(other.to_string()),
    }
}

/// A connection in clear or over TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_are_completed_and_keep_their_token() {
        let of = |text: &str| {
            let base = base(&text.parse().unwrap()).unwrap();
            url(&base, "download").unwrap().to_string()
        };
        assert_eq!(of("ndt7://example.org"), "wss://example.org/ndt/v7/download");
        assert_eq!(of("ws://[::1]:8080/"), "ws://[::1]:8080/ndt/v7/download");
        let token = "wss://example.org/ndt/v7/upload?access_token=a.b&x=1";
        assert_eq!(of(token), "wss://example.org/ndt/v7/download?access_token=a.b&x=1");
    }

    #[test]
    fn a_message_has_the_state_of_the_connection() {
        let text = r#"{"AppInfo": {"ElapsedTime": 5, "NumBytes": 9}, "Origin": "server", "TCPInfo": {"RTT": 20000,
            "MinRTT": 10000, "BytesAcked": 5000, "BytesRetrans": 1449, "BusyTime": 7, "RWndLimited": 1, "SndBufLimited": 2}}"#;
        let found = row(text, 3).unwrap();
        assert_eq!((found.t_ns, found.srtt_ns, found.min_rtt_ns), (3, 20_000_000, Some(10_000_000)));
        assert_eq!((found.delivered_bytes, found.retransmits, found.sndbuf_limited_us), (5000, 2, 2));
        assert_eq!(row(r#"{"AppInfo": {}}"#, 3), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_left_out(text in ".{0,200}", numbers in any::<[u64; 4]>()) {
            let _ = row(&text, 1);
            let [rtt, min, acked, lost] = numbers;
            let text =
                format!(r#"{{"TCPInfo": {{"RTT": {rtt}, "MinRTT": {min}, "BytesAcked": {acked}, "BytesRetrans": {lost}}}}}"#);
            prop_assert!(row(&text, 1).is_some());
        }
    }
}
