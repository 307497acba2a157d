//! Hand-made connections: the expected results follow from the times and sequence numbers of the segments.

use std::net::{IpAddr, Ipv4Addr};

use bufferscope_records::{MemorySink, Recorder, Table};
use proptest::prelude::*;

use super::{Analysis, FlowSummary, Kinds, Settings, Summary};
use crate::{Endpoint, Flags, Options, Segment};

const MS: i64 = 1_000_000;
const MSS: u32 = 1000;
/// A sender whose sequence numbers wrap after its third segment.
const ISN: u32 = u32::MAX - 2 * MSS;
const SENDER: Endpoint = Endpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), port: 40_000 };
const RECEIVER: Endpoint = Endpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), port: 80 };

/// A capture of one connection that is written segment by segment.
struct Capture {
    analysis: Analysis,
    recorder: Recorder<MemorySink>,
    ip_id: u16,
}

impl Capture {
    fn without_handshake() -> Self {
        let recorder = Recorder::new(MemorySink::default());
        Self { analysis: Analysis::new(Settings::default()), recorder, ip_id: 1 }
    }

    /// A handshake at time 0: windows are scaled by 7 bits, selective acknowledgements are permitted.
    fn opened() -> Self {
        let mut capture = Self::without_handshake();
        let options = Options { window_scale: Some(7), sack_permitted: true, mss: Some(1000), ..Options::default() };
        capture.show(Segment { flags: Flags(Flags::SYN), seq: ISN, options, ..data(0, 0, 0) });
        let flags = Flags(Flags::SYN | Flags::ACK);
        capture.show(Segment { flags, seq: 5000, ack: ISN.wrapping_add(1), options, ..ack(0, 0) });
        capture.show(Segment { payload_bytes: 0, ..data(0, 0, 0) });
        capture
    }

    fn show(&mut self, segment: Segment) {
        self.analysis.segment(&segment, 0, &mut self.recorder);
    }

    /// The sender's segment of number `from` and its successors, each of 1000 bytes and with its own IP identification.
    fn data(&mut self, t_ms: i64, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            let segment = data(t_ms, number, MSS);
            self.ip_id += 1;
            self.show(Segment { ip_id: Some(self.ip_id), ..segment });
        }
    }

    fn ack(&mut self, t_ms: i64, number: u32) {
        self.show(ack(t_ms, number));
    }

    /// An acknowledgement of all before `number`, and selectively of the segments between others.
    fn sack(&mut self, t_ms: i64, number: u32, blocks: &[(u32, u32)]) {
        let mut segment = ack(t_ms, number);
        for (slot, (left, right)) in segment.options.sack.iter_mut().zip(blocks) {
            *slot = (sequence(*left), sequence(*right));
        }
        segment.options.sack_blocks = blocks.len() as u8;
        self.show(segment);
    }

    fn finish(mut self) -> (Summary, MemorySink) {
        let summary = self.analysis.finish(&mut self.recorder);
        (summary, self.recorder.finish().unwrap())
    }

    fn flow(self) -> FlowSummary {
        let (mut summary, _) = self.finish();
        assert_eq!(summary.flows.len(), 1);
        summary.flows.remove(0)
    }

    fn kinds(self) -> Kinds {
        self.flow().retransmissions
    }

    /// The round trips in nanoseconds, after the two of the handshake.
    fn round_trips(self) -> Vec<i64> {
        let (_, sink) = self.finish();
        let found = integers(&sink, Table::RoundTrips, "rtt_ns");
        assert_eq!(found[..2], [Some(0); 2], "the handshake");
        found[2..].iter().copied().flatten().collect()
    }

    /// The round trips of one half by timestamps, in nanoseconds.
    fn echoes(self, half: &str) -> Vec<i64> {
        let (_, sink) = self.finish();
        let rtts = integers(&sink, Table::RoundTrips, "rtt_ns");
        let (halves, methods) = (names(&sink, "half"), names(&sink, "method"));
        let rows = rtts.into_iter().flatten().zip(halves).zip(methods);
        rows.filter(|((_, its), method)| its == half && method == "timestamp").map(|((rtt, _), _)| rtt).collect()
    }
}

fn integers(sink: &MemorySink, table: Table, column: &str) -> Vec<Option<i64>> {
    use arrow_array::{Array, Int64Array};
    let batches = sink.batches(table).iter();
    batches
        .flat_map(|batch| {
            let array = batch.column_by_name(column).unwrap();
            array.as_any().downcast_ref::<Int64Array>().unwrap().iter().collect::<Vec<_>>()
        })
        .collect()
}

