//! The send buffer: how much of its data the application may write (the kernel's `tcp_sendmsg_locked`,
//! `sk_stream_memory_free`, `sk_stream_write_space` and `tcp_sndbuf_expand`).
//!
//! The buffer holds unsent and unacknowledged data. Its fill level is the memory that the kernel charges for packets,
//! not their payload. An application that finds the buffer full continues once a third of it is free, and still is when
//! the application runs: it waits with `poll` or `epoll`, as the programs of the kernel engines do. The buffer grows
//! with the congestion window, up to `tcp_wmem`'s maximum. So it is never the limit by itself, but its contents are
//! still to be sent when the application has stopped. `tcp_notsent_lowat` bounds the unsent data, and thereby the time
//! that data waits in the sender itself.
//!
//! A piece that is full is sent before the application's write continues, if it is the next to be sent
//! (`tcp_push_one`). If the piece is cut for that, the write adds to the rest. So a write makes fewer and larger pieces
//! than it would if it were sent as a whole.
//!
//! Departs: the application continues at once; the kernel does not join retransmitted packets with others that are
//! selectively acknowledged.

use super::output::Output;
use super::small_queue::OVERHEAD_BYTES;
use super::transmit::Limit;
use crate::tcp::sender::{Config, Sender};

/// The buffer grows by this much per packet of the window: a full frame's linear part, rounded up to a power of two,
/// and its descriptor (`per_mss`, as in Debian's cloud kernel 6.1; kernels with wireless networks reserve longer
/// headers, so it is 4352 there).
const RESERVED_BYTES: u64 = 2304;
/// The most that the application writes at once. The programs of the kernel engines write as much.
const WRITE_BYTES: u64 = 64 * 1024;
/// The buffer has room for at least this many packets (`TCP_INIT_CWND`).
const LEAST_PACKETS: u32 = 10;

/// The size of the buffer, and whether the application waits for room in it.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// `sk_sndbuf`.
    size_bytes: u64,
    /// With more payload than this, too little room is free to wake the application, however few packets hold the
    /// payload. (This allows for rounding, which [`Sender::has_room_to_wake`] does not do.)
    most_payload_bytes: u64,
    /// Packets of the largest window for which room was made.
    packets: u32,
    mss_bytes: u64,
    /// The largest piece.
    most_piece_bytes: u64,
    /// The size of a piece at present.
    piece_bytes: u64,
    max_bytes: u64,
    /// The application may write more while less than this is unsent (`tcp_notsent_lowat`).
    unsent_bytes: u64,
    /// The buffer has room for this many windows (`sndbuf_expand`).
    windows: u64,
    application: Application,
    /// The application is writing.
    is_writing: bool,
    /// The last byte before this is to be pushed (`pushed_seq`).
    pushed_end: u64,
}

/// What the application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Application {
    /// It writes as soon as it has data.
    Writes,
    /// It has found the buffer full (`SOCK_NOSPACE`).
    Waits,
    /// There was room, so it was woken. When it runs, it asks again whether there is any (`tcp_poll`).
    Woken,
}

impl SendBuffer {
    /// The buffer of a new connection. It will have room for this many windows.
    pub(crate) fn new(config: &Config, windows: u64) -> Self {
        let mss_bytes = u64::from(config.mss_bytes);
        let most_piece_bytes = mss_bytes * u64::from(config.gso_max_segs);
        let mut buffer = Self {
            size_bytes: 0,
            most_payload_bytes: 0,
            packets: 0,
            mss_bytes,
            most_piece_bytes,
            piece_bytes: most_piece_bytes,
            max_bytes: config.wmem_max_bytes,
            unsent_bytes: config.notsent_lowat_bytes,
            windows,
            application: Application::Writes,
            is_writing: false,
            pushed_end: 0,
        };
        buffer.resize(config.wmem_default_bytes);
        buffer
    }

