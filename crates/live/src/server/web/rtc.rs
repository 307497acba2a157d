//! The pings of a page over UDP: an unreliable WebRTC data channel on the port of the probes.
//!
//! The server is an ICE-lite agent (RFC 8445, section 2.5): it has one address, and answers binding requests that show the
//! password of a session. Candidates of the page are not needed, so it does not matter that browsers hide their addresses. The
//! first byte of a datagram tells STUN, DTLS and the programs' probes apart (RFC 7983). Nothing is sent to an address from
//! which no binding request with the session's credentials has come, and nothing is sent any more when the control connection
//! has ended.
//!
//! A ping has 40 bytes: its number (`u32`) and zeros. Its answer is as long: that number, the time at which it arrived (`u64`,
//! nanoseconds on the server's real-time clock, the kernel's stamp), the bytes of the load that had arrived by then (`u64`), and
//! zeros, all big-endian.
//!
//! The server's ladder goes to the address of the channel, as binding requests with a limited TTL: those that reach the browser
//! are answered by it, so its distance is known, and the routers before it answer with ICMP as they do to any packet.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dimpl::DtlsCertificate;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;

use self::channel::{Channel, Closed};
use self::stun::{Credentials, Message, TransactionId};
use crate::records::{AnswerKind, ArrivalRow};
use crate::server::certificate::Identity;
use crate::server::limits::{Messages, user};
use crate::server::log;
use crate::server::session::{MOST_ROWS, Session};
use crate::time::{monotonic_ns, realtime_ns};
use crate::udp::ProbeSocket;
use crate::wire::SessionId;

mod channel;
mod crypto;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
#[cfg(any(test, fuzzing))]
mod page;
mod stun;

/// Length of a ping and of its answer.
const PING_BYTES: usize = 40;
/// Pings, datagrams and binding requests of a page per second, on average.
const PINGS_PER_S: u64 = 100;
const DATAGRAMS_PER_S: u64 = 400;
const REQUESTS_PER_S: u64 = 50;
/// Addresses from which a page may show its password.
const MOST_ADDRESSES: usize = 8;
/// An answer took an unknown time here.
pub(super) const WAITED: u64 = u64::MAX;
/// Packets whose stamps may still come.
const MOST_SENT: usize = 4096;
/// A packet is known by so many of its last bytes, which are a part of its authentication tag or its checksum.
const TAIL_BYTES: usize = 8;

/// What a page says of its end, as in the lines of its SDP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// `ice-ufrag`.
    ufrag: String,
    /// `ice-pwd`.
    pwd: String,
    /// `fingerprint`, of SHA-256.
    fingerprint: String,
}

impl Offer {
    /// The credentials and the fingerprint; `None` if they cannot be those of a browser (RFC 8839, section 5.4; RFC 8122).
    fn parse(&self) -> Option<(Credentials, [u8; 32])> {
        let is_word = |text: &str, lengths: std::ops::RangeInclusive<usize>| {
            lengths.contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
        };
        (is_word(&self.ufrag, 4..=256) && is_word(&self.pwd, 22..=256)).then_some(())?;
        let bytes: Option<Vec<u8>> = self
            .fingerprint
            .split(':')
            .map(|hex| {
                (hex.len() == 2 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
                    .then(|| u8::from_str_radix(hex, 16).ok())
                    .flatten()
            })
            .collect();
        let credentials = Credentials { ufrag: self.ufrag.clone(), pwd: self.pwd.clone() };
        Some((credentials, bytes?.try_into().ok()?))
    }
}

/// Whether the server reads a datagram as STUN, whole or as an ICMP error quotes it, and how long its response may be.
pub fn reads_stun(bytes: &[u8]) -> (bool, Option<usize>) {
    let response = match Message::parse(bytes) {
        Some(Message::Request(request)) => {
            request.is_from("page", "password");
            request.response(SocketAddr::from(([192, 0, 2, 1], 1)), "password").map(|response| response.len())
        }
        _ => None,
    };
    (Message::parse(bytes).is_some() || stun::quoted(bytes).is_some(), response)
}

/// The channels of all pages.
pub(in crate::server) struct Transports {
    certificate: DtlsCertificate,
    config: Arc<dimpl::Config>,
    peers: Mutex<Vec<Arc<Peer>>>,
    /// Packets whose stamps may still come: their last bytes, whose they are, and whether they are answers.
    sent: Mutex<VecDeque<(u64, SessionId, bool)>>,
}

/// A page with a channel, or one that may get one.
pub(super) struct Peer {
    session: Arc<Session>,
    own: Credentials,
    page: Credentials,
    /// How the numbers of our own binding requests begin.
    mark: [u8; 8],
    state: Mutex<State>,
}

struct State {
    /// `None`: it is over.
    channel: Option<Channel>,
    /// The addresses that have shown the password.
    proved: Vec<SocketAddr>,
    /// Where the last datagram of the channel came from, which is one of those.
    from: Option<SocketAddr>,
    requests: Messages,
    datagrams: Messages,
    pings: Messages,
    /// How long an answer took here, by the number of its ping; [`WAITED`] if it was not sent at once.
    held_ns: HashMap<u64, u64>,
}

/// A page's channel, as long as its control connection lives.
pub(super) struct Registered<'a> {
    transports: &'a Transports,
    pub(super) peer: Arc<Peer>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.transports.peers().retain(|peer| !Arc::ptr_eq(peer, &self.peer));
    }
}

