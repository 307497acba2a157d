//! A browser's connection: how long it may last, and the load that it carries.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use tokio::time::Instant;

use crate::load::{Sampler, Shared};
use crate::server::Server;
use crate::server::gate::Pass;
use crate::server::session::Session;
use crate::wire::load::{Purpose, SendBuffer};

/// A connection without load lasts no longer.
const LONGEST: Duration = Duration::from_secs(30);
/// The congestion control of downloads, which is the default of the other client: it fills buffers.
const CONGESTION: &str = "cubic";
/// Requests for files on one connection.
const MOST_FILES: u32 = 100;

/// A browser's connection.
pub(super) struct Visit {
    pub(super) server: Arc<Server>,
    pub(super) from: SocketAddr,
    pub(super) is_secure: bool,
    socket: Arc<OwnedFd>,
    state: Mutex<State>,
}

struct State {
    /// It ends then, unless it carries load ...
    until: Instant,
    /// ... and never lasts longer without load than until then.
    latest: Instant,
    files: u32,
    pass: Option<Pass>,
    load: Option<Load>,
    upgrade: Option<Upgrade>,
}

/// The load that a connection carries.
struct Load {
    shared: Arc<Shared>,
    sampler: Option<Sampler>,
    /// Counted among the connections of the session.
    _counted: Arc<()>,
}

/// What a connection becomes when its request is answered.
pub(super) enum Upgrade {
    /// A control connection; `name` is the server's, as the browser calls it.
    Control { upgrade: OnUpgrade, name: String },
    /// A connection of pings.
    Pings { upgrade: OnUpgrade, session: Arc<Session> },
}

impl Visit {
    pub(super) fn new(
        server: Arc<Server>,
        socket: Arc<OwnedFd>,
        from: SocketAddr,
        is_secure: bool,
        pass: Pass,
    ) -> Self {
        let now = Instant::now();
        let (until, latest) = (now + server.settings.limits.opening, now + LONGEST);
        let state = State { until, latest, files: 0, pass: Some(pass), load: None, upgrade: None };
        Self { server, from, is_secure, socket, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request for a file; returns whether the connection may have another.
    pub(super) fn has_file(&self) -> bool {
        let mut state = self.state();
        state.until = (Instant::now() + self.server.settings.limits.opening).min(state.latest);
        state.files += 1;
        state.files < MOST_FILES
    }

    /// Takes the connection for the load of the session's present phase; `None` if there is no such load, or too many
    /// connections. A connection on which one upload follows another counts once.
    pub(super) fn carry(&self, session: &Session, purpose: Purpose, index: u16) -> Option<Arc<Shared>> {
        let mut state = self.state();
        if purpose == Purpose::Upload
            && let Some(load) = state.load.as_ref().filter(|load| Arc::ptr_eq(&load.shared, &session.state().up))
        {
            return (!load.shared.stops()).then(|| Arc::clone(&load.shared));
        }
        let (shared, counted) = session.admit(purpose)?;
        crate::load::prepare(&self.socket).ok()?;
        let sampler = match purpose {
            Purpose::Download => {
                // Where it cannot be chosen, the kernel's own is used, and the records say which that is.
                let _ = crate::load::set_congestion(&self.socket, CONGESTION);
                Some(Sampler::new(&self.socket, index, SendBuffer::Short, &shared).ok()?)
            }
            _ => None,
        };
        state.load = Some(Load { shared: Arc::clone(&shared), sampler, _counted: counted });
        // From here on, the session bounds the number of its connections.
        state.pass = None;
        Some(shared)
    }

    /// The server's own address of the connection.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        use std::os::fd::AsRawFd;
        let address = nix::sys::socket::getsockname(self.socket.as_raw_fd()).ok()?;
        crate::udp::internet_address(&address)
    }

    /// Gives a request of a session time to arrive.
    pub(super) fn extend(&self) {
        self.state().until = Instant::now() + LONGEST;
    }

    /// Samples the load that the connection carries.
    pub(super) fn look(&self) {
        let mut state = self.state();
        let until = Instant::now() + self.server.settings.limits.opening;
        if let Some(load) = state.load.as_mut().filter(|load| !load.shared.stops()) {
            if let Some(sampler) = &mut load.sampler {
                let _ = sampler.sample(&self.socket, &load.shared);
            }
            state.until = until;
        }
    }

    /// Whether its time is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() > self.state().until
    }

    pub(super) fn set_upgrade(&self, upgrade: Upgrade) {
        self.state().upgrade = Some(upgrade);
    }

    pub(super) fn upgrade(&self) -> Option<Upgrade> {
        self.state().upgrade.take()
    }

    pub(super) fn pass(&self) -> Option<Pass> {
        self.state().pass.take()
    }
}
