//! The receiver's part of ECN: what it reports to the sender about marked packets (RFC 3168, section 6.1.3; RFC 8257,
//! section 3.2; RFC 9768, section 3.2; the kernel's `tcp_ecn_check_ce` and `dctcp_ece_ack_update`).

use super::super::ecn::{Mode, handshake_ace};
use crate::network::segment::{Flags, Segment};
use crate::network::traffic_class::Ecn;

/// Where the count of marked packets starts (RFC 9768, section 3.2.1).
pub(crate) const FIRST_COUNT: u8 = 5;

/// The congestion that is echoed to the sender.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    mode: Mode,
    /// Congestion is echoed. Classic ECN echoes it until the sender has reduced its window; exact ECN echoes whether
    /// the last packet was marked.
    echoing: bool,
    /// Marked packets received, modulo 8 (accurate).
    count: u8,
    /// The codepoint of the SYN-ACK, which the last acknowledgement of the handshake reports (accurate).
    of_syn_ack: Option<Ecn>,
    /// The last data packet was marked.
    last_marked: bool,
    /// A packet with an ECN codepoint has been seen (`TCP_ECN_SEEN`).
    seen: bool,
}

/// The acknowledgements that a packet's marks require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// An acknowledgement now.
    pub(crate) at_once: bool,
    /// Quick acknowledgement of the next two segments.
    pub(crate) hurry: bool,
}

impl Echo {
    /// Both ends have agreed on `mode`. For a client, `of_syn_ack` is the codepoint of the SYN-ACK.
    pub(crate) fn establish(&mut self, mode: Mode, of_syn_ack: Option<Ecn>) {
        self.mode = mode;
        self.count = FIRST_COUNT + u8::from(of_syn_ack == Some(Ecn::Ce));
        self.of_syn_ack = of_syn_ack;
    }

    /// The flags that report congestion in the next segment.
    #[inline]
    pub(crate) fn flags(&mut self) -> Flags {
        match self.mode {
            Mode::Off => Flags::NONE,
            Mode::Classic | Mode::Exact if self.echoing => Flags::ECE,
            Mode::Classic | Mode::Exact => Flags::NONE,
            Mode::Accurate => self.of_syn_ack.take().map_or(Flags::from_ace(self.count), handshake_ace),
        }
    }

    /// Whether this packet changes an exact echo. Then the pending acknowledgement must be sent first, with the old
    /// echo.
    #[inline]
    pub(crate) fn changes(&self, codepoint: Ecn) -> bool {
        self.mode == Mode::Exact && codepoint != Ecn::NotEct && (codepoint == Ecn::Ce) != self.echoing
    }

    /// A packet arrives in the window.
    #[inline]
    pub(crate) fn on_packet(&mut self, segment: &Segment, codepoint: Ecn) -> Request {
        match self.mode {
            Mode::Off => Request::default(),
            Mode::Classic => self.classic(segment, codepoint),
            Mode::Exact => self.exact(segment, codepoint),
            Mode::Accurate => self.accurate(segment, codepoint),
        }
    }

    fn classic(&mut self, segment: &Segment, codepoint: Ecn) -> Request {
        // The sender's window may now be so small that it waits for this acknowledgement.
        let reduced = segment.flags.cwr() && segment.len > 0;
        if reduced {
            self.echoing = false;
        }
        let hurry = segment.len > 0 && self.wants_hurry(codepoint);
        self.echoing |= codepoint == Ecn::Ce;
        Request { at_once: reduced, hurry }
    }

    fn exact(&mut self, segment: &Segment, codepoint: Ecn) -> Request {
        if segment.len == 0 {
            return Request::default();
        }
        let changes = self.changes(codepoint);
        let hurry = self.wants_hurry(codepoint);
        if codepoint != Ecn::NotEct {
            self.echoing = codepoint == Ecn::Ce;
        }
        Request { at_once: changes || segment.flags.cwr(), hurry }
    }

