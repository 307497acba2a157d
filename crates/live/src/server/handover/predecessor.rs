//! The new process: it takes over the sockets, and passes on what belongs to the old one.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;

use super::successor::State;
use super::{Clients, Link, Offer, Reply, VARIABLE};
use crate::server::certificate::Identity;
use crate::server::ledger::Accounts;
use crate::server::limits::user;
use crate::server::{Server, log, web};
use crate::udp::{Arrival, ProbeSocket};
use crate::wire::SessionId;
use crate::wire::load::{OPENING_BYTES, Opening};
use crate::wire::token::Token;

/// The other process answers within this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// The session of a page's request is within so many bytes.
const REQUEST_LINE: usize = 2048;
/// It is looked this often whether more of it has arrived.
const LOOK: Duration = Duration::from_millis(5);

/// What a new process has from the old one.
#[derive(Debug)]
pub struct Inherited {
    link: Link,
    pub(in crate::server) tcp: Vec<TcpListener>,
    pub(in crate::server) udp: Vec<ProbeSocket>,
    pub(in crate::server) status: Option<UnixListener>,
    pub(in crate::server) metrics: Option<TcpListener>,
    pub(in crate::server) accounts: Accounts,
    /// The certificate that the token names.
    pub identity: Identity,
    /// The token.
    pub token: Token,
}

impl Inherited {
    /// Takes it, if this is a new process.
    pub async fn take() -> io::Result<Option<Self>> {
        if std::env::var_os(VARIABLE).is_none() {
            return Ok(None);
        }
        let link = Link::new(io::stdin().as_fd().try_clone_to_owned()?)?;
        let wrong = |what: &str| io::Error::other(format!("the old process sent {what}"));
        let received = tokio::time::timeout(PATIENCE, link.receive::<Offer>()).await;
        let (offer, descriptors) = received.map_err(|_| wrong("nothing"))??;
        let Offer::Sockets { tcp, udp, status, metrics } = offer else { return Err(wrong("no sockets")) };
        if descriptors.len() != 1 + tcp + udp + usize::from(status) + usize::from(metrics) {
            return Err(wrong("another number of sockets than it said"));
        }
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| wrong("too few sockets"));
        let mut text = Vec::new();
        let mut file = File::from(next()?);
        file.rewind()?;
        file.read_to_end(&mut text)?;
        let State { identity, token, accounts } = serde_json::from_slice(&text)?;
        let token = token.parse().map_err(|_| wrong("no token"))?;
        let tcp = (0..tcp).map(|_| next().map(TcpListener::from)).collect::<io::Result<_>>()?;
        let udp = (0..udp).map(|_| ProbeSocket::inherited(next()?)).collect::<io::Result<_>>()?;
        let status = status.then(&mut next).transpose()?.map(UnixListener::from);
        let metrics = metrics.then(&mut next).transpose()?.map(TcpListener::from);
        Ok(Some(Self { link, tcp, udp, status, metrics, accounts, identity, token }))
    }

    /// What is left of the old process when the sockets and accounts are taken.
    pub(in crate::server) fn into_predecessor(self) -> Predecessor {
        Predecessor { link: self.link, known: Mutex::default() }
    }
}

/// The old process.
#[derive(Debug)]
pub(in crate::server) struct Predecessor {
    link: Link,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    sessions: HashSet<SessionId>,
    pages: HashSet<IpAddr>,
}

impl Predecessor {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has sessions.
    pub(in crate::server) fn has_sessions(&self) -> bool {
        !self.known().sessions.is_empty()
    }

    /// Its sessions, and the addresses of its pages over TLS.
    pub(super) fn clients(&self) -> (Vec<SessionId>, Vec<IpAddr>) {
        let known = self.known();
        (known.sessions.iter().copied().collect(), known.pages.iter().copied().collect())
    }

    fn has(&self, session: SessionId) -> bool {
        self.known().sessions.contains(&session)
    }

    /// Passes a probe on, if it belongs to it; one for which there is no room is lost.
    pub(in crate::server) fn take_probe(&self, arrival: &Arrival) {
        if self.has(arrival.packet.session) {
            let Arrival { bytes: length, from, at_ns, by_kernel, .. } = *arrival;
            let bytes = arrival.packet.bytes().to_vec();
            let _ = self.link.try_send(&Reply::Probe { bytes, length, from, at_ns, by_kernel }, &[]);
        }
    }

