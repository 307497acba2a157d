//! `bufferscope-live serve`: the far end of a test.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::cookie::Cookies;
use crate::load::Pace;
use crate::local::Local;
use crate::records::{GoodputRow, LocalRow};
use crate::time::{SECOND, monotonic_ns, realtime_ns};
use crate::udp::ProbeSocket;
use crate::wire::control::{Answer, ControlError, LONGEST_REQUEST, PROTOCOL, Request, SessionLimits, Welcome};
use crate::wire::load::{ACCEPTED, OPENING_BYTES, Opening, Purpose, REFUSED};
use crate::wire::token::{Token, are_equal};

pub mod allow;
pub mod certificate;
pub mod gate;
pub mod ledger;
pub mod limits;
pub mod queue;
pub mod responder;
pub mod session;

use gate::{Gate, Pass};
use ledger::Ledger;
use limits::{Limits, Messages, user};
use queue::Queue;
use responder::{Responder, Sessions};
use session::{MOST_ROWS, Session};

/// How a server behaves.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where it listens, TCP and UDP.
    pub listen: Vec<SocketAddr>,
    /// What it gives its clients.
    pub limits: Limits,
    /// Only clients of these networks are taken; empty: all.
    pub allow: Vec<allow::Network>,
    /// End after the first test.
    pub once: bool,
}

/// A client takes an answer within this time, or it is gone ...
const READING_TIME: Duration = Duration::from_secs(10);
/// ... and the records within this time.
const RECORDS_TIME: Duration = Duration::from_secs(30);
/// After a limit has ended a test, the client may ask for the records within this time.
const FAREWELL: Duration = Duration::from_secs(10);
/// The kernel gives up a connection whose peer acknowledges nothing for this long.
const PATIENCE_MS: u32 = 15_000;
/// Time between two samples of the server's own queues and of its goodput.
const SAMPLE: Duration = Duration::from_millis(100);
/// The first byte of a TLS connection: a handshake record.
const TLS: u8 = 0x16;
/// An address whose test runs may open so many connections beside those of the load.
const OTHER_CONNECTIONS: usize = 8;
/// Descriptors that the server asks for, if it may have them.
const DESCRIPTORS: u64 = 16 * 1024;

/// What all connections share.
struct Server {
    settings: Settings,
    token: Token,
    acceptor: TlsAcceptor,
    sessions: Sessions,
    cookies: Cookies,
    queue: Queue,
    gate: Arc<Gate>,
    ledger: Ledger,
    pace: Option<Arc<Pace>>,
    finished: tokio::sync::Notify,
}

/// The threads of the probes; they end, with every session, when this is dropped.
struct Responders {
    server: Arc<Server>,
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Drop for Responders {
    fn drop(&mut self) {
        for session in self.server.sessions.lock().values() {
            session.end();
        }
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Serves until it is interrupted. Calls `ready` with the addresses that it listens on.
pub async fn serve(
    settings: Settings,
    identity: certificate::Identity,
    token: Token,
    ready: impl FnOnce(&[SocketAddr]),
) -> io::Result<()> {
    let acceptor = identity.acceptor()?;
    allow_descriptors();
    let mut listeners = Vec::new();
    let mut sockets = Vec::new();
    for &address in &settings.listen {
        let listener = listen(address)?;
        let bound = listener.local_addr()?;
        sockets.push(ProbeSocket::open(bound, None)?);
        listeners.push(listener);
    }
    let addresses: Vec<_> = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
    let limits = settings.limits.clone();
    let server = Arc::new(Server {
        queue: Queue::new(limits.tests, limits.waiting),
        gate: Gate::new(limits.unknown, limits.unknown_per_address),
        pace: limits.session.rate_bps.map(|bps| Arc::new(Pace::new(bps))),
        ledger: Ledger::new(limits),
        settings,
        token,
        acceptor,
        sessions: Sessions::default(),
        cookies: Cookies::new(),
        finished: tokio::sync::Notify::new(),
    });
    let stop = Arc::new(AtomicBool::new(false));
    let threads = sockets.into_iter().map(|socket| answer_probes(socket, &server, &stop)).collect();
    let _responders = Responders { server: Arc::clone(&server), stop, threads };
    ready(&addresses);
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(Arc::clone(&server).accept(listener));
    }
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
        () = server.finished.notified(), if server.settings.once => {}
    }
    Ok(())
}

/// Answers the probes of a socket on a thread of its own.
fn answer_probes(socket: ProbeSocket, server: &Arc<Server>, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let (server, stop) = (Arc::clone(server), Arc::clone(stop));
    std::thread::spawn(move || {
        let responder = Responder { socket, sessions: &server.sessions, cookies: &server.cookies };
        while !stop.load(Ordering::Relaxed) {
            if let Err(error) = responder.run(&stop) {
                log(format_args!("probes are not answered for a moment: {error}"));
                std::thread::sleep(SAMPLE);
            }
        }
    })
}

/// Every client is a descriptor, and many systems give a program a thousand unless it asks for more.
fn allow_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((now, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, now.max(most.min(DESCRIPTORS)), most);
    }
}

