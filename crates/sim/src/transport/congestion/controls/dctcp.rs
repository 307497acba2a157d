//! DCTCP (RFC 8257; Alizadeh et al., *Data Center TCP*, SIGCOMM 2010), as implemented in the kernel's `tcp_dctcp.c`. It
//! is Reno, but marks reduce the window in proportion to their share.
//!
//! The receiver echoes for each packet whether it was marked ([`EcnUse::Exact`]). Both ends run this control, so they
//! agree on this echo unless the SYN had to be retransmitted, which then does not ask for ECN. Without ECN, the sender
//! falls back to Reno.
//!
//! Departs: an acknowledgement that ends a round counts towards that round, as in section 3.3 and kernels from 6.16 on;
//! older kernels count it towards the next one.

use crate::transport::congestion::helpers::rounds::ByteRounds;
use crate::transport::congestion::{Ack, Acked, Context, Control, EcnUse, Event, MIN_SSTHRESH_PACKETS, Window};
use crate::transport::congestion::{Settings, State};

/// Fractional bits of [`Dctcp::alpha`].
const ALPHA_SHIFT: u32 = 10;
/// 1 (`DCTCP_MAX_ALPHA`).
const ALPHA_MAX: u32 = 1 << ALPHA_SHIFT;
/// Weight of a round's share of marks: 1/16 (`dctcp_shift_g`; section 4.2: g).
const GAIN_SHIFT: u32 = 4;

/// The state of DCTCP.
#[derive(Debug)]
pub(crate) struct Dctcp {
    /// Share of packets that are marked, averaged over rounds, in 1/1024; 1 at first, so that the first mark halves
    /// (section 3.3: DCTCP.Alpha).
    alpha: u32,
    rounds: ByteRounds,
    /// Packets delivered, and those of them that were marked, when the round began.
    delivered: u64,
    delivered_ce: u64,
    /// The window before the last reduction (`loss_cwnd`).
    loss_cwnd: u32,
}

impl Control for Dctcp {
    const ECN: EcnUse = EcnUse::Exact;

    fn new(_settings: &Settings) -> Self {
        Self { alpha: ALPHA_MAX, rounds: ByteRounds::default(), delivered: 0, delivered_ce: 0, loss_cwnd: 0 }
    }

    fn init(&mut self, _window: &mut Window, context: &Context) {
        self.rounds.restart(context.sent_bytes);
        self.begin_round(context);
    }

    fn on_acked(&mut self, _window: &mut Window, context: &Context, _acked: &Acked) {
        if self.rounds.advance(context.acked_bytes, context.sent_bytes) {
            self.update_alpha(context);
            self.begin_round(context);
        }
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        if context.cwnd_limited {
            window.grow_as_reno(ack.acked);
        }
    }

    /// The window reduced by alpha / 2 of it (section 3.3: cwnd * (1 - alpha / 2)).
    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        self.loss_cwnd = window.cwnd;
        let cut = (u64::from(window.cwnd) * u64::from(self.alpha)) >> (ALPHA_SHIFT + 1);
        (window.cwnd - cut as u32).max(MIN_SSTHRESH_PACKETS)
    }

    fn undo(&mut self, window: &mut Window, _context: &Context) -> u32 {
        window.cwnd.max(self.loss_cwnd)
    }

    /// Losses halve the window, whatever the marks say (section 3.5).
    fn on_state(&mut self, window: &mut Window, context: &Context, state: State) {
        if state == State::Recovery && context.state != State::Recovery {
            self.react_to_loss(window);
        }
    }

    fn on_event(&mut self, window: &mut Window, _context: &Context, event: Event) {
        if event == Event::Timeout {
            self.react_to_loss(window);
        }
    }
}

impl Dctcp {
    fn begin_round(&mut self, context: &Context) {
        (self.delivered, self.delivered_ce) = (context.delivered, context.delivered_ce);
    }

    /// alpha = (1 - g) * alpha + g * (share of marked packets in the round) (section 3.3, `dctcp_update_alpha`).
    fn update_alpha(&mut self, context: &Context) {
        // The last sixteenth is too small to shrink by a sixteenth: it is dropped as a whole.
        let faded = if self.alpha >> GAIN_SHIFT == 0 { 0 } else { self.alpha - (self.alpha >> GAIN_SHIFT) };
        let (delivered, marked) = (context.delivered - self.delivered, context.delivered_ce - self.delivered_ce);
        let share = (marked << (ALPHA_SHIFT - GAIN_SHIFT)) / delivered.max(1);
        self.alpha = (u64::from(faded) + share).min(u64::from(ALPHA_MAX)) as u32;
    }

