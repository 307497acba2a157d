//! Random numbers from the run's seed, and from no other source.

/// A source of uniform numbers.
pub trait Uniform {
    /// 64 uniform bits.
    fn bits(&mut self) -> u64;

    /// The next number, in `0..bound`; 0 for a bound of 0. The bias is below `bound / 2^64`.
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): sufficient for a few numbers per second.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A separate stream for each of the seed's users, by index.
    pub fn new(seed: u64, user: usize) -> Self {
        let mut user = Self(scramble(seed) ^ user as u64);
        Self(user.bits())
    }

    /// A separate stream for each user, which is also separate from this stream.
    pub(crate) fn split(&self, user: u32) -> Self {
        // Of the numbers that a stream begins with, those far down are used by no other stream.
        let mut user = Self(self.0.rotate_left(32) ^ u64::from(user));
        Self(user.bits())
    }
}

impl Uniform for Random {
    fn bits(&mut self) -> u64 {
        let bits = scramble(self.0);
        self.0 = self.0.wrapping_add(WEYL);
        bits
    }
}

/// What SplitMix64 adds to its state for each number.
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that SplitMix64 draws in this state: neighbouring states give unrelated numbers.
pub fn scramble(state: u64) -> u64 {
    let x = state.wrapping_add(WEYL);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
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

    /// The first numbers of SplitMix64 with the state 1234567, as its authors' C code prints them.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut random = Random(1_234_567);
        assert_eq!([(); 3].map(|()| random.bits()), [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }
}