impl Transports {
    /// With a certificate of its own, as those of browsers are.
    pub(in crate::server) fn new() -> io::Result<Self> {
        let identity = Identity::generate()?;
        let certificate =
            DtlsCertificate { certificate: identity.certificate().to_vec(), private_key: identity.key().to_vec() };
        // The address is proved by ICE.
        let config = dimpl::Config::builder()
            .with_crypto_provider(crypto::provider())
            .use_server_cookie(false)
            .build()
            .map_err(io::Error::other)?;
        Ok(Self { certificate, config: Arc::new(config), peers: Mutex::default(), sent: Mutex::default() })
    }

    fn peers(&self) -> MutexGuard<'_, Vec<Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, is_it: impl Fn(&Peer) -> bool) -> Option<Arc<Peer>> {
        self.peers().iter().find(|peer| is_it(peer)).cloned()
    }

    /// Expects the channel of a session's page; `None` if the page's offer cannot be accepted.
    pub(super) fn expect(&self, session: &Arc<Session>, offer: &Offer) -> Option<Registered<'_>> {
        let (page, fingerprint) = offer.parse()?;
        let mut random = [0; 32];
        SystemRandom::new().fill(&mut random).ok()?;
        let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (mark, ufrag, pwd) = (&random[..8], &random[8..16], &random[16..]);
        let channel =
            Channel::new(Arc::clone(&self.config), self.certificate.clone(), fingerprint, Instant::now()).ok()?;
        let peer = Arc::new(Peer {
            session: Arc::clone(session),
            own: Credentials { ufrag: text(ufrag), pwd: text(pwd) },
            page,
            mark: mark.try_into().expect("eight bytes"),
            state: Mutex::new(State {
                channel: Some(channel),
                proved: Vec::new(),
                from: None,
                requests: Messages::new(REQUESTS_PER_S),
                datagrams: Messages::new(DATAGRAMS_PER_S),
                pings: Messages::new(PINGS_PER_S),
                held_ns: HashMap::new(),
            }),
        });
        self.peers().push(Arc::clone(&peer));
        Some(Registered { transports: self, peer })
    }

    /// The server's certificate, as a page must see it in the handshake.
    pub(super) fn fingerprint(&self) -> String {
        let hash = digest(&SHA256, &self.certificate.certificate);
        hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
    }

    /// Takes a datagram that is no probe of a program; returns whether it can only be one of a page here.
    pub(in crate::server) fn take(&self, socket: &ProbeSocket, bytes: &[u8], from: SocketAddr, at_ns: u64) -> bool {
        // RFC 7983, section 7.
        match bytes.first() {
            Some(0..=3) => self.take_stun(socket, bytes, from, at_ns).is_some(),
            Some(20..=63) => {
                let Some(peer) = self.find(|peer| peer.state().proved.contains(&from)) else { return false };
                if peer.may_have(from) {
                    self.take_datagram(socket, &peer, bytes, from, at_ns);
                }
                true
            }
            _ => true,
        }
    }

    /// `None` if no page here has sent it.
    fn take_stun(&self, socket: &ProbeSocket, bytes: &[u8], from: SocketAddr, at_ns: u64) -> Option<()> {
        match Message::parse(bytes) {
            Some(Message::Request(request)) => {
                let peer = self.find(|peer| peer.own.ufrag == request.receiver())?;
                let mut state = peer.state();
                let is_its = peer.may_have(from)
                    && state.requests.allows(monotonic_ns())
                    && request.is_from(&peer.page.ufrag, &peer.own.pwd);
                let is_proved = state.proved.contains(&from);
                if !is_its || !is_proved && state.proved.len() >= MOST_ADDRESSES {
                    return Some(());
                }
                if !is_proved {
                    state.proved.push(from);
                }
                if let Some(response) = request.response(from, &peer.own.pwd) {
                    let _ = socket.send_bytes(&response, 0, Some(from));
                }
            }
            Some(Message::Success(id)) => {
                let (session, seq) = self.of_probe(id)?;
                if session.address != user(from.ip()) {
                    return Some(());
                }
                let mut state = session.state();
                let is_from_page = state.probes_from == Some(from);
                let Some(row) = state.ladder_row(seq).filter(|row| row.rtt_ns.is_none() && is_from_page) else {
                    return Some(());
                };
                row.rtt_ns = Some(at_ns.saturating_sub(row.t_ns));
                row.kind = AnswerKind::Destination;
                row.address = Some(from.ip().to_string());
                let ttl = row.ttl;
                state.ladder.has_reached(ttl);
            }
            None => {}
        }
        Some(())
    }

    fn take_datagram(&self, socket: &ProbeSocket, peer: &Peer, bytes: &[u8], from: SocketAddr, at_ns: u64) {
        let mut state = peer.state();
        let State { channel, datagrams, pings, held_ns, from: last, .. } = &mut *state;
        if !datagrams.allows(monotonic_ns()) {
            return;
        }
        let (mut answered, mut out) = (Vec::new(), Vec::new());
        let session = &peer.session;
        let mut are_sent = true;
        run(channel, |channel| {
            let mut answer = |message: &[u8]| {
                let message: &[u8; PING_BYTES] = message.try_into().ok()?;
                let seq = u32::from_be_bytes(message[..4].try_into().expect("four bytes"));
                pings.allows(monotonic_ns()).then_some(())?;
                answered.push(u64::from(seq));
                Some(pong(session, seq, from, at_ns))
            };
            are_sent = channel.take(bytes, Instant::now(), &mut answer, &mut out)?;
            Ok(())
        });
        *last = Some(from);
        let took_ns = if are_sent { realtime_ns().saturating_sub(at_ns) } else { WAITED };
        self.send(socket, session.id, &out, from, !answered.is_empty());
        if held_ns.len() < MOST_ROWS {
            held_ns.extend(answered.into_iter().map(|seq| (seq, took_ns)));
        }
    }

    /// Does what is due by now in the channels whose pages the socket reaches.
    pub(in crate::server) fn look(&self, socket: &ProbeSocket) {
        let peers = self.peers().clone();
        for peer in peers {
            let mut state = peer.state();
            let State { channel, from, .. } = &mut *state;
            let Some(to) = from.filter(|to| socket.reaches(*to) && peer.may_have(*to)) else { continue };
            let mut out = Vec::new();
            run(channel, |channel| channel.look(Instant::now(), &mut out));
            self.send(socket, peer.session.id, &out, to, false);
        }
    }

    /// Sends datagrams of a channel. One that cannot be sent is a lost one.
    fn send(&self, socket: &ProbeSocket, session: SessionId, datagrams: &[Vec<u8>], to: SocketAddr, is_answer: bool) {
        for datagram in datagrams {
            if is_answer {
                self.expect_stamps(datagram, session, true);
            }
            let _ = socket.send_bytes(datagram, 0, Some(to));
        }
    }

    /// The server's own probe with a number, for a session whose client is a page with a channel.
    pub(in crate::server) fn probe(&self, session: SessionId, seq: u64) -> Option<Vec<u8>> {
        let peer = self.find(|peer| peer.session.id == session)?;
        let number = u32::try_from(seq).ok()?.to_be_bytes();
        let id: TransactionId = [&peer.mark[..], &number].concat().try_into().expect("twelve bytes");
        let probe = stun::request(id, &peer.own, &peer.page);
        self.expect_stamps(&probe, session, false);
        Some(probe)
    }

    /// The session and the number of a probe of ours.
    fn of_probe(&self, id: TransactionId) -> Option<(Arc<Session>, u64)> {
        let (mark, number) = id.split_at(8);
        let peer = self.find(|peer| peer.mark == mark)?;
        let number = u32::from_be_bytes(number.try_into().expect("four bytes"));
        Some((Arc::clone(&peer.session), u64::from(number)))
    }

    /// The same for the probe whose beginning an ICMP error quotes.
    pub(in crate::server) fn quoted(&self, bytes: &[u8]) -> Option<(Arc<Session>, u64)> {
        self.of_probe(stun::quoted(bytes)?)
    }

    fn expect_stamps(&self, packet: &[u8], session: SessionId, is_answer: bool) {
        let Some(tail) = tail(packet) else { return };
        let mut sent = self.sent();
        if sent.len() >= MOST_SENT {
            sent.pop_front();
        }
        sent.push_back((tail, session, is_answer));
    }

    fn sent(&self) -> MutexGuard<'_, VecDeque<(u64, SessionId, bool)>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose the packet is of which this is a copy, and what identifies it: whether it is an answer, and its last bytes.
    pub(in crate::server) fn copied(&self, copy: &[u8]) -> Option<(SessionId, (bool, u64))> {
        let tail = tail(copy)?;
        let sent = self.sent();
        let (_, session, is_answer) = sent.iter().rev().find(|(known, ..)| *known == tail)?;
        Some((*session, (*is_answer, tail)))
    }
}