    /// `dctcp_react_to_loss`
    fn react_to_loss(&mut self, window: &mut Window) {
        self.loss_cwnd = window.cwnd;
        window.ssthresh = window.half();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip in which `delivered` packets arrive, `marked` of them with marks.
    fn round(dctcp: &mut Dctcp, context: &mut Context, delivered: u64, marked: u64) {
        context.acked_bytes = context.sent_bytes;
        context.sent_bytes += delivered * 1448;
        context.delivered += delivered;
        context.delivered_ce += marked;
        let acked = Acked {
            packets: delivered as u32,
            rtt_ns: None,
            one_way_ms: None,
            ce_packets: marked as u32,
            predicted: false,
        };
        dctcp.on_acked(&mut Window::new(10), context, &acked);
    }

    fn begun() -> (Dctcp, Context) {
        let (mut dctcp, context) = (Dctcp::new(&Settings::DEFAULT), Context::EMPTY);
        dctcp.init(&mut Window::new(10), &context);
        (dctcp, context)
    }

    fn ssthresh(dctcp: &mut Dctcp, cwnd: u32) -> u32 {
        dctcp.ssthresh(&mut Window::new(cwnd), &Context::EMPTY)
    }

    #[test]
    fn alpha_is_an_average_of_the_share_of_marks_that_forgets_a_sixteenth_each_round() {
        let (mut dctcp, mut context) = begun();
        // 1024 - 64 + 0 = 960; 960 - 60 = 900; then a quarter of 100 is marked: 900 - 56 + 25 * 64 / 100 = 860.
        let mut alphas = vec![];
        for marked in [0, 0, 25] {
            round(&mut dctcp, &mut context, 100, marked);
            alphas.push(dctcp.alpha);
        }
        assert_eq!(alphas, [960, 900, 860]);
    }

    #[test]
    fn alpha_settles_at_the_share_of_marks() {
        // With a share F of the packets marked, alpha = F: 1/4 is 256, give or take what rounding of the last sixteenth
        // loses.
        for (marked, settled) in [(25, 256), (50, 512), (100, 1024)] {
            let (mut dctcp, mut context) = begun();
            (0..200).for_each(|_| round(&mut dctcp, &mut context, 100, marked));
            assert!(dctcp.alpha.abs_diff(settled) <= 16, "{} for {settled}", dctcp.alpha);
        }
    }

    #[test]
    fn without_marks_alpha_vanishes() {
        let (mut dctcp, mut context) = begun();
        (0..100).for_each(|_| round(&mut dctcp, &mut context, 100, 0));
        assert_eq!(dctcp.alpha, 0);
        assert_eq!(ssthresh(&mut dctcp, 100), 100);
    }

    #[test]
    fn alpha_changes_once_a_round_trip() {
        let (mut dctcp, mut context) = begun();
        round(&mut dctcp, &mut context, 10, 0);
        let acked = Acked { packets: 1, rtt_ns: None, one_way_ms: None, ce_packets: 1, predicted: false };
        // The first byte of what was sent then is not acknowledged yet.
        context.acked_bytes = context.sent_bytes - 1;
        context.delivered += 1;
        context.delivered_ce += 1;
        dctcp.on_acked(&mut Window::new(10), &context, &acked);
        assert_eq!(dctcp.alpha, 960);
    }

    #[test]
    fn marks_cut_the_window_by_half_of_alpha() {
        let (mut dctcp, _) = begun();
        // alpha 1: 100 - 50. 1/4: 100 - 256 * 100 / 2048 = 100 - 12. 1/64: 100 - 16 * 100 / 2048 = 100 - 0.
        for (alpha, expected) in [(1024, 50), (256, 88), (16, 100)] {
            dctcp.alpha = alpha;
            assert_eq!(ssthresh(&mut dctcp, 100), expected);
        }
        dctcp.alpha = 1024;
        assert_eq!(ssthresh(&mut dctcp, 3), 2);
    }

    #[test]
    fn losses_halve_whatever_alpha_is() {
        let (mut dctcp, context) = begun();
        dctcp.alpha = 64;
        let mut window = Window { ssthresh: 97, ..Window::new(100) };
        dctcp.on_state(&mut window, &Context { state: State::Cwr, ..context }, State::Recovery);
        assert_eq!(window.ssthresh, 50);
        window.ssthresh = 97;
        dctcp.on_event(&mut window, &context, Event::Timeout);
        assert_eq!(window.ssthresh, 50);
        // Entering CWR leaves the window as marks made it.
        window.ssthresh = 97;
        dctcp.on_state(&mut window, &context, State::Cwr);
        assert_eq!(window.ssthresh, 97);
        assert_eq!(dctcp.undo(&mut Window::new(60), &context), 100);
    }
}
