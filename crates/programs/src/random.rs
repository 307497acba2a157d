//! Random numbers from the run's seed, and from no other source.

/// A source of uniform numbers.
pub trait Uniform {
    /// The next number, in `0..bound`; 0 for a bound of 0.
    fn below(&mut self, bound: u64) -> u64;
}

/// SplitMix64 (Steele, Lea, Flood 2014): sufficient for a few numbers per second.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A separate stream for each of the seed's users, by index.
    pub fn new(seed: u64, user: usize) -> Self {
        let mut seeds = Self(seed);
        let mut user = Self(seeds.bits() ^ user as u64);
        Self(user.bits())
    }

    /// A separate stream for each user, which is also separate from this stream.
    pub(crate) fn split(&self, user: u32) -> Self {
        // Of the numbers that a stream begins with, those far down are not drawn by anybody else.
        let mut user = Self(self.0.rotate_left(32) ^ u64::from(user));
        Self(user.bits())
    }

    /// Uniform in `0..bound`; the bias is below `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

impl Uniform for Random {
    fn below(&mut self, bound: u64) -> u64 {
        Self::below(self, bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_each_user_others() {
        let draw = |mut random: Random| [(); 4].map(|()| random.below(1_000_000));
        assert_eq!(draw(Random::new(7, 0)), draw(Random::new(7, 0)));
        assert_ne!(draw(Random::new(7, 0)), draw(Random::new(7, 1)));
        assert_ne!(draw(Random::new(7, 0)), draw(Random::new(8, 0)));
        assert_ne!(draw(Random::new(7, 0).split(0)), draw(Random::new(7, 0).split(1)));
        assert_ne!(draw(Random::new(7, 0).split(1)), draw(Random::new(7, 1)));
    }
}
