//! Segmentation offload: segments that leave together travel as one packet (the kernel's `tcp_tso_autosize`,
//! `tcp_tso_should_defer` and `tcp_mss_split_point`).
//!
//! A packet holds about as much as the pacing rate sends in a millisecond, more where the round trip is short, and at
//! least `min_tso_segs` segments (two), or as many as the congestion control chooses. If the window has room for less,
//! the sender waits for the next acknowledgement, provided that it is due within a millisecond ("tcp: fix
//! tcp_tso_should_defer() vs large RTT", Linux 6.18 and the stable series).
//!
//! Written data is joined into [pieces](super::pieces) of up to `gso_max_segs` segments or half of the peer's largest
//! window. A packet consists of a whole piece or of the beginning of one.

use crate::network::truesize::MOST_PAYLOAD_BYTES;
use crate::tcp::sender::{Sender, State};
use crate::transport::congestion::rate_of_window;

/// A packet holds as much as the pacing rate sends in this fraction of a second, as a shift (`sk_pacing_shift`).
const RATE_SHIFT: u32 = 10;
/// For round trips of up to 512 us, a packet may have the maximum size. The size halves for every further 512 us
/// (`tcp_tso_rtt_log`).
const RTT_SHIFT: u32 = 9;
/// A third of the window is large enough to be sent at once (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;
/// The sender does not wait if the last packet was sent longer ago than this.
const RECENT_NS: u64 = 1_000_000;
/// The sender does not wait for an acknowledgement that is further away than this, or than half a round trip.
const NEAR_NS: u64 = 1_000_000;

/// The next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// The packet holds this much payload.
    Of(u32),
    /// The packet waits to become larger, limited by the congestion window (`true`) or by the peer's window (`false`).
    Waits(bool),
}

impl Sender {
    /// Whether segments may leave together.
    #[inline]
    pub(in crate::tcp::sender) fn has_offload(&self) -> bool {
        self.gso_max_segs > 1
    }

    /// The size of the next packet, with offload. It waits to become larger only if it `may_wait`.
    #[cold]
    pub(in crate::tcp::sender) fn next_packet(&mut self, now_ns: u64, may_wait: bool) -> Packet {
        let end = self.data.pieces.first_end(self.nxt);
        let piece_bytes = end - self.nxt;
        if piece_bytes <= u64::from(self.mss_bytes) {
            return Packet::Of(piece_bytes as u32);
        }
        let most = self.packet_segments(now_ns);
        if may_wait && let Some(limit) = self.defers(now_ns, most, end) {
            return limit;
        }
        // At most half a window, so that acknowledgements keep arriving (`tcp_cwnd_test`).
        let cwnd = self.cc.window().cwnd;
        let quota = cwnd.saturating_sub(self.board.in_flight()).min((cwnd / 2).max(1));
        let bytes = self.cut_bytes(piece_bytes, most.min(quota).max(1), end == self.data.end);
        if bytes < piece_bytes {
            // The piece stays cut even if the host's queue has no room for the packet now.
            self.data.pieces.cut(self.nxt + bytes);
        }
        Packet::Of(bytes as u32)
    }

    /// Payload and FIN of the next segment, which may be the end of a piece.
    #[cold]
    pub(in crate::tcp::sender) fn within_piece(&self, len: u32, fin: bool) -> (u32, bool) {
        let left = self.data.pieces.first_end(self.nxt) - self.nxt;
        if u64::from(len) > left { (left as u32, false) } else { (len, fin) }
    }

    /// How much of a piece may be sent if up to `most` segments may. If the peer's window ends within a segment, what
    /// fits is sent, unless Nagle's rule forbids it. The rest is then not a multiple of the segment size
    /// (`tcp_mss_split_point`).
    fn cut_bytes(&self, piece_bytes: u64, most: u32, is_last: bool) -> u64 {
        let mss_bytes = u64::from(self.mss_bytes);
        let (most_bytes, room_bytes) = (u64::from(most) * mss_bytes, self.room());
        if most_bytes <= room_bytes && !is_last {
            return most_bytes.min(piece_bytes);
        }
        let bytes = piece_bytes.min(room_bytes);
        if most_bytes <= bytes {
            return most_bytes;
        }
        if self.waits_for_small() { bytes - bytes % mss_bytes } else { bytes }
    }

    /// Whether it is better to wait until more can be sent.
    fn defers(&self, now_ns: u64, most: u32, end: u64) -> Option<Packet> {
        let last_ns = if self.pacer.is_enabled() { self.pacer.next_ns() } else { self.last_sent_ns };
        if self.recovery.state() >= State::Recovery || now_ns > last_ns + RECENT_NS {
            return None;
        }
        let (mss_bytes, window) = (u64::from(self.mss_bytes), self.cc.window());
        let by_cwnd = u64::from(window.cwnd.saturating_sub(self.board.in_flight())) * mss_bytes;
        let by_peer = self.room();
        let (limit, piece) = (by_cwnd.min(by_peer), end - self.nxt);
        let has_more_behind = self.data.end > end;
        let chunk = (u64::from(window.cwnd) * mss_bytes).min(self.peer.bytes) / WINDOW_DIVISOR;
        if limit >= u64::from(most) * mss_bytes || (has_more_behind && limit >= piece) || limit >= chunk {
            return None;
        }
        // The next acknowledgement is expected a round trip after the oldest segment was sent.
        let head = self.board.head()?;
        let srtt_ns = self.rtt.srtt_ns().unwrap_or(0);
        if head.sent_ns + srtt_ns > now_ns + NEAR_NS.min(srtt_ns / 2) {
            return None;
        }
        let (limited_by_cwnd, limited) =
            if by_cwnd < by_peer { (true, by_cwnd <= piece) } else { (false, by_peer <= piece) };
        if limited {
            return Some(Packet::Waits(limited_by_cwnd));
        }
        // A packet that is complete need not wait.
        let is_last = self.data.finish && self.data.end == self.data.offered && !has_more_behind;
        (!is_last).then_some(Packet::Waits(false))
    }

    /// Number of segments in a packet at the current rate.
    pub(in crate::tcp::sender) fn packet_segments(&self, now_ns: u64) -> u32 {
        let window = self.cc.window();
        let rate = if self.pacer.is_enabled() {
            window.pacing_bytes_per_s
        } else {
            rate_of_window(window, &self.context(now_ns))
        };
        let halvings = self.rtt.min_ns().map_or(u64::MAX, |min_ns| (min_ns / 1000) >> RTT_SHIFT);
        let near_bytes = if halvings < u64::from(u32::BITS) { MOST_PAYLOAD_BYTES >> halvings } else { 0 };
        let bytes = (rate >> RATE_SHIFT).saturating_add(near_bytes).min(MOST_PAYLOAD_BYTES);
        let segments = (bytes / u64::from(self.mss_bytes)) as u32;
        segments.max(self.cc.min_tso_segs().unwrap_or(self.min_tso_segs)).min(self.gso_max_segs)
    }
}
