//! A window that never changes. This is no congestion control at all, but a reference for the others.
//!
//! With a window of W, the path carries W / RTT as long as that is less than its rate R. With a larger window, W - R *
//! RTT waits in the path's queue, and the delay grows by that amount divided by R. So a sweep of the window plots a
//! path's throughput against its delay (Gettys and Nichols, *Bufferbloat: dark buffers in the Internet*, 2011, figure
//! 1).
//!
//! Lost segments are retransmitted, but losses do not reduce the window, with one exception: after a retransmission
//! timeout, the sender restarts with one packet, and the next acknowledgement restores the window. The peer's receive
//! window applies as always.

use crate::transport::congestion::Settings;
use crate::transport::congestion::rate_of_window;
use crate::transport::congestion::{Ack, Context, Control, Window};

/// Keeps its window.
#[derive(Debug)]
pub(crate) struct FixedWindow {
    packets: u32,
}

impl Control for FixedWindow {
    const GOVERNS: bool = true;

    fn new(settings: &Settings) -> Self {
        Self { packets: settings.window_packets.max(1) }
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
            window.pacing_bytes_per_s = rate_of_window(window, context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_it_was_set_to_whatever_happens() {
        let mut control = FixedWindow::new(&Settings { window_packets: 40, ..Settings::DEFAULT });
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