    /// Whether the application waits for room.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.application == Application::Waits
    }

    /// A piece is at most half of the largest window that the peer has offered (`tcp_bound_to_half_wnd`), in whole
    /// segments.
    #[inline]
    fn bound_pieces(&mut self, most_window_bytes: u64) {
        if self.piece_bytes < self.most_piece_bytes || most_window_bytes / 2 < self.most_piece_bytes {
            let half = most_window_bytes / 2 / self.mss_bytes * self.mss_bytes;
            self.piece_bytes = half.clamp(self.mss_bytes, self.most_piece_bytes);
        }
    }

    /// Makes room for a window of this many packets (`tcp_sndbuf_expand`).
    #[inline]
    fn expand(&mut self, packets: u32) {
        if packets > self.packets {
            self.packets = packets.max(LEAST_PACKETS);
            let wanted_bytes = self.windows * u64::from(self.packets) * RESERVED_BYTES;
            if self.size_bytes < wanted_bytes {
                self.resize(wanted_bytes.min(self.max_bytes));
            }
        }
    }

    fn resize(&mut self, size_bytes: u64) {
        self.size_bytes = size_bytes;
        let whole_bytes = self.most_piece_bytes + OVERHEAD_BYTES;
        self.most_payload_bytes = size_bytes * 2 / 3 * self.most_piece_bytes / whole_bytes + 2;
    }
}

impl Sender {
    /// The handshake is complete: sets the initial size (`tcp_init_buffer_space`).
    pub(in crate::tcp::sender) fn open_buffer(&mut self) {
        self.buffer.expand(self.packets_provided_for());
    }

    /// If the application has data and is not waiting, lets it write what the buffer accepts, and sends that.
    #[inline]
    pub(in crate::tcp::sender) fn run_application(&mut self, output: &mut Output) {
        if self.data.end < self.data.offered && self.una > 0 {
            if self.buffer.application == Application::Writes || self.is_writable() {
                self.hand_over(output);
            } else {
                self.buffer.application = Application::Waits;
            }
        }
    }

    /// `sent` packets have just been sent. If the application waits although the window has room, the buffer is too
    /// small (`tcp_check_space`, which the kernel calls after every single packet and at the end of an acknowledgement,
    /// and `tcp_should_expand_sndbuf`).
    #[inline]
    pub(in crate::tcp::sender) fn check_space(&mut self, now_ns: u64, sent: u32) {
        let is_too_small = self.buffer.is_full() && (sent > 1 || self.board.in_flight() < self.cc.window().cwnd);
        if is_too_small && !(self.has_offload() && self.is_exempt(sent)) {
            self.buffer.expand(self.packets_provided_for());
            self.usage.stamp(now_ns);
        }
    }

    /// With offload, several segments may have left in one packet that filled the window. And the application may be
    /// writing: then the kernel checks only after a packet.
    #[cold]
    fn is_exempt(&self, sent: u32) -> bool {
        let is_written = sent == 0 && self.is_writing();
        is_written || self.board.in_flight() >= self.cc.window().cwnd
    }

    /// The same between two packets, with offload: the application may be woken now, although there may be no room when
    /// it runs, because what is cut for the next packets takes more memory. Until then the buffer does not grow.
    #[cold]
    pub(in crate::tcp::sender) fn check_space_between_packets(&mut self, now_ns: u64) {
        self.check_space(now_ns, 1);
        if self.buffer.is_full() && self.has_room_to_wake() {
            self.buffer.application = Application::Woken;
        }
    }

    /// Whether the application is writing.
    #[inline]
    pub(in crate::tcp::sender) fn is_writing(&self) -> bool {
        self.buffer.is_writing
    }

    /// Payload written and not sent yet.
    pub(in crate::tcp::sender) fn unsent_bytes(&self) -> u64 {
        self.data.end.saturating_sub(self.nxt)
    }

    /// One run of the application: it writes until the buffer is full.
    #[inline(never)]
    fn hand_over(&mut self, output: &mut Output) {
        self.buffer.application = Application::Writes;
        self.buffer.bound_pieces(self.peer.most_bytes);
        self.note_buffer_room(output.now_ns);
        self.buffer.is_writing = true;
        let mut accepts = true;
        while accepts && self.data.end < self.data.offered {
            accepts = self.write(output);
        }
        self.buffer.is_writing = false;
        self.buffer.application = if accepts { Application::Writes } else { Application::Waits };
    }

