//! LEDBAT (RFC 6817), for transfers that are not urgent. It aims at a queueing delay of `target`, at most 100 ms, and
//! therefore yields to flows that fill the queue further.
//!
//! The delay is that of one direction, from the timestamps that both hosts send anyway (RFC 7323): the peer's clock
//! when it acknowledges, minus ours when the packet left, in whole milliseconds. This follows the pseudo-code of
//! section 2.4.2 literally: there is no slow start, so the window grows by at most one packet per round trip.
//!
//! Departs: a loss halves the window packet by packet, as in all controls here. After a timeout, it is the sender and
//! not this file that restarts with one packet (section 2.4.2 asks for the same).

use crate::transport::congestion::Settings;
use crate::transport::congestion::helpers::queueing_delay::QueueingDelay;
use crate::transport::congestion::{Ack, Acked, Context, Control, Window};

/// Packets of the initial window (`INIT_CWND`), and the fewest (`MIN_CWND`; section 2.5).
const INIT_CWND: u32 = 2;
const MIN_CWND: u32 = 2;
/// The window may exceed what was outstanding by at most this much (`ALLOWED_INCREASE`; section 2.5).
const ALLOWED_INCREASE: u32 = 1;
const NS_PER_MS: i64 = 1_000_000;

/// The state of LEDBAT.
#[derive(Debug)]
pub(crate) struct Ledbat {
    target_ns: i64,
    delay: QueueingDelay,
    /// The peer's clock minus ours at the first measurement: the others are relative to it.
    origin_ms: Option<u32>,
    /// Fractions of packets by which the window is still to change, in packets * window * target.
    credit: i64,
}

impl Control for Ledbat {
    fn new(settings: &Settings) -> Self {
        Self {
            target_ns: i64::try_from(settings.target_ns).unwrap_or(i64::MAX).max(1),
            delay: QueueingDelay::new(),
            origin_ms: None,
            credit: 0,
        }
    }

    fn init(&mut self, window: &mut Window, _context: &Context) {
        window.cwnd = window.cwnd.min(INIT_CWND);
    }

    fn on_acked(&mut self, _window: &mut Window, context: &Context, acked: &Acked) {
        let Some(one_way_ms) = acked.one_way_ms else { return };
        // Clocks wrap, and the offset between two hosts' clocks is arbitrary.
        let origin_ms = *self.origin_ms.get_or_insert(one_way_ms);
        let delay_ms = one_way_ms.wrapping_sub(origin_ms) as i32;
        self.delay.add(context.now_ns, i64::from(delay_ms) * NS_PER_MS);
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        let Some(queueing_ns) = self.delay.now_ns(context.now_ns, context.srtt_ns.unwrap_or(0)) else { return };
        let change = self.change(window.cwnd, queueing_ns, ack.acked);
        let cwnd = (i64::from(window.cwnd) + change).clamp(1, i64::from(u32::MAX)) as u32;
        let outstanding = context.packets_out.saturating_add(ack.acked);
        window.cwnd = cwnd.min(outstanding.saturating_add(ALLOWED_INCREASE)).max(MIN_CWND);
    }

    /// Halves the window (section 2.4.2, "on data loss").
    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        window.half()
    }
}

