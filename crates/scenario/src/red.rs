//! RED's parameters as the kernel wants them: tc turns burst and probability into shifts before it passes them on.
//!
//! The formulas are those of Sally Floyd's notes on RED parameters as `tc` applies them (iproute2's `tc_red.c`).

use crate::model::Red;

impl Red {
    /// The averaging constant W = 2^-n of the moving average (the kernel's `Wlog`): the largest W, 1/2 at most, by which a
    /// burst of `burst_packets` into an empty queue leaves the average below `min_bytes`.
    ///
    /// After L packets the average is L + 1 - (1 - (1 - W)^L) / W packets; that is below min for
    /// L + 1 - min/avpkt <= (1 - (1 - W)^L) / W. `None` if the burst is too small for any W, or W would be below 2^-31.
    pub fn averaging_shift(&self) -> Option<u32> {
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

    /// Whether the kernel's average, min and max times 2^shift in 32 bits, has room for these parameters.
    pub(crate) fn kernel_can_average(&self, shift: u32) -> bool {
        let bits = u64::BITS - self.max_bytes.leading_zeros();
        bits + shift < 32
    }

    /// The slope of the marking probability between min and max as a shift (the kernel's `Plog`): the smallest n for which
    /// `probability` / (max - min) * 2^n is above 1. `None` if max is not above min or n would be above 31.
    pub fn probability_shift(&self) -> Option<u32> {
        let span = self.max_bytes.checked_sub(self.min_bytes).filter(|span| *span > 0)?;
        let slope = self.probability / span as f64;
        (0..32).find(|shift| slope * f64::from(1_u32 << shift) > 1.0)
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
        assert_eq!(lab().averaging_shift(), Some(6));
    }

    /// 0.02 / 166667 = 1.2e-7 = 2^-22.99: 2^23 brings it to 1.0066.
    #[test]
    fn slope_of_the_lab_is_two_to_the_minus_23() {
        assert_eq!(lab().probability_shift(), Some(23));
    }

    #[test]
    fn a_burst_below_min_has_no_averaging_constant() {
        assert_eq!(Red { burst_packets: 82, ..lab() }.averaging_shift(), None);
        assert!(Red { burst_packets: 84, ..lab() }.averaging_shift().is_some());
    }

    /// 250000 has 18 bits, so that the kernel has 13 left.
    #[test]
    fn the_kernel_has_32_bits_for_the_average() {
        assert!(lab().kernel_can_average(13));
        assert!(!lab().kernel_can_average(14));
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
