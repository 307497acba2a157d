//! The server's end of the probes: it answers those with a valid cookie, and sends its own ladder to those who sent them.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bufferscope_endpoint::error_queue::Notice;

use super::handover::Predecessor;
use super::limits::user;
use super::session::Session;
use super::web::rtc::Transports;
use crate::cookie::Cookies;
use crate::records::{AnswerKind, ArrivalRow, LadderRow, Stage, StageRow};
use crate::time::{monotonic_ns, realtime_ns};
use crate::udp::{Arrival, ProbeSocket, copied};
use crate::wire::SessionId;
use crate::wire::load::Key;
use crate::wire::probe::{Kind, Packet, Quoted};
use crate::wire::token::are_equal;

/// The running sessions, by their numbers.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<SessionId, Arc<Session>>>);

impl Sessions {
    /// All of them, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of them.
    pub fn get(&self, id: SessionId) -> Option<Arc<Session>> {
        self.lock().get(&id).cloned()
    }

    /// The one of a client that knows its key and has its address; it may have ended.
    pub fn of_client(&self, id: SessionId, key: &Key, address: IpAddr) -> Option<Arc<Session>> {
        self.get(id).filter(|session| are_equal(&session.key, key) && session.address == user(address))
    }
}

/// The thread looks at the ladders' schedules at least this often while there are sessions.
const LOOK: Duration = Duration::from_millis(10);
/// And this often if there is no test.
const REST: Duration = Duration::from_millis(200);
/// Packets that are answered before the schedules are looked at again.
const BATCH: usize = 64;

/// Answers and sends probes until `stop` is set.
pub struct Responder<'a> {
    /// The socket.
    pub(super) socket: &'a Arc<ProbeSocket>,
    /// The sessions.
    pub(super) sessions: &'a Sessions,
    /// The cookies.
    pub(super) cookies: &'a Cookies,
    /// The channels of pages.
    pub(super) transports: &'a Transports,
    /// The process before this one, which may still have sessions.
    pub(super) predecessor: Option<&'a Predecessor>,
}

