//! The old process: it starts the new one, hands over its sockets, and goes on with its own clients.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{Clients, Link, Offer, Reply, VARIABLE};
use crate::server::certificate::Identity;
use crate::server::ledger::Accounts;
use crate::server::life::Stage;
use crate::server::notify::notify;
use crate::server::{Responders, Server, log};
use crate::udp::{Arrival, ProbeSocket};
use crate::wire::SessionId;
use crate::wire::probe::Packet;

/// The new process is ready within this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// The new process hears of changes this often.
const CHANGES: Duration = Duration::from_millis(100);

/// What a new process must know beside the sockets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) identity: Identity,
    pub(super) token: String,
    pub(super) accounts: Accounts,
}

/// The link to the new process.
#[derive(Debug)]
pub(in crate::server) struct Successor(Link);

/// What a server keeps for a new process.
#[derive(Debug)]
pub(in crate::server) struct Kept {
    program: PathBuf,
    identity: Identity,
    tcp: Vec<OwnedFd>,
    udp: Vec<ProbeSocket>,
    status: Option<OwnedFd>,
    metrics: Option<OwnedFd>,
}

impl Kept {
    /// Keeps other descriptors of these sockets.
    pub(in crate::server) fn new(
        identity: Identity,
        tcp: &[tokio::net::TcpListener],
        udp: &[ProbeSocket],
        status: Option<BorrowedFd<'_>>,
        metrics: Option<BorrowedFd<'_>>,
    ) -> io::Result<Self> {
        let copy = |descriptor: Option<BorrowedFd<'_>>| descriptor.map(|fd| fd.try_clone_to_owned()).transpose();
        Ok(Self {
            // Later, its file may have been replaced by that of the new version.
            program: std::env::current_exe()?,
            identity,
            tcp: tcp.iter().map(|listener| listener.as_fd().try_clone_to_owned()).collect::<io::Result<_>>()?,
            udp: udp.iter().map(ProbeSocket::try_clone).collect::<io::Result<_>>()?,
            status: copy(status)?,
            metrics: copy(metrics)?,
        })
    }
}

impl Server {
    /// Starts the program anew, and hands over to it. If it does not start, this process goes on as before.
    pub(in crate::server) async fn hand_over(
        self: &Arc<Self>,
        kept: &mut Option<Kept>,
        responders: &mut Responders,
        tasks: &mut JoinSet<()>,
    ) {
        let Some(sockets) = kept.as_ref().filter(|_| self.life.stage() == Stage::Serving) else { return };
        log(format_args!("a new process is started"));
        let (link, child) = match self.start(sockets).await {
            Ok(started) => started,
            Err(error) => return log(format_args!("this process goes on: {error}")),
        };
        let Some(Kept { udp, .. }) = kept.take() else { return };
        let _ = self.successor.set(Successor(link));
        self.life.enter(Stage::Replaced);
        let udp = udp.into_iter().map(Arc::new).collect();
        let mut old = Old { server: Arc::clone(self), udp, besides: HashSet::new(), connections: JoinSet::new() };
        // First the sockets of their own, so that no probe is between two processes.
        let sessions: Vec<_> = self.sessions.lock().keys().copied().collect();
        for session in sessions {
            old.answer_beside(session);
        }
        responders.stop();
        notify(&format!("MAINPID={}", child.id()));
        log(format_args!("process {} takes new clients; this one ends with its last one", child.id()));
        tasks.spawn(old.go_on());
    }

    /// Starts the program, and waits until it is ready.
    async fn start(&self, sockets: &Kept) -> io::Result<(Link, Child)> {
        let (near, far) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let link = Link::new(near)?;
        let mut child = Command::new(&sockets.program)
            .args(std::env::args_os().skip(1))
            .env(VARIABLE, "1")
            .stdin(Stdio::from(far))
            .spawn()?;
        let replied = tokio::time::timeout(PATIENCE, self.offer(&link, sockets)).await;
        match replied.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(()) => Ok((link, child)),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(io::Error::other(format!("the new one did not start: {error}")))
            }
        }
    }

    async fn offer(&self, link: &Link, sockets: &Kept) -> io::Result<()> {
        let state = State {
            identity: sockets.identity.clone(),
            token: self.token.to_string(),
            accounts: self.ledger.snapshot(),
        };
        // Nothing of it is in a file that others could read.
        let mut file = File::from(memfd_create(c"bufferscope-live", MFdFlags::MFD_CLOEXEC)?);
        file.write_all(&serde_json::to_vec(&state)?)?;
        let offer = Offer::Sockets {
            tcp: sockets.tcp.len(),
            udp: sockets.udp.len(),
            status: sockets.status.is_some(),
            metrics: sockets.metrics.is_some(),
        };
        let descriptors: Vec<_> = std::iter::once(file.as_fd())
            .chain(sockets.tcp.iter().map(AsFd::as_fd))
            .chain(sockets.udp.iter().map(AsFd::as_fd))
            .chain(sockets.status.iter().map(AsFd::as_fd))
            .chain(sockets.metrics.iter().map(AsFd::as_fd))
            .collect();
        link.send(&offer, &descriptors).await?;
        match link.receive().await? {
            (Reply::Ready, _) => Ok(()),
            _ => Err(io::Error::other("it sent something else than that it is ready")),
        }
    }

    /// An address has not used these bytes of load.
    pub(in crate::server) fn give_back(&self, address: IpAddr, bytes: u64) {
        self.ledger.gives_back(address, crate::time::monotonic_ns(), bytes);
        if let Some(Successor(link)) = self.successor.get() {
            let _ = link.try_send(&Offer::GivesBack { address, bytes }, &[]);
        }
    }

    fn clients(&self) -> Clients {
        let mut clients = Clients {
            ahead: self.queue.clients_and_ahead(),
            sessions: self.sessions.lock().keys().copied().collect(),
            pages: self.secure_pages.addresses(),
        };
        if let Some(before) = &self.predecessor {
            let (sessions, pages) = before.clients();
            clients.sessions.extend(sessions);
            clients.pages.extend(pages);
        }
        clients.sessions.sort_unstable_by_key(|session| session.0);
        clients.pages.sort_unstable();
        clients
    }
}

