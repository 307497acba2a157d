//! The receive window and its growth with the connection: Linux' dynamic right-sizing (Fisk and Feng, "Dynamic
//! right-sizing in TCP", 2001; the kernel's `tcp_rcv_space_adjust`, `tcp_grow_window` and `__tcp_select_window`).
//!
//! Half of the buffer is offered as the window; the other half is left for the packets' overhead (`tcp_adv_win_scale` =
//! 1, Linux' default up to 6.6). The buffer starts at `tcp_rmem[1]`. Once per round trip it grows to twice the amount
//! that the application has read in that time, or more while that amount increases, up to `tcp_rmem[2]`. The
//! application reads at once, packet by packet. So if a round trip ends just when a gap is filled, the application has
//! read only the first of the packets behind the gap.
//! Packets that the application has not read, and those beyond a gap, count with their memory ([`super::memory`]).

use super::super::timestamps;

/// Margin in segments above twice the amount that was read (`tcp_rcv_space_adjust`).
const CUSHION_SEGMENTS: u64 = 16;
/// Number of segments that are assumed to arrive in the first round trip (`TCP_INIT_CWND`).
const INITIAL_SEGMENTS: u64 = 10;
/// Memory that a packet takes besides its payload: two descriptors and the room for headers (`SKB_TRUESIZE` and
/// `MAX_TCP_HEADER` of Debian's cloud kernel 6.1).
const OVERHEAD_BYTES: u64 = 832;
/// A packet's share of the buffer grows in steps of this size until it is large enough for its window.
const STEP_BYTES: u64 = 128;
/// Largest window of a SYN, which is not scaled (RFC 7323, section 2.2).
const MAX_UNSCALED: u64 = 65_535;
/// Shortest packet in order that opens the window (`tcp_event_data_recv`).
const OPENING_BYTES: u64 = 128;
/// Segment size that is assumed before data has arrived (`TCP_MSS_DEFAULT`).
const INITIAL_SEGMENT_BYTES: u64 = 536;

/// The receive buffer and the window it allows.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    mss_bytes: u64,
    /// Size of the buffer (`sk_rcvbuf`) and the largest it may become.
    buffer_bytes: u64,
    buffer_max_bytes: u64,
    /// The window is a multiple of this: 2 to the power of the window scale.
    unit_bytes: u64,
    /// Largest window that may be offered (`window_clamp`).
    clamp_bytes: u64,
    /// How far the window has been opened so far, segment by segment (`rcv_ssthresh`).
    opened_bytes: u64,
    /// Right edge of the offered window, which never moves back.
    edge: u64,
    /// The window when it was last offered (`rcv_wnd`).
    offered_bytes: u64,
    round: Round,
    rtt: ReceiverRtt,
    /// The peer's segment size as seen so far (`rcv_mss`): the longest segment that has arrived in order.
    segment_bytes: u64,
}

/// The current measurement of how much the application reads in a round trip (`rcvq_space`).
#[derive(Debug)]
struct Round {
    start_ns: u64,
    start_seq: u64,
    /// Most bytes read in a round trip so far.
    most_bytes: u64,
}

/// The round-trip time as measured by the receiving side (`rcv_rtt_est`), from the echo of its own timestamps.
#[derive(Debug, Default)]
struct ReceiverRtt {
    /// 8 times the value; 0 before the first measurement.
    rtt8_ns: u64,
    last_echo: u32,
}

/// Buffer space for one segment of the window: the memory that a packet takes, but at least twice its payload.
fn charge_bytes(mss_bytes: u64) -> u64 {
    let packet_bytes = mss_bytes + OVERHEAD_BYTES;
    packet_bytes + (2 * mss_bytes).saturating_sub(packet_bytes).next_multiple_of(STEP_BYTES)
}

/// The window is half of the buffer.
fn window_of(buffer_bytes: u64) -> u64 {
    buffer_bytes / 2
}

impl ReceiveWindow {
    /// The window of a buffer of `buffer_bytes` that may grow to `buffer_max_bytes`.
    pub(crate) fn new(mss_bytes: u32, buffer_bytes: u64, buffer_max_bytes: u64) -> Self {
        let mss_bytes = u64::from(mss_bytes);
        let full = window_of(buffer_bytes);
        // One segment is kept in reserve.
        let clamp_bytes = if full > 2 * mss_bytes { full - mss_bytes } else { full };
        Self {
            mss_bytes,
            buffer_bytes,
            buffer_max_bytes,
            unit_bytes: 1 << window_scale(buffer_bytes, buffer_max_bytes),
            clamp_bytes,
            opened_bytes: clamp_bytes.min(MAX_UNSCALED),
            edge: 0,
            offered_bytes: 0,
            round: Round { start_ns: 0, start_seq: 0, most_bytes: INITIAL_SEGMENTS * mss_bytes },
            rtt: ReceiverRtt::default(),
            segment_bytes: INITIAL_SEGMENT_BYTES.min(mss_bytes),
        }
    }

