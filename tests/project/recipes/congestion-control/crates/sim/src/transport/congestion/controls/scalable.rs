//! Scalable TCP (T. Kelly, *Scalable TCP: improving performance in highspeed wide area networks*, 2003), as in the
//! kernel's `tcp_scalable.c`: the window grows by a hundredth of a packet for each packet acknowledged, and shrinks by an
//! eighth on congestion. So the time between two losses does not depend on the rate of the path.

use crate::transport::congestion::Settings;
use crate::transport::congestion::{Ack, Context, Control, MIN_SSTHRESH_PACKETS, Window};

/// Packets acknowledged for each packet by which the window grows (`TCP_SCALABLE_AI_CNT`).
const PER_INCREMENT: u32 = 100;
/// The part of the window that a reduction takes, as a power of two (`TCP_SCALABLE_MD_SCALE`).
const REDUCTION_SHIFT: u32 = 3;

/// Scalable TCP keeps no state.
#[derive(Debug)]
pub(crate) struct Scalable;

impl Control for Scalable {
    fn new(_settings: &Settings) -> Self {
        Self
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        if !context.cwnd_limited {
            return;
        }
        let left = if window.in_slow_start() { window.slow_start(ack.acked) } else { ack.acked };
        if left > 0 {
            window.grow(window.cwnd.min(PER_INCREMENT), left);
        }
    }

    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        (window.cwnd - (window.cwnd >> REDUCTION_SHIFT)).max(MIN_SSTHRESH_PACKETS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window that is above its threshold, after this many packets were acknowledged one by one.
    fn grown(cwnd: u32, acked: u32) -> u32 {
        let mut window = Window { ssthresh: 2, ..Window::new(cwnd) };
        (0..acked).for_each(|_| Scalable.on_ack(&mut window, &Context::EMPTY, &Ack::of(1)));
        window.cwnd
    }

    #[test]
    fn a_hundred_acknowledged_packets_are_one_more_of_a_large_window() {
        assert_eq!([99, 100, 200, 1000].map(|acked| grown(500, acked)), [500, 501, 502, 510]);
    }

    /// Below 100 packets it is Reno: one more for each window, 50 packets at 50 and 51 at 51.
    #[test]
    fn a_small_window_grows_as_renos() {
        assert_eq!([49, 50, 100, 101].map(|acked| grown(50, acked)), [50, 51, 51, 52]);
    }

    #[test]
    fn a_window_that_is_not_used_up_does_not_grow() {
        let mut window = Window::new(10);
        Scalable.on_ack(&mut window, &Context { cwnd_limited: false, ..Context::EMPTY }, &Ack::of(10));
        assert_eq!(window.cwnd, 10);
    }

    /// An eighth less, in whole packets: 400 - 50, 15 - 1, 7 - 0.
    #[test]
    fn congestion_takes_an_eighth_of_the_window() {
        for (cwnd, ssthresh) in [(400, 350), (15, 14), (7, 7), (1, 2)] {
            assert_eq!(Scalable.ssthresh(&mut Window::new(cwnd), &Context::EMPTY), ssthresh);
        }
    }
}
