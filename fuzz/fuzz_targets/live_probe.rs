//! Feeds arbitrary packets to the readers of probes and of STUN, of the packets that ICMP errors quote, and of copies in error queues.
//!
//! What is read must be written again as it was, and no response is longer than its request.

#![no_main]

use bufferscope_live::server::web::rtc::reads_stun;
use bufferscope_live::udp::copied;
use bufferscope_live::wire::probe::{PACKET_BYTES, Packet, Quoted};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assert!(reads_stun(bytes).1.is_none_or(|length| length <= bytes.len()));
    let quoted = Quoted::parse(bytes);
    if let Some(packet) = Packet::parse(bytes) {
        assert_eq!(Packet::parse(&packet.bytes()), Some(packet));
        let quoted = quoted.expect("a whole packet is quoted");
        assert_eq!((quoted.session, quoted.seq, quoted.ttl), (packet.session, packet.seq, packet.ttl));
    }
    let last = bytes.len().checked_sub(PACKET_BYTES).map(|at| &bytes[at..]);
    assert_eq!(copied(bytes), last.and_then(Packet::parse));
});