    /// The window of a SYN: whole segments, not scaled.
    pub(crate) fn of_syn(&mut self, next: u64) -> u32 {
        let space = window_of(self.buffer_bytes);
        let whole = if space > self.mss_bytes { space - space % self.mss_bytes } else { space };
        let window = whole.min(MAX_UNSCALED);
        self.edge = self.edge.max(next + window);
        self.offered_bytes = window;
        window as u32
    }

    /// The handshake is complete, and measuring begins.
    pub(crate) fn start(&mut self, now_ns: u64, next: u64) {
        self.round.start_ns = now_ns;
        self.round.start_seq = next;
        self.round.most_bytes = self.round.most_bytes.min(self.opened_bytes);
    }

    /// The part of the offered window that is left.
    pub(crate) fn offered(&self, next: u64) -> u64 {
        self.edge.saturating_sub(next)
    }

    /// Window to offer from `next` on, while packets take `held_bytes` of memory.
    #[inline]
    pub(crate) fn offer(&mut self, next: u64, held_bytes: u64) -> u32 {
        let window = self.round_up(self.select(held_bytes).max(self.offered(next)));
        self.edge = self.edge.max(next + window);
        self.offered_bytes = window;
        window as u32
    }

    /// Whether a window offered now, while packets take `held_bytes`, would be at least as large as the one that was
    /// offered last (`__tcp_ack_snd_check`). If the free part of the buffer limits the window, unread data prevents it.
    #[inline]
    pub(crate) fn keeps_size(&self, held_bytes: u64) -> bool {
        self.round_up(self.select(held_bytes)) >= self.offered_bytes
    }

    /// Up to the next window that can be expressed, without a division.
    fn round_up(&self, bytes: u64) -> u64 {
        (bytes + self.unit_bytes - 1) & !(self.unit_bytes - 1)
    }

    /// Whether a window offered now would be at least twice as large as the window that is left (`tcp_cleanup_rbuf`).
    pub(crate) fn has_doubled(&self, next: u64, held_bytes: u64) -> bool {
        let left = self.offered(next);
        2 * left <= self.clamp_bytes && self.select(held_bytes) >= (2 * left).max(1)
    }

    /// A packet of `len` bytes of payload has arrived in order: opens the window, unless the packet is very short.
    /// Returns whether the window was opened. For the other arguments, see [`open`](Self::open).
    #[inline]
    pub(crate) fn open_in_order(&mut self, len: u32, memory_bytes: u64, held_bytes: u64) -> bool {
        self.segment_bytes = self.segment_bytes.max(self.mss_bytes.min(u64::from(len)));
        u64::from(len) >= OPENING_BYTES && self.open(len, memory_bytes, held_bytes)
    }

    /// A packet of `len` bytes of payload has arrived, which takes `memory_bytes`, while packets take `held_bytes`:
    /// opens the window by twice the packet's size, at least by two segments, if such packets fit into the buffer
    /// (`tcp_grow_window`). Returns whether the window was opened.
    #[inline]
    pub(crate) fn open(&mut self, len: u32, memory_bytes: u64, held_bytes: u64) -> bool {
        let room = self.clamp_bytes.min(self.free(held_bytes)).saturating_sub(self.opened_bytes);
        if room == 0 {
            return false;
        }
        let len = u64::from(len);
        let least =
            if window_of(memory_bytes) <= len { 2 * self.mss_bytes } else { self.least_of_small(len, memory_bytes) };
        if least > 0 {
            self.opened_bytes += room.min(least.max(2 * len));
        }
        least > 0
    }

    /// By how much a packet opens the window at least that takes more memory than its share of the window: the smaller
    /// the payload, the smaller the part of the largest buffer up to which it opens the window (`__tcp_grow_window`).
    #[cold]
    fn least_of_small(&self, len: u64, memory_bytes: u64) -> u64 {
        let mut share = window_of(memory_bytes) / 2;
        let mut limit = window_of(self.buffer_max_bytes) / 2;
        while self.opened_bytes <= limit {
            if share <= len {
                return 2 * self.segment_bytes;
            }
            share /= 2;
            limit /= 2;
        }
        0
    }

