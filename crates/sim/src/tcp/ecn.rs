//! Which kind of explicit congestion notification a connection uses, and how its ends agree on it.
//!
//! - *Classic* (RFC 3168): the receiver echoes congestion until the sender reports that it has reduced its window.
//! - *Exact* (DCTCP, RFC 8257, section 3.2): the receiver echoes for each packet whether it was marked. The handshake
//!   is that of classic ECN, so both ends must be configured with a congestion control that uses it.
//! - *Accurate* (RFC 9768): every segment carries the number of marked packets received, modulo 8. A third flag in the
//!   SYN negotiates it; without agreement, the connection falls back to classic ECN.
//!
//! Departs: accurate ECN does not use its TCP option (as with `net.ipv4.tcp_ecn_option` = 0), and neither end checks
//! whether the path alters the ECN bits.

use super::config::Config;
use crate::network::segment::Flags;
use crate::network::traffic_class::Ecn;
use crate::transport::congestion::EcnUse;

/// The kind of ECN that both ends have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// No ECN.
    #[default]
    Off,
    Classic,
    Exact,
    Accurate,
}

/// The kinds of ECN that one end is willing to use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    configured: bool,
    needs: EcnUse,
}

impl Offer {
    /// The offer that follows from the connection's configuration and the needs of the congestion control.
    pub(crate) fn new(config: &Config, needs: EcnUse) -> Self {
        let accurate = config.accurate_ecn && needs == EcnUse::AsConfigured;
        Self { configured: config.ecn, needs: if accurate { EcnUse::Accurate } else { needs } }
    }

    /// Flags of the SYN that follows `lost` others without an answer. The path may drop SYNs that ask for ECN, so a
    /// retransmission does not ask for classic ECN (RFC 3168, section 6.1.1.1; `tcp_ecn_clear_syn`), and the second one
    /// not for accurate ECN either (RFC 9768, section 3.1.4.1).
    pub(crate) fn syn(self, lost: u32) -> Flags {
        match self.needs {
            EcnUse::Accurate | EcnUse::L4s if lost <= 1 => Flags::SYN | Flags::AE | Flags::CWR | Flags::ECE,
            EcnUse::Exact if lost == 0 => Flags::SYN | Flags::CWR | Flags::ECE,
            EcnUse::AsConfigured if self.configured && lost == 0 => Flags::SYN | Flags::CWR | Flags::ECE,
            _ => Flags::SYN,
        }
    }

    /// The mode agreed on when a SYN with `flags` arrives (RFC 3168, section 6.1.1; RFC 9768, section 3.1.1).
    pub(crate) fn on_syn(self, flags: Flags) -> Mode {
        match self.needs {
            _ if !flags.contains(Flags::ECE | Flags::CWR) => Mode::Off,
            EcnUse::Accurate | EcnUse::L4s if flags.contains(Flags::AE) => Mode::Accurate,
            EcnUse::Accurate | EcnUse::L4s => Mode::Classic,
            EcnUse::Exact => Mode::Exact,
            EcnUse::AsConfigured if self.configured => Mode::Classic,
            EcnUse::AsConfigured => Mode::Off,
        }
    }

    /// The mode agreed on when a SYN-ACK with `flags` answers (RFC 9768, table 2).
    pub(crate) fn on_syn_ack(self, flags: Flags) -> Mode {
        let (ae, cwr, ece) = (flags.contains(Flags::AE), flags.cwr(), flags.ece());
        match self.needs {
            EcnUse::Accurate | EcnUse::L4s if (ae || cwr) && !(ae && cwr && ece) => Mode::Accurate,
            _ if !ece || cwr || ae => Mode::Off,
            EcnUse::Exact => Mode::Exact,
            EcnUse::AsConfigured if !self.configured => Mode::Off,
            EcnUse::AsConfigured | EcnUse::Accurate | EcnUse::L4s => Mode::Classic,
        }
    }

