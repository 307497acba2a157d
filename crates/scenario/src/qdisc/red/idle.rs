//! How RED's average ages while the queue is idle: a table that `tc red` computes and passes to the kernel.
//!
//! Source: iproute2 `tc/tc_red.c`, checked against the messages that `tc` 6.1 sends. The logarithm is computed as a
//! sum, because additions and multiplications round the same way on all machines, while mathematical libraries differ.

/// `tc` measures transmission times in the packet scheduler's ticks of 64 ns (`/proc/net/psched`).
const TICKS_PER_SECOND: f64 = 15_625_000.0;
/// The average is halved at most this many times in one step.
const LARGEST_SHIFT: u8 = 31;

/// How the average decays while the queue is idle: a table of shifts by idle time (`Stab`, `Scell_log`).
///
/// The kernel indexes the table by microseconds, but `tc` builds it for ticks of 64 ns. So on Linux the average decays
/// 15.6 times more slowly than under Floyd's rule. This is modelled.
#[derive(Clone, Debug)]
pub struct IdleTable {
    shifts: [u8; 256],
    cell_log: u32,
}

impl IdleTable {
    /// The table of an average with W = 2^-`weight_log`; `None` if `bandwidth` is too small: then no table of 256 cells
    /// covers the time in which the average falls to nothing.
    pub(super) fn new(avpkt_bytes: u32, bandwidth_bps: u64, weight_log: u32) -> Option<Self> {
        let bytes_per_second = (bandwidth_bps / 8).max(1) as f64;
        let packet_ticks = (TICKS_PER_SECOND * f64::from(avpkt_bytes) / bytes_per_second).ceil();
        let fade_per_tick = minus_ln_of_one_minus(1.0 / f64::from(1_u32 << weight_log)) / packet_ticks;
        let longest = f64::from(LARGEST_SHIFT) / fade_per_tick;
        let cell_log = (0..32).find(|&log| longest / f64::from(1_u32 << log) < 512.0)?;
        let mut shifts = [LARGEST_SHIFT; 256];
        for (cell, shift) in (0_u64..255).zip(&mut shifts) {
            *shift = ((cell << cell_log) as f64 * fade_per_tick).min(f64::from(LARGEST_SHIFT)) as u8;
        }
        Some(Self { shifts, cell_log })
    }

    /// The average after `idle_us` microseconds without a packet.
    pub fn aged(&self, average: u64, idle_us: u64) -> u64 {
        let idle_us = idle_us.min(255 << self.cell_log);
        let shift = self.shifts[(idle_us >> self.cell_log) as usize];
        if shift > 0 {
            return average >> shift;
        }
        // Too early for the table: the average falls linearly, at most to half.
        let faded = ((u128::from(average) * u128::from(idle_us)) >> self.cell_log) as u64;
        if faded < average / 2 { average - faded } else { average / 2 }
    }
}

/// `-ln(1 - x)` for x in (0, 1/2]: the sum of `x^k / k`.
fn minus_ln_of_one_minus(x: f64) -> f64 {
    let powers = std::iter::successors(Some(x), |power| Some(power * x));
    (1..=60).zip(powers).map(|(k, power)| power / f64::from(k)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::Wanted;
    use super::*;

    const MBIT: u64 = 1_000_000;

    /// The table for packets of 1000 bytes on average.
    fn table(min: u64, max: u64, burst_packets: u32, bandwidth_bps: u64) -> IdleTable {
        let wanted = Wanted { min, max, unit_bytes: 1, avpkt_bytes: 1000, burst_packets, probability: 0.02 };
        wanted.averaging(bandwidth_bps).unwrap().idle
    }

    /// The cells at which the table's value rises, except the jump in the last cell.
    fn steps(table: &IdleTable) -> Vec<usize> {
        (1..255).filter(|&cell| table.shifts[cell] != table.shifts[cell - 1]).collect()
    }

    // The expected values are from the netlink messages of `tc qdisc add dev lo root red ...` (iproute2 6.1, seen with
    // strace).

    #[test]
    fn constants_are_those_of_tc_for_limit_1000000_avpkt_1000() {
        // min = 83333, max = 250000, burst = (2 min + max) / 3000 = 138.
        let table = table(83_333, 250_000, 138, 10 * MBIT);
        assert_eq!(table.cell_log, 16);
        assert_eq!(steps(&table)[..9], [13, 25, 37, 49, 61, 73, 85, 97, 110]);
        assert_eq!((table.shifts[254], table.shifts[255]), (20, 31));
    }

    #[test]
    fn constants_are_those_of_tc_for_a_faster_link_and_a_larger_burst() {
        let table = table(300_000, 800_000, 500, 100 * MBIT);
        assert_eq!(table.cell_log, 15);
        assert_eq!(steps(&table)[..5], [10, 20, 30, 39, 49]);
        assert_eq!((table.shifts[254], table.shifts[255]), (26, 31));
    }

    #[test]
    fn constants_are_those_of_tc_for_its_manual_pages_example() {
        let table = table(30_000, 90_000, 55, 10 * MBIT);
        assert_eq!(table.cell_log, 15);
        assert_eq!((table.shifts[254], table.shifts[255]), (21, 31));
    }

    #[test]
    fn an_idle_average_fades_linearly_at_first_then_by_halves() {
        let table = table(83_333, 250_000, 138, 10 * MBIT);
        // Half a cell, 2^15 us, removes half of the value, as does any longer time up to the first halving at 13 cells.
        assert_eq!(table.aged(1_000_000, 0), 1_000_000);
        assert_eq!(table.aged(1_000_000, 1 << 14), 750_000);
        assert_eq!(table.aged(1_000_000, 1 << 15), 500_000);
        assert_eq!(table.aged(1_000_000, 12 << 16), 500_000);
        assert_eq!(table.aged(1_000_000, 13 << 16), 500_000);
        assert_eq!(table.aged(1_000_000, 25 << 16), 250_000);
        assert_eq!(table.aged(1_000_000, u64::MAX / 2000), 0, "2^31 is more than a million");
    }
}
