//! Segmentation of packets that segmentation offload made large (the kernel's `skb_gso_segment`).
//!
//! Departs: with classic ECN, the kernel keeps CWR only in the first segment.

use super::packet::{Body, Load};
use super::pool::{PacketId, Pool};

/// Splits the first segment off a packet of several. Returns it as a packet of its own; `None` if only one is left.
///
/// The packet keeps its place in the sender's account of its own queue: the kernel, too, charges the last segment for
/// all (`tcp_gso_segment`).
pub(crate) fn split_off_first(packet: PacketId, overhead_bytes: u32, pool: &mut Pool) -> Option<PacketId> {
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
    header.frame_bytes = header.ip_bytes + overhead_bytes;
    header.load = Load::of(1);
    let first = pool.insert(header, Body::Tcp(first));
    let header = pool.header_mut(packet);
    header.ip_bytes = rest.segment.ip_bytes();
    header.frame_bytes = header.ip_bytes + overhead_bytes * rest.segment.frames();
    header.load = Load::of(rest.segment.frames());
    *pool.body_mut(packet) = Body::Tcp(rest);
    Some(first)
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::sizes::MSS_BYTES;

    use super::*;
    use crate::network::packet::{Header, Side, TcpPacket};
    use crate::network::segment::{Flags, SackBlocks, Segment};
    use crate::network::traffic_class::{Ecn, TrafficClass};

    const HEADERS: u32 = 52;

    fn tcp(id: PacketId, pool: &Pool) -> TcpPacket {
        match pool.body(id) {
            Body::Tcp(tcp) => *tcp,
            Body::Echo(_) | Body::Datagram(_) => unreachable!("it is a segment"),
        }
    }

    #[test]
    fn segments_follow_one_another_and_only_the_last_ends_the_data() {
        let flags = Flags::ACK | Flags::PSH | Flags::FIN;
        let len = 2 * MSS_BYTES + 100;
        let segment =
            Segment { seq: 1, ack: 9, len, window_bytes: 0, ts_val: 0, ts_ecr: 0, sack: SackBlocks::NONE, flags };
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
        let mut pool = Pool::new();
        let packet =
            pool.insert(header, Body::Tcp(TcpPacket { connection: 0, to: Side::Server, segments_before: 0, segment }));
        let mut seq = 1;
        for left in [2, 1] {
            let first = split_off_first(packet, 14, &mut pool).expect("there are several");
            let split = tcp(first, &pool);
            assert_eq!((split.segment.seq, split.segment.len, split.segment.flags), (seq, MSS_BYTES, Flags::ACK));
            assert_eq!((pool.header(first).frame_bytes, pool.header(first).load), (1514, Load::of(1)));
            assert_eq!(pool.header(packet).load.frames(), left);
            seq += u64::from(MSS_BYTES);
        }
        let last = tcp(packet, &pool);
        assert_eq!((last.segment.seq, last.segment.len, last.segment.flags), (seq, 100, flags));
        assert_eq!(last.sent_len(), len, "the host is told of all of it");
        assert_eq!(pool.header(packet).frame_bytes, 100 + HEADERS + 14);
        assert_eq!(split_off_first(packet, 14, &mut pool), None);
    }
}
