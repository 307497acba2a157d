//! Random numbers, and numbers computed from them.

use crate::random::Random;

/// `NETEM_DIST_SCALE`: the tables' unit of a standard deviation.
const SCALE: i64 = 8192;

/// Correlated random numbers (`struct crndstate`).
#[derive(Clone, Copy, Debug)]
pub(in crate::network) struct Correlated {
    pub(super) rho: u32,
    pub(super) last: u32,
}

impl Correlated {
    pub(super) fn new(rho: f64, random: &mut Random) -> Self {
        Self { rho: fraction(rho), last: random.next_u32() }
    }

    /// `get_crandom`.
    pub(super) fn next(&mut self, random: &mut Random) -> u32 {
        let value = u64::from(random.next_u32());
        if self.rho == 0 {
            return value as u32;
        }
        let rho = u64::from(self.rho) + 1;
        let mixed = value.wrapping_mul((1 << 32) - rho).wrapping_add(u64::from(self.last) * rho);
        self.last = (mixed >> 32) as u32;
        self.last
    }
}

/// A value around the mean, with the deviation that the random number `drawn` selects (`tabledist`).
pub(super) fn deviating(mean: i64, sigma: i64, table: Option<&[i16]>, drawn: u32) -> i64 {
    let Some(table) = table else {
        return i64::from(drawn) % (2 * sigma) + mean - sigma;
    };
    let deviation = i64::from(table[drawn as usize % table.len()]);
    let fine = (sigma % SCALE) * deviation;
    let rounded = if fine >= 0 { fine + SCALE / 2 } else { fine - SCALE / 2 };
    rounded / SCALE + (sigma / SCALE) * deviation + mean
}

/// A probability as `tc` passes it to the kernel.
pub(super) fn fraction(part: f64) -> u32 {
    (part * f64::from(u32::MAX)).round_ties_even() as u32
}
