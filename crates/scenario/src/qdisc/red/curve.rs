//! RED's parameters as the kernel has them: `tc` turns burst and probability into shifts before it passes them on.
//!
//! The formulas are those of Sally Floyd's notes on RED parameters as `tc` applies them (iproute2's `tc_red.c`), and
//! those of the kernel's `red_set_parms` and `red_check_params` (`include/net/red.h`). The disciplines that drop as RED
//! does share them.

use std::fmt;

use super::IdleTable;

/// Why the kernel cannot compute the average that RED's parameters require.
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
    /// `bandwidth` is so small that no table can express how the average decays while the queue is idle.
    NeverAges,
    /// `probability` is so small compared with `max` - `min` that `tc` cannot express the slope between them.
    Flat,
}

/// How the probability of drops follows the average queue: the constants that the kernel computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve {
    /// The average at which dropping starts, in the unit in which the kernel counts the queue.
    pub min: u64,
    /// The average at which the probability reaches its maximum, in the same unit.
    pub max: u64,
    /// n, where W = 2^-n: the newest queue weighs W in the average (`Wlog`).
    pub shift: u32,
    /// The maximum of the probability, as a multiple of 2^-32 (`max_P`).
    pub probability: u32,
}

/// How the kernel averages a queue that is idle at times.
#[derive(Clone, Debug)]
pub struct Averaging {
    /// The thresholds and the weight of the newest queue.
    pub curve: Curve,
    /// How the average ages while the queue is idle (`Stab`).
    pub idle: IdleTable,
}

/// What `tc` computes the constants from. The thresholds are in the unit in which the kernel counts the queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::qdisc) struct Wanted {
    pub(in crate::qdisc) min: u64,
    pub(in crate::qdisc) max: u64,
    /// Bytes that `tc` takes for one unit of the thresholds.
    pub(in crate::qdisc) unit_bytes: u32,
    pub(in crate::qdisc) avpkt_bytes: u32,
    pub(in crate::qdisc) burst_packets: u32,
    pub(in crate::qdisc) probability: f64,
}

impl Wanted {
    /// The constants.
    ///
    /// # Errors
    /// Parameters that `tc` or the kernel refuses.
    pub(in crate::qdisc) fn curve(&self) -> Result<Curve, AveragingError> {
        let shift = self.averaging_shift()?;
        let probability = self.max_probability().ok_or(AveragingError::Flat)?;
        Ok(Curve { min: self.min, max: self.max, shift, probability })
    }

    /// The constants, and how the average ages while the queue drains at `bandwidth_bps`.
    ///
    /// # Errors
    /// Parameters that `tc` or the kernel refuses.
    pub(in crate::qdisc) fn averaging(&self, bandwidth_bps: u64) -> Result<Averaging, AveragingError> {
        let curve = self.curve()?;
        let idle = IdleTable::new(self.avpkt_bytes, bandwidth_bps, curve.shift).ok_or(AveragingError::NeverAges)?;
        Ok(Averaging { curve, idle })
    }

    /// The averaging constant W = 2^-n of the moving average (the kernel's `Wlog`): the largest W, at most 1/2, with
    /// which a burst of `burst_packets` into an empty queue leaves the average below `min`.
    ///
    /// After L packets the average is L + 1 - (1 - (1 - W)^L) / W packets; that is below min for
    /// L + 1 - min/avpkt <= (1 - (1 - W)^L) / W.
    ///
    /// # Errors
    /// The burst is too small for any W, or the kernel has no room for the average: the bits of min and of max and the
    /// exponent must be below 32 together (`red_check_params` in `include/net/red.h`).
    pub(super) fn averaging_shift(&self) -> Result<u32, AveragingError> {
        let shift = self.largest_weight().ok_or_else(|| AveragingError::BurstTooSmall {
            least_packets: 1 + self.bytes(self.min) / u64::from(self.avpkt_bytes.max(1)),
        })?;
        let bits = u64::BITS - self.min.max(self.max).leading_zeros();
        if bits + shift < 32 { Ok(shift) } else { Err(AveragingError::TooSlow { shift }) }
    }

