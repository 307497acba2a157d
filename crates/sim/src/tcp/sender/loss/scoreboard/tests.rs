//! Tests of each of the scoreboard's marks.

use super::*;

/// Ten segments of 100 bytes from sequence number 1; id n starts at 1 + 100 n.
fn ten() -> Scoreboard {
    let mut board = Scoreboard::new(100, false);
    (0..10).for_each(|n| board.push(Sent::new(1 + 100 * n, 100, Flags::NONE, n, Note::default()), false));
    board
}

fn block(first: u64, last: u64) -> SackBlock {
    SackBlock { start: 1 + 100 * first, end: 101 + 100 * last }
}

fn sack(board: &mut Scoreboard, blocks: &[SackBlock]) -> Vec<u64> {
    let mut ids = vec![];
    board.sack(blocks, |sent| ids.push((sent.seq - 1) / 100));
    ids
}

#[test]
fn a_block_marks_each_segment_once() {
    let mut board = ten();
    assert_eq!(sack(&mut board, &[block(3, 4)]), [3, 4]);
    assert_eq!(sack(&mut board, &[block(3, 6)]), [5, 6]);
    assert_eq!(sack(&mut board, &[block(8, 8), block(3, 6)]), [8]);
    // The block grows at both ends and includes the other one; segments 2 and 7 are new.
    assert_eq!(sack(&mut board, &[block(2, 8)]), [2, 7]);
    assert_eq!((board.sacked(), board.in_flight()), (7, 3));
    assert_eq!(board.buffers(), 4, "0, 1, 2 to 8, 9");
    board.pop_acked(401);
    while board.pop_acked(501).is_some() {}
    assert_eq!(board.buffers(), 2, "5 to 8, 9");
}

#[test]
fn a_segment_covered_in_part_is_not_marked() {
    let mut board = ten();
    assert!(sack(&mut board, &[SackBlock { start: 150, end: 250 }]).is_empty());
}

#[test]
fn a_lost_segment_leaves_the_flight_until_it_is_sent_again() {
    let mut board = ten();
    board.mark_lost(2);
    board.mark_lost(5);
    assert_eq!((board.in_flight(), board.lost(), board.next_to_retransmit()), (8, 2, Some(2)));
    board.retransmit(2, 50, Note::default(), false, false);
    assert_eq!((board.in_flight(), board.lost(), board.next_to_retransmit()), (9, 2, Some(5)));
    board.retransmit(5, 51, Note::default(), false, false);
    assert_eq!((board.in_flight(), board.lost(), board.next_to_retransmit()), (10, 2, None));
    // The retransmission is lost too.
    board.mark_lost(2);
    assert_eq!((board.in_flight(), board.lost(), board.next_to_retransmit()), (9, 2, Some(2)));
    assert_eq!(board.lost_total(), 3);
}

#[test]
fn after_an_undo_a_retransmission_stays_in_flight_until_reported_as_a_duplicate() {
    let mut board = ten();
    board.mark_lost(2);
    board.mark_lost(3);
    board.retransmit(2, 50, Note::default(), false, false);
    board.unmark_losses();
    assert_eq!((board.lost(), board.in_flight(), board.next_to_retransmit()), (0, 11, None));
    sack(&mut board, &[block(2, 2)]);
    assert_eq!((board.sacked(), board.in_flight()), (1, 10));
    let mut reported = vec![];
    board.duplicate(block(1, 2), |sent| reported.push(sent.seq));
    assert_eq!((reported, board.in_flight()), (vec![201], 9));
}

#[test]
fn acknowledging_clears_every_mark() {
    let mut board = ten();
    sack(&mut board, &[block(4, 9)]);
    (0..4).for_each(|id| board.mark_lost(id));
    board.retransmit(0, 50, Note::default(), false, false);
    // 0 repaired, 1 to 3 lost, 4 to 9 sacked.
    assert_eq!((board.in_flight(), board.lost(), board.retransmitted()), (1, 4, 1));
    let popped = std::iter::from_fn(|| board.pop_acked(1001)).count();
    assert_eq!(popped, 10);
    assert_eq!((board.packets_out(), board.in_flight(), board.lost(), board.sacked()), (0, 0, 0, 0));
    assert_eq!(board.next_to_retransmit(), None);
}

#[test]
fn a_segment_in_flight_fits_a_cache_line() {
    assert_eq!(size_of::<Sent>(), 64);
}

#[test]
fn losses_are_reported_with_what_was_noted_when_the_segment_was_sent() {
    let mut board = Scoreboard::new(100, true);
    for n in 0..3 {
        let note = Note { in_flight: n + 1, ..Note::default() };
        board.push(Sent::new(1 + 100 * u64::from(n), 100, Flags::NONE, 0, note), false);
    }
    board.mark_lost(0);
    board.mark_lost(2);
    let lost: Vec<_> = board.take_losses().iter().map(|lost| (lost.tx_in_flight, lost.lost_since)).collect();
    assert_eq!(lost, [(1, 1), (3, 2)]);
    assert!(board.take_losses().is_empty());
}

#[test]
fn segments_of_uneven_length_are_found_too() {
    let mut board = Scoreboard::new(100, false);
    let mut seq = 1;
    for len in [100, 7, 1, 100, 33, 100] {
        board.push(Sent::new(seq, len, Flags::NONE, 0, Note::default()), false);
        seq += u64::from(len);
    }
    let mut lens = vec![];
    board.sack(&[SackBlock { start: 108, end: 342 }], |sent| lens.push(sent.len));
    assert_eq!(lens, [1, 100, 33, 100]);
}