    /// Measures the round trip by the echo of our own timestamp on a full segment; a shorter one that brings the echo
    /// first prevents it (`tcp_rcv_rtt_measure_ts`). A shorter round trip counts at once; longer ones are smoothed ("tcp:
    /// always seek for minimal rtt", Linux 6.16 and the stable series).
    #[inline]
    pub(crate) fn measure_rtt(&mut self, now_ns: u64, echo: u32, len: u32) {
        if echo == self.rtt.last_echo {
            return;
        }
        self.rtt.last_echo = echo;
        if u64::from(len) < self.segment_bytes {
            return;
        }
        if let Some(rtt_ns) = timestamps::elapsed_ns(now_ns, echo) {
            let rtt = &mut self.rtt.rtt8_ns;
            *rtt = if *rtt == 0 || 8 * rtt_ns < *rtt { 8 * rtt_ns } else { *rtt - *rtt / 8 + rtt_ns };
        }
    }

    /// The round-trip time as measured by the receiving side; 0 if not measured yet.
    pub(crate) fn rtt_ns(&self) -> u64 {
        self.rtt.rtt8_ns / 8
    }

    /// The application has read a packet, and thus everything up to `next`. At the end of a round trip, the buffer
    /// grows (`tcp_rcv_space_adjust`).
    #[inline]
    pub(crate) fn adjust(&mut self, now_ns: u64, next: u64) {
        let rtt8_ns = self.rtt.rtt8_ns;
        if rtt8_ns == 0 || now_ns - self.round.start_ns < rtt8_ns / 8 {
            return;
        }
        let read = next - self.round.start_seq;
        if read > self.round.most_bytes {
            self.grow(read);
            self.round.most_bytes = read;
        }
        self.round.start_ns = now_ns;
        self.round.start_seq = next;
    }

    fn grow(&mut self, read: u64) {
        let most = self.round.most_bytes;
        let twice = 2 * read + CUSHION_SEGMENTS * self.mss_bytes;
        // While the amount increases from round to round, leave room for more growth (slow start doubles it).
        let increase = (u128::from(twice) * u128::from(read - most) / u128::from(most.max(1))) as u64;
        let segments = (twice + 2 * increase) / self.mss_bytes;
        let buffer = (segments * charge_bytes(self.mss_bytes)).min(self.buffer_max_bytes);
        if buffer > self.buffer_bytes {
            self.buffer_bytes = buffer;
            self.clamp_bytes = window_of(buffer);
        }
    }

    /// Window that the free part of the buffer allows.
    fn free(&self, held_bytes: u64) -> u64 {
        window_of(self.buffer_bytes.saturating_sub(held_bytes))
    }

    /// The window to offer. To avoid silly windows, it is zero rather than less than a segment (RFC 9293, section
    /// 3.8.6.2.2).
    fn select(&self, held_bytes: u64) -> u64 {
        let (full, free) = (window_of(self.buffer_bytes), self.free(held_bytes));
        let segment = self.mss_bytes.min(full);
        if free < self.clamp_bytes.min(full) / 2 && (free < full / 16 || free < segment) {
            return 0;
        }
        free.min(self.opened_bytes)
    }
}

