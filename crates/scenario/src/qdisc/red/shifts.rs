//! RED's parameters as the kernel expects them: tc turns burst and probability into shifts before it passes them on.
//!
//! The formulas are those of Sally Floyd's notes on RED parameters as `tc` applies them (iproute2's `tc_red.c`).

use std::fmt;

use super::{IdleTable, Red};

/// Why the kernel cannot average a queue as RED's parameters ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AveragingError {
    /// No W lets the burst pass.
    BurstTooSmall {
        /// The smallest burst that some W may let pass.
        least_packets: u64,
    },
    /// The kernel's fixed-point average has no room for `max` in addition to the fraction bits of W.
    TooSlow {
        /// n, where W = 2^-n.
        shift: u32,
    },
    /// `bandwidth` is so small that no table can tell how the average ages while the queue is idle.
    NeverAges,
}

/// How the kernel averages a queue.
#[derive(Clone, Debug)]
pub struct Averaging {
    /// n, where W = 2^-n: the newest backlog weighs W in the average (`Wlog`).
    pub shift: u32,
    /// How the average ages while the queue is idle (`Stab`).
    pub idle: IdleTable,
}

impl Red {
    /// How the kernel averages the queue.
    ///
    /// # Errors
    /// Parameters that `tc` or the kernel refuses.
    pub fn averaging(&self) -> Result<Averaging, AveragingError> {
        let shift = self.averaging_shift()?;
        let idle = IdleTable::new(self, shift).ok_or(AveragingError::NeverAges)?;
        Ok(Averaging { shift, idle })
    }

    /// The averaging constant W = 2^-n of the moving average (the kernel's `Wlog`): the largest W, at most 1/2, with
    /// which a burst of `burst_packets` into an empty queue leaves the average below `min_bytes`.
    ///
    /// After L packets the average is L + 1 - (1 - (1 - W)^L) / W packets; that is below min for
    /// L + 1 - min/avpkt <= (1 - (1 - W)^L) / W.
    ///
    /// # Errors
    /// The burst is too small for any W, or the kernel has no room for the average: the bits of min and of max and the
    /// exponent must be below 32 together (`red_check_params` in `include/net/red.h`).
    pub(super) fn averaging_shift(&self) -> Result<u32, AveragingError> {
        let shift = self.largest_weight().ok_or_else(|| AveragingError::BurstTooSmall {
            least_packets: 1 + self.min_bytes / u64::from(self.avpkt_bytes.max(1)),
        })?;
        let bits = u64::BITS - self.min_bytes.max(self.max_bytes).leading_zeros();
        if bits + shift < 32 { Ok(shift) } else { Err(AveragingError::TooSlow { shift }) }
    }

    /// The exponent of W by the formula alone; `None` if the burst is too small for any W, or W would be below 2^-31.
    fn largest_weight(&self) -> Option<u32> {
        let burst = f64::from(self.burst_packets);
        let excess = burst + 1.0 - self.min_bytes as f64 / f64::from(self.avpkt_bytes);
        if excess < 1.0 {
            return None;
        }
        (1..32).find(|shift| {
            let w = 1.0 / f64::from(1_u32 << shift);
            excess <= (1.0 - power(1.0 - w, self.burst_packets)) / w
        })
    }

    /// The slope of the marking probability between min and max as a shift (the kernel's `Plog`): the smallest n for
    /// which `probability` / (max - min) * 2^n is above 1. `None` if max is not above min or n would be above 31.
    pub fn probability_shift(&self) -> Option<u32> {
        let span = self.max_bytes.checked_sub(self.min_bytes).filter(|span| *span > 0)?;
        let slope = self.probability / span as f64;
        (0..32).find(|shift| slope * f64::from(1_u32 << shift) > 1.0)
    }
}

impl std::error::Error for AveragingError {}

impl fmt::Display for AveragingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BurstTooSmall { least_packets } => {
                write!(f, "the burst is too small for any average; at least {least_packets} packets are needed")
            }
            Self::TooSlow { shift } => {
                write!(f, "max is too large for an average that each packet moves by 2^-{shift}")
            }
            Self::NeverAges => f.write_str("bandwidth is too small to age the average"),
        }
    }
}

/// `base` to the power of `exponent` by squaring. Not `powi`: multiplication gives the same result on every machine.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut square, mut rest, mut product) = (base, exponent, 1.0);
    while rest > 0 {
        if rest % 2 == 1 {
            product *= square;
        }
        square *= square;
        rest /= 2;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tc qdisc add ... red limit 1000000 avpkt 1000` with what tc derives: max = limit / 4, min = max / 3,
    /// burst = (2 min + max) / (3 avpkt) = (166666 + 250000) / 3000 = 138.
    fn lab() -> Red {
        Red {
            limit_bytes: 1_000_000,
            min_bytes: 83_333,
            max_bytes: 250_000,
            avpkt_bytes: 1000,
            burst_packets: 138,
            probability: 0.02,
            bandwidth_bps: 10_000_000,
            ecn: false,
        }
    }

    /// excess = 138 + 1 - 83.333 = 55.667. W = 1/32: (1 - (31/32)^138) * 32 = 31.6 is too little;
    /// W = 1/64: (1 - (63/64)^138) * 64 = 56.7 suffices.
    #[test]
    fn averaging_of_the_lab_is_one_in_64() {
        assert_eq!(lab().averaging_shift(), Ok(6));
    }

    /// 0.02 / 166667 = 1.2e-7 = 2^-22.99: 2^23 brings it to 1.0066.
    #[test]
    fn slope_of_the_lab_is_two_to_the_minus_23() {
        assert_eq!(lab().probability_shift(), Some(23));
    }

    #[test]
    fn a_burst_below_min_has_no_averaging_constant() {
        let refused = Red { burst_packets: 82, ..lab() }.averaging_shift();
        assert_eq!(refused, Err(AveragingError::BurstTooSmall { least_packets: 84 }));
        assert!(Red { burst_packets: 84, ..lab() }.averaging_shift().is_ok());
    }

    /// The kernel refuses `fls(qth_max) + Wlog >= 32`. The lab's exponent is 6 for every max, so max may have 25 bits.
    #[test]
    fn the_kernel_has_room_for_31_bits_of_threshold_and_weight() {
        let of_max = |max_bytes| Red { max_bytes, limit_bytes: 1 << 30, ..lab() }.averaging_shift();
        assert_eq!(of_max((1 << 25) - 1), Ok(6));
        assert_eq!(of_max(1 << 25), Err(AveragingError::TooSlow { shift: 6 }));
    }

    #[test]
    fn powers_are_products() {
        for exponent in [0, 1, 2, 3, 10, 138] {
            let product: f64 = (0..exponent).map(|_| 0.984).product();
            assert!((power(0.984, exponent) / product - 1.0).abs() < 1e-12, "{exponent}");
        }
    }

    #[test]
    fn no_span_or_no_probability_has_no_slope() {
        assert_eq!(Red { min_bytes: 250_000, ..lab() }.probability_shift(), None);
        assert_eq!(Red { probability: 1e-9, ..lab() }.probability_shift(), None);
    }
}
