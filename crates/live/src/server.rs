//! `bufferscope-live serve`: the far end of a test.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::cookie::Cookies;
use crate::load::Pace;
use crate::time::monotonic_ns;
use crate::udp::ProbeSocket;
use crate::wire::token::Token;

mod accepting;
pub mod allow;
pub mod certificate;
mod control;
mod flood;
pub mod gate;
pub mod ledger;
pub mod limits;
mod memory;
pub mod monitors;
pub mod queue;
pub mod responder;
mod running;
pub mod session;
pub mod status;
pub mod web;

use gate::Gate;
use ledger::Ledger;
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
    /// End after the first test.
    pub once: bool,
    /// Where metrics are served, and what readers on other machines must show.
    pub metrics: Option<(SocketAddr, Token)>,
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
    guests: web::compatible::Guests,
    monitors: Arc<Gate>,
    transports: web::rtc::Transports,
    pace: Option<Arc<Pace>>,
    counters: status::Counters,
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
    let acceptor = identity.acceptor(web::protocols(&settings))?;
    memory::share_one_heap();
    allow_descriptors();
    let mut listeners = Vec::new();
    let mut sockets = Vec::new();
    for &address in &settings.listen {
        let listener = listen(address)?;
        let bound = listener.local_addr()?;
        sockets.push(Arc::new(ProbeSocket::open(bound, None)?));
        listeners.push(listener);
    }
    let addresses: Vec<_> = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
    let metrics = settings.metrics.as_ref().map(|(address, _)| listen(*address)).transpose()?;
    let limits = settings.limits.clone();
    let server = Arc::new(Server {
        queue: Queue::new(limits.tests, limits.waiting),
        gate: Gate::new(limits.unknown, limits.unknown_per_address),
        monitors: Gate::new(limits.monitors, limits.monitors_per_address),
        transports: web::rtc::Transports::new()?,
        pace: limits.session.rate_bps.map(|bps| Arc::new(Pace::new(bps))),
        ledger: Ledger::new(limits),
        guests: web::compatible::Guests::default(),
        settings,
        token,
        acceptor,
        sessions: Sessions::default(),
        cookies: Cookies::new(),
        counters: status::Counters::default(),
        began_ns: monotonic_ns(),
        finished: tokio::sync::Notify::new(),
        pages: Arc::default(),
    });
    let stop = Arc::new(AtomicBool::new(false));
    let threads = sockets.into_iter().map(|socket| answer_probes(socket, &server, &stop)).collect();
    let _responders = Responders { server: Arc::clone(&server), stop, threads };
    ready(&addresses);
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(Arc::clone(&server).accept(listener));
    }
    if let Some(port) = addresses.first().map(SocketAddr::port) {
        match status::socket::open(port) {
            Ok(socket) => {
                accepting.spawn(status::socket::show(Arc::clone(&server), socket));
            }
            Err(error) => log(format_args!("--status does not show this server: {error}")),
        }
    }
    if let (Some(listener), Some((_, secret))) = (metrics, server.settings.metrics.clone()) {
        accepting.spawn(status::http::serve(Arc::clone(&server), listener, secret));
    }
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
        () = server.finished.notified(), if server.settings.once => server.let_pages_end().await,
    }
    Ok(())
}

/// Answers the probes of a socket on a thread of its own.
fn answer_probes(
    socket: Arc<ProbeSocket>,
    server: &Arc<Server>,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    let (server, stop) = (Arc::clone(server), Arc::clone(stop));
    std::thread::spawn(move || {
        let responder =
            Responder { socket, sessions: &server.sessions, cookies: &server.cookies, transports: &server.transports };
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
    // As many as the system allows: musl's own limit is lower than the kernel's.
    listen(&socket, Backlog::MAXALLOWABLE)?;
    TcpListener::from_std(socket.into())
}

/// A line of the log, which has counts and durations but no addresses.
fn log(text: std::fmt::Arguments<'_>) {
    eprintln!("bufferscope-live: {text}");
}