impl Ledbat {
    /// Whole packets by which the window changes: (target - queueing delay) / target for every window acknowledged
    /// (section 2.4.2, with a GAIN of 1).
    fn change(&mut self, cwnd: u32, queueing_ns: u64, acked: u32) -> i64 {
        let off_target_ns = self.target_ns.saturating_sub(i64::try_from(queueing_ns).unwrap_or(i64::MAX));
        self.credit = self.credit.saturating_add(off_target_ns.saturating_mul(i64::from(acked)));
        let packet = self.target_ns.saturating_mul(i64::from(cwnd));
        let change = self.credit / packet;
        self.credit -= change * packet;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A connection with a window of 50 that has seen the path without a queue: 10 ms, by clocks that are far apart.
    fn ledbat(target_ms: u64) -> (Ledbat, Window) {
        let mut ledbat = Ledbat::new(&Settings { target_ns: target_ms * MS, ..Settings::DEFAULT });
        let mut window = Window::new(50);
        acknowledge(&mut ledbat, &mut window, 0, 0, 10);
        (ledbat, window)
    }

    /// An acknowledgement of `acked` packets whose newest took `one_way_ms`, with the window in full use.
    fn acknowledge(ledbat: &mut Ledbat, window: &mut Window, now_ms: u64, acked: u32, one_way_ms: u32) {
        let one_way_ms = Some(one_way_ms.wrapping_sub(1_000_000));
        let acked_then = Acked { packets: acked, rtt_ns: Some(20 * MS), one_way_ms, ce_packets: 0, predicted: false };
        let packets_out = window.cwnd - acked;
        let context = Context { now_ns: now_ms * MS, packets_out, srtt_ns: Some(20 * MS), ..Context::EMPTY };
        ledbat.on_acked(window, &context, &acked_then);
        if acked > 0 {
            ledbat.on_ack(window, &context, &Ack::of(acked));
        }
    }

    /// Windows of acknowledgements, packet by packet, all with this delay.
    fn rounds(ledbat: &mut Ledbat, window: &mut Window, count: u64, one_way_ms: u32) -> u32 {
        for round in 1..=count {
            for packet in 0..u64::from(window.cwnd) {
                acknowledge(ledbat, window, 1000 + 100 * round + packet, 1, one_way_ms);
            }
        }
        window.cwnd
    }

    #[test]
    fn the_window_grows_by_a_packet_a_round_trip_while_there_is_no_queue() {
        // off_target = (100 - 0) / 100 = 1.
        let (mut ledbat, mut window) = ledbat(100);
        assert!((59..=60).contains(&rounds(&mut ledbat, &mut window, 10, 10)), "{}", window.cwnd);
    }

    #[test]
    fn and_the_slower_the_closer_the_queue_is_to_the_target() {
        // 75 ms of queue: off_target = 25 / 100, so 10 rounds bring 2.5 packets. (The first delays still count the 10
        // ms.)
        let (mut ledbat, mut window) = ledbat(100);
        assert_eq!(rounds(&mut ledbat, &mut window, 10, 85), 52);
        // At the target, nothing changes.
        assert_eq!(rounds(&mut ledbat, &mut window, 10, 110), 52);
    }

    #[test]
    fn above_the_target_it_shrinks_as_much_as_it_is_too_long() {
        // 250 ms of queue: off_target = -1.5, so about 15 packets in 10 rounds.
        let (mut ledbat, mut window) = ledbat(100);
        let cwnd = rounds(&mut ledbat, &mut window, 10, 260);
        assert!((34..=36).contains(&cwnd), "{cwnd}");
        // Another target: 50 ms of queue is twice 25 ms, off_target = -1.
        let (mut ledbat, mut window) = super::tests::ledbat(25);
        let cwnd = rounds(&mut ledbat, &mut window, 10, 60);
        assert!((39..=41).contains(&cwnd), "{cwnd}");
    }

    #[test]
    fn never_below_two_packets() {
        let (mut ledbat, mut window) = ledbat(100);
        assert_eq!(rounds(&mut ledbat, &mut window, 100, 1010), 2);
    }

    #[test]
    fn at_most_one_packet_above_what_is_outstanding() {
        let (mut ledbat, mut window) = ledbat(100);
        // Two acknowledged, 20 left: 22 were outstanding.
        let context = Context { packets_out: 20, srtt_ns: Some(20 * MS), ..Context::EMPTY };
        ledbat.on_ack(&mut window, &context, &Ack::of(2));
        assert_eq!(window.cwnd, 23);
    }

    #[test]
    fn a_loss_halves_but_not_below_two() {
        let (mut ledbat, _) = ledbat(100);
        assert_eq!([50, 5, 2, 1].map(|cwnd| ledbat.ssthresh(&mut Window::new(cwnd), &Context::EMPTY)), [25, 2, 2, 2]);
    }

    #[test]
    fn the_first_window_is_two_packets() {
        let mut window = Window::new(10);
        Ledbat::new(&Settings::DEFAULT).init(&mut window, &Context::EMPTY);
        assert_eq!(window.cwnd, 2);
    }
}