/// Listens at an address; an IPv6 address does not take IPv4 connections too.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    use nix::sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, setsockopt, socket, sockopt,
    };
    use std::os::fd::AsRawFd;
    let family = if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(family, SockType::Stream, flags, None)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    if address.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    listen(&socket, Backlog::new(1024)?)?;
    TcpListener::from_std(socket.into())
}

/// A line of the log, which has counts and durations but no addresses.
fn log(text: std::fmt::Arguments<'_>) {
    eprintln!("bufferscope-live: {text}");
}

impl Server {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, from)) if self.is_allowed(from.ip()) => {
                    if let Some(pass) = self.gate.enter(from.ip(), self.of_test(from.ip())) {
                        connections.spawn(Arc::clone(&self).connection(stream, from, pass));
                    }
                }
                Ok(_) => {}
                // Out of descriptors, or a connection that is already gone.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        let allow = &self.settings.allow;
        allow.is_empty() || allow.iter().any(|network| network.contains(address))
    }

    /// Connections that an address may open beside those of any address, because its test runs.
    fn of_test(&self, address: IpAddr) -> Option<usize> {
        let has_test = self.sessions.lock().values().any(|session| session.address == user(address));
        has_test.then(|| 2 * usize::from(self.settings.limits.session.flows) + OTHER_CONNECTIONS)
    }

    async fn connection(self: Arc<Self>, mut stream: TcpStream, from: SocketAddr, pass: Pass) {
        let until = tokio::time::Instant::now() + self.settings.limits.opening;
        let mut first = [0];
        match tokio::time::timeout_at(until, stream.peek(&mut first)).await {
            Ok(Ok(1)) if first[0] == TLS => {
                if let Err(reason) = self.control(stream, from, pass, until).await {
                    log(format_args!("a control connection ended: {reason}"));
                }
            }
            Ok(Ok(1)) => {
                let mut bytes = [0; OPENING_BYTES];
                let read = tokio::time::timeout_at(until, stream.read_exact(&mut bytes)).await;
                if let (Ok(Ok(_)), Some(opening)) = (read, Opening::parse(&bytes)) {
                    self.load(stream, from, &opening);
                }
            }
            _ => {}
        }
    }

    /// Takes a load connection, and runs it on a thread of its own.
    fn load(&self, stream: TcpStream, from: SocketAddr, opening: &Opening) {
        let session = self
            .sessions
            .get(opening.session)
            .filter(|session| are_equal(&session.key, &opening.key))
            .filter(|session| !session.has_ended() && session.address == user(from.ip()));
        let Some(session) = session else { return };
        if opening.purpose == Purpose::Exchange {
            let _ = stream.try_write(&[ACCEPTED]);
            return;
        }
        // Threads of an earlier phase take a moment to end.
        let most = 3 * usize::from(session.limits.flows);
        let admitted = match Arc::strong_count(&session.loads) <= most {
            true => session.state().admit(opening.purpose, session.limits.flows),
            false => None,
        };
        let Some(load) = admitted else {
            let _ = stream.try_write(&[REFUSED]);
            return;
        };
        let Ok(stream) = stream.into_std() else { return };
        let socket = stream.into();
        let (purpose, index, name) = (opening.purpose, opening.index, opening.congestion.clone());
        let counted = Arc::clone(&session.loads);
        let body = move || {
            let _counted = counted;
            let prepared = crate::load::prepare(&socket).and_then(|()| match (purpose, name.as_str()) {
                (Purpose::Download, name) if !name.is_empty() => crate::load::set_congestion(&socket, name),
                _ => Ok(()),
            });
            let answer = if prepared.is_ok() { ACCEPTED } else { REFUSED };
            use std::os::fd::AsRawFd;
            let flags = nix::sys::socket::MsgFlags::MSG_NOSIGNAL;
            let answered = nix::sys::socket::send(socket.as_raw_fd(), &[answer], flags);
            if prepared.is_err() || answered.is_err() {
                return;
            }
            match purpose {
                Purpose::Download => crate::load::send(&socket, index, crate::load::Marks::Returns, &load),
                _ => crate::load::receive(&socket, crate::load::Marks::Returns, &load),
            }
        };
        if let Err(error) = std::thread::Builder::new().stack_size(256 * 1024).spawn(body) {
            log(format_args!("no thread for a load connection: {error}"));
        }
    }

    async fn control(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        pass: Pass,
        until: tokio::time::Instant,
    ) -> Result<(), ControlError> {
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::TcpUserTimeout, &PATIENCE_MS)
            .map_err(io::Error::from)?;
        if !self.ledger.connects(from.ip(), monotonic_ns()) {
            return Err(io::Error::other("its address has connected too often in the past hour").into());
        }
        let accepted = tokio::time::timeout_at(until, self.acceptor.accept(stream)).await;
        let mut stream = accepted.map_err(|_| timed_out())??;
        let request = tokio::time::timeout_at(until, crate::wire::control::receive(&mut stream, LONGEST_REQUEST));
        let hello: Request = request.await.map_err(|_| timed_out())??;
        if let Some(reason) = self.refusal(&hello, from.ip()).await {
            return say(&mut stream, Answer::Refused { reason }).await;
        }
        // From here on, the queue bounds the number of clients.
        drop(pass);
        if let Err(reason) = self.ledger.may_begin(from.ip(), monotonic_ns()) {
            return say(&mut stream, Answer::Refused { reason }).await;
        }
        let Some(mut ticket) = self.queue.enter(user(from.ip()), self.settings.limits.per_address) else {
            let reason = "the server has too many clients: try again later".to_owned();
            return say(&mut stream, Answer::Refused { reason }).await;
        };
        while let Some(position) = ticket.position() {
            say(&mut stream, Answer::Queued { position }).await?;
            tokio::select! {
                () = ticket.changed() => {}
                () = tokio::time::sleep(Duration::from_secs(2)) => {}
                // Nobody speaks before the welcome: this is the end of the connection.
                _ = stream.read_u8() => return Ok(()),
            }
        }
        let running = match self.begin(from.ip(), &ticket)? {
            Ok(running) => running,
            Err(reason) => return say(&mut stream, Answer::Refused { reason }).await,
        };
        log(format_args!("a test begins; {} waiting", self.queue.waiting()));
        self.run(&mut stream, &running.session, from).await
    }

    /// Why there will be no test after this first message. The answer to a wrong secret is slow, and holds the connection's pass.
    async fn refusal(&self, hello: &Request, address: IpAddr) -> Option<String> {
        match hello {
            Request::Hello { protocol, .. } if *protocol != PROTOCOL => Some(format!(
                "the server speaks version {PROTOCOL} of the protocol, this client version {protocol}: update the older one"
            )),
            Request::Hello { secret, .. } if !self.token.admits(secret) => {
                tokio::time::sleep(self.ledger.shows_wrong_token(address, monotonic_ns())).await;
                Some("the token is not this server's: `bufferscope serve` prints it".to_owned())
            }
            Request::Hello { .. } => None,
            _ => Some("the first message was not a hello".to_owned()),
        }
    }

    /// Begins a client's test; the inner error is the reason for its refusal.
    fn begin(&self, address: IpAddr, ticket: &queue::Ticket<'_>) -> io::Result<Result<Running<'_>, String>> {
        use ring::rand::{SecureRandom, SystemRandom};
        let mut bytes = [0; 24];
        SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
        let id = crate::wire::SessionId(u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes")));
        let key = bytes[8..].try_into().expect("sixteen bytes");
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

    /// A client's test, from the welcome to the records.
    async fn run<S>(&self, stream: &mut S, session: &Arc<Session>, from: SocketAddr) -> Result<(), ControlError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let mut local = Local::towards(from.ip(), None)?;
        let welcome = Welcome {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session: session.id,
            key: session.key.iter().map(|byte| format!("{byte:02x}")).collect(),
            seen_as: from.ip().to_string(),
            limits: session.limits,
            end: local.facts().clone(),
            shares: session.state().shared,
        };
        say(stream, Answer::Welcome(Box::new(welcome))).await?;
        let mut ends = tokio::time::Instant::now() + Duration::from_secs(session.limits.seconds);
        let mut messages = Messages::new(self.settings.limits.messages_per_s);
        let (mut reader, mut writer) = tokio::io::split(stream);
        // Reading a message must not be cancelled half way, so it has a task's future of its own.
        let silence = self.settings.limits.silence;
        let mut reading = Box::pin(next(&mut reader, silence));
        let mut sampling = tokio::time::interval(SAMPLE);
        sampling.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let limit = tokio::select! {
                found = &mut reading => {
                    let (request, reader) = found?;
                    reading = Box::pin(next(reader, silence));
                    if !messages.allows(monotonic_ns()) {
                        session.end();
                        let reason = "the client sends too many messages".to_owned();
                        return say(&mut writer, Answer::Refused { reason }).await;
                    }
                    match request {
                        Request::Phase { phase } => session.state().begin(phase),
                        Request::Alive => {}
                        Request::Finish => break,
                        Request::Hello { .. } => {
                            return Err(io::Error::other("a second hello").into());
                        }
                    }
                    say(&mut writer, Answer::Noted).await?;
                    continue;
                }
                _ = sampling.tick(), if !session.has_ended() => {
                    let sample = LocalRow { t_ns: realtime_ns(), sample: local.sample() };
                    let mut state = session.state();
                    if state.local.len() < MOST_ROWS {
                        state.local.push(sample);
                        let row = GoodputRow { t_ns: realtime_ns(), bytes: state.received_bytes() };
                        state.goodput.push(row);
                    }
                    if session.budget.left() > 0 {
                        continue;
                    }
                    format!("{} bytes", session.limits.bytes)
                }
                () = tokio::time::sleep_until(ends) => format!("{} s", session.limits.seconds),
            };
            if session.has_ended() {
                // The client has not asked for its records.
                return Ok(());
            }
            session.end();
            ends = tokio::time::Instant::now() + FAREWELL;
            let reason = format!("the server's limit of {limit} for this test is reached");
            say(&mut writer, Answer::Refused { reason }).await?;
        }
        let mut records = session.state().records();
        records.facts = local.facts().clone();
        let records = Answer::Records(Box::new(records));
        let sent = crate::wire::control::send(&mut writer, &records);
        tokio::time::timeout(RECORDS_TIME, sent).await.map_err(|_| does_not_read())?
    }
}

