//! Segmentation of packets that segmentation offload made large (the kernel's `skb_gso_segment`).
//!
//! Departs: with classic ECN, the kernel keeps CWR only in the first segment.

use bufferscope_scenario::Encapsulation;
use bufferscope_scenario::sizes::MSS_BYTES;

use super::packet::{Body, Load};
use super::pool::{PacketId, Pool};

/// Splits the first segment off a packet of several. Returns it as a packet of its own; `None` if only one is left.
///
/// The packet itself stays charged to its sender's own queue: the kernel, too, charges the last segment for all
/// (`tcp_gso_segment`).
pub(crate) fn split_off_first(packet: PacketId, link: &Encapsulation, pool: &mut Pool) -> Option<PacketId> {
    let Body::Tcp(mut rest) = *pool.body(packet) else { return None };
    if rest.segment.frames() == 1 {
        return None;
    }
    let mut first = rest;
    first.segment = rest.segment.split_off_first();
    first.segments_before = 0;
    rest.segments_before += 1;
    let mut header = *pool.header(packet);
    header.ip_bytes = first.segment.ip_bytes();
    header.frame_bytes = link.frame_bytes(header.ip_bytes);
    header.load = Load::of(1);
    let first = pool.insert(header, Body::Tcp(first));
    let header = pool.header_mut(packet);
    header.ip_bytes = rest.segment.ip_bytes();
    header.load = Load::of(rest.segment.frames());
    *pool.body_mut(packet) = Body::Tcp(rest);
    encapsulate(packet, link, pool);
    Some(first)
}

/// Sets the length of a packet on a link. That of a packet of several segments is the sum of theirs.
#[inline]
pub(crate) fn encapsulate(packet: PacketId, link: &Encapsulation, pool: &mut Pool) {
    let header = pool.header_mut(packet);
    let frames = header.load.frames();
    if link.only_adds() {
        header.frame_bytes = header.ip_bytes + link.overhead_bytes * frames;
    } else if frames == 1 {
        header.frame_bytes = link.frame_bytes(header.ip_bytes);
    } else {
        let bytes =
            sum_of_segments(pool.header(packet).ip_bytes, frames, pool.body(packet), |bytes| link.frame_bytes(bytes));
        pool.header_mut(packet).frame_bytes = bytes;
    }
}

/// The sum of the lengths that the segments of a packet of `bytes` have, each of `frames` with headers of its own.
#[cold]
pub(crate) fn sum_of_segments(bytes: u32, frames: u32, body: &Body, length: impl Fn(u32) -> u32) -> u32 {
    let payload = match body {
        Body::Tcp(tcp) => tcp.segment.len,
        Body::Echo(_) | Body::Datagram(_) => 0,
    };
    let headers = bytes.saturating_sub(payload) / frames;
    let full = headers + MSS_BYTES;
    let last = bytes.saturating_sub(full * (frames - 1));
    length(full) * (frames - 1) + length(last)
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::Cells;

    use super::*;
    use crate::network::packet::{Header, Role, TcpPacket};
    use crate::network::segment::{Flags, SackBlocks, Segment};
    use crate::network::traffic_class::{Ecn, TrafficClass};

    const HEADERS: u32 = 52;

    fn tcp(id: PacketId, pool: &Pool) -> TcpPacket {
        match pool.body(id) {
            Body::Tcp(tcp) => *tcp,
            Body::Echo(_) | Body::Datagram(_) => unreachable!("it is a segment"),
        }
    }

    /// A packet of two full segments and one of 100 bytes.
    fn large(pool: &mut Pool) -> PacketId {
        let len = 2 * MSS_BYTES + 100;
        let segment = Segment {
            seq: 1,
            ack: 9,
            len,
            window_bytes: 0,
            ts_val: 0,
            ts_ecr: 0,
            sack: SackBlocks::NONE,
            flags: Flags::ACK | Flags::PSH | Flags::FIN,
        };
        let header = Header {
            at_ns: 7,
            ip_bytes: segment.ip_bytes(),
            frame_bytes: segment.ip_bytes() + 3 * 14,
            flow: 0,
            hash: 0,
            port: 0,
            source: 0,
            destination: 0,
            class: TrafficClass::new(0, Ecn::Ect0),
            load: Load::of(3),
        };
        pool.insert(header, Body::Tcp(TcpPacket { connection: 0, to: Role::Server, segments_before: 0, segment }))
    }

    /// Over PPPoE and LLC, a packet of 1500 bytes is 33 cells of 53 bytes, and one of 152 is four. PTM needs a byte for 64.
    #[test]
    fn the_length_of_a_large_packet_is_that_of_its_segments() {
        let bytes = |overhead_bytes, mpu_bytes, cells| {
            let link = Encapsulation { overhead_bytes, mpu_bytes, cells };
            let mut pool = Pool::new();
            let packet = large(&mut pool);
            encapsulate(packet, &link, &mut pool);
            let whole = pool.header(packet).frame_bytes;
            let mut split = Vec::new();
            while let Some(first) = split_off_first(packet, &link, &mut pool) {
                split.push(pool.header(first).frame_bytes);
            }
            split.push(pool.header(packet).frame_bytes);
            assert_eq!(whole, split.iter().sum::<u32>());
            split
        };
        assert_eq!(bytes(14, 0, Cells::None), [1514, 1514, 166]);
        assert_eq!(bytes(18, 200, Cells::None), [1518, 1518, 200]);
        assert_eq!(bytes(40, 0, Cells::Atm), [1749, 1749, 212]);
        assert_eq!(bytes(30, 0, Cells::Ptm), [1554, 1554, 182 + 3]);
    }

    #[test]
    fn segments_follow_one_another_and_only_the_last_ends_the_data() {
        let mut pool = Pool::new();
        let packet = large(&mut pool);
        let mut seq = 1;
        for left in [2, 1] {
            let first = split_off_first(packet, &Encapsulation::adding(14), &mut pool).expect("there are several");
            let split = tcp(first, &pool);
            assert_eq!((split.segment.seq, split.segment.len, split.segment.flags), (seq, MSS_BYTES, Flags::ACK));
            assert_eq!((pool.header(first).frame_bytes, pool.header(first).load), (1514, Load::of(1)));
            assert_eq!(pool.header(packet).load.frames(), left);
            seq += u64::from(MSS_BYTES);
        }
        let last = tcp(packet, &pool);
        assert_eq!(
            (last.segment.seq, last.segment.len, last.segment.flags),
            (seq, 100, Flags::ACK | Flags::PSH | Flags::FIN)
        );
        assert_eq!(last.sent_len(), 2 * MSS_BYTES + 100, "the host is notified of all of it");
        assert_eq!(pool.header(packet).frame_bytes, 100 + HEADERS + 14);
        assert_eq!(split_off_first(packet, &Encapsulation::adding(14), &mut pool), None);
    }
}
