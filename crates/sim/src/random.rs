//! Random numbers, which all come from the run's seed.

use bufferscope_programs::{Uniform, scramble};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The users of random numbers. Each has a stream of its own, so that an additional draw in one does not change others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    /// The processing times of the hosts.
    Hosts,
    /// The clock of a host (by the index of its node).
    Clock(u32),
    /// How late the timers of an entry of traffic (by index) are.
    Traffic(u32),
    /// The congestion controls of the connections of an entry of traffic (by index).
    Congestion(u32),
    /// The queueing discipline of a port (by index).
    Qdisc(u32),
    /// The channel of a Wi-Fi network (by index).
    Wifi(u32),
    /// The rate of a link, and its impairments (by the index of its port).
    Link(u32),
    /// The hash of a flow, by the index of its entry of traffic and its number there.
    Hash { traffic: u32, number: u32 },
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
            Stream::Wifi(index) => 7 << 32 | u64::from(index),
            Stream::Link(index) => 8 << 32 | u64::from(index),
            Stream::Hash { traffic, number } => scramble(6 << 32 | u64::from(traffic)) ^ u64::from(number),
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
}

impl Uniform for Random {
    #[inline]
    fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_share_a_hash_bucket_as_often_as_chance_says() {
        let bucket = |seed, traffic, number| Random::new(seed, Stream::Hash { traffic, number }).next_u32() >> 22;
        let shared = |seed| {
            let ping = bucket(seed, 1, 0);
            (0..64).filter(|&number| bucket(seed, 0, number) == ping).count()
        };
        // Of 64 flows, a bucket of 1024 has one in 16 on average; the standard deviation of this sum is 35.
        let found: usize = (1..=20_000).map(shared).sum();
        assert!((1_250 - 140..=1_250 + 140).contains(&found), "{found}");
    }
}
