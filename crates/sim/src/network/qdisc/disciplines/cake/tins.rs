//! Tins: classes of code points, each with its queues and a threshold rate up to which it has priority (`cake_config_*`).

use bufferscope_scenario::Diffserv;
use bufferscope_scenario::sizes::FRAME_BYTES;

use super::cobalt::Parameters;
use super::flows::Flows;
use super::shaper::Rate;

/// One tin.
#[derive(Debug)]
pub(super) struct Tin {
    pub(super) flows: Flows,
    pub(super) cobalt: Parameters,
    /// Its threshold.
    rate: Rate,
    /// When the packets that it has sent would have been sent at its threshold.
    pub(super) next_ns: u64,
    /// Its share without a shaper.
    pub(super) quantum: i32,
    pub(super) deficit: i32,
    /// Queued bytes.
    pub(super) bytes: u64,
}

/// Which tin the code points choose.
pub(super) type Table = [u8; 64];

/// The tins by rates and quanta; the first has the rate of the shaper.
pub(super) fn shares(diffserv: Diffserv, bytes_per_second: u64) -> Vec<(u64, i32)> {
    let by_shifts = |shifts: &[u32]| shifts.iter().map(|shift| (bytes_per_second >> shift, 1024 >> shift)).collect();
    match diffserv {
        Diffserv::Besteffort => vec![(bytes_per_second, 65535)],
        Diffserv::Diffserv3 => by_shifts(&[0, 4, 2]),
        Diffserv::Diffserv4 => by_shifts(&[0, 4, 1, 2]),
        Diffserv::Diffserv8 | Diffserv::Precedence => {
            let less = |(rate, quantum): &(u64, i32)| Some((rate.wrapping_mul(7) >> 3, (quantum * 7) >> 3));
            std::iter::successors(Some((bytes_per_second, 256)), less).take(8).collect()
        }
    }
}

/// Which tin a code point chooses: the tables of sch_cake by the code points' names (RFC 2474, RFC 2597, RFC 3246,
/// RFC 5865, RFC 8622), with the old types of service 1, 2, 4 and 5.
pub(super) fn table(diffserv: Diffserv) -> Table {
    const LOWER_EFFORT: u8 = 1;
    const CS: [u8; 8] = [0, 8, 16, 24, 32, 40, 48, 56];
    /// Voice Admit and Expedited Forwarding.
    const VOICE: [u8; 2] = [44, 46];
    const AF1: [u8; 3] = [10, 12, 14];
    const AF2: [u8; 3] = [18, 20, 22];
    const AF3: [u8; 3] = [26, 28, 30];
    const AF4: [u8; 3] = [34, 36, 38];
    let mut table = [0; 64];
    let mut put = |tin: u8, points: &[u8]| points.iter().for_each(|point| table[usize::from(*point)] = tin);
    match diffserv {
        Diffserv::Besteffort => {}
        Diffserv::Precedence => (0..64).for_each(|point: u8| put(point >> 3, &[point])),
        Diffserv::Diffserv3 => {
            put(1, &[LOWER_EFFORT, CS[1]]);
            put(2, &[4, CS[6], CS[7]]);
            put(2, &VOICE);
        }
        Diffserv::Diffserv4 => {
            put(1, &[LOWER_EFFORT, CS[1]]);
            put(2, &[4, CS[2], CS[3]]);
            [AF2, AF3, AF4].iter().for_each(|points| put(2, points));
            put(3, &[CS[4], CS[5], CS[6], CS[7]]);
            put(3, &VOICE);
        }
        Diffserv::Diffserv8 => {
            (0..64).for_each(|point| put(2, &[point]));
            put(0, &[LOWER_EFFORT]);
            put(1, &[2, CS[1]]);
            put(1, &AF1);
            put(3, &[CS[3]]);
            [AF3, AF4].iter().for_each(|points| put(3, points));
            put(4, &[4]);
            put(4, &AF2);
            put(5, &[CS[2]]);
            put(6, &[CS[4], CS[5]]);
            put(6, &VOICE);
            put(7, &[CS[6], CS[7]]);
        }
    }
    table
}

impl Tin {
    pub(super) fn new(salt: u64) -> Self {
        Self {
            flows: Flows::new(salt),
            cobalt: Parameters::default(),
            rate: Rate::default(),
            next_ns: 0,
            quantum: 0,
            deficit: 0,
            bytes: 0,
        }
    }