    /// The exponent of W by the formula alone; `None` if the burst is too small for any W, or W would be below 2^-31.
    fn largest_weight(&self) -> Option<u32> {
        let burst = f64::from(self.burst_packets);
        let excess = burst + 1.0 - self.bytes(self.min) as f64 / f64::from(self.avpkt_bytes);
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
    fn probability_shift(&self) -> Option<u32> {
        let span = self.max.checked_sub(self.min).filter(|span| *span > 0)?;
        let slope = self.probability / self.bytes(span) as f64;
        (0..32).find(|shift| slope * f64::from(1_u32 << shift) > 1.0)
    }

    /// The highest probability of a drop below `max`, as the kernel computes with it; `None` if there is no slope.
    ///
    /// A probability of 1 does not fit into the 32 bits that `tc` passes on: it becomes 0 on the machines that Linux
    /// mostly runs on. The kernel takes 0 as "not given", and derives the probability from the slope's shift, which is
    /// rounded to a power of two. So it is between 1/2 and 1.
    fn max_probability(&self) -> Option<u32> {
        let shift = self.probability_shift()?;
        match (self.probability * 4_294_967_296.0) as u64 as u32 {
            0 => Some((u32::MAX >> shift).wrapping_mul((self.max - self.min) as u32)),
            passed => Some(passed),
        }
    }

    fn bytes(&self, threshold: u64) -> u64 {
        threshold * u64::from(self.unit_bytes)
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
            Self::Flat => f.write_str("probability is too small compared with max - min"),
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
    fn lab() -> Wanted {
        Wanted { min: 83_333, max: 250_000, unit_bytes: 1, avpkt_bytes: 1000, burst_packets: 138, probability: 0.02 }
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
        let refused = Wanted { burst_packets: 82, ..lab() }.averaging_shift();
        assert_eq!(refused, Err(AveragingError::BurstTooSmall { least_packets: 84 }));
        assert!(Wanted { burst_packets: 84, ..lab() }.averaging_shift().is_ok());
    }

    /// The kernel refuses `fls(qth_max) + Wlog >= 32`. The lab's exponent is 6 for every max, so max may have 25 bits.
    #[test]
    fn the_kernel_has_room_for_31_bits_of_threshold_and_weight() {
        let of_max = |max| Wanted { max, ..lab() }.averaging_shift();
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
        assert_eq!(Wanted { min: 250_000, ..lab() }.probability_shift(), None);
        assert_eq!(Wanted { probability: 1e-9, ..lab() }.curve(), Err(AveragingError::Flat));
    }

    /// 0.02 * 2^32 = 85899345.92, without the fraction.
    #[test]
    fn the_probability_is_a_fraction_of_32_bits() {
        let curve = lab().curve();
        assert_eq!(curve, Ok(Curve { min: 83_333, max: 250_000, shift: 6, probability: 85_899_345 }));
    }

    /// `tc qdisc add dev lo root red limit 100000 avpkt 1000 probability 1` passes on min 8333, max 25000, a shift of
    /// 15 and 0 for the probability (iproute2 6.1, seen with strace). The kernel makes (2^17 - 1) * 16667 of it, 51 %.
    #[test]
    fn a_probability_of_1_becomes_about_one_half() {
        let certain = Wanted { min: 8333, max: 25_000, burst_packets: 13, probability: 1.0, ..lab() };
        assert_eq!(certain.probability_shift(), Some(15));
        assert_eq!(certain.max_probability(), Some(131_071 * 16_667));
    }

    /// Thresholds in packets count as this many bytes for `tc`, but not for the kernel.
    #[test]
    fn thresholds_in_packets_have_the_weight_of_those_in_bytes() {
        let packets = Wanted { min: 83, max: 250, unit_bytes: 1000, ..lab() };
        let bytes = Wanted { min: 83_000, max: 250_000, ..lab() };
        assert_eq!(packets.averaging_shift(), bytes.averaging_shift());
        assert_eq!(packets.probability_shift(), bytes.probability_shift());
        assert_eq!((packets.curve().unwrap().min, bytes.curve().unwrap().min), (83, 83_000));
    }
}