/// The names in a column of the round trips.
fn names(sink: &MemorySink, column: &str) -> Vec<String> {
    use arrow_array::cast::AsArray;
    let batches = sink.batches(Table::RoundTrips).iter();
    batches
        .flat_map(|batch| {
            let array = batch.column_by_name(column).unwrap();
            array.as_string::<i32>().iter().map(|name| name.unwrap().to_owned()).collect::<Vec<_>>()
        })
        .collect()
}

/// The first sequence number of a segment; the first segment has number 0.
fn sequence(number: u32) -> u32 {
    ISN.wrapping_add(1).wrapping_add(number * MSS)
}

fn data(t_ms: i64, number: u32, payload_bytes: u32) -> Segment {
    Segment {
        t_ns: t_ms * MS,
        vantage_point: 0,
        file: 0,
        from: SENDER,
        to: RECEIVER,
        seq: sequence(number),
        ack: 5001,
        flags: Flags(Flags::ACK),
        window: 500,
        payload_bytes,
        ecn: 0,
        ip_id: None,
        ttl: 64,
        options: Options::default(),
    }
}

fn ack(t_ms: i64, number: u32) -> Segment {
    Segment { from: RECEIVER, to: SENDER, seq: 5001, ack: sequence(number), ..data(t_ms, 0, 0) }
}

fn stamped(segment: Segment, value: u32, echo: u32) -> Segment {
    Segment { options: Options { timestamps: Some((value, echo)), ..segment.options }, ..segment }
}

#[test]
fn an_acknowledgement_gives_the_round_trip_time_of_the_newest_segment_that_it_covers() {
    let mut capture = Capture::opened();
    capture.data(100, [0]);
    capture.data(110, [1]);
    capture.ack(140, 2);
    assert_eq!(capture.round_trips(), [30 * MS]);
}

#[test]
fn a_segment_sent_twice_yield_no_round_trip_time() {
    let mut capture = Capture::opened();
    capture.data(100, [0]);
    capture.data(400, [0]);
    capture.ack(440, 1);
    assert_eq!(capture.round_trips(), Vec::<i64>::new());
}

#[test]
fn segments_that_waited_for_a_retransmission_yield_no_round_trip_time() {
    let mut capture = Capture::opened();
    capture.data(100, [0, 1, 2]);
    // Segments 1 and 2 arrive 40 ms later, and are covered again, cumulatively, after the repair of 0.
    capture.sack(140, 0, &[(1, 3)]);
    capture.data(141, [0]);
    capture.ack(181, 3);
    assert_eq!(capture.round_trips(), [40 * MS]);
}

#[test]
fn the_first_echo_of_a_timestamp_gives_a_round_trip_time_of_either_half() {
    let mut capture = Capture::opened();
    capture.show(stamped(data(100, 0, MSS), 7, 1));
    capture.show(stamped(ack(140, 1), 50, 7));
    // A later echo of the same timestamp is ignored, and the sender answers the acknowledgement after 2 ms.
    capture.show(stamped(ack(141, 1), 60, 7));
    capture.show(stamped(data(142, 1, MSS), 9, 50));
    // By acknowledgement, by timestamp, and the other half.
    assert_eq!(capture.round_trips(), [40, 40, 2].map(|ms| ms * MS));
}

#[test]
fn a_handshake_shows_both_halves() {
    let mut capture = Capture::without_handshake();
    capture.show(Segment { flags: Flags(Flags::SYN), seq: ISN, ..data(0, 0, 0) });
    capture.show(Segment { flags: Flags(Flags::SYN | Flags::ACK), seq: 5000, ack: ISN.wrapping_add(1), ..ack(30, 0) });
    capture.show(data(40, 0, 0));
    capture.data(50, [0]);
    capture.ack(80, 1);
    let (_, sink) = capture.finish();
    assert_eq!(integers(&sink, Table::RoundTrips, "rtt_ns"), [30, 10, 30].map(|ms| Some(ms * MS)));
    assert_eq!(names(&sink, "half"), ["receiver", "sender", "receiver"]);
    // Between the ends, a round trip of the path is both halves together.
    assert_eq!(integers(&sink, Table::Flows, "min_rtt_ns").last(), Some(&Some(40 * MS)));
}

#[test]
fn a_syn_sent_twice_yield_no_round_trip_time() {
    let mut capture = Capture::without_handshake();
    for t_ms in [0, 1000] {
        capture.show(Segment { flags: Flags(Flags::SYN), seq: ISN, ..data(t_ms, 0, 0) });
    }
    capture.show(Segment {
        flags: Flags(Flags::SYN | Flags::ACK),
        seq: 5000,
        ack: ISN.wrapping_add(1),
        ..ack(1030, 0)
    });
    capture.data(1050, [0]);
    let (_, sink) = capture.finish();
    assert_eq!(integers(&sink, Table::RoundTrips, "rtt_ns"), []);
}

