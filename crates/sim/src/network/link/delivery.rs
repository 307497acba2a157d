//! A link that can send only at given times: the delivery opportunities of a trace.
//!
//! As mahimahi's `mm-link` (`src/frontend/link_queue.cc`): at its time, an opportunity takes 1500 bytes out of the
//! queue. A packet may need several opportunities, and has been sent at the time of the last. The rest of an
//! opportunity serves the packets that are queued at that time; what they do not use is lost. After its last line, the
//! trace repeats.
//!
//! Departs: times are exact. mahimahi reads a clock of milliseconds, and a packet comes too late for the opportunities of the
//! millisecond in which it arrives. A packet may be larger than 1500 bytes.

use bufferscope_scenario::{OPPORTUNITY_BYTES, Opportunities, RateStep, Trace};

const NS_PER_MS: u64 = 1_000_000;
/// The link's rate is recorded as the mean of this time.
const WINDOW_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Delivery {
    trace: Trace,
    /// The next opportunities: their index in the trace, and the beginning of that repetition.
    next: usize,
    base_ns: u64,
    /// Unused bytes of the opportunities at the current time.
    left_bytes: u64,
    /// The opportunities whose rate was not yet recorded, in the same way.
    unrecorded: usize,
    unrecorded_base_ns: u64,
    /// The windows that were recorded, and the rate of the last.
    windows: u64,
    recorded_bps: Option<u64>,
}

/// When a link with opportunities accepts frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// At this time only.
    At(u64),
    /// Not before the next opportunity.
    Later,
}

impl Delivery {
    pub(super) fn new(trace: Trace) -> Self {
        Self {
            trace,
            next: 0,
            base_ns: 0,
            left_bytes: 0,
            unrecorded: 0,
            unrecorded_base_ns: 0,
            windows: 0,
            recorded_bps: None,
        }
    }

    /// A packet waits: returns the time of the first unused opportunity that is not before `now_ns`. It is used next.
    pub(super) fn open(&mut self, now_ns: u64) -> u64 {
        while self.next_ns() < now_ns {
            self.skip(now_ns);
        }
        let at_ns = self.next_ns();
        self.left_bytes = self.take();
        at_ns
    }

    /// Sends a frame that begins at the time of an opportunity. Returns when it was sent, and when the link accepts another.
    pub(super) fn send(&mut self, now_ns: u64, bytes: u64) -> (u64, Opening) {
        let (mut owed, mut at_ns) = (bytes, now_ns);
        while owed > self.left_bytes {
            owed -= self.left_bytes;
            at_ns = self.next_ns();
            self.left_bytes = self.take();
        }
        self.left_bytes -= owed;
        (at_ns, if self.left_bytes > 0 { Opening::At(at_ns) } else { Opening::Later })
    }

    /// The rates of the windows that begin up to `now_ns` and were not yet recorded; windows of the same rate once.
    pub(super) fn take_rates(&mut self, now_ns: u64, mut record: impl FnMut(RateStep)) {
        while self.windows * WINDOW_NS <= now_ns {
            let from_ns = self.windows * WINDOW_NS;
            let bits_per_second = self.window_bps();
            if self.recorded_bps != Some(bits_per_second) {
                record(RateStep { from_ns, bits_per_second });
            }
            self.recorded_bps = Some(bits_per_second);
            self.windows += 1;
        }
    }

    /// The rate of the window that was recorded last.
    pub(super) fn rate_bps(&self) -> u64 {
        self.recorded_bps.unwrap_or_else(|| self.trace.mean_bps())
    }

    /// The mean rate of the window after those that were recorded.
    fn window_bps(&mut self) -> u64 {
        let end_ns = (self.windows + 1) * WINDOW_NS;
        let mut packets = 0;
        loop {
            let group = self.trace.opportunities()[self.unrecorded];
            if self.unrecorded_base_ns + u64::from(group.at_ms) * NS_PER_MS >= end_ns {
                return packets * OPPORTUNITY_BYTES * 8 * 1_000_000_000 / WINDOW_NS;
            }
            packets += u64::from(group.packets);
            (self.unrecorded, self.unrecorded_base_ns) = self.after(self.unrecorded, self.unrecorded_base_ns);
        }
    }

    fn period_ns(&self) -> u64 {
        u64::from(self.trace.period_ms()) * NS_PER_MS
    }

    fn next_ns(&self) -> u64 {
        self.base_ns + u64::from(self.trace.opportunities()[self.next].at_ms) * NS_PER_MS
    }

    /// The bytes of the next opportunities, which are then in the past.
    fn take(&mut self) -> u64 {
        let packets = self.trace.opportunities()[self.next].packets;
        (self.next, self.base_ns) = self.after(self.next, self.base_ns);
        u64::from(packets) * OPPORTUNITY_BYTES
    }

    /// The opportunities after these: their index, and the beginning of their repetition.
    fn after(&self, index: usize, base_ns: u64) -> (usize, u64) {
        if index + 1 < self.trace.opportunities().len() {
            (index + 1, base_ns)
        } else {
            (0, base_ns + self.period_ns())
        }
    }

