//! The rate of a shaper that follows the arrivals (`autorate-ingress`, in `cake_enqueue`): 15/16 of the highest rate of
//! recent windows. A window ends with a gap that is longer than average.

/// Longest gap that counts.
const LONGEST_GAP_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Autorate {
    last_arrival_ns: Option<u64>,
    window_began_ns: Option<u64>,
    window_bytes: u64,
    average_gap_ns: u64,
    /// In bytes per second.
    peak_rate: u64,
}

impl Autorate {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self {
            last_arrival_ns: None,
            window_began_ns: None,
            window_bytes: 0,
            average_gap_ns: 0,
            peak_rate: bytes_per_second,
        }
    }

    /// This many bytes arrive. Returns the new rate of the shaper in bytes per second if a window ends.
    pub(super) fn on_arrival(&mut self, bytes: u64, now_ns: u64) -> Option<u64> {
        self.window_bytes += bytes;
        // The kernel's clock has been running for long when the first packet arrives.
        let last_ns = self.last_arrival_ns.replace(now_ns);
        let gap_ns = last_ns.map_or(LONGEST_GAP_NS, |last_ns| (now_ns - last_ns).min(LONGEST_GAP_NS));
        self.average_gap_ns = average(self.average_gap_ns, gap_ns);
        if gap_ns <= self.average_gap_ns {
            return None;
        }
        let began_ns = self.window_began_ns.replace(now_ns);
        let window_bytes = std::mem::take(&mut self.window_bytes);
        let rate = began_ns.map_or(0, |began_ns| window_bytes * LONGEST_GAP_NS / (now_ns - began_ns).max(1));
        self.peak_rate = average(self.peak_rate, rate);
        Some(self.peak_rate.wrapping_mul(15) >> 4)
    }
}

/// A moving average that rises faster than it falls (`cake_ewma`).
fn average(average: u64, sample: u64) -> u64 {
    let shift = if sample > average { 2 } else { 8 };
    average - (average >> shift) + (sample >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_rise_by_a_quarter_and_fall_by_a_256th() {
        assert_eq!([average(1000, 2000), average(1024, 512), average(0, 1000)], [1250, 1022, 250]);
    }

    /// Pairs of packets 1 ms apart, every 10 ms. The average gap has fallen below 10 ms after some time, so the second gap
    /// of each pair ends a window of two packets: 3000 bytes in 10 ms are 300,000 bytes/s.
    #[test]
    fn the_rate_follows_that_of_windows() {
        let mut autorate = Autorate::new(0);
        let mut rates = Vec::new();
        for pair in 0..2000 {
            let at_ns = pair * 10_000_000;
            rates.extend(autorate.on_arrival(1500, at_ns));
            rates.extend(autorate.on_arrival(1500, at_ns + 1_000_000));
        }
        let last = *rates.last().unwrap();
        assert!((279_000..=281_250).contains(&last), "{last} is not 15/16 of 300,000");
    }
}