#[test]
fn a_timestamp_that_was_echoed_does_not_enter_again() {
    // The clock ticks every 10 ms, and the round trip takes 8 ms.
    let mut capture = Capture::opened();
    for number in 0..10 {
        let t_ms = 100 + 2 * i64::from(number);
        let value = (t_ms / 10) as u32;
        capture.show(stamped(data(t_ms, number, MSS), value, 1));
    }
    for number in 0..10 {
        let sent_ms = 100 + 2 * i64::from(number);
        capture.show(stamped(ack(sent_ms + 8, number + 1), 1, (sent_ms / 10) as u32));
    }
    assert_eq!(capture.echoes("receiver"), [8 * MS, 8 * MS]);
}

#[test]
fn interleaved_echoes_of_a_slow_clock_are_never_shorter_than_the_path() {
    for (tick_ms, rtt_ms) in [(1, 3), (4, 3), (10, 8), (10, 40), (500, 27)] {
        let mut capture = Capture::opened();
        let mut shown: Vec<(i64, Segment)> = Vec::new();
        for number in 0..600 {
            let t_ms = 1000 + 2 * i64::from(number);
            let value = (t_ms / tick_ms) as u32;
            shown.push((2 * t_ms, stamped(data(t_ms, number, MSS), value, 1)));
            shown.push((2 * (t_ms + rtt_ms) + 1, stamped(ack(t_ms + rtt_ms, number + 1), 1, value)));
        }
        shown.sort_by_key(|(order, _)| *order);
        for (_, segment) in shown {
            capture.show(segment);
        }
        let echoes = capture.echoes("receiver");
        let known = echoes.iter().all(|rtt| *rtt == rtt_ms * MS);
        assert!(known && !echoes.is_empty(), "a tick of {tick_ms} ms, round trips of {rtt_ms} ms: {echoes:?}");
    }
}

#[test]
fn the_first_timestamp_of_a_capture_shows_nothing_as_others_may_have_had_it() {
    let mut capture = Capture::without_handshake();
    capture.show(stamped(data(100, 0, MSS), 7, 1));
    capture.show(stamped(ack(105, 1), 1, 7));
    capture.show(stamped(data(110, 1, MSS), 8, 1));
    capture.show(stamped(ack(150, 2), 1, 8));
    assert_eq!(capture.echoes("receiver"), [40 * MS]);
}

#[test]
fn a_timestamp_after_a_gap_shows_nothing_as_a_lost_packet_may_have_had_it() {
    let mut capture = Capture::opened();
    capture.show(stamped(data(100, 0, MSS), 7, 1));
    capture.show(stamped(data(110, 2, MSS), 8, 1));
    capture.show(stamped(ack(140, 1), 1, 7));
    capture.show(stamped(ack(141, 3), 1, 8));
    assert_eq!(capture.echoes("receiver"), [40 * MS]);
}

#[test]
fn a_retransmission_with_the_timestamp_of_its_first_copy_shows_nothing() {
    for (value, echoes) in [(7, vec![]), (8, vec![40 * MS])] {
        let mut capture = Capture::opened();
        capture.show(stamped(data(100, 0, MSS), 7, 1));
        capture.show(stamped(data(400, 0, MSS), value, 1));
        capture.show(stamped(ack(440, 1), 1, value));
        assert_eq!(capture.echoes("receiver"), echoes);
    }
}

#[test]
fn new_data_after_a_pause_shows_the_application_and_not_the_path() {
    let mut capture = Capture::opened();
    // Near the receiver: 40 ms pass until an acknowledgement brings data; then the sender has nothing to send for 5 s.
    capture.show(stamped(ack(100, 0), 10, 1));
    capture.show(stamped(ack(101, 0), 11, 1));
    capture.show(stamped(data(140, 0, MSS), 900, 10));
    capture.show(stamped(data(141, 1, MSS), 901, 11));
    capture.show(stamped(ack(142, 2), 52, 901));
    capture.show(stamped(data(5142, 2, MSS), 5900, 52));
    assert_eq!(capture.echoes("sender"), [40 * MS, 40 * MS]);
}

