//! `bufferscope-live serve`: the far end of a test.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::cookie::Cookies;
use crate::local::Local;
use crate::records::{GoodputRow, LocalRow};
use crate::time::{SECOND, monotonic_ns, realtime_ns};
use crate::udp::ProbeSocket;
use crate::wire::control::{Answer, ControlError, LONGEST_REQUEST, PROTOCOL, Request, SessionLimits, Welcome};
use crate::wire::load::{ACCEPTED, OPENING_BYTES, Opening, Purpose, REFUSED};
use crate::wire::token::{Token, are_equal};

pub mod certificate;
pub mod queue;
pub mod responder;
pub mod session;

use queue::Queue;
use responder::{Responder, Sessions};
use session::{MOST_ROWS, Session};

/// How a server behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens, TCP and UDP.
    pub listen: Vec<SocketAddr>,
    /// What each session may use.
    pub limits: SessionLimits,
    /// Tests at the same time.
    pub tests: usize,
    /// Clients that may wait.
    pub waiting: usize,
    /// Sessions of one address at the same time, waiting ones included.
    pub per_address: usize,
    /// End after the first test.
    pub once: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            limits: SessionLimits { seconds: 180, flows: 32, bytes: 200_000_000_000 },
            tests: 1,
            waiting: 256,
            per_address: 8,
            once: false,
        }
    }
}

/// A connection must say what it is within this time.
const OPENING_TIME: Duration = Duration::from_secs(5);
/// A client that sends no message for this long is gone.
const SILENCE: Duration = Duration::from_secs(20);
/// Connections that are handled at the same time.
const CONNECTIONS: usize = 1024;
/// Time between two samples of the server's own queues and of its goodput.
const SAMPLE: Duration = Duration::from_millis(100);
/// The first byte of a TLS connection: a handshake record.
const TLS: u8 = 0x16;

/// What all connections share.
struct Server {
    settings: Settings,
    token: Token,
    acceptor: TlsAcceptor,
    sessions: Sessions,
    cookies: Cookies,
    queue: Queue,
    connections: Arc<tokio::sync::Semaphore>,
    finished: tokio::sync::Notify,
}

