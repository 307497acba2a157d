//! The control connection of a browser: what the page says is passed on to the code of any client, and its answers back.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::ping::small;
use super::rtc::{Offer, Registered};
use super::samples::{self, Page};
use crate::records::ServerRecords;
use crate::server::control::READING_TIME;
use crate::server::gate::Pass;
use crate::server::limits::Messages;
use crate::server::running::RECORDS_TIME;
use crate::server::session::Session;
use crate::server::{Server, log};
use crate::time::monotonic_ns;
use crate::wire::control::{
    Answer, ControlError, LONGEST_ANSWER, LONGEST_REQUEST, PROTOCOL, PhaseKind, Request, Welcome, receive, send,
};

/// Bytes on the way between the page's connection and the code of any client.
const PIPE_BYTES: usize = 64 * 1024;
/// The control frames of a WebSocket count too, so there may be more of them than of requests.
const FRAMES_PER_REQUEST: u64 = 2;

/// What a page says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// The first message.
    Hello {
        /// The secret of the token.
        secret: String,
    },
    /// The next phase begins now.
    Phase {
        /// It.
        phase: PhaseKind,
    },
    /// The page is there.
    Alive,
    /// The page has sent its samples, and waits for the verdict.
    Finish,
    /// The page asks for a channel of WebRTC.
    Webrtc {
        /// What it says of its end.
        offer: Offer,
    },
}

impl Ask {
    /// Reads a message; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// What is passed on of a message; the offer of a channel is for the page's own code.
fn request(ask: Ask) -> Result<Request, Offer> {
    Ok(match ask {
        Ask::Hello { secret } => {
            Request::Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned(), secret, monitor: false }
        }
        Ask::Phase { phase } => Request::Phase { phase },
        Ask::Alive => Request::Alive,
        Ask::Finish => Request::Finish,
        Ask::Webrtc { offer } => return Err(offer),
    })
}

/// Serves a page's control connection until its test is over. `name` is the server's, as the page calls it.
pub(super) async fn run<S>(
    server: &Arc<Server>,
    stream: S,
    name: String,
    from: SocketAddr,
    local: Option<SocketAddr>,
    pass: Pass,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(small(LONGEST_REQUEST))).await;
    let (near, far) = tokio::io::duplex(PIPE_BYTES);
    let until = tokio::time::Instant::now() + server.settings.limits.opening;
    let _counted = Arc::clone(&server.pages);
    let relay = Relay { server, socket, name, local, test: None, channel: None };
    let (served, ()) = tokio::join!(server.converse(far, from, pass, until), relay.run(near));
    if let Err(reason) = served {
        log(format_args!("a page's control connection ended: {reason}"));
    }
}

struct Relay<'a, S> {
    server: &'a Arc<Server>,
    socket: WebSocketStream<S>,
    name: String,
    /// The server's own address.
    local: Option<SocketAddr>,
    test: Option<(Box<Welcome>, Arc<Session>)>,
    channel: Option<Registered<'a>>,
}

impl<S> Relay<'_, S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    async fn run(mut self, near: DuplexStream) {
        let (mut reader, mut writer) = tokio::io::split(near);
        let mut frames = Messages::new(FRAMES_PER_REQUEST * self.server.settings.limits.messages_per_s);
        // Reading an answer must not be cancelled half way.
        let mut reading = Box::pin(next(&mut reader));
        loop {
            tokio::select! {
                found = &mut reading => {
                    let Ok((answer, reader)) = found else { break };
                    reading = Box::pin(next(reader));
                    if !self.pass_on(answer).await {
                        break;
                    }
                }
                message = self.socket.next() => {
                    let Some(Ok(message)) = message else { return };
                    if !frames.allows(monotonic_ns()) {
                        break;
                    }
                    let ask = match &message {
                        Message::Text(text) => Ask::parse(text),
                        // The library answers them.
                        Message::Ping(_) | Message::Pong(_) => continue,
                        _ => None,
                    };
                    let Some(ask) = ask else { break };
                    let goes_on = match request(ask) {
                        Ok(request) => send(&mut writer, &request).await.is_ok(),
                        Err(offer) => self.expect_channel(&offer).await,
                    };
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        let _ = tokio::time::timeout(READING_TIME, self.socket.close(None)).await;
    }

    /// Expects the page's channel, and says how it can be reached; returns whether more may follow. A test has one.
    async fn expect_channel(&mut self, offer: &Offer) -> bool {
        let Some((_, session)) = self.test.as_ref().filter(|_| self.channel.is_none()) else { return false };
        let server: &'_ Server = self.server;
        self.channel = server.transports.expect(session, offer);
        let end = self.channel.as_ref().map(|channel| {
            let (ufrag, pwd) = channel.peer.credentials();
            let (address, port) = (self.local.map(|local| local.ip()), self.local.map(|local| local.port()));
            let fingerprint = server.transports.fingerprint();
            json!({"ufrag": ufrag, "pwd": pwd, "fingerprint": fingerprint, "address": address, "port": port})
        });
        self.say(json!({"answer": "webrtc", "end": end}).to_string(), READING_TIME).await
    }

    /// Passes an answer on to the page; returns whether more may follow.
    async fn pass_on(&mut self, answer: Answer) -> bool {
        match answer {
            Answer::Welcome(welcome) => {
                let text = json!({
                    "answer": "welcome",
                    // Numbers of JavaScript have 53 bits.
                    "session": format!("{:016x}", welcome.session.0),
                    "key": welcome.key,
                    "limits": welcome.limits,
                    "version": welcome.version,
                    "shares": welcome.shares,
                });
                // The session ends with its records.
                self.test = self.server.sessions.get(welcome.session).map(|session| (welcome, session));
                self.say(text.to_string(), READING_TIME).await
            }
            Answer::Records(records) => {
                let text = self.judged(*records).await;
                let _ = self.say(text, RECORDS_TIME).await;
                false
            }
            other => match serde_json::to_string(&other) {
                Ok(text) => self.say(text, READING_TIME).await,
                Err(_) => false,
            },
        }
    }

    /// The verdict from both ends' records.
    async fn judged(&mut self, records: ServerRecords) -> String {
        let refused = |reason: &str| json!({"answer": "refused", "reason": reason}).to_string();
        let Some((welcome, session)) = &self.test else { return refused("there was no test") };
        let Some(samples) = session.take_page_samples() else { return refused("the page sent no samples") };
        let began_ns = session.began_realtime_ns;
        let held_ns = self.channel.as_ref().map(|channel| channel.peer.take_held()).unwrap_or_default();
        let page = Page { name: self.name.clone(), welcome: (**welcome).clone(), began_ns, held_ns };
        let judged = tokio::task::spawn_blocking(move || samples::judged(&samples, records, &page).to_string()).await;
        judged.unwrap_or_else(|_| refused("the server failed to reach a verdict"))
    }

    /// Sends a message, which the page must take in time.
    async fn say(&mut self, text: String, within: std::time::Duration) -> bool {
        matches!(tokio::time::timeout(within, self.socket.send(text.into())).await, Ok(Ok(())))
    }
}

async fn next<R>(reader: &mut R) -> Result<(Answer, &mut R), ControlError>
where
    R: AsyncRead + Unpin,
{
    let answer = receive(reader, LONGEST_ANSWER).await?;
    Ok((answer, reader))
}
