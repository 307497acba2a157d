//! What `tc` expresses by one word of several, and how long packets are on the link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::qdisc::Setting;
use crate::sizes::ETHERNET_HEADER_BYTES;
use crate::units::{MS, SECOND, US};

/// Declares an enum over words of `tc`, the first of which is the default.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every one; the first is the default.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Its word in `tc`.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::ALL[0]
            }
        }
    };
}

pub(crate) use words;

words! {
    /// How code points choose a tin.
    Diffserv {
        /// Three tins: bulk, best effort and voice.
        Diffserv3 = "diffserv3",
        /// Four tins: bulk, best effort, video and voice.
        Diffserv4 = "diffserv4",
        /// Eight tins by code point.
        Diffserv8 = "diffserv8",
        /// One tin for all.
        Besteffort = "besteffort",
        /// Eight tins by the upper three bits of the code point.
        Precedence = "precedence",
    }
}

words! {
    /// Flow isolation: what has a queue of its own, and what shares the rate fairly.
    FlowMode {
        /// A queue for each flow. Hosts share fairly on either side, and flows within a host.
        TripleIsolate = "triple-isolate",
        /// One queue for all.
        Flowblind = "flowblind",
        /// A queue for each sending host.
        Srchost = "srchost",
        /// A queue for each receiving host.
        Dsthost = "dsthost",
        /// A queue for each pair of hosts.
        Hosts = "hosts",
        /// A queue for each flow.
        Flows = "flows",
        /// A queue for each flow. Sending hosts share fairly, and flows within a host.
        DualSrchost = "dual-srchost",
        /// A queue for each flow. Receiving hosts share fairly, and flows within a host.
        DualDsthost = "dual-dsthost",
    }
}

words! {
    /// Which acknowledgements in the queue are dropped when a later one arrives.
    AckFilter {
        /// None.
        None = "no-ack-filter",
        /// One if two are superseded.
        Filter = "ack-filter",
        /// One even if it is the only one.
        Aggressive = "ack-filter-aggressive",
    }
}

words! {
    /// The cells of a link.
    Cells {
        /// No cells.
        None = "noatm",
        /// 48 bytes in a cell of 53.
        Atm = "atm",
        /// 64 bytes in 65.
        Ptm = "ptm",
    }
}

words! {
    /// Round-trip times by name.
    Preset {
        /// 100 ms.
        Internet = "internet",
        /// 100 us.
        Datacentre = "datacentre",
        /// 1 ms.
        Lan = "lan",
        /// 10 ms.
        Metro = "metro",
        /// 30 ms.
        Regional = "regional",
        /// 300 ms.
        Oceanic = "oceanic",
        /// 1 s.
        Satellite = "satellite",
        /// 1000 s.
        Interplanetary = "interplanetary",
    }
}

impl FlowMode {
    /// The bits of the kernel's number: sender, receiver, flow.
    fn bits(self) -> u8 {
        match self {
            Self::Flowblind => 0b000,
            Self::Srchost => 0b001,
            Self::Dsthost => 0b010,
            Self::Hosts => 0b011,
            Self::Flows => 0b100,
            Self::DualSrchost => 0b101,
            Self::DualDsthost => 0b110,
            Self::TripleIsolate => 0b111,
        }
    }

    /// Whether each flow has a queue of its own.
    pub fn by_flow(self) -> bool {
        self.bits() & 0b100 != 0
    }

    /// Whether sending hosts are isolated.
    pub fn by_source(self) -> bool {
        self.bits() & 0b001 != 0
    }

    /// Whether receiving hosts are isolated.
    pub fn by_destination(self) -> bool {
        self.bits() & 0b010 != 0
    }
}

impl Preset {
    pub(crate) fn rtt_ns(self) -> u64 {
        match self {
            Self::Datacentre => 100 * US,
            Self::Lan => MS,
            Self::Metro => 10 * MS,
            Self::Regional => 30 * MS,
            Self::Internet => 100 * MS,
            Self::Oceanic => 300 * MS,
            Self::Satellite => SECOND,
            Self::Interplanetary => 1000 * SECOND,
        }
    }
}