    /// Passes a datagram on that is no probe and belongs to no page here; one for which there is no room is lost.
    pub(in crate::server) fn take_datagram(&self, bytes: &[u8], from: SocketAddr, at_ns: u64) {
        if self.has_sessions() {
            let _ = self.link.try_send(&Reply::Datagram { bytes: bytes.to_vec(), from, at_ns }, &[]);
        }
    }

    /// Passes a connection on, if it belongs to it; returns whether it did. `first` is the connection's first byte.
    pub(in crate::server) async fn take_connection(
        &self,
        stream: &TcpStream,
        from: SocketAddr,
        first: u8,
        until: tokio::time::Instant,
    ) -> bool {
        if !self.has_sessions() && self.known().pages.is_empty() {
            return false;
        }
        let is_its = tokio::time::timeout_at(until, self.owns(stream, from, first)).await.unwrap_or(false);
        // The old process reads at once. If it does not, this one does not wait for it.
        is_its && self.link.try_send(&Reply::Connection { from }, &[stream.as_fd()]).is_ok()
    }

    /// Whether a connection belongs to it; reads nothing of it.
    async fn owns(&self, stream: &TcpStream, from: SocketAddr, first: u8) -> bool {
        if first == crate::server::accepting::TLS {
            return self.known().pages.contains(&user(from.ip()));
        }
        let mut bytes = [0; REQUEST_LINE];
        loop {
            let Ok(length) = stream.peek(&mut bytes).await else { return false };
            let found = &bytes[..length];
            if web::is_http(first) {
                if length == bytes.len() || found.windows(2).any(|two| two == b"\r\n") {
                    return session_of(found).is_some_and(|session| self.has(session));
                }
            } else if let Some(opening) = found.first_chunk::<OPENING_BYTES>() {
                return Opening::parse(opening).is_some_and(|opening| self.has(opening.session));
            }
            // What has arrived stays, so it cannot be waited for more.
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The session that the first line of a page's request names.
fn session_of(request: &[u8]) -> Option<SessionId> {
    let line = request.split(|byte| *byte == b'\r').next()?;
    let query = std::str::from_utf8(line).ok()?.split_once('?')?.1.split(' ').next()?;
    let text = query.split('&').find_map(|field| field.strip_prefix("session="))?;
    let is_number = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(text, 16).ok().map(SessionId))?
}

impl Server {
    /// Says that this process can begin, and waits until the old one lets it.
    pub(in crate::server) async fn succeed(&self) -> io::Result<()> {
        let Some(old) = &self.predecessor else { return Ok(()) };
        old.link.send(&Reply::Ready, &[]).await?;
        let silent = || io::Error::other("the old process does not answer");
        loop {
            let (offer, _) = tokio::time::timeout(PATIENCE, old.link.receive()).await.map_err(|_| silent())??;
            let is_beginning = matches!(offer, Offer::Clients(_));
            self.hear(old, offer);
            if is_beginning {
                return Ok(());
            }
        }
    }

    /// Listens to the old process until it ends.
    pub(in crate::server) async fn listen_to_predecessor(self: Arc<Self>) {
        let Some(old) = &self.predecessor else { return };
        while let Ok((offer, _)) = old.link.receive().await {
            self.hear(old, offer);
        }
        self.hear(old, Offer::Clients(Clients::default()));
        log(format_args!("the old process has ended"));
    }

    fn hear(&self, old: &Predecessor, offer: Offer) {
        match offer {
            Offer::Clients(Clients { ahead, sessions, pages }) => {
                *old.known() = Known { sessions: sessions.into_iter().collect(), pages: pages.into_iter().collect() };
                self.queue.set_ahead(ahead);
            }
            Offer::GivesBack { address, bytes } => self.give_back(address, bytes),
            Offer::Sockets { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_of_a_request_is_in_its_first_line() {
        let of = |text: &str| session_of(text.as_bytes()).map(|session| session.0);
        assert_eq!(of("GET /test/download?session=00000000000000ff&key=1 HTTP/1.1\r\nHost: x\r\n"), Some(0xff));
        assert_eq!(of("POST /test/upload?key=1&session=ffffffffffffffff HTTP/1.1\r\n"), Some(u64::MAX));
        for other in [
            "GET / HTTP/1.1\r\n",
            "GET /?session=1 HTTP/1.1\r\n",
            "GET /?session=+0000000000000ff HTTP/1.1\r\n",
            "GET /?xsession=00000000000000ff HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nX: ?session=00000000000000ff\r\n",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