#[test]
fn probes_of_a_closed_window_are_no_retransmissions() {
    let shut = |t_ms, number| Segment { window: 0, ..ack(t_ms, number) };
    // As BSD sends them: the first byte beyond the window, repeatedly, until the whole segment is sent.
    let mut capture = Capture::opened();
    capture.data(100, [0]);
    capture.show(shut(140, 1));
    for t_ms in [1000, 2000, 4000] {
        capture.show(Segment { payload_bytes: 1, ..data(t_ms, 1, 0) });
        capture.show(shut(t_ms + 40, 1));
    }
    capture.ack(5000, 1);
    capture.data(5001, [1]);
    capture.ack(5041, 2);
    let flow = capture.flow();
    assert_eq!((flow.retransmissions, flow.window_probes, flow.reordered), (Kinds::default(), 3, 0));
    assert_eq!((flow.delivered_bytes, flow.unseen_bytes), (Some(2 * u64::from(MSS)), 0));
    // As Linux sends them: no byte, just before the next expected one; or data that was dropped when the window closed.
    let mut capture = Capture::opened();
    capture.data(100, [0, 1]);
    capture.show(shut(140, 1));
    capture.data(600, [1]);
    capture.show(shut(640, 1));
    capture.ack(700, 2);
    capture.show(shut(701, 2));
    capture.show(Segment { seq: sequence(2).wrapping_sub(1), ..data(1400, 2, 0) });
    let flow = capture.flow();
    assert_eq!((flow.retransmissions, flow.window_probes, flow.keep_alives), (Kinds::default(), 2, 0));
}

#[test]
fn a_loss_while_the_window_is_closed_is_a_retransmission_if_others_are_reported() {
    let mut capture = Capture::opened();
    capture.data(100, 0..3);
    capture.sack(140, 0, &[(1, 3)]);
    capture.show(Segment { window: 0, ..ack(141, 0) });
    capture.data(142, [0]);
    assert_eq!(capture.kinds(), Kinds { fast: 1, ..Kinds::default() });
}

#[test]
fn a_keep_alive_is_known_without_acknowledgements_by_its_silence() {
    let mut capture = Capture::without_handshake();
    capture.data(100, [0]);
    let last = Segment { seq: sequence(1).wrapping_sub(1), payload_bytes: 1, ..data(10_000, 0, 0) };
    capture.show(last);
    let flow = capture.flow();
    assert_eq!((flow.keep_alives, flow.retransmissions), (1, Kinds::default()));
}

#[test]
fn what_the_capture_never_saw_is_no_goodput() {
    // Lost by the capture before and after the first acknowledgement.
    let mut capture = Capture::opened();
    capture.data(100, [0, 2]);
    capture.ack(140, 3);
    capture.ack(141, 4);
    assert_eq!(capture.flow().delivered_bytes, Some(2 * u64::from(MSS)));
    let mut capture = Capture::without_handshake();
    capture.data(100, [0]);
    capture.ack(140, 900);
    let flow = capture.flow();
    assert_eq!((flow.delivered_bytes, flow.unseen_bytes), (Some(u64::from(MSS)), 899 * u64::from(MSS)));
}

#[test]
fn what_was_in_flight_when_the_capture_began_is_no_goodput() {
    let mut capture = Capture::without_handshake();
    capture.ack(100, 0);
    capture.data(101, [50, 51]);
    capture.ack(130, 50);
    capture.ack(141, 52);
    let flow = capture.flow();
    assert_eq!((flow.delivered_bytes, flow.unseen_bytes), (Some(2 * u64::from(MSS)), 0));
}

#[test]
fn what_is_sent_again_after_selective_acknowledgements_is_a_fast_retransmission() {
    let mut capture = Capture::opened();
    capture.data(100, 0..5);
    capture.sack(140, 0, &[(1, 5)]);
    capture.data(141, [0]);
    capture.ack(181, 5);
    assert_eq!(capture.kinds(), Kinds { fast: 1, ..Kinds::default() });
}

#[test]
fn what_is_sent_again_after_a_silence_is_a_timeout_and_so_is_what_follows_from_it() {
    let mut capture = Capture::opened();
    capture.data(100, 0..4);
    capture.data(400, [0]);
    capture.ack(440, 1);
    capture.data(441, [1, 2]);
    capture.ack(481, 3);
    assert_eq!(capture.kinds(), Kinds { timeout: 3, ..Kinds::default() });
}

#[test]
fn the_last_segment_sent_again_alone_is_a_tail_loss_probe() {
    let mut capture = Capture::opened();
    capture.data(100, 0..4);
    capture.ack(140, 2);
    capture.data(240, [3]);
    capture.sack(280, 2, &[(3, 4)]);
    assert_eq!(capture.kinds(), Kinds { tail_loss_probe: 1, ..Kinds::default() });
}

#[test]
fn a_report_of_a_duplicate_shows_that_a_retransmission_was_spurious() {
    let mut capture = Capture::opened();
    capture.data(100, 0..4);
    capture.sack(140, 0, &[(1, 4)]);
    capture.data(141, [0]);
    capture.ack(142, 4);
    // The copy arrives: the first block is below the acknowledgement (RFC 2883, section 4).
    capture.sack(181, 4, &[(0, 1)]);
    assert_eq!(capture.kinds(), Kinds { fast: 1, spurious: 1, ..Kinds::default() });
}