/// A test that runs; its end is the end of this, whatever ends it.
struct Running<'a> {
    server: &'a Server,
    session: Arc<Session>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let session = &self.session;
        session.end();
        self.server.sessions.lock().remove(&session.id);
        let now_ns = monotonic_ns();
        let left = session.budget.left();
        self.server.ledger.gives_back(session.address, now_ns, left);
        let (seconds, bytes) = ((now_ns - session.began_ns) / SECOND, session.limits.bytes - left);
        log(format_args!("a test has ended after {seconds} s and {bytes} bytes of load"));
        self.server.finished.notify_one();
    }
}

/// Sends an answer, which the client must take in time.
async fn say<W: tokio::io::AsyncWrite + Unpin>(writer: &mut W, answer: Answer) -> Result<(), ControlError> {
    let sent = tokio::time::timeout(READING_TIME, crate::wire::control::send(writer, &answer)).await;
    sent.map_err(|_| does_not_read())?
}

/// The next request of a client, which must not be silent for too long.
async fn next<R>(reader: &mut R, silence: Duration) -> Result<(Request, &mut R), ControlError>
where
    R: tokio::io::AsyncRead + Unpin,
{
    let request = tokio::time::timeout(silence, crate::wire::control::receive(reader, LONGEST_REQUEST)).await;
    Ok((request.map_err(|_| timed_out())??, reader))
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client is silent")
}

fn does_not_read() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client does not read")
}
