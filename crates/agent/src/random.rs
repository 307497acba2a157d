//! Random numbers from the run's seed, and from nothing else.

/// SplitMix64 (Steele, Lea, Flood 2014): a few numbers a second need nothing better.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream of its own for each of the seed's users, by index.
    pub(crate) fn new(seed: u64, user: usize) -> Self {
        let mut seeds = Self(seed);
        let mut user = Self(seeds.next() ^ user as u64);
        Self(user.next())
    }

    /// Uniform in `0..bound`; the bias is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// 64 uniform bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_each_user_others() {
        let draw = |seed, user| {
            let mut random = Random::new(seed, user);
            [(); 4].map(|()| random.below(1_000_000))
        };
        assert_eq!(draw(7, 0), draw(7, 0));
        assert_ne!(draw(7, 0), draw(7, 1));
        assert_ne!(draw(7, 0), draw(8, 0));
    }
}