    /// One write of the application. Returns whether the buffer accepted anything.
    fn write(&mut self, output: &mut Output) -> bool {
        let start = self.data.end;
        let end = start + (self.data.offered - start).min(WRITE_BYTES);
        loop {
            let room_bytes = self.room_bytes();
            if room_bytes == 0 {
                if self.data.end == start {
                    return false;
                }
                self.buffer.application = Application::Waits;
                break;
            }
            if self.data.end == start {
                self.check_app_limited();
                self.restart_after_idle(output.now_ns);
            }
            self.append(room_bytes.min(end - self.data.end), self.data.end == start);
            self.note_busy(output.now_ns);
            if self.data.end == end || !self.has_offload() {
                break;
            }
            self.push_full_piece(output);
        }
        self.push(output);
        true
    }

    /// Adds data to the last piece, or begins others. The first data of a write takes the push flag from a piece that it
    /// is added to. With further data, the flag moves to the new end.
    fn append(&mut self, bytes: u64, is_first: bool) {
        let (lacks_bytes, end) = (self.last_piece_lacks_bytes(), self.data.end + bytes);
        let start = if lacks_bytes > 0 { self.data.pieces.last_start(self.nxt) } else { self.data.end };
        self.data.pieces.append(self.nxt, start, end, self.buffer.piece_bytes);
        if lacks_bytes > 0 && self.data.pushes.unmark(self.data.end) && !is_first {
            self.data.pushes.mark(end);
        }
        self.data.end = end;
    }

    /// The last piece is full, and the application's write continues.
    fn push_full_piece(&mut self, output: &mut Output) {
        // `forced_push`
        if self.data.end > self.buffer.pushed_end + self.peer.most_bytes / 2 {
            self.push(output);
        } else if self.data.pieces.last_start(self.nxt) == self.nxt {
            self.send_written(output, Limit::OnePacket);
        }
    }

    /// Sends what is written. The last byte is to be pushed (`tcp_mark_push`).
    fn push(&mut self, output: &mut Output) {
        self.data.pushes.mark(self.data.end);
        self.buffer.pushed_end = self.data.end;
        self.send_written(output, Limit::Cwnd);
    }

    #[inline]
    fn is_writable(&self) -> bool {
        // A shortcut that avoids counting packets. The full count could only be larger.
        let is_short = !self.board.joins() && self.data.end - self.una > self.buffer.most_payload_bytes;
        !is_short && self.has_room_to_wake()
    }

    /// Whether there is enough room to wake an application that waits (`__sk_stream_is_writeable`).
    #[inline(never)]
    fn has_room_to_wake(&self) -> bool {
        let queued_bytes = self.queued_bytes();
        self.buffer.size_bytes >= queued_bytes + queued_bytes / 2 && self.unsent_bytes() * 2 < self.buffer.unsent_bytes
    }

    /// Payload that fits now: the rest of the last piece, and whole pieces as long as there is room at their beginning.
    /// With offload, it is the rest of a piece or one piece at a time.
    fn room_bytes(&self) -> u64 {
        let (piece_bytes, lacks_bytes) = (self.buffer.piece_bytes, self.last_piece_lacks_bytes());
        if self.has_offload() && lacks_bytes > 0 {
            return lacks_bytes;
        }
        let free_bytes = self.buffer.size_bytes.saturating_sub(self.queued_bytes());
        let may_wait_bytes = self.buffer.unsent_bytes.saturating_sub(self.unsent_bytes());
        let pieces = free_bytes.div_ceil(OVERHEAD_BYTES + piece_bytes).min(may_wait_bytes.div_ceil(piece_bytes));
        lacks_bytes + if self.has_offload() { pieces.min(1) } else { pieces } * piece_bytes
    }

    /// Payload that can still be added to the last of the unsent pieces.
    fn last_piece_lacks_bytes(&self) -> u64 {
        match self.data.end - self.data.pieces.last_start(self.nxt) {
            0 => 0,
            last_bytes => self.buffer.piece_bytes.saturating_sub(last_bytes),
        }
    }

    /// The memory that the kernel charges for the contents of the buffer (`sk_wmem_queued`).
    fn queued_bytes(&self) -> u64 {
        let packets = u64::from(self.board.buffers()) + self.data.pieces.count(self.nxt);
        self.data.end.saturating_sub(self.una) + packets * OVERHEAD_BYTES
    }

    fn packets_provided_for(&self) -> u32 {
        self.cc.window().cwnd.max(self.rack.reordering_packets() + 1)
    }
}