#[test]
fn the_echo_of_an_earlier_timestamp_shows_that_a_retransmission_was_spurious() {
    for (echo, spurious) in [(10, 1), (310, 0)] {
        let mut capture = Capture::opened();
        capture.show(stamped(data(100, 0, MSS), 10, 1));
        capture.show(stamped(data(101, 1, MSS), 11, 1));
        capture.show(stamped(data(400, 0, MSS), 310, 1));
        capture.show(stamped(ack(440, 1), 1, echo));
        assert_eq!(capture.kinds(), Kinds { timeout: 1, spurious, ..Kinds::default() }, "echo {echo}");
    }
}

#[test]
fn a_hole_filled_by_an_earlier_packet_was_reordered_and_by_a_later_one_repaired() {
    for (ip_id, kinds, reordered) in [(10, Kinds::default(), 1), (14, Kinds { late: 1, ..Kinds::default() }, 0)] {
        let mut capture = Capture::opened();
        let with = |ip_id, segment| Segment { ip_id: Some(ip_id), ..segment };
        capture.show(with(9, data(100, 0, MSS)));
        capture.show(with(11, data(100, 2, MSS)));
        capture.show(with(12, data(100, 3, MSS)));
        capture.show(with(ip_id, data(150, 1, MSS)));
        capture.ack(150, 4);
        let flow = capture.flow();
        assert_eq!((flow.retransmissions, flow.reordered, flow.unseen_bytes), (kinds, reordered, 0));
    }
}

#[test]
fn a_packet_captured_twice_is_not_a_retransmission() {
    let mut capture = Capture::opened();
    capture.data(100, [0]);
    capture.ip_id -= 1;
    capture.data(100, [0]);
    let flow = capture.flow();
    assert_eq!((flow.duplicates, flow.retransmissions), (1, Kinds::default()));
}

#[test]
fn a_keep_alive_is_not_a_retransmission() {
    let mut capture = Capture::opened();
    capture.data(100, [0]);
    capture.ack(140, 1);
    let last = Segment { seq: sequence(1).wrapping_sub(1), payload_bytes: 1, ..data(10_000, 0, 0) };
    capture.show(last);
    let flow = capture.flow();
    assert_eq!((flow.keep_alives, flow.retransmissions), (1, Kinds::default()));
}

#[test]
fn a_retransmitted_syn_is_reported() {
    let mut capture = Capture::without_handshake();
    for t_ms in [0, 1000] {
        capture.show(Segment { flags: Flags(Flags::SYN), seq: ISN, ..data(t_ms, 0, 0) });
    }
    capture.data(1100, [0]);
    assert_eq!(capture.kinds(), Kinds { syn: 1, ..Kinds::default() });
}

#[test]
fn what_is_acknowledged_and_was_never_seen_was_lost_by_the_capture() {
    let mut capture = Capture::opened();
    capture.data(100, [0, 2]);
    capture.ack(140, 3);
    // The last segment is missing, too.
    capture.ack(141, 4);
    let flow = capture.flow();
    assert_eq!((flow.unseen_bytes, flow.retransmissions), (2 * u64::from(MSS), Kinds::default()));
}

#[test]
fn flight_window_and_goodput_are_sampled_every_ten_milliseconds() {
    let mut capture = Capture::opened();
    capture.data(100, 0..5);
    capture.sack(112, 2, &[(3, 4)]);
    capture.data(121, [5]);
    let (_, sink) = capture.finish();
    let of = |column| integers(&sink, Table::Flows, column);
    assert_eq!(of("t_ns"), [110, 120, 121].map(|ms| Some(ms * MS)));
    // Five segments; of these two acknowledged and one selectively; then one more.
    assert_eq!(of("inflight_bytes"), [Some(5000), Some(2000), Some(3000)]);
    assert_eq!(of("delivered_bytes"), [Some(0), Some(2000), Some(2000)]);
    // A SYN's window is not scaled; then 500 units of 2^7 bytes.
    assert_eq!(of("rwnd_bytes"), [Some(500), Some(64_000), Some(64_000)]);
}

#[test]
fn a_window_of_unknown_scale_is_not_reported() {
    let mut capture = Capture::without_handshake();
    capture.data(100, 0..2);
    capture.ack(140, 2);
    let (summary, sink) = capture.finish();
    assert!(!summary.flows[0].window_scale_known);
    assert_eq!(integers(&sink, Table::Flows, "rwnd_bytes").last(), Some(&None));
}

#[test]
fn the_window_of_a_sender_without_other_limits_is_its_largest_flight() {
    let mut capture = Capture::opened();
    capture.data(100, 0..4);
    capture.ack(140, 2);
    capture.data(141, 4..8);
    capture.ack(180, 6);
    capture.data(191, 8..10);
    // The second round ends at 180 ms: six segments were in flight at 141 ms.
    let (_, sink) = capture.finish();
    assert_eq!(integers(&sink, Table::Flows, "cwnd_bytes").last(), Some(&Some(6000)));
}

