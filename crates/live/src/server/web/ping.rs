//! The probes of a browser: messages over a WebSocket, each of which is answered at once.
//!
//! A ping is its number (`u32`); its answer is that number, the time at which it arrived (`u64`, nanoseconds on the
//! server's real-time clock) and the bytes of the load that had arrived by then (`u64`), all big-endian.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::records::ArrivalRow;
use crate::server::control::READING_TIME;
use crate::server::limits::Messages;
use crate::server::session::{MOST_ROWS, Session};
use crate::time::{monotonic_ns, realtime_ns};

/// Length of a ping.
const PING_BYTES: usize = 4;
/// Pings of one connection per second, on average.
const PINGS_PER_S: u64 = 100;
/// The longest message, control frames included.
const LONGEST_MESSAGE: usize = 125;
const READ_BUFFER: usize = 1024;
/// It is looked whether the session has ended at least this often.
const LOOK: Duration = Duration::from_millis(500);

/// Answers a session's pings until the session ends or the browser is silent.
pub(super) async fn answer<S>(stream: S, session: &Session, silence: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(small(LONGEST_MESSAGE))).await;
    let mut messages = Messages::new(PINGS_PER_S);
    let mut heard = tokio::time::Instant::now();
    while heard.elapsed() < silence && !session.has_ended() {
        let Ok(message) = tokio::time::timeout(LOOK, socket.next()).await else { continue };
        let arrived_ns = realtime_ns();
        let Some(Ok(message)) = message else { return };
        if !messages.allows(monotonic_ns()) {
            break;
        }
        heard = tokio::time::Instant::now();
        let seq = match &message {
            Message::Binary(bytes) => match <[u8; PING_BYTES]>::try_from(&bytes[..]) {
                Ok(seq) => u32::from_be_bytes(seq),
                Err(_) => break,
            },
            // Control frames are answered by the library.
            Message::Ping(_) | Message::Pong(_) => continue,
            _ => break,
        };
        let load_bytes = {
            let mut state = session.state();
            if state.arrivals.len() < MOST_ROWS {
                state.arrivals.push(ArrivalRow { seq: u64::from(seq), arrived_ns });
            }
            state.received_bytes()
        };
        let mut pong = Vec::with_capacity(20);
        pong.extend(seq.to_be_bytes());
        pong.extend(arrived_ns.to_be_bytes());
        pong.extend(load_bytes.to_be_bytes());
        if !matches!(tokio::time::timeout(READING_TIME, socket.send(pong.into())).await, Ok(Ok(()))) {
            return;
        }
    }
    let _ = tokio::time::timeout(READING_TIME, socket.close(None)).await;
}

/// A connection with messages of at most this length, which are sent at once.
pub(super) fn small(longest: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(longest))
        .max_frame_size(Some(longest))
        .write_buffer_size(0)
        .read_buffer_size(READ_BUFFER)
}
