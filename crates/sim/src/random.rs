//! Random numbers, which all come from the run's seed.

use bufferscope_programs::Uniform;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The users of random numbers. Each has a stream of its own, so that an additional draw in one does not change others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    /// The processing times of the hosts.
    Hosts,
    /// The clock of a host (by the index of its node).
    Clock(u32),
    /// When the connections, probes and pages of a traffic (by index) begin.
    Traffic(u32),
    /// The congestion controls of the connections of a traffic (by index).
    Congestion(u32),
    /// The queueing discipline of a port (by index).
    Qdisc(u32),
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(Pcg64Mcg);

impl Random {
    pub(crate) fn new(seed: u64, stream: Stream) -> Self {
        let id = match stream {
            Stream::Hosts => 1,
            Stream::Traffic(index) => 2 << 32 | u64::from(index),
            Stream::Qdisc(index) => 3 << 32 | u64::from(index),
            Stream::Congestion(index) => 4 << 32 | u64::from(index),
            Stream::Clock(index) => 5 << 32 | u64::from(index),
        };
        Self::from_seed(scramble(seed) ^ id)
    }

    /// From a seed that another stream produced.
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(scramble(seed)))
    }

    /// A seed for another stream.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }

    #[inline]
    pub(crate) fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..bound`; 0 for a bound of 0. The bias is below `bound / 2^64`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

impl Uniform for Random {
    fn below(&mut self, bound: u64) -> u64 {
        Self::below(self, bound)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): neighbouring seeds give unrelated numbers.
fn scramble(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