impl Responder<'_> {
    /// Runs until `stop` is set or the socket fails.
    pub fn run(&self, stop: &AtomicBool) -> io::Result<()> {
        let mut buffer = vec![0; 2048];
        while !stop.load(Ordering::Relaxed) {
            // A monitor's ladder is sparse, and each of its probes wakes this thread.
            let is_idle = self.sessions.lock().values().all(|session| session.is_monitor());
            self.socket.wait(if is_idle { REST } else { LOOK })?;
            for _ in 0..BATCH {
                let Some(datagram) = self.socket.receive_any(&mut buffer)? else { break };
                match datagram.probe(&buffer) {
                    Some(arrival) => self.on_arrival(&arrival),
                    None => {
                        let bytes = &buffer[..datagram.length];
                        let is_known = self.transports.take(self.socket, bytes, datagram.from, datagram.at_ns);
                        if let (false, Some(old)) = (is_known, self.predecessor) {
                            old.take_datagram(bytes, datagram.from, datagram.at_ns);
                        }
                    }
                }
            }
            for _ in 0..BATCH {
                let Some(notice) = self.socket.notice(&mut buffer)? else { break };
                self.on_notice(notice, &buffer);
            }
            self.transports.look(self.socket);
            let sessions: Vec<_> = self.sessions.lock().values().cloned().collect();
            for session in sessions {
                self.climb(&session);
            }
        }
        Ok(())
    }

    /// Answers a probe.
    pub(super) fn on_arrival(&self, arrival: &Arrival) {
        let packet = &arrival.packet;
        let now_ns = monotonic_ns();
        let found = self.sessions.get(packet.session);
        if let (None, Some(old)) = (&found, self.predecessor) {
            return old.take_probe(arrival);
        }
        let Some(session) = found.filter(|session| {
            // Whoever sends from another address than that of the control connection gets nothing, not even a cookie.
            !session.has_ended() && session.address == user(arrival.from.ip())
        }) else {
            return;
        };
        let cookie = self.cookies.cookie(arrival.from, packet.session, now_ns);
        let is_valid = self.cookies.is_valid(&packet.cookie, arrival.from, packet.session, now_ns);
        match packet.kind {
            Kind::Request if !is_valid => {
                let offer = Packet { kind: Kind::Offer, cookie, ttl: 0, ..*packet };
                self.send(&offer, arrival.from);
            }
            Kind::Request => {
                let mut state = session.state();
                if state.monitor.as_mut().is_some_and(|requests| !requests.allows(now_ns)) {
                    return;
                }
                state.probes_from = Some(arrival.from);
                state.may_climb = true;
                state.requests += 1;
                if state.arrivals.len() < session.most_rows() {
                    state.arrivals.push(ArrivalRow { seq: packet.seq, arrived_ns: arrival.at_ns });
                }
                let (requests, load_bytes) = (state.requests, state.received_bytes());
                drop(state);
                let mut reply =
                    Packet { kind: Kind::Reply, cookie, arrived_ns: arrival.at_ns, requests, load_bytes, ..*packet };
                reply.answered_ns = realtime_ns();
                // The field has the request's TTL; the reply itself leaves with the system's.
                let _ = self.socket.send_with_ttl(&reply, 0, Some(arrival.from));
            }
            Kind::LadderReply if is_valid => {
                let mut state = session.state();
                let Some(row) = state.ladder_row(packet.seq) else { return };
                if row.rtt_ns.is_none() && row.t_ns == packet.asked_ns {
                    let at_client_ns = packet.answered_ns.saturating_sub(packet.arrived_ns);
                    let rtt_ns = arrival.at_ns.saturating_sub(row.t_ns).saturating_sub(at_client_ns);
                    row.rtt_ns = Some(rtt_ns);
                    row.kind = AnswerKind::Destination;
                    row.address = Some(arrival.from.ip().to_string());
                    let ttl = row.ttl;
                    state.ladder.has_reached(ttl);
                }
            }
            Kind::Flood if is_valid => super::flood::on_packet(&session, arrival, self.socket, now_ns),
            _ => {}
        }
    }

    /// Sends the next probe of a session's ladder, if it is due and the client's address is proved.
    fn climb(&self, session: &Session) {
        if session.has_ended() {
            return;
        }
        let mut state = session.state();
        // Another address family's sessions belong to another responder.
        let Some(to) = state.probes_from.filter(|to| self.socket.reaches(*to)) else { return };
        // A client that has fallen silent gets none, and no client more than it asked for.
        if !state.may_climb || state.ladder_rows.len() >= session.most_rows() {
            return;
        }
        let Some(ttl) = state.ladder.next(monotonic_ns()) else { return };
        state.may_climb = false;
        let (seq, t_ns) = (state.ladder_first + state.ladder_rows.len() as u64, realtime_ns());
        state.ladder_rows.push(LadderRow {
            t_ns,
            ttl,
            address: None,
            rtt_ns: None,
            kind: AnswerKind::Exceeded,
            mpls: false,
        });
        drop(state);
        if let Some(probe) = self.transports.probe(session.id, seq) {
            // As below: one that cannot be sent is a lost one.
            let _ = self.socket.send_bytes(&probe, ttl, Some(to));
            return;
        }
        let probe = Packet { kind: Kind::Ladder, ..Packet::request(session.id, seq, ttl, t_ns, [0; 16]) };
        self.send(&probe, to);
    }

    /// Sends a packet. One that cannot be sent is a lost one: no address may end the thread, such as one with port 0 or one that
    /// this machine's firewall blocks.
    fn send(&self, packet: &Packet, to: SocketAddr) {
        let _ = self.socket.send(packet, Some(to));
    }

    fn on_notice(&self, notice: Notice, buffer: &[u8]) {
        match notice {
            Notice::Stamp { stamped, realtime_ns, bytes, .. } => {
                let copy = &buffer[..bytes];
                let found = match copied(copy) {
                    Some(Packet { kind: Kind::Reply, session, seq, .. }) => Some((session, (true, seq))),
                    Some(Packet { kind: Kind::Ladder, session, seq, .. }) => Some((session, (false, seq))),
                    Some(_) => None,
                    None => self.transports.copied(copy),
                };
                let Some((id, name)) = found else { return };
                let Some(session) = self.sessions.get(id) else { return };
                let mut state = session.state();
                let delay = state.departures.take(name, stamped, realtime_ns);
                if let Some((t_ns, delay_ns)) = delay.filter(|_| state.stages.len() < session.most_rows()) {
                    state.stages.push(StageRow { t_ns, stage: Stage::Qdisc, delay_ns });
                }
            }
            Notice::Icmp { offender, time_exceeded, realtime_ns, bytes, mpls } => {
                let quotation = &buffer[..bytes];
                let found = match Quoted::parse(quotation) {
                    Some(quoted) => {
                        self.sessions.get(quoted.session).map(|session| (session, quoted.seq, Some(quoted.ttl)))
                    }
                    None => self.transports.quoted(quotation).map(|(session, seq)| (session, seq, None)),
                };
                let Some((session, seq, ttl)) = found else { return };
                let mut state = session.state();
                let Some(row) =
                    state.ladder_row(seq).filter(|row| row.rtt_ns.is_none() && ttl.is_none_or(|ttl| row.ttl == ttl))
                else {
                    return;
                };
                let back_ns = realtime_ns.unwrap_or_else(crate::time::realtime_ns);
                row.rtt_ns = Some(back_ns.saturating_sub(row.t_ns));
                row.address = offender.map(|address| address.to_string());
                row.kind = if time_exceeded { AnswerKind::Exceeded } else { AnswerKind::Unreachable };
                row.mpls = mpls;
            }
            Notice::Other => {}
        }
    }
}