/// The old process after the handover.
struct Old {
    server: Arc<Server>,
    /// The sockets that the new process receives from; this one sends answers over them.
    udp: Vec<Arc<ProbeSocket>>,
    /// Clients that have a socket of their own.
    besides: HashSet<SocketAddr>,
    connections: JoinSet<()>,
}

impl Old {
    /// Answers a session's probes over a socket of its own, until it ends.
    fn answer_beside(&mut self, session: SessionId) {
        let Some(session) = self.server.sessions.get(session) else { return };
        let Some(to) = session.state().probes_from else { return };
        let Some(socket) = self.udp.iter().find(|socket| socket.reaches(to)) else { return };
        if !self.besides.insert(to) {
            return;
        }
        let server = Arc::clone(&self.server);
        let started = socket.beside(to).map(Arc::new).and_then(|socket| {
            let body = move || {
                while !session.has_ended() {
                    if server.responder(&socket).run(&session.ended).is_err() {
                        std::thread::sleep(CHANGES);
                    }
                }
            };
            std::thread::Builder::new().stack_size(256 * 1024).spawn(body)
        });
        if let Err(error) = started {
            log(format_args!("the new process passes on the probes of a test: {error}"));
        }
    }

    /// Tells the new process of the clients, and takes what it passes on.
    async fn go_on(mut self) {
        let server = Arc::clone(&self.server);
        let Some(Successor(link)) = server.successor.get() else { return };
        let mut said = None;
        let mut changes = tokio::time::interval(CHANGES);
        changes.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = changes.tick() => {
                    let now = server.clients();
                    if said.as_ref() != Some(&now) {
                        if let Err(error) = link.send(&Offer::Clients(now.clone()), &[]).await {
                            log(format_args!("the new process does not hear of the clients here: {error}"));
                        }
                        said = Some(now);
                    }
                }
                received = link.receive::<Reply>() => {
                    match received {
                        Ok((reply, descriptors)) => self.take(reply, descriptors),
                        Err(error) => {
                            log(format_args!("the new process has ended: {error}"));
                            break;
                        }
                    }
                }
                Some(_) = self.connections.join_next() => {}
            }
        }
        self.udp.clear();
        while self.connections.join_next().await.is_some() {}
    }

    fn take(&mut self, reply: Reply, descriptors: Vec<OwnedFd>) {
        match reply {
            Reply::Ready => {}
            Reply::Connection { from } => {
                let stream = descriptors.into_iter().next().map(std::net::TcpStream::from).map(TcpStream::from_std);
                if let Some(Ok(stream)) = stream {
                    self.server.admit(stream, from, &mut self.connections);
                }
            }
            Reply::Probe { bytes, length, from, at_ns, by_kernel } => {
                let Some(packet) = Packet::parse(&bytes) else { return };
                let Some(socket) = self.udp.iter().find(|socket| socket.reaches(from)) else { return };
                self.server.responder(socket).on_arrival(&Arrival { packet, bytes: length, from, at_ns, by_kernel });
                self.answer_beside(packet.session);
            }
            Reply::Datagram { bytes, from, at_ns } => {
                let Some(socket) = self.udp.iter().find(|socket| socket.reaches(from)) else { return };
                self.server.transports.take(socket, &bytes, from, at_ns);
                let sessions = self.server.sessions.lock();
                let found = sessions.values().find(|session| session.state().probes_from == Some(from));
                let found = found.map(|session| session.id);
                drop(sessions);
                if let Some(session) = found {
                    self.answer_beside(session);
                }
            }
        }
    }
}
