//! Uniform numbers from a member's number and the path of a key.

/// A uniform number in (0, 1) for a member and a key; always the same for both.
pub(super) fn uniform(member: u64, key: &str) -> f64 {
    // FNV-1a (Fowler, Noll, Vo), then SplitMix64's finaliser (Steele, Lea, Flood 2014) after each of the two inputs.
    let of_key = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let bits = scramble(scramble(of_key) ^ member);
    // The middle of one of 2^53 equal parts.
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn scramble(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successive_members_get_independent_uniform_numbers() {
        let n = 20_000_u64;
        let draw = |key| (1..=n).map(|member| uniform(member, key)).collect::<Vec<f64>>();
        let (a, b) = (draw("link.access.rate"), draw("link.access.delay"));
        assert!(a.iter().all(|x| *x > 0.0 && *x < 1.0));
        let mean = |x: &[f64]| x.iter().sum::<f64>() / n as f64;
        // Mean 1/2 and variance 1/12: the mean of n has a standard error of 0.289 / sqrt(n) = 0.002.
        assert!((mean(&a) - 0.5).abs() < 0.008 && (mean(&b) - 0.5).abs() < 0.008, "{} {}", mean(&a), mean(&b));
        let correlation = |x: &[f64], y: &[f64]| {
            let product: f64 = x.iter().zip(y).map(|(x, y)| (x - 0.5) * (y - 0.5)).sum::<f64>() / n as f64;
            product * 12.0
        };
        // The correlation of independent numbers has a standard error of 1 / sqrt(n) = 0.007.
        assert!(correlation(&a, &b).abs() < 0.028, "between keys");
        assert!(correlation(&a[1..], &a[..a.len() - 1]).abs() < 0.028, "between members");
    }
}
