//! The sending end of a load connection.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bufferscope_endpoint::error_queue::{Notice, Stamped, take_notice};
use bufferscope_endpoint::options::set_int;
use bufferscope_endpoint::socket::tcp_info;
use bufferscope_endpoint::timestamping::{stamp_some_writes, write_stamped};
use nix::libc;
use nix::poll::PollFlags;
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendmsg};
use ring::rand::{SecureRandom, SystemRandom};

use super::{MARK_NS, MOST_ROWS, Marks, SAMPLE_NS, Shared, congestion, read_some, recorded, wait};
use crate::records::{FlowRow, Stage, StageRow};
use crate::time::{monotonic_ns, realtime_ns};
use crate::wire::load::{DATA, FRAME_HEADER_BYTES, LONGEST_FRAME, MARK, MARK_BYTES, SendBuffer, frame_header};

/// Random bytes, which no compression on the path makes smaller; frames begin at varying offsets.
const POOL_BYTES: usize = 1 << 20;
/// A frame, and the unsent bytes in the kernel, are worth this much time at the connection's rate
/// (`TCP_REPLENISH_TIME` of draft-ietf-ippm-responsiveness), so that a mark waits no longer at its sender.
const REPLENISH_US: u64 = 5_000;
const SMALLEST_FRAME: usize = 1024;
/// Bounds of `TCP_NOTSENT_LOWAT`.
const UNSENT: [u64; 2] = [4 * 1024, 2 * 1024 * 1024];
/// Before the rate is known.
const FIRST_UNSENT: i32 = 128 * 1024;
const FIRST_FRAME: usize = 16 * 1024;
/// Writes that ask for stamps and have not got all of them.
const OPEN_WRITES: usize = 16;
/// A connection that must not send yet is looked at again after this time.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Sends frames until asked to stop, or until the connection fails. `index` is the connection's number.
pub fn send(socket: &OwnedFd, index: u16, buffer: SendBuffer, marks: Marks, shared: &Arc<Shared>) {
    recorded(shared, marks, "a connection that sends load", || {
        Sender::new(socket, index, buffer, marks, shared)?.run()
    });
}

/// Random bytes for loads.
pub(crate) fn pool() -> &'static [u8] {
    static POOL: OnceLock<Vec<u8>> = OnceLock::new();
    POOL.get_or_init(|| {
        let mut bytes = vec![0; POOL_BYTES];
        SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
        bytes
    })
}

/// A write that asked for stamps: the offset of its last byte, when it was made, and whether that byte has entered the
/// queueing discipline.
#[derive(Clone, Copy, Debug)]
struct StampedWrite {
    last_byte: u32,
    written_ns: u64,
    is_scheduled: bool,
}

struct Sender<'a> {
    socket: &'a OwnedFd,
    marks: Marks,
    shared: &'a Arc<Shared>,
    /// Bytes written, as stamps count them.
    written: u64,
    /// What is left of the frame that was begun: header or mark, then data of the pool.
    head: Vec<u8>,
    data: &'static [u8],
    offset: usize,
    frame_bytes: usize,
    sampler: Sampler,
    next_sample_ns: u64,
    next_mark_ns: u64,
    wants_stamps: bool,
    stamped: Vec<StampedWrite>,
    /// Marks of the peer to be returned, and the beginning of one.
    to_return: Vec<u8>,
    since_ns: u64,
}