    /// Sets the threshold, and what depends on it (`cake_set_rate`): at low rates, COBALT allows for one and a half full
    /// frames.
    pub(super) fn set_rate(&mut self, bytes_per_second: u64, target_ns: u64, interval_ns: u64) {
        self.flows.quantum = match bytes_per_second {
            0 => FRAME_BYTES,
            rate => (rate >> 12).clamp(300, FRAME_BYTES.into()) as u32,
        };
        self.rate = Rate::new(bytes_per_second);
        let mtu_ns = self.rate.duration_ns(FRAME_BYTES);
        let target = (mtu_ns * 3 / 2).max(target_ns);
        let interval = (interval_ns + target - target_ns).max(target * 2);
        self.cobalt = Parameters { interval_ns: interval, target_ns: target, mtu_ns };
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// A packet leaves, or counts as sent.
    #[inline]
    pub(super) fn advance(&mut self, bytes: u32, now_ns: u64) {
        let duration_ns = self.rate.duration_ns(bytes);
        if self.next_ns < now_ns {
            self.next_ns += duration_ns;
        } else {
            self.next_ns = self.next_ns.max(now_ns + duration_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of `net/sched/sch_cake.c`, eight code points a number, a digit each.
    #[test]
    fn code_points_choose_the_tins_of_the_kernel() {
        let digits = |diffserv| {
            let rows = table(diffserv);
            rows.chunks(8)
                .map(|row| row.iter().map(|tin| char::from(b'0' + tin)).collect::<String>())
                .collect::<Vec<_>>()
        };
        let diffserv8 =
            ["20124222", "12121212", "52424242", "32323232", "62323232", "62226262", "72222222", "72222222"];
        assert_eq!(digits(Diffserv::Diffserv8), diffserv8);
        let diffserv4 =
            ["01002000", "10000000", "20202020", "20202020", "30202020", "30003030", "30000000", "30000000"];
        assert_eq!(digits(Diffserv::Diffserv4), diffserv4);
        let diffserv3 =
            ["01002000", "10000000", "00000000", "00000000", "00000000", "00002020", "20000000", "20000000"];
        assert_eq!(digits(Diffserv::Diffserv3), diffserv3);
        assert_eq!(digits(Diffserv::Precedence)[6], "66666666");
        assert_eq!(digits(Diffserv::Besteffort), ["00000000"; 8]);
    }

    #[test]
    fn tins_have_the_shares_of_the_kernel() {
        assert_eq!(shares(Diffserv::Besteffort, 1000), [(1000, 65535)]);
        assert_eq!(shares(Diffserv::Diffserv3, 1_000_000), [(1_000_000, 1024), (62_500, 64), (250_000, 256)]);
        let four = [(1_000_000, 1024), (62_500, 64), (500_000, 512), (250_000, 256)];
        assert_eq!(shares(Diffserv::Diffserv4, 1_000_000), four);
        let quanta: Vec<i32> = shares(Diffserv::Precedence, 0).iter().map(|share| share.1).collect();
        assert_eq!(quanta, [256, 224, 196, 171, 149, 130, 113, 98]);
        let rates: Vec<u64> = shares(Diffserv::Diffserv8, 1_000_000).iter().map(|share| share.0).collect();
        assert_eq!(rates, [1_000_000, 875_000, 765_625, 669_921, 586_180, 512_907, 448_793, 392_693]);
    }

    /// At 1 Mbit/s, a full frame lasts 12.112 ms: the target is 18.168 ms, and the interval 13.168 ms longer.
    #[test]
    fn low_rates_lengthen_targets() {
        let mut tin = Tin::new(0);
        tin.set_rate(125_000, 5_000_000, 100_000_000);
        let expected = Parameters { interval_ns: 113_168_000, target_ns: 18_168_000, mtu_ns: 12_112_000 };
        assert_eq!((tin.cobalt, tin.flows.quantum), (expected, 300));
        tin.set_rate(12_500_000, 5_000_000, 100_000_000);
        let expected = Parameters { interval_ns: 100_000_000, target_ns: 5_000_000, mtu_ns: 121_120 };
        assert_eq!((tin.cobalt, tin.flows.quantum), (expected, 1514));
        tin.set_rate(0, 5_000_000, 100_000_000);
        assert_eq!((tin.cobalt.mtu_ns, tin.flows.quantum), (0, 1514));
        // 10 kbyte/s: twice the target of 227.1 ms is longer than the rest.
        tin.set_rate(10_000, 5_000_000, 100_000_000);
        assert_eq!((tin.cobalt.target_ns, tin.cobalt.interval_ns), (227_100_000, 454_200_000));
    }

    #[test]
    fn a_tin_below_its_threshold_catches_up_and_one_above_it_runs_ahead() {
        let mut tin = Tin::new(0);
        tin.set_rate(1_000_000, 1, 20);
        tin.advance(1000, 3_000_000);
        assert_eq!(tin.next_ns, 1_000_000, "it lagged behind");
        tin.next_ns = 3_000_000;
        tin.advance(1000, 3_000_000);
        assert_eq!(tin.next_ns, 4_000_000);
        tin.advance(1000, 3_500_000);
        assert_eq!(tin.next_ns, 4_500_000);
        tin.advance(500, 3_500_000);
        assert_eq!(tin.next_ns, 4_500_000, "it is ahead by more");
    }
}