#[test]
fn a_sender_that_ran_out_of_data_shows_no_congestion_window() {
    let mut capture = Capture::opened();
    capture.data(100, 0..4);
    capture.ack(140, 4);
    capture.data(200, 4..6);
    capture.ack(240, 6);
    let (_, sink) = capture.finish();
    assert_eq!(integers(&sink, Table::Flows, "cwnd_bytes").last(), Some(&None));
}

#[test]
fn parts_of_a_jumbo_segment_are_lost_and_repaired_one_by_one() {
    let mut capture = Capture::opened();
    capture.data(100, [0]);
    capture.show(data(100, 1, 10 * MSS));
    capture.sack(140, 3, &[(4, 11)]);
    capture.data(141, [3]);
    capture.ack(180, 11);
    let flow = capture.flow();
    assert_eq!((flow.jumbos, flow.retransmissions.fast, flow.delivered_bytes), (1, 1, Some(11_000)));
}

#[test]
fn ports_used_again_belong_to_another_connection() {
    let mut capture = Capture::opened();
    capture.data(100, [0]);
    capture.ack(140, 1);
    capture.show(Segment { flags: Flags(Flags::RST), ..ack(150, 1) });
    let syn = Segment { flags: Flags(Flags::SYN), seq: 77, ..data(200, 0, 0) };
    capture.show(syn);
    capture.show(Segment { seq: 78, payload_bytes: 500, ..data(210, 0, 0) });
    capture.show(Segment { ack: 578, ..ack(250, 0) });
    let (summary, _) = capture.finish();
    let found: Vec<_> = summary.flows.iter().map(|flow| (flow.name.as_str(), flow.delivered_bytes)).collect();
    assert_eq!(found, [("tcp/1", Some(1000)), ("tcp/2", Some(500))]);
}

#[test]
fn of_two_vantage_points_the_one_nearest_the_sender_is_used() {
    let mut capture = Capture::opened();
    let far = |segment: Segment| Segment { vantage_point: 1, file: 1, ttl: 60, ..segment };
    capture.show(data(100, 0, MSS));
    capture.show(far(data(120, 0, MSS)));
    capture.show(Segment { vantage_point: 1, file: 1, ttl: 64, ..ack(121, 1) });
    capture.show(Segment { ttl: 60, ..ack(141, 1) });
    let (summary, sink) = capture.finish();
    assert_eq!((summary.flows[0].vantage_point, summary.flows[0].other_vantage_points.as_slice()), (0, [1].as_slice()));
    assert_eq!(integers(&sink, Table::RoundTrips, "rtt_ns"), [Some(0), Some(0), Some(41 * MS)]);
}

#[test]
fn two_interfaces_of_one_file_that_see_a_direction_each_are_one_vantage_point() {
    let mut capture = Capture::without_handshake();
    capture.show(data(100, 0, MSS));
    capture.show(Segment { vantage_point: 1, ..ack(141, 1) });
    capture.show(data(150, 1, MSS));
    capture.show(Segment { vantage_point: 1, ..ack(191, 2) });
    let (summary, sink) = capture.finish();
    assert!(summary.flows[0].both_directions);
    assert!(summary.flows[0].other_vantage_points.is_empty());
    assert_eq!(integers(&sink, Table::RoundTrips, "rtt_ns"), [Some(41 * MS), Some(41 * MS)]);
}

#[test]
fn interfaces_at_both_ends_find_their_partners() {
    // On the way the packet passes 0 and then 1; its acknowledgement passes 2 and then 3.
    let mut capture = Capture::without_handshake();
    for (number, t_ms) in [(0, 100), (1, 200)] {
        capture.show(data(t_ms, number, MSS));
        capture.show(Segment { vantage_point: 1, ttl: 60, ..data(t_ms + 20, number, MSS) });
        capture.show(Segment { vantage_point: 2, ..ack(t_ms + 21, number + 1) });
        capture.show(Segment { vantage_point: 3, ttl: 60, ..ack(t_ms + 41, number + 1) });
    }
    let (summary, sink) = capture.finish();
    assert_eq!((summary.flows[0].vantage_point, summary.flows[0].other_vantage_points.as_slice()), (0, [1].as_slice()));
    assert_eq!(integers(&sink, Table::RoundTrips, "rtt_ns"), [Some(41 * MS), Some(41 * MS)]);
}

#[test]
fn directions_in_different_files_are_not_put_together() {
    let mut capture = Capture::without_handshake();
    capture.show(data(100, 0, MSS));
    capture.show(Segment { vantage_point: 1, file: 1, ..ack(141, 1) });
    let (summary, sink) = capture.finish();
    assert!(!summary.flows[0].both_directions);
    assert_eq!(integers(&sink, Table::RoundTrips, "rtt_ns"), []);
}