    /// Skips to the first opportunities that are not before `now_ns`, or to the last of the current repetition.
    fn skip(&mut self, now_ns: u64) {
        let period_ns = self.period_ns();
        let whole = now_ns.saturating_sub(self.base_ns) / period_ns;
        if whole > 1 {
            (self.next, self.base_ns) = (0, self.base_ns + (whole - 1) * period_ns);
        }
        let is_past = |group: &Opportunities| self.base_ns + u64::from(group.at_ms) * NS_PER_MS < now_ns;
        let past = self.trace.opportunities()[self.next..].iter().take_while(|group| is_past(group)).count();
        let last = self.trace.opportunities().len() - 1;
        (self.next, self.base_ns) = match self.next + past {
            next if next <= last => (next, self.base_ns),
            _ => (0, self.base_ns + period_ns),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn link(lines: &[u32]) -> Delivery {
        // A trace is made from its text in a scenario: times since the one before.
        let mut last = 0;
        let mut groups: Vec<(u32, u32)> = Vec::new();
        for line in lines {
            match groups.last_mut() {
                Some((_, packets)) if *line == last => *packets += 1,
                _ => groups.push((line - last, 1)),
            }
            last = *line;
        }
        let text: String = groups.iter().map(|(gap, packets)| format!("({gap}).({packets})")).collect();
        Delivery::new(Trace::try_from(text).unwrap())
    }

    /// Sends frames of these sizes, which all wait from the beginning. Returns when they were sent, in ms.
    fn sent_ms(link: &mut Delivery, frames: &[u64]) -> Vec<u64> {
        let mut opening = Opening::Later;
        let mut now_ns = 0;
        let mut send = |bytes: &u64| {
            let begins_ns = match opening {
                Opening::At(at_ns) => at_ns,
                Opening::Later => link.open(now_ns),
            };
            let (end_ns, next) = link.send(begins_ns, *bytes);
            (now_ns, opening) = (end_ns, next);
            end_ns / MS
        };
        frames.iter().map(&mut send).collect()
    }

    #[test]
    fn each_opportunity_delivers_1500_bytes_and_the_trace_repeats_after_its_last_time() {
        // Opportunities at 3, 5, 5, 10; then 13, 15, 15, 20; then 23 ...
        assert_eq!(sent_ms(&mut link(&[3, 5, 5, 10]), &[1500; 9]), [3, 5, 5, 10, 13, 15, 15, 20, 23]);
    }

    #[test]
    fn a_trace_may_begin_at_0() {
        // The last opportunity of a repetition and the first of the next are at the same time.
        assert_eq!(sent_ms(&mut link(&[0, 10]), &[1500; 5]), [0, 10, 10, 20, 20]);
    }

    #[test]
    fn what_a_packet_leaves_is_for_the_packets_that_wait() {
        // 500 + 500 + 500 bytes at 3; 1000 at 5, and of the next 1000 half at 5 and half at 8.
        assert_eq!(sent_ms(&mut link(&[3, 5, 8]), &[500, 500, 500, 1000, 1000, 1000]), [3, 3, 3, 5, 8, 8]);
    }

    #[test]
    fn a_packet_of_1514_bytes_takes_14_of_the_next_opportunity() {
        // 1514, 3028, 4542 ... bytes need 2, 3, 4 ... opportunities, and after 107 packets one more.
        let found = sent_ms(&mut link(&[1]), &[1514; 108]);
        assert_eq!(found[..3], [2, 3, 4]);
        assert_eq!(found[106..], [108, 110]);
    }

    #[test]
    fn an_unused_opportunity_is_lost() {
        let mut link = link(&[3, 5, 10]);
        assert_eq!(link.open(4 * MS), 5 * MS);
        assert_eq!(link.send(5 * MS, 100), (5 * MS, Opening::At(5 * MS)));
        // 1400 bytes were left at 5 ms.
        assert_eq!(link.open(6 * MS), 10 * MS);
        assert_eq!(link.send(10 * MS, 1500), (10 * MS, Opening::Later));
        assert_eq!(link.open(10 * MS), 13 * MS, "the trace begins again at 10 ms");
        assert_eq!(link.open(15 * MS), 15 * MS);
        // 100,000 repetitions later.
        assert_eq!(link.open(1_000_004 * MS), 1_000_005 * MS);
        assert_eq!(link.open(1_000_019 * MS), 1_000_020 * MS);
    }

    #[test]
    fn the_rate_is_that_of_each_second() {
        let mut link = link(&[100, 200, 200, 1500, 2500]);
        let mut rates = Vec::new();
        link.take_rates(4_900 * MS, |step| rates.push((step.from_ns / MS, step.bits_per_second)));
        // Seconds of 3, 1, 1 + 1 + 2, 0 + 0, and 1 (at 4000) opportunities: the second repetition has 2600, 2700, 2700, 4000 and 5000.
        assert_eq!(rates, [(0, 36_000), (1000, 12_000), (2000, 48_000), (3000, 0), (4000, 12_000)]);
    }
}
