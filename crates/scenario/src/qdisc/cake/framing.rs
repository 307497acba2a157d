//! The words of tc-cake(8) for the overhead of common links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{Cells, LinkLayer, words};

/// Largest overhead that `tc` accepts.
const MOST_BYTES: i16 = 256;

words! {
    /// The overhead of a link by tc's word.
    Framing {
        /// 48 bytes in ATM cells: more than any link adds.
        Conservative = "conservative",
        /// 8 bytes in ATM cells.
        IpoaVcmux = "ipoa-vcmux",
        /// 16 bytes in ATM cells.
        IpoaLlcsnap = "ipoa-llcsnap",
        /// 24 bytes in ATM cells.
        BridgedVcmux = "bridged-vcmux",
        /// 32 bytes in ATM cells.
        BridgedLlcsnap = "bridged-llcsnap",
        /// 10 bytes in ATM cells.
        PppoaVcmux = "pppoa-vcmux",
        /// 14 bytes in ATM cells.
        PppoaLlc = "pppoa-llc",
        /// 32 bytes in ATM cells.
        PppoeVcmux = "pppoe-vcmux",
        /// 40 bytes in ATM cells.
        PppoeLlcsnap = "pppoe-llcsnap",
        /// 30 bytes on PTM.
        PppoePtm = "pppoe-ptm",
        /// 22 bytes on PTM.
        BridgedPtm = "bridged-ptm",
        /// Nothing: Linux knows the Ethernet header.
        ViaEthernet = "via-ethernet",
        /// 38 bytes, and 84 at least.
        Ethernet = "ethernet",
        /// 4 bytes more.
        EtherVlan = "ether-vlan",
        /// 18 bytes, and 64 at least.
        Docsis = "docsis",
    }
}

impl Framing {
    /// The overhead, and the cells if the word says anything about them.
    fn overhead(self) -> (i16, Option<Cells>) {
        match self {
            Self::Conservative => (48, Some(Cells::Atm)),
            Self::IpoaVcmux => (8, Some(Cells::Atm)),
            Self::IpoaLlcsnap => (16, Some(Cells::Atm)),
            Self::BridgedVcmux => (24, Some(Cells::Atm)),
            Self::BridgedLlcsnap | Self::PppoeVcmux => (32, Some(Cells::Atm)),
            Self::PppoaVcmux => (10, Some(Cells::Atm)),
            Self::PppoaLlc => (14, Some(Cells::Atm)),
            Self::PppoeLlcsnap => (40, Some(Cells::Atm)),
            Self::PppoePtm => (30, Some(Cells::Ptm)),
            Self::BridgedPtm => (22, Some(Cells::Ptm)),
            Self::ViaEthernet => (0, None),
            Self::Ethernet => (38, None),
            Self::EtherVlan => (4, None),
            Self::Docsis => (18, Some(Cells::None)),
        }
    }

    /// Whether the word stands for a part of a link layer that others complete.
    pub(crate) fn only_adds(self) -> bool {
        matches!(self, Self::ViaEthernet | Self::EtherVlan)
    }

    /// Applies words in order as `tc` does: overheads add up, except that `conservative` replaces what came before.
    /// Returns the overhead; `None` if it is too large.
    pub(crate) fn apply(words: &[Self], layer: &mut LinkLayer) -> Option<i16> {
        let mut sum = 0_i16;
        for word in words {
            let (bytes, cells) = word.overhead();
            sum = if *word == Self::Conservative { bytes } else { sum.saturating_add(bytes) };
            layer.cells = cells.unwrap_or(layer.cells);
            match word {
                Self::Ethernet => layer.mpu_bytes = 84,
                Self::Docsis => layer.mpu_bytes = 64,
                _ => {}
            }
        }
        (sum <= MOST_BYTES).then_some(sum)
    }
}