/// Runs a channel. One that fails is over, also one whose libraries fail on what a stranger sent.
fn run(channel: &mut Option<Channel>, step: impl FnOnce(&mut Channel) -> Result<(), Closed>) {
    let Some(running) = channel else { return };
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| step(running)));
    let reason = match done {
        Ok(Ok(())) => return,
        Ok(Err(Closed(reason))) => reason,
        Err(_) => "what the page has sent made a library fail",
    };
    log(format_args!("a page's channel ended: {reason}"));
    *channel = None;
}

/// The answer to a ping; records that it came.
fn pong(session: &Session, seq: u32, from: SocketAddr, at_ns: u64) -> Vec<u8> {
    let mut state = session.state();
    state.probes_from = Some(from);
    state.may_climb = true;
    if state.arrivals.len() < MOST_ROWS {
        state.arrivals.push(ArrivalRow { seq: u64::from(seq), arrived_ns: at_ns });
    }
    let load_bytes = state.received_bytes();
    drop(state);
    let mut pong = Vec::with_capacity(PING_BYTES);
    pong.extend(seq.to_be_bytes());
    pong.extend(at_ns.to_be_bytes());
    pong.extend(load_bytes.to_be_bytes());
    pong.resize(PING_BYTES, 0);
    pong
}

fn tail(packet: &[u8]) -> Option<u64> {
    let bytes = packet.get(packet.len().checked_sub(TAIL_BYTES)?..)?;
    Some(u64::from_be_bytes(bytes.try_into().expect("eight bytes")))
}

