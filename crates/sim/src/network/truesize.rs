//! The memory that Linux charges for a packet (`skb->truesize`), which counts against the memory limits of disciplines:
//! `memory_limit` of `fq_codel` and `fq_pie`, `memlimit` of `cake` and `dualpi2`.
//!
//! Source: Linux 6.1 on x86-64 (`net/core/skbuff.c`, `net/ipv4/tcp.c`, `tcp_output.c`, `ip_output.c`). A buffer is a
//! `struct sk_buff` of 256 bytes, and memory for the data with 320 bytes (`struct skb_shared_info`) behind them, whose
//! size is rounded up to one of the sizes of the slab allocator.
//! - TCP has a buffer for the headers and the payload in pages beside it. Pages count by the bytes used.
//! - A TCP acknowledgement without payload is set to 2 bytes (`skb_set_tcp_pure_ack`).
//! - A datagram or an echo is in one piece, with room for the link's header: 2304 bytes for a full packet.
//!
//! Departures: payload that was copied to another buffer on the way, as segments that a shaper splits off, counts as
//! that of the sender.

use super::packet::Body;
use super::pool::{PacketId, Pool};

/// `sizeof(struct sk_buff)`, aligned.
const BUFFER_BYTES: u32 = 256;
/// `sizeof(struct skb_shared_info)`, aligned.
const SHARED_INFO_BYTES: u32 = 320;
/// Both descriptors of a packet.
pub(crate) const DESCRIPTORS_BYTES: u32 = BUFFER_BYTES + SHARED_INFO_BYTES;
/// The headers of TCP, IP and the link with what may be put in front of them (`MAX_TCP_HEADER` of Debian's cloud kernel
/// 6.1).
pub(crate) const TCP_HEADERS_BYTES: u32 = 256;
/// The payload of the largest packet that segmentation offload makes (`GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER`).
pub(crate) const MOST_PAYLOAD_BYTES: u64 = 65_536 - 1 - TCP_HEADERS_BYTES as u64;
/// The overhead of a datagram: the link's header, rounded up (`LL_RESERVED_SPACE`), and 15 bytes.
const DATAGRAM_ROOM_BYTES: u32 = 16 + 15;
/// Alignment of the data (`SKB_DATA_ALIGN`).
const CACHE_LINE_BYTES: u32 = 64;
/// A TCP segment without its payload.
pub(crate) const TCP_BYTES: u32 = in_one_piece(TCP_HEADERS_BYTES);
/// A TCP acknowledgement without payload.
const PURE_ACK_BYTES: u32 = 2;

/// Memory that the packet would take in Linux.
#[inline]
pub(super) fn truesize(packet: PacketId, pool: &Pool) -> u64 {
    let bytes = match pool.body(packet) {
        Body::Tcp(tcp) if tcp.segment.end() == tcp.segment.seq => PURE_ACK_BYTES,
        Body::Tcp(tcp) => TCP_BYTES + tcp.segment.len,
        Body::Echo(_) | Body::Datagram(_) => in_one_piece(pool.header(packet).ip_bytes + DATAGRAM_ROOM_BYTES),
    };
    u64::from(bytes)
}

/// A buffer with this many bytes of data. Sizes of the slab allocator up from 512 are powers of two.
pub(crate) const fn in_one_piece(bytes: u32) -> u32 {
    (bytes.next_multiple_of(CACHE_LINE_BYTES) + SHARED_INFO_BYTES).next_power_of_two() + BUFFER_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_rounded_up_to_a_power_of_two() {
        // 28 bytes: 59, aligned 64, with the shared information 384. 161 bytes: 192 fits 512 exactly, and one more does
        // not. A full packet: 1531, 1536, 1856.
        let sizes = [28, 161, 162, 1500].map(|ip_bytes| in_one_piece(ip_bytes + DATAGRAM_ROOM_BYTES));
        assert_eq!(sizes, [512 + 256, 512 + 256, 1024 + 256, 2048 + 256]);
        assert_eq!(TCP_BYTES, 1024 + 256);
    }
}