/// The window scale that a host announces with a receive buffer of `buffer_bytes` that may grow to `buffer_max_bytes`:
/// 16 bits can then express a window of half of the space (`tcp_select_initial_window`).
pub fn window_scale(buffer_bytes: u64, buffer_max_bytes: u64) -> u32 {
    let space = buffer_bytes.max(buffer_max_bytes);
    space.max(1).ilog2().saturating_sub(15).min(14)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const RMEM_DEFAULT: u64 = 131_072;
    const RMEM_MAX: u64 = 6 << 20;

    #[test]
    fn a_connection_starts_with_about_64_kb() {
        let mut window = ReceiveWindow::new(1448, RMEM_DEFAULT, RMEM_MAX);
        // 131072 / 2 = 65536, which is 45 segments and a remainder: 65160, as tcpdump shows in Linux' SYN-ACKs.
        assert_eq!(window.of_syn(1), 65_160);
        // 6 MiB need 23 bits, since 2^22 <= 6 MiB. 22 - 15 = 7, Linux' usual wscale.
        assert_eq!(window.unit_bytes, 128);
        // The right edge offered by the SYN stays, rounded up to units of 128 bytes: 65160 -> 65280.
        assert_eq!(window.offer(1, 0), 65_280);
    }

    #[test]
    fn the_edge_is_never_taken_back() {
        let mut window = ReceiveWindow::new(1448, RMEM_DEFAULT, RMEM_MAX);
        let before = u64::from(window.offer(1, 0)) + 1;
        let after = u64::from(window.offer(10_001, 60_000)) + 10_001;
        assert!(after >= before);
    }

    #[test]
    fn each_segment_in_order_opens_the_window_by_two() {
        let mut window = ReceiveWindow::new(1448, RMEM_DEFAULT, RMEM_MAX);
        window.buffer_bytes = RMEM_MAX;
        window.clamp_bytes = RMEM_MAX / 2;
        let before = window.opened_bytes;
        assert!(window.open_in_order(1448, 1280 + 1448, 0));
        assert_eq!(window.opened_bytes, before + 2 * 1448);
        // A packet of three segments opens it by six.
        assert!(window.open_in_order(3 * 1448, 3 * 1448, 0));
        assert_eq!(window.opened_bytes, before + 8 * 1448);
    }

    #[test]
    fn a_packet_that_takes_much_memory_for_its_payload_opens_the_window_less_far() {
        let mut window = ReceiveWindow::new(1448, RMEM_DEFAULT, RMEM_MAX);
        window.buffer_bytes = RMEM_MAX;
        window.clamp_bytes = RMEM_MAX / 2;
        // 400 bytes take 1680, more than their share, 800. A quarter of it, 420, is still too much; 210 is not, with
        // half of the limit: 6 MiB / 8 = 786432.
        assert!(window.open_in_order(400, 1680, 0));
        assert_eq!(window.opened_bytes, 64_088 + 2 * 536, "by two of the segments seen so far");
        window.opened_bytes = 786_432;
        assert!(window.open_in_order(400, 1680, 0));
        assert!(!window.open_in_order(400, 1680, 0));
        assert!(!window.open_in_order(127, 127, 0), "too short");
        assert!(window.open_in_order(400, 400, 0), "memory in pages");
    }

    #[test]
    fn a_short_segment_prevents_a_measurement_by_the_next() {
        let mut window = ReceiveWindow::new(1448, RMEM_DEFAULT, RMEM_MAX);
        window.open_in_order(1448, 2728, 0);
        window.measure_rtt(50 * MS, timestamps::clock(10 * MS), 100);
        window.measure_rtt(50 * MS, timestamps::clock(10 * MS), 1448);
        assert_eq!(window.rtt_ns(), 0);
        window.measure_rtt(50 * MS, timestamps::clock(11 * MS), 1448);
        assert_eq!(window.rtt_ns(), 39 * MS);
    }

    #[test]
    fn the_buffer_grows_to_twice_what_a_round_trip_brings() {
        let mut window = ReceiveWindow::new(1448, RMEM_DEFAULT, RMEM_MAX);
        window.start(0, 1);
        window.measure_rtt(50 * MS, timestamps::clock(0), 1448); // 50 ms
        // The first round is assumed to bring 10 segments = 14480 bytes; 100,000 are read: twice = 2 * 100000 + 16 *
        // 1448 = 223168; increase = 223168 * 85520 / 14480 = 1318047 (rounded down); window = 223168 + 2 * 1318047 =
        // 2859262: 1974 segments and a rest. For each 1448 + 832 bytes are charged, in steps of 128 up to at least
        // twice 1448: 2920.
        window.adjust(49 * MS, 100_001);
        assert_eq!(window.buffer_bytes, RMEM_DEFAULT);
        window.adjust(50 * MS, 100_001);
        assert_eq!(window.buffer_bytes, 1974 * 2920);
        // A second round with the same amount changes nothing.
        window.adjust(100 * MS, 200_001);
        assert_eq!(window.buffer_bytes, 1974 * 2920);
        // Four times as much reaches the limit, tcp_rmem[2].
        window.adjust(150 * MS, 600_001);
        assert_eq!(window.buffer_bytes, RMEM_MAX);
    }

    #[test]
    fn a_shorter_round_trip_counts_at_once_and_longer_ones_are_smoothed() {
        let mut window = ReceiveWindow::new(1448, RMEM_DEFAULT, RMEM_MAX);
        let mut measure = |now_ms, rtt_ms| {
            window.measure_rtt(now_ms * MS, timestamps::clock((now_ms - rtt_ms) * MS), 1448);
            window.rtt_ns()
        };
        assert_eq!(measure(50, 40), 40 * MS);
        assert_eq!(measure(100, 48), 41 * MS, "7/8 of 40 and 1/8 of 48");
        assert_eq!(measure(150, 40), 40 * MS);
        assert_eq!(measure(200, 30), 30 * MS);
    }

    #[test]
    fn a_full_buffer_closes_the_window_instead_of_offering_less_than_a_segment() {
        let window = ReceiveWindow::new(1448, 20_000, 20_000);
        // (20000 - 18000) / 2 = 1000 < 1448.
        assert_eq!(window.select(18_000), 0);
        assert_eq!(window.select(17_000), 1_500);
    }
}