#[test]
fn an_interface_that_shows_both_directions_after_all_is_separate() {
    let mut capture = Capture::without_handshake();
    capture.show(data(100, 0, MSS));
    capture.show(Segment { vantage_point: 1, ..ack(121, 1) });
    for number in [1, 2] {
        let t_ms = 100 + 100 * i64::from(number);
        capture.show(data(t_ms, number, MSS));
        capture.show(Segment { vantage_point: 1, ttl: 60, ..data(t_ms + 20, number, MSS) });
        capture.show(Segment { vantage_point: 1, ..ack(t_ms + 21, number + 1) });
        capture.show(ack(t_ms + 41, number + 1));
    }
    let (summary, sink) = capture.finish();
    assert_eq!((summary.flows[0].vantage_point, summary.flows[0].other_vantage_points.as_slice()), (0, [1].as_slice()));
    assert_eq!(integers(&sink, Table::RoundTrips, "rtt_ns"), [21, 41, 41].map(|ms| Some(ms * MS)));
}

#[test]
fn the_change_of_a_one_way_delay_needs_no_common_clock() {
    let mut capture = Capture::opened();
    let far = |segment: Segment| Segment { vantage_point: 1, file: 1, ttl: 60, ..segment };
    // The second vantage point's clock is an hour ahead. The delay is 20, 25 and 21 ms; one packet is lost between the
    // vantage points.
    for (number, delay_ms) in [(0, Some(20)), (1, Some(25)), (2, None), (3, Some(21))] {
        let t_ms = 100 + 10 * i64::from(number);
        capture.show(data(t_ms, number, MSS));
        if number == 0 {
            capture.show(far(Segment { seq: 1, ..data(t_ms + 3_600_000, 0, 0) }));
            capture.show(data(t_ms, number, MSS));
        }
        if let Some(delay_ms) = delay_ms {
            capture.show(far(data(t_ms + delay_ms + 3_600_000, number, MSS)));
        }
    }
    let (_, sink) = capture.finish();
    assert_eq!(integers(&sink, Table::OneWay, "change_ns"), [0, 5, 1].map(|ms| Some(ms * MS)));
}

#[test]
fn a_clock_that_runs_faster_is_found_and_taken_out() {
    let mut capture = Capture::opened();
    let far = |segment: Segment| Segment { vantage_point: 1, file: 1, ttl: 60, ..segment };
    // The second vantage point's clock gains 100 parts per million: 6 ms in the minute of the capture.
    let its_clock = |t_ns: i64| t_ns + t_ns / 10_000;
    let mut shown = Vec::new();
    for number in 0..600 {
        let sent_ns = (100 + 100 * i64::from(number)) * MS;
        let delay_ns = 20 * MS + i64::from(number % 20) * MS;
        let answered_ns = sent_ns + delay_ns + MS;
        let sent = Segment { t_ns: sent_ns, ..data(0, number, MSS) };
        let answer = Segment { t_ns: answered_ns, ..ack(0, number + 1) };
        shown.extend([
            sent,
            far(Segment { t_ns: its_clock(sent_ns + delay_ns), ..sent }),
            Segment { ttl: 128, ..far(Segment { t_ns: its_clock(answered_ns), ..answer }) },
            Segment { t_ns: answered_ns + 20 * MS, ttl: 60, ..answer },
        ]);
    }
    shown.sort_by_key(|segment| segment.t_ns);
    for segment in shown {
        capture.show(segment);
    }
    let (summary, sink) = capture.finish();
    let ppm = summary.flows[0].clock_skew.unwrap() * 1e6;
    assert!((ppm - 100.0).abs() < 0.1, "{ppm}");
    let largest = integers(&sink, Table::OneWay, "change_ns").into_iter().flatten().max().unwrap();
    assert!((largest - 19 * MS).abs() < 10_000, "{largest}");
}

#[test]
fn connections_beyond_the_most_are_counted() {
    let mut capture = Capture::without_handshake();
    capture.analysis = Analysis::new(Settings { most_connections: 2, ..Settings::default() });
    for port in 1..=5 {
        capture.show(Segment { from: Endpoint { port, ..SENDER }, ..data(100, 0, MSS) });
    }
    let (summary, _) = capture.finish();
    assert_eq!((summary.flows_recorded, summary.segments_left_out), (2, 3));
}

/// A handshake whose SYN carries 600 bytes (RFC 7413), and an answer after 40 ms that accepts some of them.
fn fast_open(accepted: u32) -> Capture {
    let mut capture = Capture::without_handshake();
    capture.show(Segment { flags: Flags(Flags::SYN), seq: ISN, payload_bytes: 600, ..data(0, 0, 0) });
    let flags = Flags(Flags::SYN | Flags::ACK);
    capture.show(Segment { flags, seq: 5000, ack: sequence(0).wrapping_add(accepted), ..ack(40, 0) });
    capture
}

