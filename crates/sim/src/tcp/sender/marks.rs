//! The sender's part of ECN: reads what acknowledgements report about marked packets, and chooses the codepoint of
//! packets to send (RFC 3168, section 6.1.2; RFC 9768, section 3.2.2.5 and appendix A.2).

use super::super::ecn::Mode;
use super::super::receiver::ecn::FIRST_COUNT;
use crate::network::segment::Flags;
use crate::network::traffic_class::Ecn;

/// Largest count that the three bits of accurate ECN can express.
const COUNT_MASK: u32 = 7;

/// State of the sender's part.
#[derive(Debug)]
pub(crate) struct Marks {
    mode: Mode,
    /// Codepoints of new data and of everything else.
    codepoints: (Ecn, Ecn),
    /// The next new segment carries CWR: the window was reduced.
    cwr_due: bool,
    /// Marked packets that the peer has reported, by its own count (accurate).
    count: u32,
}

impl Marks {
    /// Before the handshake nothing is agreed on.
    pub(crate) fn new() -> Self {
        Self { mode: Mode::Off, codepoints: (Ecn::NotEct, Ecn::NotEct), cwr_due: false, count: FIRST_COUNT.into() }
    }

    /// Both ends agreed on `mode`; packets are sent with `codepoints`.
    pub(crate) fn establish(&mut self, mode: Mode, codepoints: (Ecn, Ecn)) {
        self.mode = mode;
        if mode != Mode::Off {
            self.codepoints = codepoints;
        }
    }

    /// How many of `delivered` packets were marked, according to the flags of an acknowledgement.
    #[inline]
    pub(crate) fn ce_delta(&mut self, flags: Flags, delivered: u32) -> u32 {
        match self.mode {
            Mode::Off => 0,
            Mode::Classic | Mode::Exact => u32::from(flags.ece()) * delivered,
            Mode::Accurate => self.ace_delta(flags.ace().into(), delivered),
        }
    }

    /// If an acknowledgement covers more packets than the count can distinguish, the count may have wrapped. It is then
    /// assumed to have wrapped as often as possible (`tcp_accecn_process`).
    fn ace_delta(&mut self, ace: u32, delivered: u32) -> u32 {
        if delivered == 0 {
            return 0;
        }
        let least = ace.wrapping_sub(self.count) & COUNT_MASK;
        let marked = if delivered <= COUNT_MASK { least } else { delivered - ((delivered - least) & COUNT_MASK) };
        self.count = self.count.wrapping_add(marked);
        marked
    }

    /// Whether an acknowledgement with these flags echoes congestion. `marked` packets are newly reported as marked.
    #[inline]
    pub(crate) fn echoes(&self, flags: Flags, marked: u32) -> bool {
        match self.mode {
            Mode::Off => false,
            Mode::Classic | Mode::Exact => flags.ece(),
            Mode::Accurate => marked > 0,
        }
    }

    /// The window was reduced, and the peer must be notified.
    pub(crate) fn on_reduction(&mut self) {
        self.cwr_due = matches!(self.mode, Mode::Classic | Mode::Exact);
    }

    /// The reduction is undone.
    pub(crate) fn withdraw(&mut self) {
        self.cwr_due = false;
    }

    /// Flags of the next new data.
    #[inline]
    pub(crate) fn of_new_data(&mut self) -> Flags {
        if std::mem::take(&mut self.cwr_due) { Flags::CWR } else { Flags::NONE }
    }

    /// Codepoint of new data.
    #[inline]
    pub(crate) fn data(&self) -> Ecn {
        self.codepoints.0
    }

    /// Codepoint of retransmissions and of segments without payload.
    #[inline]
    pub(crate) fn other(&self) -> Ecn {
        self.codepoints.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accurate() -> Marks {
        Marks { mode: Mode::Accurate, ..Marks::new() }
    }

    #[test]
    fn a_count_that_has_risen_by_two_means_two_marks() {
        // From 5 to 7, then wrapping to 1 (9 modulo 8).
        let mut marks = accurate();
        assert_eq!(marks.ce_delta(Flags::from_ace(7), 3), 2);
        assert_eq!(marks.ce_delta(Flags::from_ace(1), 4), 2);
        assert_eq!(marks.ce_delta(Flags::from_ace(1), 4), 0);
    }

    #[test]
    fn an_acknowledgement_of_many_may_hide_a_full_turn() {
        // If the count rises by 1 for 10 packets, 9 of them may have been marked (1 + 8).
        assert_eq!(accurate().ce_delta(Flags::from_ace(6), 10), 9);
        // If it rises by 1 for 8 packets, only 1 was marked, since 9 would be more than there are.
        assert_eq!(accurate().ce_delta(Flags::from_ace(6), 8), 1);
        // If it does not rise for 8 packets, 8 or 0 were marked. The worse is assumed.
        assert_eq!(accurate().ce_delta(Flags::from_ace(5), 8), 8);
    }

    #[test]
    fn an_acknowledgement_of_nothing_new_means_no_marks_yet() {
        let mut marks = accurate();
        assert_eq!(marks.ce_delta(Flags::from_ace(6), 0), 0);
        assert_eq!(marks.ce_delta(Flags::from_ace(6), 1), 1);
    }

    #[test]
    fn an_echo_counts_for_all_that_it_acknowledges() {
        let mut marks = Marks { mode: Mode::Classic, ..Marks::new() };
        assert_eq!((marks.ce_delta(Flags::ECE, 2), marks.ce_delta(Flags::NONE, 2)), (2, 0));
        assert!(marks.echoes(Flags::ECE, 0));
    }
}