    /// The codepoints of new data and of all other segments, once ECN is agreed on. In modes other than classic ECN,
    /// retransmissions and acknowledgements also carry a codepoint (`tcp_ca_needs_ecn`; RFC 9768, section 3.3).
    pub(crate) fn codepoints(self) -> (Ecn, Ecn) {
        match self.needs {
            EcnUse::AsConfigured => (Ecn::Ect0, Ecn::NotEct),
            EcnUse::Exact | EcnUse::Accurate => (Ecn::Ect0, Ecn::Ect0),
            EcnUse::L4s => (Ecn::Ect1, Ecn::Ect1),
        }
    }

    /// The codepoint of a SYN or SYN-ACK.
    pub(crate) fn of_syn(self) -> Ecn {
        match self.needs {
            EcnUse::Exact => Ecn::Ect0,
            EcnUse::AsConfigured | EcnUse::Accurate | EcnUse::L4s => Ecn::NotEct,
        }
    }
}

impl Mode {
    /// Flags of the SYN-ACK to a SYN that came with `codepoint`.
    pub(crate) fn syn_ack(self, codepoint: Ecn) -> Flags {
        let answer = match self {
            Self::Off => Flags::NONE,
            Self::Classic | Self::Exact => Flags::ECE,
            Self::Accurate => handshake_ace(codepoint),
        };
        Flags::SYN | Flags::ACK | answer
    }
}

/// How the accurate handshake reports which codepoint arrived (RFC 9768, tables 2 and 3).
pub(crate) fn handshake_ace(codepoint: Ecn) -> Flags {
    match codepoint {
        Ecn::NotEct => Flags::CWR,
        Ecn::Ect1 => Flags::CWR | Flags::ECE,
        Ecn::Ect0 => Flags::AE,
        Ecn::Ce => Flags::AE | Flags::CWR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(client: Offer, server: Offer) -> (Mode, Mode) {
        let at_server = server.on_syn(client.syn(0));
        (client.on_syn_ack(at_server.syn_ack(Ecn::NotEct)), at_server)
    }

    const OFF: Offer = Offer { configured: false, needs: EcnUse::AsConfigured };
    const CLASSIC: Offer = Offer { configured: true, needs: EcnUse::AsConfigured };
    const EXACT: Offer = Offer { configured: false, needs: EcnUse::Exact };
    const L4S: Offer = Offer { configured: false, needs: EcnUse::L4s };

    #[test]
    fn ecn_takes_two() {
        assert_eq!(agreed(CLASSIC, CLASSIC), (Mode::Classic, Mode::Classic));
        assert_eq!(agreed(CLASSIC, OFF), (Mode::Off, Mode::Off));
        assert_eq!(agreed(OFF, CLASSIC), (Mode::Off, Mode::Off));
        assert_eq!(agreed(EXACT, EXACT), (Mode::Exact, Mode::Exact));
    }

    #[test]
    fn accurate_ecn_falls_back_to_classic() {
        assert_eq!(agreed(L4S, L4S), (Mode::Accurate, Mode::Accurate));
        assert_eq!(agreed(L4S, CLASSIC), (Mode::Classic, Mode::Classic));
        assert_eq!(agreed(CLASSIC, L4S), (Mode::Classic, Mode::Classic));
        assert_eq!(agreed(L4S, OFF), (Mode::Off, Mode::Off));
    }

    #[test]
    fn the_answer_to_an_accurate_syn_reports_what_arrived() {
        // RFC 9768, table 2: (AE, CWR, ECE) = 010, 011, 100, 110.
        let answers = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(|ecn| Mode::Accurate.syn_ack(ecn).ace());
        assert_eq!(answers, [0b010, 0b011, 0b100, 0b110]);
    }

    #[test]
    fn a_server_that_only_reflects_the_flags_does_not_know_ecn() {
        for offer in [CLASSIC, EXACT, L4S] {
            assert_eq!(offer.on_syn_ack(offer.syn(0) | Flags::ACK), Mode::Off);
        }
    }
}
