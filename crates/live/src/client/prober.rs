//! The client's probes: echoes, its own ladder, and the answers to the server's ladder, all on one pair of ports.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bufferscope_endpoint::error_queue::Notice;

use crate::departures::Departures;
use crate::ladder::Ladder;
use crate::records::{AnswerKind, LadderRow, Stage, StageRow};
use crate::time::{SECOND, monotonic_ns, realtime_ns};
use crate::udp::{Arrival, ProbeSocket, copied};
use crate::wire::SessionId;
use crate::wire::probe::{Cookie, Kind, Packet, Quoted};

/// What became of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// When it was sent.
    pub t_ns: u64,
    /// Its TTL; 0: the system's.
    pub ttl: u8,
    /// The server's answer.
    pub reply: Option<Reply>,
    /// The first ICMP error about it: who, what, and when it arrived.
    pub error: Option<LadderRow>,
}

/// The server's answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// When it arrived.
    pub back_ns: u64,
    /// When the request arrived at the server, on its clock.
    pub arrived_ns: u64,
    /// When the server answered, on its clock.
    pub answered_ns: u64,
    /// Bytes of the load that the server had received.
    pub load_bytes: u64,
}

impl Probe {
    /// The round trip without the time at the server; `None`: no answer.
    pub fn rtt_ns(&self) -> Option<u64> {
        let reply = self.reply?;
        let at_server_ns = reply.answered_ns.saturating_sub(reply.arrived_ns);
        Some(reply.back_ns.saturating_sub(self.t_ns).saturating_sub(at_server_ns))
    }
}

/// What the prober has recorded.
#[derive(Debug, Default)]
pub struct ProbeLog {
    /// The sequence number of the first probe that is still here: a monitor takes out the old ones.
    pub first: u64,
    /// Every probe since then, by its sequence number.
    pub probes: Vec<Probe>,
    /// The queueing discipline's part.
    pub stages: Vec<StageRow>,
    /// The first hop's echo replies.
    pub hop_echoes: Vec<LadderRow>,
    /// Number of links to the server, if the ladder has found it.
    pub distance: Option<u8>,
    /// Whether the kernel stamped what arrived.
    pub stamped_by_kernel: Option<bool>,
    /// When anything arrived last, on the monotonic clock.
    pub heard_ns: u64,
    /// Why the prober ended, if it failed.
    pub failure: Option<String>,
    /// Times from this program's reading of the clock to the kernel's first stamp of a packet, the error of `t_ns`.
    pub send_errors_ns: Vec<u64>,
}

impl ProbeLog {
    /// Takes out the probes that were sent before a time, with the sequence number of the first.
    pub fn take_before(&mut self, t_ns: u64) -> (u64, Vec<Probe>) {
        let settled = self.probes.iter().position(|probe| probe.t_ns >= t_ns).unwrap_or(self.probes.len());
        let first = self.first;
        self.first += settled as u64;
        (first, self.probes.drain(..settled).collect())
    }

    fn index(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.first)?).ok().filter(|at| *at < self.probes.len())
    }
}

/// The log, shared with the prober's thread.
#[derive(Clone, Debug, Default)]
pub struct SharedLog(Arc<Mutex<ProbeLog>>);

impl SharedLog {
    /// The log, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, ProbeLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a prober needs to know.
#[derive(Debug)]
pub struct Settings {
    /// The server's address.
    pub server: SocketAddr,
    /// The session.
    pub session: SessionId,
    /// Time between two echoes.
    pub interval_ns: u64,
    /// Time between two probes of a hop.
    pub round_ns: u64,
    /// Number of links to a server that answers no probes: then there are no echoes, and only the hops before it are probed.
    pub silent_at: Option<u8>,
}

/// Probes until `stop` is set. A failure of the socket ends it and is in the log.
pub fn run(settings: &Settings, stop: &AtomicBool, log: &SharedLog) {
    if let Err(error) = Prober::open(settings, log).and_then(|mut prober| prober.run(stop)) {
        log.lock().failure = Some(error.to_string());
    }
}

/// While the server has not offered a cookie, it is asked this often.
const HANDSHAKE_NS: u64 = SECOND / 5;
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Timing errors are kept for so many packets.
const ERRORS_KEPT: usize = 20_000;

struct Prober<'a> {
    settings: &'a Settings,
    log: &'a SharedLog,
    socket: ProbeSocket,
    cookie: Option<Cookie>,
    ladder: Ladder,
    departures: Departures<u64>,
    next_echo_ns: u64,
    buffer: Vec<u8>,
}

