//! `bufferscope-live serve`: the far end of a test.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::cookie::Cookies;
use crate::load::Pace;
use crate::time::monotonic_ns;
use crate::udp::ProbeSocket;
use crate::wire::token::Token;

mod accepting;
pub mod allow;
mod announce;
pub mod certificate;
mod control;
mod flood;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
pub mod gate;
pub mod handover;
pub mod ledger;
mod life;
pub mod limits;
mod memory;
pub mod monitors;
mod notify;
pub mod queue;
pub mod responder;
mod running;
pub mod session;
pub mod status;
pub mod web;

use gate::Gate;
use handover::{Inherited, Kept, Predecessor, Successor};
use ledger::{Accounts, Ledger};
use life::{Ends, Life};
use limits::Limits;
use queue::Queue;
use responder::{Responder, Sessions};

/// How a server behaves.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where it listens, TCP and UDP.
    pub listen: Vec<SocketAddr>,
    /// What it gives its clients.
    pub limits: Limits,
    /// Only clients of these networks are taken; empty: all.
    pub allow: Vec<allow::Network>,
    /// Answer other people's programs too, over HTTP/2 as well. See [`web`].
    pub compatible: bool,
    /// Announce that on the local network.
    pub announce: bool,
    /// End after the first test.
    pub once: bool,
    /// Where metrics are served, and what readers on other machines must show.
    pub metrics: Option<(SocketAddr, Token)>,
    /// The certificate for browsers, if it is not the server's own.
    pub certificate: Option<Arc<certificate::Files>>,
    /// After the first signal to end, tests that run may last so much longer.
    pub grace: Duration,
}

/// Time between two samples of the server's own queues and of its goodput.
const SAMPLE: Duration = Duration::from_millis(100);
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
    other_tests: web::compatible::OtherTests,
    monitors: Arc<Gate>,
    transports: web::rtc::Transports,
    /// Pages over TLS whose control connections exist.
    secure_pages: Arc<Gate>,
    pace: Option<Arc<Pace>>,
    counters: status::Counters,
    life: Life,
    /// The process before this one, which may still have clients.
    predecessor: Option<Predecessor>,
    /// The process that takes new clients in this one's place.
    successor: OnceLock<Successor>,
    began_ns: u64,
    finished: tokio::sync::Notify,
    /// Counts the pages that still wait for their verdict.
    pages: Arc<()>,
}

