//! A window that never changes: no congestion control at all, but the ruler by which others are measured.
//!
//! With a window of W the path carries W / RTT as long as that is less than its rate R. Beyond, the queue takes the rest:
//! W - R * RTT of the path stand in it, and the delay grows by that over R. So a sweep of the window draws a path's throughput
//! against its delay (Gettys and Nichols, *Bufferbloat: dark buffers in the Internet*, 2011, figure 1).
//!
//! What is lost is repaired, but nothing is held back because of it, but for the retransmission timeout: the
//! sender then begins with one packet, and has its window back with the next acknowledgement. The peer's receive window limits as
//! it always does.

use super::super::sender::pacing;
use super::{Ack, Context, Control, Window};
use crate::tcp::Config;

/// Keeps to its window.
#[derive(Debug)]
pub(crate) struct FixedWindow {
    packets: u32,
}

impl Control for FixedWindow {
    const GOVERNS: bool = true;

    fn new(config: &Config) -> Self {
        Self { packets: config.window_packets.max(1) }
    }

    fn init(&mut self, window: &mut Window, context: &Context) {
        self.keep(window, context);
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, _ack: &Ack) {
        self.keep(window, context);
    }

    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        window.ssthresh
    }

    fn undo(&mut self, _window: &mut Window, _context: &Context) -> u32 {
        self.packets
    }
}

impl FixedWindow {
    fn keep(&self, window: &mut Window, context: &Context) {
        window.cwnd = self.packets;
        if context.paced {
            window.pacing_bytes_per_s = pacing::rate_of_window(window, context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_it_was_set_to_whatever_happens() {
        let mut control = FixedWindow::new(&Config { window_packets: 40, ..Config::DEFAULT });
        let mut window = Window::new(10);
        control.init(&mut window, &Context::EMPTY);
        assert_eq!(window.cwnd, 40);
        for ack in [Ack::of(40), Ack { lost: 20, ..Ack::of(1) }] {
            control.on_ack(&mut window, &Context::EMPTY, &ack);
            assert_eq!(window.cwnd, 40);
        }
        // A timeout leaves one packet until the next acknowledgement.
        window.cwnd = 1;
        control.on_ack(&mut window, &Context::EMPTY, &Ack::of(1));
        assert_eq!((window.cwnd, window.ssthresh), (40, u32::MAX));
        assert_eq!(control.ssthresh(&mut window, &Context::EMPTY), u32::MAX, "no threshold either");
    }
}
