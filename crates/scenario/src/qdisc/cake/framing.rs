//! The keywords of tc-cake(8) for the overhead of common links.

use std::slice;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{Cells, words};

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
        /// The lengths that Linux counts, without overhead and cells. It replaces what came before.
        Raw = "raw",
        /// Cells of 53 bytes with 48 bytes of payload.
        Atm = "atm",
        /// 65 bytes for every 64.
        Ptm = "ptm",
        /// No cells.
        Noatm = "noatm",
    }
}

/// One word, or several in order.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum FramingWords {
    One(Framing),
    Several(Vec<Framing>),
}

impl Default for FramingWords {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl FramingWords {
    pub(crate) fn as_slice(&self) -> &[Framing] {
        match self {
            Self::One(word) => slice::from_ref(word),
            Self::Several(words) => words,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

/// The combined meaning of several words. `None`: no word sets it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Framed {
    /// `raw` is among them.
    pub(crate) raw: bool,
    pub(crate) overhead_bytes: Option<i16>,
    pub(crate) cells: Option<Cells>,
    pub(crate) mpu_bytes: Option<u16>,
}

impl Framing {
    /// The overhead and the cells, if the word says anything about them.
    fn overhead(self) -> (Option<i16>, Option<Cells>) {
        let (bytes, cells) = match self {
            Self::ViaEthernet => return (None, None),
            Self::Noatm => return (None, Some(Cells::None)),
            Self::Atm => return (None, Some(Cells::Atm)),
            Self::Ptm => return (None, Some(Cells::Ptm)),
            Self::Raw => (0, Some(Cells::None)),
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
            Self::Ethernet => (38, None),
            Self::EtherVlan => (4, None),
            Self::Docsis => (18, Some(Cells::None)),
        };
        (Some(bytes), cells)
    }

    /// The shortest packet, if the word says anything about it.
    fn mpu_bytes(self) -> Option<u16> {
        match self {
            Self::Ethernet => Some(84),
            Self::Docsis => Some(64),
            _ => None,
        }
    }

    /// Whether the keyword describes a part of a link layer that others complete.
    pub(crate) fn only_adds(self) -> bool {
        matches!(self, Self::ViaEthernet | Self::EtherVlan | Self::Atm | Self::Ptm | Self::Noatm)
    }

    /// Reads words in order as `tc` does: overheads add up, except that `conservative` and `raw` replace what came
    /// before. `None` if the overhead is too large.
    pub(crate) fn read(words: &[Self]) -> Option<Framed> {
        let mut framed = Framed::default();
        for word in words {
            let (bytes, cells) = word.overhead();
            if let Some(bytes) = bytes {
                let replaces = matches!(word, Self::Conservative | Self::Raw);
                let before = if replaces { 0 } else { framed.overhead_bytes.unwrap_or(0) };
                framed.overhead_bytes = Some(before.saturating_add(bytes));
            }
            framed.raw |= *word == Self::Raw;
            framed.cells = cells.or(framed.cells);
            framed.mpu_bytes = word.mpu_bytes().or(framed.mpu_bytes);
        }
        framed.overhead_bytes.is_none_or(|sum| sum <= MOST_BYTES).then_some(framed)
    }
}