    /// RFC 9768, section 3.2.2.5.1: acknowledge at once when marking begins.
    fn accurate(&mut self, segment: &Segment, codepoint: Ecn) -> Request {
        let marked = codepoint == Ecn::Ce;
        if marked {
            self.count = ((u32::from(self.count) + segment.frames()) % 8) as u8;
        }
        if segment.len == 0 {
            return Request::default();
        }
        let begins = marked && !self.last_marked;
        self.last_marked = marked;
        Request { at_once: begins, hurry: false }
    }

    /// Whether acknowledgements should not be delayed now. When congestion begins, delays would hurt, because the
    /// sender's window may be very small. A packet without a codepoint among others with one is probably a
    /// retransmission.
    fn wants_hurry(&mut self, codepoint: Ecn) -> bool {
        let hurry = match codepoint {
            Ecn::NotEct => self.seen,
            // DCTCP's part of the receiver has noted the mark before (`dctcp_ece_ack_cwr`), so it changes nothing here.
            Ecn::Ce => self.mode == Mode::Classic && !self.echoing,
            Ecn::Ect0 | Ecn::Ect1 => false,
        };
        self.seen |= codepoint != Ecn::NotEct;
        hurry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::SackBlocks;

    fn data(flags: Flags) -> Segment {
        let sack = SackBlocks::NONE;
        Segment { seq: 1, ack: 1, len: 1000, window_bytes: 0, ts_val: 1, ts_ecr: 0, sack, flags: flags | Flags::ACK }
    }

    fn echo(mode: Mode) -> Echo {
        let mut echo = Echo::default();
        echo.establish(mode, None);
        echo
    }

    #[test]
    fn classic_ecn_echoes_until_the_window_was_reduced() {
        let mut echo = echo(Mode::Classic);
        assert_eq!(echo.on_packet(&data(Flags::NONE), Ecn::Ce), Request { at_once: false, hurry: true });
        echo.on_packet(&data(Flags::NONE), Ecn::Ect0);
        assert!(echo.flags().ece());
        assert!(echo.on_packet(&data(Flags::CWR), Ecn::Ect0).at_once);
        assert!(!echo.flags().ece());
    }

    #[test]
    fn a_packet_that_is_reduced_and_marked_is_echoed() {
        let mut echo = echo(Mode::Classic);
        echo.on_packet(&data(Flags::CWR), Ecn::Ce);
        assert!(echo.flags().ece());
    }

    #[test]
    fn a_packet_without_codepoint_among_others_is_answered_quickly() {
        let mut echo = echo(Mode::Classic);
        assert!(!echo.on_packet(&data(Flags::NONE), Ecn::NotEct).hurry);
        echo.on_packet(&data(Flags::NONE), Ecn::Ect0);
        assert!(echo.on_packet(&data(Flags::NONE), Ecn::NotEct).hurry);
    }

    #[test]
    fn the_exact_echo_follows_every_change() {
        // RFC 8257, figure 1: the state machine with delayed acknowledgements.
        let mut echo = echo(Mode::Exact);
        let seen = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ect0].map(|codepoint| {
            let changes = echo.changes(codepoint);
            let request = echo.on_packet(&data(Flags::NONE), codepoint);
            // Only a change is acknowledged at once, not the packets that follow it.
            assert_eq!(request, Request { at_once: changes, hurry: false });
            (changes, echo.flags().ece())
        });
        assert_eq!(seen, [(false, false), (true, true), (false, true), (true, false)]);
    }

    #[test]
    fn the_accurate_count_starts_at_five_and_wraps_at_eight() {
        let mut echo = echo(Mode::Accurate);
        let counts = [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::Ect1, Ecn::Ce].map(|codepoint| {
            let at_once = echo.on_packet(&data(Flags::NONE), codepoint).at_once;
            (echo.flags().ace(), at_once)
        });
        // Where marking begins, an acknowledgement is sent at once.
        assert_eq!(counts, [(5, false), (6, true), (7, false), (7, false), (0, true)]);
    }

    #[test]
    fn the_last_acknowledgement_of_the_handshake_reports_how_the_syn_ack_arrived() {
        let mut echo = Echo::default();
        echo.establish(Mode::Accurate, Some(Ecn::Ce));
        // RFC 9768, table 3; then the count, which includes the SYN-ACK's mark.
        assert_eq!([echo.flags().ace(), echo.flags().ace()], [0b110, 6]);
    }
}
