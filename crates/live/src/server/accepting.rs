//! Accepts connections and recognises them by their first byte.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::gate::Pass;
use super::limits::user;
use super::session::Session;
use super::status::Refused;
use super::{Server, log, web};
use crate::load::Marks;
use crate::wire::load::{ACCEPTED, OPENING_BYTES, Opening, Purpose, REFUSED};

/// The first byte of a TLS connection: a handshake record.
pub(super) const TLS: u8 = 0x16;
/// The announcement of a phase may come so much later than the connections of its load.
const ANNOUNCEMENT: Duration = Duration::from_secs(2);
/// An address whose test runs may open so many connections beside those of the load.
const OTHER_CONNECTIONS: usize = 8;

/// Waits until the phase of a load is announced, for a moment: clients open the connections of the load right after they have
/// announced it, on another connection, and either may come first.
pub(super) async fn announced(session: &Session, purpose: Purpose) {
    let until = tokio::time::Instant::now() + ANNOUNCEMENT;
    let is_early = || !session.state().expects(purpose) && !session.has_ended();
    while is_early() && tokio::time::Instant::now() < until {
        tokio::time::sleep(ANNOUNCEMENT / 100).await;
    }
}

impl Server {
    /// Takes connections, each in a task of its own.
    pub(super) async fn accept(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
                () = self.is_replaced() => break,
            };
            match accepted {
                Ok((stream, from)) if self.is_allowed(from.ip()) => self.admit(stream, from, &mut connections),
                Ok(_) => self.counters.refused(Refused::Network),
                // Out of descriptors, or a connection that is already gone.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    /// Takes a connection, unless there are too many.
    pub(super) fn admit(self: &Arc<Self>, stream: TcpStream, from: SocketAddr, connections: &mut JoinSet<()>) {
        match self.gate.enter(from.ip(), self.of_test(from.ip())) {
            Some(pass) => {
                connections.spawn(Arc::clone(self).connection(stream, from, pass));
            }
            None => self.counters.refused(Refused::Unproven),
        }
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        let allow = &self.settings.allow;
        allow.is_empty() || allow.iter().any(|network| network.contains(address))
    }

    /// Connections that an address may open beside those of any address, because its test runs.
    pub(super) fn of_test(&self, address: IpAddr) -> Option<usize> {
        let sessions = self.sessions.lock();
        let has_test = sessions.values().any(|session| !session.is_monitor() && session.address == user(address));
        drop(sessions);
        has_test.then(|| 2 * usize::from(self.settings.limits.session.flows) + OTHER_CONNECTIONS)
    }

    async fn connection(self: Arc<Self>, mut stream: TcpStream, from: SocketAddr, pass: Pass) {
        let until = tokio::time::Instant::now() + self.settings.limits.opening;
        let mut first = [0];
        let peeked = tokio::time::timeout_at(until, stream.peek(&mut first)).await;
        if let (Some(old), Ok(Ok(1))) = (&self.predecessor, &peeked)
            && old.take_connection(&stream, from, first[0], until).await
        {
            return;
        }
        match peeked {
            Ok(Ok(1)) if first[0] == TLS => {
                if let Err(reason) = self.secured(stream, from, pass, until).await {
                    log(format_args!("a control connection ended: {reason}"));
                }
            }
            Ok(Ok(1)) if web::is_http(first[0]) => {
                if let Ok(socket) = stream.as_fd().try_clone_to_owned() {
                    self.visit(stream, socket, from, false, pass).await;
                }
            }
            Ok(Ok(1)) => {
                let mut bytes = [0; OPENING_BYTES];
                let read = tokio::time::timeout_at(until, stream.read_exact(&mut bytes)).await;
                if let (Ok(Ok(_)), Some(opening)) = (read, Opening::parse(&bytes)) {
                    self.load(stream, from, &opening).await;
                }
            }
            _ => {}
        }
    }

    /// Takes a load connection, and runs it on a thread of its own.
    async fn load(&self, stream: TcpStream, from: SocketAddr, opening: &Opening) {
        let session = self.sessions.of_client(opening.session, &opening.key, from.ip());
        let Some(session) = session.filter(|session| !session.has_ended()) else { return };
        if opening.purpose == Purpose::Exchange {
            let _ = stream.try_write(&[ACCEPTED]);
            return;
        }
        announced(&session, opening.purpose).await;
        let Some((load, counted)) = session.admit(opening.purpose) else {
            let _ = stream.try_write(&[REFUSED]);
            return;
        };
        let Ok(stream) = stream.into_std() else { return };
        let socket = stream.into();
        let Opening { purpose, send_buffer, index, congestion: name, .. } = opening.clone();
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
                Purpose::Download => crate::load::send(&socket, index, send_buffer, Marks::Returns, &load),
                _ => crate::load::receive(&socket, Marks::Returns, &load),
            }
        };
        if let Err(error) = std::thread::Builder::new().stack_size(256 * 1024).spawn(body) {
            log(format_args!("no thread for a load connection: {error}"));
        }
    }
}