impl Peer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something may be sent to an address for this page.
    fn may_have(&self, address: SocketAddr) -> bool {
        !self.session.has_ended() && self.session.address == user(address.ip())
    }

    /// The server's name and password for this page.
    pub(super) fn credentials(&self) -> (&str, &str) {
        (&self.own.ufrag, &self.own.pwd)
    }

    /// How long each answer took here, by the number of its ping, or [`WAITED`].
    pub(super) fn take_held(&self) -> HashMap<u64, u64> {
        std::mem::take(&mut self.state().held_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_or_refused() {
        let pair = "AB:";
        let fingerprint = pair.repeat(32).trim_end_matches(':').to_owned();
        let offer = |ufrag: &str, pwd: &str, fingerprint: &str| Offer {
            ufrag: ufrag.to_owned(),
            pwd: pwd.to_owned(),
            fingerprint: fingerprint.to_owned(),
        };
        let pwd = "asd88fgpdd777uzjYhagZg";
        assert_eq!(offer("8hhY", pwd, &fingerprint).parse().unwrap().1, [0xab; 32]);
        let wrong = [
            offer("8hh", pwd, &fingerprint),
            offer("8h\nY", pwd, &fingerprint),
            offer(&"a".repeat(257), pwd, &fingerprint),
            offer("8hhY", "short", &fingerprint),
            offer("8hhY", pwd, &pair.repeat(32)),
            offer("8hhY", pwd, &fingerprint[3..]),
            offer("8hhY", pwd, &fingerprint.replace('A', "+")),
            offer("8hhY", pwd, ""),
        ];
        for offer in wrong {
            assert!(offer.parse().is_none(), "{offer:?}");
        }
    }
}
