//! The control connection, from the handshake to the welcome.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::gate::Pass;
use super::life::Stage;
use super::limits::user;
use super::running::Running;
use super::session::Session;
use super::status::{Outcome, Refused};
use super::{Server, log, memory, queue, web};
use crate::time::monotonic_ns;
use crate::wire::SessionId;
use crate::wire::control::{Answer, ControlError, LONGEST_REQUEST, PROTOCOL, Request, SessionLimits};
use crate::wire::load::Key;

/// A client takes an answer within this time, or it is gone.
pub(super) const READING_TIME: Duration = Duration::from_secs(10);
/// The kernel gives up a connection whose peer acknowledges nothing for this long.
pub(super) const PATIENCE_MS: u32 = 15_000;

impl Server {
    /// Takes a connection of TLS: a client's control connection, or a browser's.
    pub(super) async fn secured(
        self: Arc<Self>,
        stream: TcpStream,
        from: SocketAddr,
        pass: Pass,
        until: tokio::time::Instant,
    ) -> Result<(), ControlError> {
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::TcpUserTimeout, &PATIENCE_MS)
            .map_err(io::Error::from)?;
        // A page opens dozens for a test, and other programs do; their number is bounded as long as the test runs.
        let now_ns = monotonic_ns();
        let is_of_test = self.of_test(from.ip()).is_some() || self.other_tests.connects(from.ip(), now_ns);
        if !is_of_test && !self.ledger.connects(from.ip(), now_ns) {
            self.counters.refused(Refused::Connections);
            return Err(io::Error::other("its address has connected too often in the past hour").into());
        }
        let accepted = tokio::time::timeout_at(until, self.acceptor.accept(stream)).await;
        let stream = accepted.map_err(|_| timed_out())??;
        let protocol = stream.get_ref().1.alpn_protocol();
        if protocol == Some(web::ALPN) || protocol == Some(web::ALPN_2) {
            let is_multiplexed = protocol == Some(web::ALPN_2);
            let socket = stream.get_ref().0.as_fd().try_clone_to_owned()?;
            if is_multiplexed {
                self.call(stream, socket, from, pass).await;
            } else {
                self.visit(stream, socket, from, true, pass).await;
            }
            return Ok(());
        }
        self.converse(stream, from, pass, until).await
    }

    /// Talks with a client from its hello to the end of its test.
    pub(super) async fn converse<S>(
        &self,
        mut stream: S,
        from: SocketAddr,
        pass: Pass,
        until: tokio::time::Instant,
    ) -> Result<(), ControlError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let request = tokio::time::timeout_at(until, crate::wire::control::receive(&mut stream, LONGEST_REQUEST));
        let hello: Request = request.await.map_err(|_| timed_out())??;
        if let Some(reason) = self.refusal(&hello, from.ip()).await {
            return say(&mut stream, Answer::Refused { reason }).await;
        }
        if self.life.stage() >= Stage::Stopping {
            return self.send_away(&mut stream).await;
        }
        // From here on, the number of clients is bounded by the queue, or by that of monitors.
        drop(pass);
        if matches!(hello, Request::Hello { monitor: true, .. }) {
            return self.watch(&mut stream, from).await;
        }
        if let Err(reason) = self.ledger.may_begin(from.ip(), monotonic_ns()) {
            self.counters.refused(Refused::Hour);
            return say(&mut stream, Answer::Refused { reason }).await;
        }
        let Some(mut ticket) = self.queue.enter(user(from.ip()), self.settings.limits.per_address) else {
            self.counters.refused(Refused::Queue);
            let reason = "the server has too many clients: try again later".to_owned();
            return say(&mut stream, Answer::Refused { reason }).await;
        };
        loop {
            if self.life.stage() >= Stage::Stopping {
                return self.send_away(&mut stream).await;
            }
            let Some(position) = ticket.position() else { break };
            say(&mut stream, Answer::Queued { position }).await?;
            tokio::select! {
                () = ticket.changed() => {}
                () = self.life.reaches(Stage::Stopping) => {}
                () = tokio::time::sleep(Duration::from_secs(2)) => {}
                // Nobody speaks before the welcome: this is the end of the connection.
                _ = stream.read_u8() => return Ok(()),
            }
        }
        let running = match self.begin(from.ip(), &ticket)? {
            Ok(running) => running,
            Err(reason) => {
                self.counters.refused(Refused::Hour);
                return say(&mut stream, Answer::Refused { reason }).await;
            }
        };
        log(format_args!("a test begins; {} waiting", self.queue.waiting()));
        let ended = self.run(&mut stream, &running.session, from).await;
        drop(running);
        memory::release();
        self.counters.ended(ended.as_ref().map_or(Outcome::Failed, |outcome| *outcome));
        ended.map(|_| ())
    }

    /// Tells a client that the server is about to end.
    pub(super) async fn send_away<S>(&self, stream: &mut S) -> Result<(), ControlError>
    where
        S: tokio::io::AsyncWrite + Unpin,
    {
        self.counters.refused(Refused::Stopping);
        let reason = "the server is about to end: try again later".to_owned();
        say(stream, Answer::Refused { reason }).await
    }

    /// Why there will be no test after this first message. The answer to a wrong secret is slow, and holds the connection's pass.
    async fn refusal(&self, hello: &Request, address: IpAddr) -> Option<String> {
        let (why, reason) = match hello {
            Request::Hello { protocol, .. } if *protocol != PROTOCOL => (
                Refused::Protocol,
                format!(
                    "the server speaks version {PROTOCOL} of the protocol, this client version {protocol}: update the older one"
                ),
            ),
            Request::Hello { secret, .. } if !self.token.admits(secret) => {
                tokio::time::sleep(self.ledger.shows_wrong_token(address, monotonic_ns())).await;
                (Refused::Token, "the token is not this server's: `bufferscope serve` prints it".to_owned())
            }
            Request::Hello { .. } => return None,
            _ => (Refused::Protocol, "the first message was not a hello".to_owned()),
        };
        self.counters.refused(why);
        Some(reason)
    }

    /// Begins a client's test; the inner error is the reason for its refusal.
    pub(super) fn begin(&self, address: IpAddr, ticket: &queue::Ticket<'_>) -> io::Result<Result<Running<'_>, String>> {
        let (id, key) = drawn()?;
        let granted = match self.ledger.begins(address, monotonic_ns()) {
            Ok(granted) => granted,
            Err(reason) => return Ok(Err(reason)),
        };
        let limits = SessionLimits { bytes: granted, ..self.settings.limits.session };
        let session = Arc::new(Session::new(id, key, user(address), limits, self.pace.clone()));
        session.state().shared = ticket.shares();
        self.sessions.lock().insert(id, Arc::clone(&session));
        Ok(Ok(Running { server: self, session }))
    }
}

/// A session's number and key.
pub(super) fn drawn() -> io::Result<(SessionId, Key)> {
    use ring::rand::{SecureRandom, SystemRandom};
    let mut bytes = [0; 24];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
    let id = SessionId(u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes")));
    Ok((id, bytes[8..].try_into().expect("sixteen bytes")))
}

/// Sends an answer, which the client must take in time.
pub(super) async fn say<W: tokio::io::AsyncWrite + Unpin>(writer: &mut W, answer: Answer) -> Result<(), ControlError> {
    let sent = tokio::time::timeout(READING_TIME, crate::wire::control::send(writer, &answer)).await;
    sent.map_err(|_| does_not_read())?
}

pub(super) fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client is silent")
}

pub(super) fn does_not_read() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client does not read")
}
