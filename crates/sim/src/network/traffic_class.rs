//! The traffic class of the IP header: six bits of DSCP (RFC 2474) and two of ECN (RFC 3168), in one byte as on the
//! wire.

/// DSCP and ECN of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrafficClass(u8);

/// The ECN field of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not understand ECN.
    NotEct,
    /// ECN-capable transport (0).
    Ect0,
    /// ECN-capable transport (1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// Linux' `TC_PRIO_*`.
const BEST_EFFORT: u8 = 0;
const BULK: u8 = 2;
const INTERACTIVE_BULK: u8 = 4;
const INTERACTIVE: u8 = 6;

const ECN_BITS: u32 = 2;
const ECN_MASK: u8 = 0b11;

impl TrafficClass {
    #[inline]
    pub(crate) fn new(dscp: u8, ecn: Ecn) -> Self {
        debug_assert!(dscp < 64, "a code point has six bits");
        Self(dscp << ECN_BITS | ecn.bits())
    }

    #[inline]
    pub(crate) fn ecn(self) -> Ecn {
        Ecn::from_bits(self.0 & ECN_MASK)
    }

    /// The byte on the wire.
    #[inline]
    pub(crate) fn byte(self) -> u8 {
        self.0
    }

    /// The code point.
    #[inline]
    pub(crate) fn dscp(self) -> u8 {
        self.0 >> ECN_BITS
    }

    /// The priority that Linux gives the packet when it forwards it (`rt_tos2priority` in `net/ipv4/route.c`): two bits of
    /// the old type of service say whether the packet asks for low delay, throughput, both or neither.
    #[inline]
    pub(crate) fn priority(self) -> u8 {
        [BEST_EFFORT, BULK, INTERACTIVE, INTERACTIVE_BULK][usize::from(self.dscp() >> 1 & 0b11)]
    }

    /// Clears the code point and leaves the ECN field unchanged.
    #[inline]
    pub(crate) fn wash(&mut self) {
        self.0 &= ECN_MASK;
    }

    /// Sets Congestion Experienced and leaves the code point unchanged.
    #[inline]
    pub(crate) fn mark(&mut self) {
        self.0 |= Ecn::Ce.bits();
    }
}

impl Ecn {
    /// Whether a queue may mark the packet instead of dropping it.
    pub(crate) fn is_capable(self) -> bool {
        self != Self::NotEct
    }

    #[inline]
    fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    #[inline]
    fn from_bits(bits: u8) -> Self {
        match bits & ECN_MASK {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

impl std::fmt::Debug for TrafficClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TrafficClass({:#04x}: code point {}, {:?})", self.0, self.dscp(), self.ecn())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2474, section 3, and RFC 3168, section 5: EF (46) with ECT(0) is 0xba on the wire, and with CE 0xbb.
    #[test]
    fn the_byte_is_that_of_the_wire() {
        let mut class = TrafficClass::new(46, Ecn::Ect0);
        assert_eq!(class.0, 0xba);
        class.mark();
        assert_eq!((class.0, class.ecn(), class.dscp()), (0xbb, Ecn::Ce, 46));
        class.wash();
        assert_eq!((class.0, class.ecn(), class.dscp()), (0x03, Ecn::Ce, 0));
    }

    #[test]
    fn both_fields_are_read_as_they_were_written() {
        for dscp in 0..64 {
            for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let class = TrafficClass::new(dscp, ecn);
                assert_eq!((class.dscp(), class.ecn()), (dscp, ecn));
            }
        }
    }
}