/// The threads of the probes; they end, with every session, when this is dropped.
struct Responders {
    server: Arc<Server>,
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Responders {
    /// Ends the threads, but no session.
    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Responders {
    fn drop(&mut self) {
        for session in self.server.sessions.lock().values() {
            session.end();
        }
        self.stop();
    }
}

/// What a server listens on.
struct Sockets {
    tcp: Vec<TcpListener>,
    udp: Vec<ProbeSocket>,
    status: Option<UnixListener>,
    metrics: Option<TcpListener>,
}

impl Sockets {
    fn open(settings: &Settings) -> io::Result<Self> {
        let (mut tcp, mut udp) = (Vec::new(), Vec::new());
        for &address in &settings.listen {
            let listener = listen(address)?;
            udp.push(ProbeSocket::open(listener.local_addr()?, None)?);
            tcp.push(listener);
        }
        let metrics = settings.metrics.as_ref().map(|(address, _)| listen(*address)).transpose()?;
        let port = tcp.first().map(TcpListener::local_addr).transpose()?.map(|address| address.port());
        let status = port.and_then(|port| {
            let opened = status::socket::open(port);
            opened.inspect_err(|error| log(format_args!("--status does not show this server: {error}"))).ok()
        });
        Ok(Self { tcp, udp, status, metrics })
    }

    /// Takes those of the process before this one.
    fn take(inherited: &mut Inherited) -> io::Result<Self> {
        let taken = std::mem::take(&mut inherited.tcp).into_iter().map(TcpListener::from_std);
        Ok(Self {
            tcp: taken.collect::<io::Result<_>>()?,
            udp: std::mem::take(&mut inherited.udp),
            status: inherited.status.take(),
            metrics: inherited.metrics.take().map(TcpListener::from_std).transpose()?,
        })
    }

    fn keep(&self, identity: certificate::Identity) -> io::Result<Kept> {
        let (status, metrics) = (self.status.as_ref().map(AsFd::as_fd), self.metrics.as_ref().map(AsFd::as_fd));
        Kept::new(identity, &self.tcp, &self.udp, status, metrics)
    }
}

/// Serves until it is interrupted. Calls `ready` with the addresses that it listens on.
pub async fn serve(
    settings: Settings,
    identity: certificate::Identity,
    token: Token,
    ready: impl FnOnce(&[SocketAddr]),
) -> io::Result<()> {
    serve_after(None, settings, identity, token, ready).await
}

/// As [`serve`], in the place of another process if there is one.
pub async fn serve_after(
    mut before: Option<Inherited>,
    settings: Settings,
    identity: certificate::Identity,
    token: Token,
    ready: impl FnOnce(&[SocketAddr]),
) -> io::Result<()> {
    let acceptor = identity.acceptor(web::protocols(&settings), settings.certificate.clone())?;
    memory::share_one_heap();
    allow_descriptors();
    let sockets = match &mut before {
        Some(before) => Sockets::take(before)?,
        None => Sockets::open(&settings)?,
    };
    let mut kept =
        sockets.keep(identity).inspect_err(|error| log(format_args!("no upgrade is possible: {error}"))).ok();
    let addresses: Vec<_> = sockets.tcp.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
    let accounts = before.as_mut().map(|before| std::mem::take(&mut before.accounts)).unwrap_or_default();
    let predecessor = before.map(Inherited::into_predecessor);
    let server = Arc::new(Server::new(settings, token, acceptor, accounts, predecessor)?);
    let (mut ends, mut upgrades) = (Ends::new()?, signal(SignalKind::user_defined2())?);
    // Without a service manager it is the end of a terminal, which ends the server.
    let reloads = server.settings.certificate.is_some() || notify::has_manager();
    let mut hangups = reloads.then(|| signal(SignalKind::hangup())).transpose()?;
    server.succeed().await?;
    let stop = Arc::new(AtomicBool::new(false));
    let threads = sockets.udp.into_iter().map(|socket| answer_probes(Arc::new(socket), &server, &stop)).collect();
    let mut responders = Responders { server: Arc::clone(&server), stop, threads };
    let mut announcement = server.settings.announce.then(|| announce::Announcement::start(&addresses)).flatten();
    ready(&addresses);
    notify::notify("READY=1");
    let mut tasks = JoinSet::new();
    for listener in sockets.tcp {
        tasks.spawn(Arc::clone(&server).accept(listener));
    }
    if let Some(listener) = sockets.status {
        tasks.spawn(until_replaced(Arc::clone(&server), status::socket::show(Arc::clone(&server), listener)));
    }
    if let (Some(listener), Some((_, secret))) = (sockets.metrics, server.settings.metrics.clone()) {
        let serving = status::http::serve(Arc::clone(&server), listener, secret);
        tasks.spawn(until_replaced(Arc::clone(&server), serving));
    }
    if server.predecessor.is_some() {
        tasks.spawn(Arc::clone(&server).listen_to_predecessor());
    }
    loop {
        tokio::select! {
            () = ends.next() => break,
            () = next(&mut hangups) => server.reload(),
            _ = upgrades.recv() => {
                server.hand_over(&mut kept, &mut responders, &mut tasks).await;
                if server.successor.get().is_some() {
                    // Taken back now, it is followed by the new process's second announcement (RFC 6762, section 8.3).
                    drop(announcement.take());
                }
            }
            () = server.finished.notified(), if server.settings.once => {
                server.let_pages_end().await;
                return Ok(());
            }
            () = server.has_no_clients(), if server.successor.get().is_some() => return Ok(()),
        }
    }
    notify::notify("STOPPING=1");
    tokio::select! {
        () = server.stop() => {}
        () = ends.next() => {}
    }
    Ok(())
}

/// The next signal, if it is waited for.
async fn next(signals: &mut Option<Signal>) {
    match signals {
        Some(signals) => drop(signals.recv().await),
        None => std::future::pending().await,
    }
}

async fn until_replaced(server: Arc<Server>, task: impl Future<Output = ()>) {
    tokio::select! {
        () = task => {}
        () = server.is_replaced() => {}
    }
}

impl Server {
    fn new(
        settings: Settings,
        token: Token,
        acceptor: TlsAcceptor,
        accounts: Accounts,
        predecessor: Option<Predecessor>,
    ) -> io::Result<Self> {
        let limits = settings.limits.clone();
        Ok(Self {
            queue: Queue::new(limits.tests, limits.waiting),
            gate: Gate::new(limits.unknown, limits.unknown_per_address),
            monitors: Gate::new(limits.monitors, limits.monitors_per_address),
            secure_pages: Gate::new(usize::MAX, usize::MAX),
            transports: web::rtc::Transports::new()?,
            pace: limits.session.rate_bps.map(|bps| Arc::new(Pace::new(bps))),
            ledger: Ledger::with(limits, accounts),
            other_tests: web::compatible::OtherTests::default(),
            settings,
            token,
            acceptor,
            sessions: Sessions::default(),
            cookies: Cookies::new(),
            counters: status::Counters::default(),
            life: Life::default(),
            predecessor,
            successor: OnceLock::new(),
            began_ns: monotonic_ns(),
            finished: tokio::sync::Notify::new(),
            pages: Arc::default(),
        })
    }

    /// Reads the certificate's files again.
    fn reload(&self) {
        match self.settings.certificate.as_ref().map(|files| files.reload()) {
            Some(Ok(())) => log(format_args!("the certificate has been read again")),
            Some(Err(error)) => log(format_args!("the former certificate stays: {error}")),
            None => log(format_args!("there is no certificate to read again")),
        }
    }

    /// Answers probes that arrive at a socket.
    fn responder<'a>(&'a self, socket: &'a Arc<ProbeSocket>) -> Responder<'a> {
        Responder {
            socket,
            sessions: &self.sessions,
            cookies: &self.cookies,
            transports: &self.transports,
            predecessor: self.predecessor.as_ref(),
        }
    }
}

/// Answers the probes of a socket on a thread of its own.
fn answer_probes(
    socket: Arc<ProbeSocket>,
    server: &Arc<Server>,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    let (server, stop) = (Arc::clone(server), Arc::clone(stop));
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            if let Err(error) = server.responder(&socket).run(&stop) {
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
    // As many as the system allows: musl's own limit is lower than the kernel's.
    listen(&socket, Backlog::MAXALLOWABLE)?;
    TcpListener::from_std(socket.into())
}

/// A line of the log, which has counts and durations but no addresses.
fn log(text: std::fmt::Arguments<'_>) {
    if !cfg!(fuzzing) {
        eprintln!("bufferscope-live: {text}");
    }
}
