//! The client's end of a flood, on a pair of ports of its own: the kernel's stamps of the probes' socket would be too many.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bufferscope_endpoint::options::set_buffer;
use bufferscope_verdict::input::Direction;
use nix::libc;

use crate::flood::{IP_BYTES, LONGEST_NS, Ramp};
use crate::load::pool;
use crate::records::FloodRow;
use crate::time::{MS, SECOND, monotonic_ns, realtime_ns};
use crate::wire::SessionId;
use crate::wire::probe::{Cookie, FLOOD_BYTES, Kind, PACKET_BYTES, Packet};

/// The server must offer a cookie within this time.
const PATIENCE_NS: u64 = 2 * SECOND;
/// It is asked this often.
const ASK_NS: u64 = SECOND / 5;
/// While the server floods, the client says this often that it still wants that.
const WANT_NS: u64 = SECOND / 10;
/// Time between two counts of what arrived.
const COUNT_NS: u64 = 50 * MS;
/// Time between two looks at what is due.
const TICK: Duration = Duration::from_millis(1);
/// Room for what is sent or arrives while this program does not run.
const BUFFER_BYTES: u32 = 4 << 20;
/// If nothing has arrived for this long, the server's flood is over.
const OVER_NS: u64 = SECOND;

/// A socket that has proved its address to the server.
#[derive(Debug)]
pub(super) struct FloodSocket {
    socket: UdpSocket,
    session: SessionId,
    cookie: Cookie,
}

impl FloodSocket {
    /// Opens one, and gets a cookie.
    pub(super) fn open(server: SocketAddr, session: SessionId) -> io::Result<Self> {
        let any: SocketAddr = if server.is_ipv6() { ([0; 16], 0).into() } else { ([0; 4], 0).into() };
        let socket = UdpSocket::bind(any)?;
        socket.connect(server)?;
        let options = OwnedFd::from(socket.try_clone()?);
        set_buffer(&options, [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], BUFFER_BYTES)?;
        set_buffer(&options, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], BUFFER_BYTES)?;
        socket.set_read_timeout(Some(Duration::from_nanos(ASK_NS)))?;
        let begun_ns = monotonic_ns();
        while monotonic_ns() - begun_ns < PATIENCE_NS {
            // A request without a cookie is answered by one.
            socket.send(&Packet::request(session, u64::MAX, 0, realtime_ns(), [0; 16]).bytes())?;
            let mut bytes = [0; 2048];
            let Ok(length) = socket.recv(&mut bytes) else { continue };
            let offer = Packet::parse(&bytes[..length]).filter(|packet| packet.kind == Kind::Offer);
            if let Some(offer) = offer.filter(|packet| packet.session == session) {
                socket.set_nonblocking(true)?;
                return Ok(Self { socket, session, cookie: offer.cookie });
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the server does not answer on another port"))
    }

    /// Sends or receives a flood until `stop` is set or its time is over. `row` has what was counted so far.
    pub(super) fn run(&self, direction: Direction, peak_bps: u64, stop: &AtomicBool, row: &Mutex<FloodRow>) {
        let start_ns = realtime_ns();
        *counted(row) = FloodRow { direction, peak_bps, start_ns, end_ns: start_ns, ..FloodRow::default() };
        match direction {
            Direction::Up => {
                self.send(peak_bps, stop, row);
                counted(row).end_ns = realtime_ns();
            }
            Direction::Down => self.receive(stop, row),
        }
    }

    fn send(&self, peak_bps: u64, stop: &AtomicBool, row: &Mutex<FloodRow>) {
        let begun_ns = monotonic_ns();
        let mut ramp = Ramp::to(peak_bps);
        let (mut sent, mut offset) = (0, 0);
        let mut packet = [0; FLOOD_BYTES];
        loop {
            let elapsed_ns = monotonic_ns() - begun_ns;
            if elapsed_ns >= LONGEST_NS || stop.load(Ordering::Relaxed) {
                return;
            }
            for _ in 0..ramp.due(elapsed_ns) {
                let padding = &pool()[offset..offset + FLOOD_BYTES - PACKET_BYTES];
                offset = (offset + FLOOD_BYTES) % (pool().len() - FLOOD_BYTES);
                let (head, rest) = packet.split_at_mut(PACKET_BYTES);
                head.copy_from_slice(&Packet::flood(self.session, sent, self.cookie).bytes());
                rest.copy_from_slice(padding);
                // One that this machine's own queue does not take is a lost one.
                let _ = self.socket.send(&packet);
                sent += 1;
                ramp.has_sent();
            }
            counted(row).sent_packets = sent;
            std::thread::sleep(TICK);
        }
    }

    fn receive(&self, stop: &AtomicBool, row: &Mutex<FloodRow>) {
        let begun_ns = monotonic_ns();
        let (mut next_want_ns, mut next_count_ns, mut heard_ns) = (begun_ns, begun_ns, begun_ns);
        let (mut received, mut last, mut last_realtime_ns) = (0_u64, None::<u64>, 0);
        let mut bytes = [0; 2048];
        loop {
            let now_ns = monotonic_ns();
            // The server's flood begins and ends later than this by a round trip and the queue.
            let is_over = now_ns - begun_ns >= 2 * LONGEST_NS || now_ns - heard_ns >= OVER_NS;
            if is_over || (stop.load(Ordering::Relaxed) && now_ns - heard_ns >= OVER_NS / 4) {
                return;
            }
            if now_ns >= next_want_ns && !stop.load(Ordering::Relaxed) {
                next_want_ns = now_ns + WANT_NS;
                let _ = self.socket.send(&Packet::flood(self.session, 0, self.cookie).bytes());
            }
            while let Ok(length) = self.socket.recv(&mut bytes) {
                let packet = Packet::parse(&bytes[..length]).filter(|packet| packet.session == self.session);
                if let Some(packet) = packet.filter(|packet| packet.kind == Kind::Flood && length == FLOOD_BYTES) {
                    received += 1;
                    last = last.max(Some(packet.seq));
                    (heard_ns, last_realtime_ns) = (now_ns, realtime_ns());
                }
            }
            if now_ns >= next_count_ns {
                next_count_ns = now_ns + COUNT_NS;
                let sent = last.map_or(0, |last| last.saturating_add(1));
                let mut row = counted(row);
                (row.sent_packets, row.received_packets) = (sent, received);
                // What comes later is no part of the flood, but silence.
                row.end_ns = row.end_ns.max(last_realtime_ns);
                row.received.push((realtime_ns(), received * IP_BYTES));
            }
            std::thread::sleep(TICK);
        }
    }
}

fn counted(row: &Mutex<FloodRow>) -> MutexGuard<'_, FloodRow> {
    row.lock().unwrap_or_else(PoisonError::into_inner)
}