impl<'a> Prober<'a> {
    fn open(settings: &'a Settings, log: &'a SharedLog) -> io::Result<Self> {
        let any: SocketAddr = if settings.server.is_ipv6() { ([0; 16], 0).into() } else { ([0; 4], 0).into() };
        let now_ns = monotonic_ns();
        let mut ladder = Ladder::with_round(now_ns, settings.round_ns);
        if let Some(distance) = settings.silent_at {
            ladder.has_reached(distance);
            log.lock().distance = ladder.distance();
        }
        Ok(Self {
            settings,
            log,
            socket: ProbeSocket::open(any, Some(settings.server))?,
            cookie: settings.silent_at.map(|_| Cookie::default()),
            ladder,
            departures: Departures::default(),
            next_echo_ns: if settings.silent_at.is_some() { u64::MAX } else { now_ns },
            buffer: vec![0; 2048],
        })
    }

    fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.send_due()?;
            let due_ns = self.ladder.due_ns().min(self.next_echo_ns);
            let wait = Duration::from_nanos(due_ns.saturating_sub(monotonic_ns()));
            self.socket.wait(wait.min(LONGEST_WAIT))?;
            while let Some(arrival) = self.socket.receive()? {
                self.on_arrival(&arrival)?;
            }
            while let Some(notice) = self.socket.notice(&mut self.buffer)? {
                self.on_notice(notice);
            }
        }
        Ok(())
    }

    fn send_due(&mut self) -> io::Result<()> {
        let now_ns = monotonic_ns();
        let Some(cookie) = self.cookie else {
            if now_ns >= self.next_echo_ns {
                self.next_echo_ns = now_ns + HANDSHAKE_NS;
                let hello = Packet::request(self.settings.session, u64::MAX, 0, realtime_ns(), [0; 16]);
                self.socket.send(&hello, None)?;
            }
            return Ok(());
        };
        if now_ns >= self.next_echo_ns {
            // Echoes that are late are not caught up on: a burst would measure itself.
            let next_ns = self.next_echo_ns + self.settings.interval_ns;
            self.next_echo_ns = if next_ns > now_ns { next_ns } else { now_ns + self.settings.interval_ns };
            self.probe(0, cookie)?;
        }
        if let Some(ttl) = self.ladder.next(now_ns) {
            self.probe(ttl, cookie)?;
        }
        Ok(())
    }

    fn probe(&mut self, ttl: u8, cookie: Cookie) -> io::Result<()> {
        let mut log = self.log.lock();
        let seq = log.first + log.probes.len() as u64;
        let t_ns = realtime_ns();
        log.probes.push(Probe { t_ns, ttl, reply: None, error: None });
        drop(log);
        // A packet that cannot be sent is a lost one.
        self.socket.send(&Packet::request(self.settings.session, seq, ttl, t_ns, cookie), None)?;
        Ok(())
    }

    fn on_arrival(&mut self, arrival: &Arrival) -> io::Result<()> {
        let packet = &arrival.packet;
        if packet.session != self.settings.session {
            return Ok(());
        }
        let mut log = self.log.lock();
        match packet.kind {
            Kind::Offer => {
                if self.cookie.is_none() {
                    self.next_echo_ns = monotonic_ns();
                }
                self.cookie = Some(packet.cookie);
            }
            Kind::Reply => {
                self.cookie = Some(packet.cookie);
                log.stamped_by_kernel = Some(arrival.by_kernel && log.stamped_by_kernel.unwrap_or(true));
                let Some(at) = log.index(packet.seq) else { return Ok(()) };
                let probe = &mut log.probes[at];
                let is_ours = probe.t_ns == packet.asked_ns && probe.ttl == packet.ttl;
                if is_ours && probe.reply.is_none() {
                    probe.reply = Some(Reply {
                        back_ns: arrival.at_ns,
                        arrived_ns: packet.arrived_ns,
                        answered_ns: packet.answered_ns,
                        load_bytes: packet.load_bytes,
                    });
                }
                if is_ours && packet.ttl > 0 {
                    self.ladder.has_reached(packet.ttl);
                    log.distance = self.ladder.distance();
                }
            }
            Kind::Ladder => {
                if let Some(cookie) = self.cookie {
                    let reply = Packet {
                        kind: Kind::LadderReply,
                        cookie,
                        arrived_ns: arrival.at_ns,
                        answered_ns: realtime_ns(),
                        ..*packet
                    };
                    self.socket.send_with_ttl(&reply, 0, None)?;
                }
            }
            Kind::Request | Kind::LadderReply | Kind::Flood => return Ok(()),
        }
        log.heard_ns = monotonic_ns();
        Ok(())
    }

    fn on_notice(&mut self, notice: Notice) {
        let mut log = self.log.lock();
        match notice {
            Notice::Stamp { stamped, realtime_ns, bytes, .. } => {
                let Some(packet) = copied(&self.buffer[..bytes]) else { return };
                // Only our own probes: answers to the server's ladder carry its numbers.
                if packet.kind != Kind::Request || packet.seq == u64::MAX {
                    return;
                }
                if stamped == bufferscope_endpoint::error_queue::Stamped::Scheduled
                    && log.send_errors_ns.len() < ERRORS_KEPT
                {
                    log.send_errors_ns.push(realtime_ns.saturating_sub(packet.asked_ns));
                }
                if let Some((t_ns, delay_ns)) = self.departures.take(packet.seq, stamped, realtime_ns) {
                    log.stages.push(StageRow { t_ns, stage: Stage::Qdisc, delay_ns });
                }
            }
            Notice::Icmp { offender, time_exceeded, realtime_ns: at_ns, bytes, mpls } => {
                let quoted = Quoted::parse(&self.buffer[..bytes]);
                if let Some(at) = self.about(quoted, &log) {
                    let probe = &mut log.probes[at];
                    let back_ns = at_ns.unwrap_or_else(realtime_ns);
                    let kind = if time_exceeded { AnswerKind::Exceeded } else { AnswerKind::Unreachable };
                    probe.error.get_or_insert(LadderRow {
                        t_ns: probe.t_ns,
                        ttl: probe.ttl,
                        address: offender.map(|address| address.to_string()),
                        rtt_ns: Some(back_ns.saturating_sub(probe.t_ns)),
                        kind,
                        mpls,
                    });
                }
            }
            Notice::Other => {}
        }
    }

    /// The index of the probe that an error is about. If too little of it is quoted, that is the only probe with a TTL that is open.
    fn about(&self, quoted: Option<Quoted>, log: &ProbeLog) -> Option<usize> {
        if let Some(quoted) = quoted {
            let at = log.index(quoted.seq)?;
            return (quoted.session == self.settings.session && quoted.ttl == log.probes[at].ttl).then_some(at);
        }
        let recent_ns = realtime_ns().saturating_sub(SECOND);
        let mut open = log
            .probes
            .iter()
            .enumerate()
            .rev()
            .take_while(|(_, probe)| probe.t_ns >= recent_ns)
            .filter(|(_, probe)| probe.ttl > 0 && probe.reply.is_none() && probe.error.is_none());
        let (at, _) = open.next()?;
        open.next().is_none().then_some(at)
    }
}
