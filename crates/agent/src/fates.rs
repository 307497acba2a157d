//! What became of packets in a port's queue, as far as its discipline's counters tell. This gives rows of `drops`
//! without flow and size, at the time of the sample that found a counter increased.

use bufferscope_records::{DropReason, DropRow, Layer, Name, Observed};

use crate::kernel::qdisc_stats::{OwnStats, QdiscStats};

/// No discipline distinguishes more reasons than this.
const REASONS: usize = 3;

/// The packets of one port that have a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fates {
    drops: u64,
    by_reason: [u64; REASONS],
}

impl Fates {
    /// Passes a row to `each` for every packet dropped or marked since the last sample.
    ///
    /// The kernel fills in a discipline's own statistics before the common ones, and other CPUs continue meanwhile. So
    /// the number of rows is capped at the common drop count; a reason that fell short catches up with the next sample.
    pub(crate) fn tell(&mut self, stats: &QdiscStats, t_ns: u64, port: Name, mut each: impl FnMut(DropRow)) {
        let mut left = stats.drops.saturating_sub(self.drops);
        for ((reason, counted), told) in counted(stats).into_iter().zip(&mut self.by_reason) {
            let mut new = counted.saturating_sub(*told);
            if !is_mark(reason) {
                new = new.min(left);
                left -= new;
                self.drops += new;
            }
            *told += new;
            let layer = Layer::Qdisc;
            for _ in 0..new {
                each(DropRow { t_ns, port, layer, flow: None, bytes: None, reason, observed: Observed::Counter });
            }
        }
    }
}

/// Packets marked since the start.
pub(crate) fn marked(stats: &QdiscStats) -> u64 {
    counted(stats).into_iter().filter(|(reason, _)| is_mark(*reason)).map(|(_, count)| count).sum()
}

/// What a discipline's counters tell. RED has one counter for what it drops below `max` and above it.
fn counted(stats: &QdiscStats) -> [(DropReason, u64); REASONS] {
    match stats.own {
        OwnStats::None => [(DropReason::Overlimit, stats.drops), (DropReason::Codel, 0), (DropReason::CodelMark, 0)],
        OwnStats::Red { early, overlimit, marked } => {
            [(DropReason::Overlimit, overlimit), (DropReason::Red, early), (DropReason::RedMark, marked)]
        }
        OwnStats::Codel { overlimit, marked, over_threshold } => [
            (DropReason::Overlimit, overlimit),
            (DropReason::Codel, stats.drops.saturating_sub(overlimit)),
            (DropReason::CodelMark, marked + over_threshold),
        ],
    }
}

fn is_mark(reason: DropReason) -> bool {
    matches!(reason, DropReason::RedMark | DropReason::CodelMark)
}

#[cfg(test)]
mod tests {
    use bufferscope_records::{MemorySink, Recorder};

    use super::*;

    /// The reasons of the rows that each of these samples brings.
    fn told(samples: &[QdiscStats]) -> Vec<Vec<DropReason>> {
        let port = Recorder::new(MemorySink::default()).intern("r1>h2");
        let mut fates = Fates::default();
        let rows = |stats: &QdiscStats| {
            let mut reasons = Vec::new();
            fates.tell(stats, 0, port, |row| reasons.push(row.reason));
            reasons
        };
        samples.iter().map(rows).collect()
    }

    fn codel(drops: u64, overlimit: u64) -> QdiscStats {
        let own = OwnStats::Codel { overlimit, marked: 3, over_threshold: 1 };
        QdiscStats { drops, own, ..QdiscStats::default() }
    }

    #[test]
    fn a_fifo_drops_at_its_limit_only() {
        let stats = QdiscStats { drops: 2, ..QdiscStats::default() };
        assert_eq!(told(&[stats, stats]), [vec![DropReason::Overlimit; 2], vec![]]);
    }

    #[test]
    fn codel_drops_beyond_its_limit_are_told_apart() {
        use DropReason::{Codel, CodelMark, Overlimit};
        let expected = [Overlimit, Overlimit, Codel, CodelMark, CodelMark, CodelMark, CodelMark];
        assert_eq!(told(&[codel(3, 2)]), [expected]);
        assert_eq!(marked(&codel(3, 2)), 4);
    }

    #[test]
    fn red_tells_its_limit_from_its_average_but_not_early_from_forced() {
        let own = OwnStats::Red { early: 2, overlimit: 1, marked: 1 };
        let stats = QdiscStats { drops: 3, own, ..QdiscStats::default() };
        let expected = [DropReason::Overlimit, DropReason::Red, DropReason::Red, DropReason::RedMark];
        assert_eq!(told(&[stats]), [expected]);
    }

    /// A packet dropped at the limit while the statistics were read: the common count already has it, the discipline's
    /// own count does not.
    #[test]
    fn counters_read_while_they_change_never_give_more_rows_than_drops() {
        let rows = told(&[codel(5, 0), codel(6, 0), codel(6, 1), codel(7, 1)]);
        let drops = |rows: &[DropReason]| rows.iter().filter(|reason| !is_mark(**reason)).count();
        assert_eq!(rows.iter().map(|rows| drops(rows)).collect::<Vec<_>>(), [5, 1, 0, 1]);
        assert_eq!(rows[3], [DropReason::Overlimit], "what was not told then is told now");
    }
}
