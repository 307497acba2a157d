//! Reno: grows by one packet per round trip, halves the window on congestion (RFC 5681, section 3.1; the kernel's
//! `tcp_cong.c`).

use crate::transport::congestion::Settings;
use crate::transport::congestion::{Ack, Context, Control, Window};

/// Reno keeps no state.
#[derive(Debug)]
pub(crate) struct Reno;

impl Control for Reno {
    fn new(_settings: &Settings) -> Self {
        Self
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        if context.cwnd_limited {
            window.grow_as_reno(ack.acked);
        }
    }

    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        window.half()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledge(window: &mut Window, acked: u32) {
        Reno.on_ack(window, &Context::EMPTY, &Ack::of(acked));
    }

    #[test]
    fn a_window_of_acknowledgements_adds_one_packet() {
        let mut window = Window { ssthresh: 10, ..Window::new(10) };
        // 10 packets at a window of 10, 11 at 11, 12 at 12; in ones and twos, as delayed acknowledgements come.
        for (acks, cwnd) in [(vec![2; 5], 11), (vec![1; 11], 12), (vec![2; 6], 13)] {
            acks.iter().for_each(|&acked| acknowledge(&mut window, acked));
            assert_eq!(window.cwnd, cwnd);
        }
    }

    #[test]
    fn a_window_that_is_not_used_up_does_not_grow() {
        let mut window = Window::new(10);
        Reno.on_ack(&mut window, &Context { cwnd_limited: false, ..Context::EMPTY }, &Ack::of(10));
        assert_eq!(window.cwnd, 10);
    }

    #[test]
    fn congestion_halves_the_threshold_but_not_below_two() {
        for (cwnd, ssthresh) in [(100, 50), (11, 5), (3, 2), (1, 2)] {
            assert_eq!(Reno.ssthresh(&mut Window::new(cwnd), &Context::EMPTY), ssthresh);
        }
    }

    #[test]
    fn undoing_brings_the_larger_window_back() {
        for (cwnd, prior_cwnd, undone) in [(10, 20, 20), (25, 20, 25)] {
            let mut window = Window { prior_cwnd, ..Window::new(cwnd) };
            assert_eq!(Reno.undo(&mut window, &Context::EMPTY), undone);
        }
    }
}