/// Serves until it is interrupted. Calls `ready` with the addresses that it listens on.
pub async fn serve(
    settings: Settings,
    identity: certificate::Identity,
    token: Token,
    ready: impl FnOnce(&[SocketAddr]),
) -> io::Result<()> {
    let acceptor = identity.acceptor()?;
    let mut listeners = Vec::new();
    let mut sockets = Vec::new();
    for &address in &settings.listen {
        let listener = listen(address)?;
        let bound = listener.local_addr()?;
        sockets.push(ProbeSocket::open(bound, None)?);
        listeners.push(listener);
    }
    let addresses: Vec<_> = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
    let server = Arc::new(Server {
        queue: Queue::new(settings.tests, settings.waiting),
        settings,
        token,
        acceptor,
        sessions: Sessions::default(),
        cookies: Cookies::new(),
        connections: Arc::new(tokio::sync::Semaphore::new(CONNECTIONS)),
        finished: tokio::sync::Notify::new(),
    });
    let stop = Arc::new(AtomicBool::new(false));
    let responders: Vec<_> = sockets
        .into_iter()
        .map(|socket| {
            let (server, stop) = (Arc::clone(&server), Arc::clone(&stop));
            std::thread::spawn(move || {
                let responder = Responder { socket, sessions: &server.sessions, cookies: &server.cookies };
                if let Err(error) = responder.run(&stop) {
                    log(format_args!("probes are no longer answered: {error}"));
                }
            })
        })
        .collect();
    ready(&addresses);
    let accepting: Vec<_> =
        listeners.into_iter().map(|listener| tokio::spawn(Arc::clone(&server).accept(listener))).collect();
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
        () = server.finished.notified(), if server.settings.once => {}
    }
    for task in accepting {
        task.abort();
    }
    for session in server.sessions.lock().values() {
        session.end();
    }
    stop.store(true, Ordering::Relaxed);
    for responder in responders {
        let _ = responder.join();
    }
    Ok(())
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
        loop {
            let Ok(permit) = Arc::clone(&self.connections).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, from)) => {
                    let server = Arc::clone(&self);
                    tokio::spawn(async move {
                        server.connection(stream, from).await;
                        drop(permit);
                    });
                }
                // Out of descriptors, or a connection that is already gone.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn connection(&self, mut stream: TcpStream, from: SocketAddr) {
        let mut first = [0];
        match tokio::time::timeout(OPENING_TIME, stream.peek(&mut first)).await {
            Ok(Ok(1)) if first[0] == TLS => {
                if let Err(reason) = self.control(stream, from).await {
                    log(format_args!("a control connection ended: {reason}"));
                }
            }
            Ok(Ok(1)) => {
                let mut bytes = [0; OPENING_BYTES];
                let read = tokio::time::timeout(OPENING_TIME, stream.read_exact(&mut bytes)).await;
                if let (Ok(Ok(_)), Some(opening)) = (read, Opening::parse(&bytes)) {
                    self.load(stream, &opening);
                }
            }
            _ => {}
        }
    }

    /// Takes a load connection, and runs it on a thread of its own.
    fn load(&self, stream: TcpStream, opening: &Opening) {
        let session = self
            .sessions
            .get(opening.session)
            .filter(|session| !session.has_ended() && are_equal(&session.key, &opening.key));
        let Some(session) = session else { return };
        if opening.purpose == Purpose::Exchange {
            let _ = stream.try_write(&[ACCEPTED]);
            return;
        }
        let Some(load) = session.state().admit(opening.purpose, session.limits.flows) else {
            let _ = stream.try_write(&[REFUSED]);
            return;
        };
        let Ok(stream) = stream.into_std() else { return };
        let socket = stream.into();
        let (purpose, index, name) = (opening.purpose, opening.index, opening.congestion.clone());
        let body = move || {
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

    async fn control(&self, stream: TcpStream, from: SocketAddr) -> Result<(), ControlError> {
        let accepted = tokio::time::timeout(OPENING_TIME, self.acceptor.accept(stream)).await;
        let mut stream = accepted.map_err(|_| timed_out())??;
        let request = tokio::time::timeout(OPENING_TIME, crate::wire::control::receive(&mut stream, LONGEST_REQUEST));
        let hello: Request = request.await.map_err(|_| timed_out())??;
        let refusal = match &hello {
            Request::Hello { protocol, .. } if *protocol != PROTOCOL => Some(format!(
                "the server speaks version {PROTOCOL} of the protocol, this client version {protocol}: update the older one"
            )),
            Request::Hello { secret, .. } if !self.token.admits(secret) => {
                Some("the token is not this server's: `bufferscope serve` prints it".to_owned())
            }
            Request::Hello { .. } => None,
            _ => Some("the first message was not a hello".to_owned()),
        };
        if let Some(reason) = refusal {
            return crate::wire::control::send(&mut stream, &Answer::Refused { reason }).await;
        }
        let Some(mut ticket) = self.queue.enter(from.ip(), self.settings.per_address) else {
            let reason = "the server has too many clients: try again later".to_owned();
            return crate::wire::control::send(&mut stream, &Answer::Refused { reason }).await;
        };
        while let Some(position) = ticket.position() {
            crate::wire::control::send(&mut stream, &Answer::Queued { position }).await?;
            tokio::select! {
                () = ticket.changed() => {}
                () = tokio::time::sleep(Duration::from_secs(2)) => {}
                // Nobody speaks before the welcome: this is the end of the connection.
                _ = stream.read_u8() => return Ok(()),
            }
        }
        let session = self.begin(from.ip(), &ticket)?;
        log(format_args!("a test begins; {} waiting", self.queue.waiting()));
        let ended = self.run(&mut stream, &session, from).await;
        session.end();
        self.sessions.lock().remove(&session.id);
        log(format_args!("a test has ended after {} s", (monotonic_ns() - session.began_ns) / SECOND));
        self.finished.notify_one();
        ended
    }

    fn begin(&self, _address: IpAddr, ticket: &queue::Ticket<'_>) -> io::Result<Arc<Session>> {
        use ring::rand::{SecureRandom, SystemRandom};
        let mut bytes = [0; 24];
        SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
        let id = crate::wire::SessionId(u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes")));
        let key = bytes[8..].try_into().expect("sixteen bytes");
        let session = Arc::new(Session::new(id, key, self.settings.limits));
        session.state().shared = ticket.shares();
        self.sessions.lock().insert(id, Arc::clone(&session));
        Ok(session)
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
        crate::wire::control::send(stream, &Answer::Welcome(Box::new(welcome))).await?;
        let ends = tokio::time::Instant::now() + Duration::from_secs(session.limits.seconds);
        let (mut reader, mut writer) = tokio::io::split(stream);
        // Reading a message must not be cancelled half way, so it has a task's future of its own.
        let mut reading = Box::pin(next(&mut reader));
        let mut sampling = tokio::time::interval(SAMPLE);
        sampling.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                found = &mut reading => {
                    let (request, reader) = found?;
                    reading = Box::pin(next(reader));
                    match request {
                        Request::Phase { phase } => session.state().begin(phase),
                        Request::Alive => {}
                        Request::Finish => break,
                        Request::Hello { .. } => {
                            return Err(io::Error::other("a second hello").into());
                        }
                    }
                    crate::wire::control::send(&mut writer, &Answer::Noted).await?;
                }
                _ = sampling.tick() => {
                    let sample = LocalRow { t_ns: realtime_ns(), sample: local.sample() };
                    let mut state = session.state();
                    if state.local.len() < MOST_ROWS {
                        state.local.push(sample);
                        let row = GoodputRow { t_ns: realtime_ns(), bytes: state.received_bytes() };
                        state.goodput.push(row);
                    }
                }
                () = tokio::time::sleep_until(ends) => {
                    let reason = format!("the server's limit of {} s for a test is over", session.limits.seconds);
                    return crate::wire::control::send(&mut writer, &Answer::Refused { reason }).await;
                }
            }
        }
        let mut records = session.state().records();
        records.facts = local.facts().clone();
        crate::wire::control::send(&mut writer, &Answer::Records(Box::new(records))).await
    }
}

/// The next request of a client, which must not be silent for too long.
async fn next<R: tokio::io::AsyncRead + Unpin>(reader: &mut R) -> Result<(Request, &mut R), ControlError> {
    let request = tokio::time::timeout(SILENCE, crate::wire::control::receive(reader, LONGEST_REQUEST)).await;
    Ok((request.map_err(|_| timed_out())??, reader))
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client is silent")
}
