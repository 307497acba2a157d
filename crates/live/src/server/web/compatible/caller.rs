//! A connection of another program: how long it may last, and the samples of the load that it carries.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{OtherTest, ndt7};
use crate::load::Sampler;
use crate::server::Server;
use crate::server::gate::Place;
use crate::server::web::load::PIECE_BYTES;
use crate::wire::load::SendBuffer;

/// A connection without a test lasts no longer.
const LONGEST: Duration = Duration::from_secs(30);
/// Requests on one connection without a test.
const MOST_REQUESTS: u32 = 100;
/// A connection that is to end has this much time for its last answer.
const FAREWELL: Duration = Duration::from_secs(1);
/// The shortest piece of load, where the rate is low.
const SHORTEST_PIECE: usize = 1024;
/// Before the rate is known.
const FIRST_PIECE: usize = 16 * 1024;

/// A connection.
pub(in crate::server::web) struct Caller {
    pub(in crate::server::web) server: Arc<Server>,
    pub(super) from: SocketAddr,
    pub(super) is_secure: bool,
    /// Held while a wrong secret is answered.
    pub(super) guessing: tokio::sync::Mutex<()>,
    /// Loads that it carries.
    pub(super) flows: AtomicUsize,
    /// Requests that are being answered.
    requests: AtomicUsize,
    place: Arc<Place>,
    socket: Arc<OwnedFd>,
    /// The bytes that are handed over at once, which wait in this program until the kernel takes them.
    piece: Arc<AtomicUsize>,
    state: Mutex<State>,
}

struct State {
    /// It ends then, unless something happens ...
    until: Instant,
    /// ... and without a test, it never lasts longer than until then.
    latest: Instant,
    requests: u32,
    /// The test that it belongs to.
    other: Option<Arc<OtherTest>>,
    sampler: Option<Sampler>,
    upgrade: Option<ndt7::Begun>,
}

impl Caller {
    pub(in crate::server::web) fn new(
        server: &Arc<Server>,
        socket: &Arc<OwnedFd>,
        from: SocketAddr,
        is_secure: bool,
        place: &Arc<Place>,
    ) -> Self {
        let now = Instant::now();
        let state = State { until: now, latest: now + LONGEST, requests: 0, other: None, sampler: None, upgrade: None };
        Self {
            server: Arc::clone(server),
            from,
            is_secure,
            guessing: tokio::sync::Mutex::default(),
            flows: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            place: Arc::clone(place),
            socket: Arc::clone(socket),
            piece: Arc::new(AtomicUsize::new(FIRST_PIECE)),
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection is in use.
    pub(in crate::server::web) fn works(&self) {
        self.place.works();
    }

    /// Counts a request until its answer is known.
    pub(super) fn request(self: &Arc<Self>) -> Answering {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.works();
        Answering(Arc::clone(self))
    }

    /// If the connection has nothing to do, it makes room for others of its address.
    pub(super) fn may_rest(&self) {
        if self.requests.load(Ordering::Relaxed) == 0 && self.flows.load(Ordering::Relaxed) == 0 {
            self.place.rests();
        }
    }

    /// Gives a connection time for its first request.
    pub(super) fn wait(&self) {
        self.state().until = Instant::now() + self.server.settings.limits.opening;
    }

    /// Counts a request that belongs to no test; returns whether it is answered.
    pub(super) fn asks(&self) -> bool {
        let mut state = self.state();
        state.until = (Instant::now() + self.server.settings.limits.opening).min(state.latest);
        state.requests += 1;
        state.requests <= MOST_REQUESTS
    }

    /// The connection belongs to a test: it may stay for as long as the test has something for it.
    pub(super) fn serves(&self, other: &Arc<OtherTest>) {
        let mut state = self.state();
        if state.other.as_ref().is_none_or(|known| !Arc::ptr_eq(known, other)) {
            state.other = Some(Arc::clone(other));
            state.sampler = None;
        }
        state.until = Instant::now() + self.server.settings.limits.silence;
    }

    /// The connection carries a download: its congestion control is chosen, and it is sampled.
    pub(super) fn sends(&self, other: &Arc<OtherTest>, congestion: &str) {
        self.serves(other);
        let mut state = self.state();
        if state.sampler.is_none() {
            // Where it cannot be chosen, it is the kernel's own.
            let _ = crate::load::set_congestion(&self.socket, congestion);
            state.sampler = Sampler::new(&self.socket, 0, SendBuffer::Short, &other.down).ok();
        }
    }

    /// Something of its load was sent or received.
    pub(super) fn moves(&self) {
        self.state().until = Instant::now() + self.server.settings.limits.silence;
    }

    /// It ends, after its last answer.
    pub(super) fn leave(&self) {
        let mut state = self.state();
        state.until = Instant::now() + FAREWELL;
        state.latest = state.until;
        state.requests = MOST_REQUESTS;
    }

    /// Samples the load that the connection carries.
    pub(in crate::server::web) fn look(&self) {
        let mut state = self.state();
        let State { other: Some(other), sampler: Some(sampler), .. } = &mut *state else { return };
        if let Ok(Some(bytes)) = sampler.sample(&self.socket, &other.down) {
            self.piece.store(bytes.clamp(SHORTEST_PIECE, PIECE_BYTES), Ordering::Relaxed);
        }
    }

    /// The bytes that are handed over at once.
    pub(super) fn piece(&self) -> &Arc<AtomicUsize> {
        &self.piece
    }

    /// The connection.
    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// The server's own address of the connection.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        let address: nix::sys::socket::SockaddrStorage = nix::sys::socket::getsockname(self.socket.as_raw_fd()).ok()?;
        crate::udp::internet_address(&address)
    }

    /// Its request is answered, and it becomes a WebSocket.
    pub(super) fn set_upgrade(&self, begun: ndt7::Begun) {
        self.state().upgrade = Some(begun);
    }

    /// What it becomes.
    pub(in crate::server::web) fn upgrade(&self) -> Option<ndt7::Begun> {
        self.state().upgrade.take()
    }

    /// Whether its time is over, or that of the load that it carries. After a test, it is a connection like any other.
    pub(in crate::server::web) fn is_over(&self) -> bool {
        let mut state = self.state();
        if state.other.as_ref().is_some_and(|other| other.has_ended()) {
            if self.flows.load(Ordering::Relaxed) > 0 {
                return true;
            }
            (state.other, state.sampler, state.requests) = (None, None, 0);
            state.latest = Instant::now() + LONGEST;
        }
        Instant::now() > state.until
    }
}

/// A request that is being answered.
pub(super) struct Answering(Arc<Caller>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
        self.0.may_rest();
    }
}