#[test]
fn data_of_a_syn_is_data() {
    let (summary, sink) = fast_open(600).finish();
    let flow = &summary.flows[0];
    assert_eq!((flow.delivered_bytes, flow.unseen_bytes), (Some(600), 0));
    assert_eq!(integers(&sink, Table::RoundTrips, "rtt_ns"), [Some(40 * MS)]);
}

#[test]
fn data_of_a_syn_that_was_not_accepted_is_not_sent_again_after_the_handshake() {
    let mut capture = fast_open(0);
    capture.show(data(40, 0, 600));
    capture.show(Segment { ack: sequence(0).wrapping_add(600), ..ack(80, 0) });
    let (summary, sink) = capture.finish();
    let flow = &summary.flows[0];
    assert_eq!((flow.delivered_bytes, flow.unseen_bytes), (Some(600), 0));
    assert_eq!(flow.retransmissions, Kinds::default());
    let rtts = integers(&sink, Table::RoundTrips, "rtt_ns");
    assert_eq!(rtts.iter().filter(|rtt| **rtt == Some(40 * MS)).count(), 2);
}

#[test]
fn an_acknowledgement_of_nonsense_is_ignored() {
    let mut capture = Capture::opened();
    capture.data(100, [0]);
    capture.show(Segment { ack: sequence(0).wrapping_add(1 << 31), ..ack(120, 0) });
    capture.sack(130, 0, &[(1_000_000, 5), (7, 7)]);
    capture.ack(140, 1);
    let flow = capture.flow();
    assert_eq!((flow.delivered_bytes, flow.unseen_bytes), (Some(1000), 0));
}

fn any_segment() -> impl Strategy<Value = Segment> {
    let numbers =
        (any::<i64>(), 0_u16..6, prop_oneof![0_u32..5000, any::<u32>()], prop_oneof![0_u32..5000, any::<u32>()]);
    let rest = (any::<u16>(), any::<u16>(), prop_oneof![0_u32..3000, 0_u32..100_000], any::<bool>(), 0_u16..3);
    let options =
        (any::<[(u32, u32); 4]>(), 0_u8..6, any::<Option<(u32, u32)>>(), any::<Option<u8>>(), any::<Option<u16>>());
    (numbers, rest, options).prop_map(
        |((t_ns, vantage_point, seq, ack), (flags, window, payload_bytes, back, port), options)| {
            let (sack, sack_blocks, timestamps, window_scale, ip_id) = options;
            let sender = Endpoint { port, ..SENDER };
            let (from, to) = if back { (RECEIVER, sender) } else { (sender, RECEIVER) };
            let options = Options { sack, sack_blocks, timestamps, window_scale, ..Options::default() };
            let flags = Flags(flags);
            Segment {
                t_ns,
                vantage_point,
                from,
                to,
                seq,
                ack,
                flags,
                window,
                payload_bytes,
                ecn: 3,
                ip_id,
                ttl: 9,
                options,
                file: vantage_point % 2,
            }
        },
    )
}

proptest! {
    #[test]
    fn no_segments_make_it_panic(segments in proptest::collection::vec(any_segment(), 0..200)) {
        let mut capture = Capture::without_handshake();
        for segment in segments {
            capture.show(segment);
        }
        let (summary, _) = capture.finish();
        prop_assert!(summary.flows.len() as u64 == summary.flows_recorded);
    }

    /// A lossless transfer in pieces of any size, acknowledged at any of their boundaries.
    #[test]
    fn without_losses_nothing_is_sent_again_and_all_is_delivered(pieces in proptest::collection::vec((1_u32..3000, any::<bool>()), 1..300)) {
        let mut capture = Capture::opened();
        let mut sent = 0_u32;
        for (index, (bytes, is_acknowledged)) in pieces.iter().enumerate() {
            let t_ms = index as i64;
            capture.show(Segment { seq: sequence(0).wrapping_add(sent), payload_bytes: *bytes, ..data(t_ms, 0, 0) });
            sent += bytes;
            if *is_acknowledged {
                capture.show(Segment { ack: sequence(0).wrapping_add(sent), ..ack(t_ms, 0) });
            }
        }
        capture.show(Segment { ack: sequence(0).wrapping_add(sent), ..ack(1000, 0) });
        let flow = capture.flow();
        prop_assert_eq!(flow.delivered_bytes, Some(u64::from(sent)));
        prop_assert_eq!((flow.retransmissions, flow.unseen_bytes, flow.reordered), (Kinds::default(), 0, 0));
    }
}