impl<'a> Sender<'a> {
    fn new(
        socket: &'a OwnedFd,
        index: u16,
        buffer: SendBuffer,
        marks: Marks,
        shared: &'a Arc<Shared>,
    ) -> io::Result<Self> {
        let sampler = Sampler::new(socket, index, buffer, shared)?;
        // Some kernels and sockets have no stamps; then the time in the send buffer is not known.
        let counted = stamp_some_writes(socket).ok();
        let now_ns = monotonic_ns();
        Ok(Self {
            socket,
            marks,
            shared,
            written: counted.map_or(0, u64::from),
            head: Vec::new(),
            data: &[],
            // Connections do not send the same bytes at the same time.
            offset: usize::from(index) * LONGEST_FRAME / 4 % (POOL_BYTES - LONGEST_FRAME),
            frame_bytes: FIRST_FRAME,
            sampler,
            next_sample_ns: now_ns + SAMPLE_NS,
            next_mark_ns: now_ns + MARK_NS,
            wants_stamps: counted.is_some(),
            stamped: Vec::new(),
            to_return: Vec::new(),
            since_ns: realtime_ns(),
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let has_stamps = self.wants_stamps;
        while !self.shared.stops() {
            let ready = wait(self.socket, PollFlags::POLLIN | PollFlags::POLLOUT)?;
            if ready.contains(PollFlags::POLLERR) {
                self.take_stamps()?;
            }
            if ready.intersects(PollFlags::POLLIN | PollFlags::POLLHUP) {
                self.read_marks()?;
            }
            let now_ns = monotonic_ns();
            if now_ns >= self.next_sample_ns {
                self.next_sample_ns = now_ns + SAMPLE_NS;
                if let Some(bytes) = self.sampler.sample(self.socket, self.shared)? {
                    self.frame_bytes = bytes.clamp(SMALLEST_FRAME, LONGEST_FRAME - FRAME_HEADER_BYTES);
                }
                self.wants_stamps = has_stamps;
            }
            if ready.contains(PollFlags::POLLOUT) {
                self.write()?;
            }
        }
        Ok(())
    }

    /// Writes until the kernel takes no more, for as long as a sample is not due.
    fn write(&mut self) -> io::Result<()> {
        const WRITES: usize = 16;
        for _ in 0..WRITES {
            if self.shared.stops() {
                return Ok(());
            }
            if let Some(wait) = self.shared.pace.as_ref().and_then(|pace| pace.wait()) {
                std::thread::sleep(wait.min(LONGEST_SLEEP));
                return Ok(());
            }
            if self.head.is_empty() && self.data.is_empty() {
                self.begin_frame();
            }
            let content = [IoSlice::new(&self.head), IoSlice::new(self.data)];
            let with_stamps = self.wants_stamps && self.stamped.len() < OPEN_WRITES;
            let written_ns = realtime_ns();
            let written = if with_stamps {
                write_stamped(self.socket, &content)
            } else {
                sendmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &content, &[], MsgFlags::MSG_NOSIGNAL, None)
                    .map_err(io::Error::from)
            };
            match written {
                Ok(bytes) => {
                    self.written += bytes as u64;
                    self.shared.has_sent(bytes as u64);
                    if with_stamps {
                        self.wants_stamps = false;
                        let last_byte = (self.written - 1) as u32;
                        self.stamped.push(StampedWrite { last_byte, written_ns, is_scheduled: false });
                    }
                    self.advance(bytes);
                }
                Err(error) if is_temporary(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn begin_frame(&mut self) {
        if self.to_return.len() >= MARK_BYTES {
            self.head.extend(frame_header(MARK, MARK_BYTES));
            self.head.extend(self.to_return.drain(..MARK_BYTES));
            return;
        }
        let now_ns = monotonic_ns();
        if self.marks == Marks::Makes && now_ns >= self.next_mark_ns {
            self.next_mark_ns = now_ns + MARK_NS;
            self.head.extend(frame_header(MARK, MARK_BYTES));
            self.head.extend(realtime_ns().to_be_bytes());
            return;
        }
        self.head.extend(frame_header(DATA, self.frame_bytes));
        self.offset = (self.offset + self.frame_bytes) % (POOL_BYTES - LONGEST_FRAME);
        self.data = &pool()[self.offset..self.offset + self.frame_bytes];
    }

    /// These bytes of the frame have been written.
    fn advance(&mut self, bytes: usize) {
        let of_head = bytes.min(self.head.len());
        self.head.drain(..of_head);
        self.data = &self.data[bytes - of_head..];
    }

    /// Reads the peer's marks: to be returned, or our own that come back.
    fn read_marks(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64 * MARK_BYTES];
        let Some(bytes) = read_some(self.socket, &mut buffer)? else { return Ok(()) };
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if self.to_return.len() > buffer.len() {
            return Err(io::Error::other("the peer sends more marks than it can get back"));
        }
        self.to_return.extend(&buffer[..bytes]);
        if self.marks == Marks::Makes {
            let now_ns = realtime_ns();
            let whole = self.to_return.len() / MARK_BYTES * MARK_BYTES;
            for mark in self.to_return.drain(..whole).collect::<Vec<_>>().chunks_exact(MARK_BYTES) {
                let sent_ns = u64::from_be_bytes(mark.try_into().expect("eight bytes"));
                if (self.since_ns..=now_ns).contains(&sent_ns) {
                    let mut log = self.shared.log();
                    if log.marks.len() < MOST_ROWS {
                        log.marks.push((sent_ns, now_ns - sent_ns));
                    }
                }
            }
        }
        Ok(())
    }

    fn take_stamps(&mut self) -> io::Result<()> {
        while let Some(notice) = take_notice(self.socket, &mut [])? {
            let Notice::Stamp { id, stamped, realtime_ns: at_ns, .. } = notice else { continue };
            let Some(at) = self.stamped.iter().position(|write| write.last_byte == id) else { continue };
            let write = &mut self.stamped[at];
            match (stamped, write.is_scheduled) {
                // Only the first stamps count: a retransmission or a device below makes more.
                (Stamped::Scheduled, false) => {
                    write.is_scheduled = true;
                    let t_ns = write.written_ns;
                    let delay_ns = at_ns.saturating_sub(t_ns);
                    let mut log = self.shared.log();
                    if log.stages.len() < MOST_ROWS {
                        log.stages.push(StageRow { t_ns, stage: Stage::SendBuffer, delay_ns });
                    }
                }
                (Stamped::Acknowledged, _) => {
                    self.stamped.swap_remove(at);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Samples a connection that sends load, and keeps the unsent bytes in the kernel few.
#[derive(Debug)]
pub(crate) struct Sampler {
    index: u16,
    buffer: SendBuffer,
    unsent: i32,
    /// Bytes acknowledged by the last sample.
    acknowledged: u64,
}

impl Sampler {
    /// For a connection with this number.
    pub(crate) fn new(socket: &OwnedFd, index: u16, buffer: SendBuffer, shared: &Shared) -> io::Result<Self> {
        if buffer == SendBuffer::Short {
            set_int(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, FIRST_UNSENT)?;
        }
        shared.log().congestion = congestion(socket);
        Ok(Self { index, buffer, unsent: FIRST_UNSENT, acknowledged: 0 })
    }

    /// Records the connection's state, and adapts the unsent bytes to its rate. Returns the bytes that are worth
    /// [`REPLENISH_US`] at this rate, if it is known.
    pub(crate) fn sample(&mut self, socket: &OwnedFd, shared: &Shared) -> io::Result<Option<usize>> {
        let info = tcp_info(socket)?;
        let rate = info.delivery_rate.unwrap_or(0);
        let replenish = rate.saturating_mul(REPLENISH_US) / 1_000_000;
        if rate > 0 {
            let unsent = replenish.clamp(UNSENT[0], UNSENT[1]) as i32;
            // Not for every small change of the rate.
            if self.buffer == SendBuffer::Short && unsent.abs_diff(self.unsent) > self.unsent.unsigned_abs() / 4 {
                self.unsent = unsent;
                set_int(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, unsent)?;
            }
        }
        let more = info.bytes_acked.saturating_sub(self.acknowledged);
        self.acknowledged += more;
        shared.acknowledged.fetch_add(more, Ordering::Relaxed);
        let mss = u64::from(info.snd_mss);
        let row = FlowRow {
            t_ns: realtime_ns(),
            flow: self.index,
            srtt_ns: u64::from(info.rtt_us) * 1000,
            min_rtt_ns: info.min_rtt_us.map(|us| u64::from(us) * 1000),
            cwnd_bytes: u64::from(info.snd_cwnd) * mss,
            notsent_bytes: u64::from(info.notsent_bytes),
            delivered_bytes: info.bytes_acked,
            retransmits: u64::from(info.total_retrans),
            delivered_ce: u64::from(info.delivered_ce),
            busy_us: info.busy_us,
            rwnd_limited_us: info.rwnd_limited_us,
            sndbuf_limited_us: info.sndbuf_limited_us,
        };
        let mut log = shared.log();
        if log.flows.len() < MOST_ROWS {
            log.flows.push(row);
        }
        Ok((rate > 0).then_some(replenish as usize))
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
