//! The memory that received packets take, which counts against the receive buffer (the kernel's `skb->truesize`).
//!
//! A sender's packet has a buffer for its headers, and its payload in pages. Without segmentation offload, the sender's
//! device copies the payload behind the headers, into a buffer of the next power of two (`skb_linearize`). A packet
//! counts with its first size while it waits to be read, and with that of its buffer if it waits beyond a gap
//! (`skb_condense`). A packet that directly follows such a one shares its memory (`tcp_try_coalesce`): its payload is
//! copied into the space that is left, or its pages are added. So does the packet that fills a gap with the first packet
//! behind it, and the application reads both at once.

use crate::network::truesize::{DESCRIPTORS_BYTES, TCP_BYTES, TCP_HEADERS_BYTES, in_one_piece};

/// What the kernel allocates beyond the payload when it copies it (`__pskb_pull_tail`).
const SPARE_BYTES: u32 = 128;
/// Pages of a packet (`MAX_SKB_FRAGS`).
const MAX_PAGES: u64 = 17;

/// How packets are stored that wait beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In one buffer each, as without segmentation offload.
    Linear,
    /// In pages.
    Paged,
}

/// What a packet beyond a gap takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) memory_bytes: u64,
    /// What can be added: bytes that are copied into its buffer, or packets whose pages are added.
    pub(crate) room: u64,
}

/// The memory of a packet with `len` bytes of payload that waits to be read.
pub(crate) fn unread(len: u64) -> u64 {
    u64::from(TCP_BYTES) + len
}

impl Storage {
    /// The memory of a packet with `len` bytes of payload, without that of the headers if the payload is in pages
    /// (`truesize_adjust`).
    #[inline]
    pub(crate) fn without_headers(self, len: u64) -> u64 {
        match self {
            Self::Linear => unread(len),
            Self::Paged => len,
        }
    }

    /// The memory of a packet with `len` bytes of payload beyond a gap.
    pub(crate) fn hold(self, len: u64) -> Held {
        match self {
            Self::Paged => Held { memory_bytes: unread(len), room: MAX_PAGES - 1 },
            Self::Linear => {
                // The payload stays behind the headers if it fits, or else it is copied.
                let needed_bytes = TCP_HEADERS_BYTES + len as u32;
                let is_copied = needed_bytes > TCP_BYTES - DESCRIPTORS_BYTES;
                let memory_bytes = if is_copied { in_one_piece(needed_bytes + SPARE_BYTES) } else { TCP_BYTES };
                let room_bytes = memory_bytes - DESCRIPTORS_BYTES - needed_bytes;
                Held { memory_bytes: memory_bytes.into(), room: room_bytes.into() }
            }
        }
    }

    /// What adding `len` bytes of payload to a packet takes, and the room that is left then; `None` if there is no room.
    pub(crate) fn add(self, len: u64, room: u64) -> Option<Held> {
        match self {
            Self::Paged => room.checked_sub(1).map(|room| Held { memory_bytes: len, room }),
            Self::Linear => room.checked_sub(len).map(|room| Held { memory_bytes: 0, room }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_segment_takes_a_buffer_of_4_kib_and_shares_it_with_the_next() {
        // 256 + 1448 + 128 = 1832, in lines 1856, with its descriptor 2176: more than 2 KiB.
        let held = Storage::Linear.hold(1_448);
        assert_eq!(held, Held { memory_bytes: 256 + 4_096, room: 4_096 - 320 - 256 - 1_448 });
        let second = Storage::Linear.add(1_448, held.room).unwrap();
        assert_eq!(second, Held { memory_bytes: 0, room: 624 });
        assert_eq!(Storage::Linear.add(1_448, second.room), None);
    }

    #[test]
    fn shorter_segments_take_smaller_buffers() {
        assert_eq!(Storage::Linear.hold(1_344).memory_bytes, 256 + 2_048);
        assert_eq!(Storage::Linear.hold(1_345).memory_bytes, 256 + 4_096);
        assert_eq!(Storage::Linear.hold(448), Held { memory_bytes: 256 + 1_024, room: 0 });
    }

    #[test]
    fn pages_count_with_their_payload_and_one_head_for_all_that_follow_each_other() {
        assert_eq!(Storage::Paged.hold(2_896).memory_bytes, 256 + 1_024 + 2_896);
        let full = (1..17).fold(Storage::Paged.hold(1_448), |held, _| {
            let added = Storage::Paged.add(1_448, held.room).unwrap();
            assert_eq!(added.memory_bytes, 1_448);
            added
        });
        assert_eq!(Storage::Paged.add(1_448, full.room), None, "a packet has at most 17 pages");
    }
}
