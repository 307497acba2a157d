//! Rates as the kernel's shapers compute with them (`net/sched/sch_generic.c`, `psched_ratecfg_precompute`).

const NS_PER_S: u64 = 1_000_000_000;

/// A rate: a length times `multiplier >> shift` is a time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) multiplier: u32,
    pub(crate) shift: u8,
}

impl Rate {
    /// The largest multiplier of 32 bits (`psched_ratecfg_precompute__`).
    pub(crate) fn new(bits_per_second: u64) -> Self {
        let bytes_per_second = (bits_per_second / 8).max(1);
        let (mut factor, mut shift) = (NS_PER_S, 0);
        loop {
            let multiplier = (factor / bytes_per_second) as u32;
            if multiplier >> 31 == 1 || factor >> 63 == 1 {
                return Self { multiplier, shift };
            }
            factor <<= 1;
            shift += 1;
        }
    }

    /// How long this many bytes take (`psched_l2t_ns`).
    pub(crate) fn duration_ns(self, bytes: u32) -> i64 {
        ((u64::from(bytes) * u64::from(self.multiplier)) >> self.shift) as i64
    }
}
