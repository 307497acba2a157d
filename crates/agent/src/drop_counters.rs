//! Drops and marks in a port's queue, from the discipline's counters. The resulting rows of `drops`
//! have no flow and no size. Their time is that of the sample that found a counter increased.

use bufferscope_endpoint::qdisc_stats::QdiscStats;
use bufferscope_records::{DropReason, DropRow, Layer, Name, Observed};
use bufferscope_scenario::Kind;

/// The drops and marks of one port that already have a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DropCounters {
    drops: u64,
    by_reason: [u64; Kind::MOST_COUNTED],
}

impl DropCounters {
    /// Passes a row to `each` for every packet dropped or marked since the last sample.
    ///
    /// The kernel fills in a discipline's own statistics before the common ones, and other CPUs continue to work
    /// meanwhile. So the number of rows is capped at the common drop count; a reason that was cut short catches up with
    /// the next sample.
    pub(crate) fn report(&mut self, stats: &QdiscStats, t_ns: u64, port: Name, mut each: impl FnMut(DropRow)) {
        let mut left = stats.drops.saturating_sub(self.drops);
        for ((reason, counted), reported) in stats.by_reason.into_iter().flatten().zip(&mut self.by_reason) {
            let mut new = counted.saturating_sub(*reported);
            if !reason.marks {
                new = new.min(left);
                left -= new;
                self.drops += new;
            }
            *reported += new;
            let (layer, reason) = (Layer::Qdisc, DropReason::new(reason.word));
            for _ in 0..new {
                each(DropRow { t_ns, port, layer, flow: None, bytes: None, reason, observed: Observed::Counter });
            }
        }
    }
}

/// Packets marked since the start.
pub(crate) fn marked(stats: &QdiscStats) -> u64 {
    stats.by_reason.into_iter().flatten().filter(|(reason, _)| reason.marks).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use bufferscope_endpoint::qdisc_stats::by_reason;
    use bufferscope_records::{MemorySink, Recorder};
    use bufferscope_scenario::Reason;

    use super::*;

    /// The reasons of the rows that each of these samples adds.
    fn reasons(samples: &[QdiscStats]) -> Vec<Vec<&'static str>> {
        let port = Recorder::new(MemorySink::default()).intern("r1>h2");
        let mut drops = DropCounters::default();
        let rows = |stats: &QdiscStats| {
            let mut reasons = Vec::new();
            drops.report(stats, 0, port, |row| reasons.push(row.reason.as_str()));
            reasons
        };
        samples.iter().map(rows).collect()
    }

    /// A `codel` that dropped this many packets, `overlimit` of them at its limit, and marked four.
    fn codel(drops: u64, overlimit: u64) -> QdiscStats {
        let counts =
            [(Reason::OVERLIMIT, overlimit), (Reason::CODEL, drops.saturating_sub(overlimit)), (Reason::CODEL_MARK, 4)];
        QdiscStats { drops, by_reason: by_reason(counts), ..QdiscStats::default() }
    }

    #[test]
    fn a_row_has_the_reason_as_far_as_the_counters_show_it() {
        let expected = ["overlimit", "overlimit", "codel", "codel_mark", "codel_mark", "codel_mark", "codel_mark"];
        assert_eq!(reasons(&[codel(3, 2)]), [expected]);
        assert_eq!(marked(&codel(3, 2)), 4);
        assert_eq!(reasons(&[codel(3, 2), codel(3, 2)])[1], [""; 0], "nothing new");
    }

    /// A packet was dropped at the limit while the statistics were read: the common count already includes it, but the
    /// discipline's own count does not.
    #[test]
    fn counters_read_while_they_change_never_give_more_rows_than_drops() {
        let rows = reasons(&[codel(5, 0), codel(6, 0), codel(6, 1), codel(7, 1)]);
        let drops = |rows: &[&str]| rows.iter().filter(|word| **word != Reason::CODEL_MARK.word).count();
        assert_eq!(rows.iter().map(|rows| drops(rows)).collect::<Vec<_>>(), [5, 1, 0, 1]);
        assert_eq!(rows[3], ["overlimit"], "what was not reported then is reported now");
    }
}