impl Cells {
    /// Bytes that the link sends for a packet of this many.
    #[inline]
    pub fn link_bytes(self, bytes: u32) -> u32 {
        match self {
            Self::None => bytes,
            Self::Atm => bytes.div_ceil(48) * 53,
            Self::Ptm => bytes + bytes.div_ceil(64),
        }
    }
}

/// How long packets are on the link, as the shaper counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkLayer {
    /// Overhead is added to the lengths that Linux counts, not to those of IP packets.
    pub raw: bool,
    /// What the link adds to each packet.
    pub overhead_bytes: i16,
    /// How the link carries packets.
    pub cells: Cells,
    /// The shortest packet, overhead included.
    pub mpu_bytes: u16,
}

impl Default for LinkLayer {
    fn default() -> Self {
        Self { raw: true, overhead_bytes: 0, cells: Cells::None, mpu_bytes: 0 }
    }
}

impl LinkLayer {
    /// Bytes that the shaper counts for a frame of this many (`cake_calc_overhead`).
    #[inline]
    pub fn counted_bytes(&self, frame_bytes: u32) -> u32 {
        let header_bytes = if self.raw { 0 } else { ETHERNET_HEADER_BYTES as i32 };
        let bytes = frame_bytes as i32 - header_bytes + i32::from(self.overhead_bytes);
        self.cells.link_bytes(bytes.max(i32::from(self.mpu_bytes)) as u32)
    }

    /// For `tc`, in which `raw` comes first: it sets the overhead to 0.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&'static str, Setting)> {
        let raw = self.raw.then_some(("raw", Setting::Flag));
        let overhead = ("overhead", Setting::Integer(self.overhead_bytes.into()));
        let overhead = (!self.raw || self.overhead_bytes != 0).then_some(overhead);
        let mpu = (self.mpu_bytes > 0).then_some(("mpu", Setting::Number(self.mpu_bytes.into())));
        [raw, overhead, Some((self.cells.word(), Setting::Flag)), mpu].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(raw: bool, overhead_bytes: i16, cells: Cells, mpu_bytes: u16) -> LinkLayer {
        LinkLayer { raw, overhead_bytes, cells, mpu_bytes }
    }

    #[test]
    fn raw_counts_the_ethernet_header_and_overhead_does_not() {
        assert_eq!(layer(true, 0, Cells::None, 0).counted_bytes(1514), 1514);
        assert_eq!(layer(true, 4, Cells::None, 0).counted_bytes(1514), 1518);
        assert_eq!(layer(false, 0, Cells::None, 0).counted_bytes(1514), 1500);
        assert_eq!(layer(false, 38, Cells::None, 84).counted_bytes(1514), 1538);
        assert_eq!(layer(false, -20, Cells::None, 0).counted_bytes(1514), 1480);
        assert_eq!(layer(false, 18, Cells::None, 64).counted_bytes(66), 70);
        assert_eq!(layer(false, 18, Cells::None, 64).counted_bytes(54), 64);
    }

    /// An acknowledgement of 40 bytes of IP over PPPoE and LLC takes two cells, a full packet 33 (1540 / 48 = 32.1).
    #[test]
    fn cells_are_whole() {
        let atm = layer(false, 40, Cells::Atm, 0);
        assert_eq!([54, 22, 70, 71, 1514].map(|bytes| atm.counted_bytes(bytes)), [106, 53, 106, 159, 1749]);
        let ptm = layer(false, 30, Cells::Ptm, 0);
        assert_eq!([1514, 48, 49].map(|bytes| ptm.counted_bytes(bytes)), [1530 + 24, 64 + 1, 65 + 2]);
    }

    /// A negative length counts as the shortest packet.
    #[test]
    fn a_negative_length_is_that_of_the_shortest_packet() {
        assert_eq!(layer(false, -64, Cells::None, 0).counted_bytes(54), 0);
        assert_eq!(layer(false, -64, Cells::Atm, 10).counted_bytes(54), 53);
    }
}
