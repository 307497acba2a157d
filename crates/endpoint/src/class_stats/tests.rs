use proptest::prelude::*;

use super::*;
use crate::netlink::messages;
use crate::qdisc_stats::tests::{attribute, words};
use crate::qdisc_stats::{TCA_KIND, TCA_STATS_APP, TCA_STATS_QUEUE, TCA_STATS2};

/// Class 10:2a3 of an `fq_codel` with the handle 10:, in the layout that Linux 6.1 sends: `struct tcmsg`, the kind, and
/// the statistics with `struct tc_fq_codel_xstats`.
fn message(kind: &[u8], packets: u32, bytes: u32) -> Vec<u8> {
    let own = words(&[1, 1514_u32.wrapping_neg(), 4_811, 3, 1, 0, 0]);
    let stats =
        [attribute(TCA_STATS_QUEUE, &words(&[packets, bytes, 0, 0, 0])), attribute(TCA_STATS_APP, &own)].concat();
    [words(&[0, 3, 0x10_02a3, 0x10_0000, 0]), attribute(TCA_KIND, kind), attribute(TCA_STATS2, &stats)].concat()
}

#[test]
fn a_flow_queue_is_a_class_of_its_discipline() {
    let expected = FlowQueue { discipline: 0x10_0000, number: 0x2a3, packets: 14, bytes: 21_196 };
    assert_eq!(parse(&message(b"fq_codel\0", 14, 21_196)), Ok(Some(expected)));
}

#[test]
fn a_flow_queue_without_packets_is_left_out() {
    assert_eq!(parse(&message(b"fq_codel\0", 0, 0)), Ok(None));
}

#[test]
fn classes_that_are_no_flow_queues_are_left_out() {
    for kind in [&b"htb\0"[..], b"prio\0", b"tbf\0", b"unheard_of\0", b"fq_codel", b"\xff\0"] {
        assert_eq!(parse(&message(kind, 14, 21_196)), Ok(None), "{kind:?}");
    }
}

#[test]
fn a_flow_queue_without_statistics_is_refused() {
    let bare = [words(&[0, 3, 0x10_02a3, 0x10_0000, 0]), attribute(TCA_KIND, b"sfq\0")].concat();
    assert_eq!(parse(&bare), Err(Malformed("a flow queue has no statistics")));
}

#[test]
fn a_message_cut_anywhere_has_no_flow_queue() {
    let whole = message(b"fq_codel\0", 14, 21_196);
    for length in 0..whole.len() {
        assert!(!matches!(parse(&whole[..length]), Ok(Some(_))), "cut at {length} of {}", whole.len());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
        for message in messages(&bytes) {
            let _ = message.map(|message| parse(message.payload));
        }
    }

    #[test]
    fn a_flipped_byte_never_panics(at in 0_usize..200, value: u8) {
        let mut bytes = message(b"fq_codel\0", 14, 21_196);
        let at = at % bytes.len();
        bytes[at] = value;
        let _ = parse(&bytes);
    }
}
