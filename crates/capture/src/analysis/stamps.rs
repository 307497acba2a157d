//! Timestamps that wait for their echo (RFC 7323, section 3).

use std::collections::VecDeque;

/// Timestamps kept for one stream: two seconds of a clock of milliseconds.
const MOST_STAMPS: usize = 2048;

#[derive(Clone, Copy, Debug)]
struct Stamp {
    value: u32,
    t_ns: i64,
    /// Whether its segment is acknowledged on arrival, and so echoed.
    answered: bool,
}

/// The timestamps of one stream, each with the time of the first segment that had it.
#[derive(Debug, Default)]
pub(super) struct Stamps(VecDeque<Stamp>);

/// Is `a` later than `b`? (RFC 7323, section 5.2)
#[inline]
pub(super) fn later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Stamps {
    /// A segment left with this timestamp. `answered`: it has payload, or a SYN.
    pub(super) fn sent(&mut self, value: u32, t_ns: i64, answered: bool) {
        if self.0.back().is_some_and(|last| !later(value, last.value)) {
            return;
        }
        if self.0.len() == MOST_STAMPS {
            self.0.pop_front();
        }
        self.0.push_back(Stamp { value, t_ns, answered });
    }

    /// This timestamp came back at `t_ns`: the time since it left, if this is its first echo. `carries`: the segment
    /// that brought it has new payload, so that its sender may have waited for the one that it echoes.
    pub(super) fn echoed(&mut self, value: u32, t_ns: i64, carries: bool) -> Option<u64> {
        while let Some(&first) = self.0.front() {
            if later(first.value, value) {
                return None;
            }
            self.0.pop_front();
            if first.value == value {
                let counts = first.answered || carries;
                return counts.then(|| u64::try_from(t_ns - first.t_ns).ok()).flatten();
            }
        }
        None
    }
}
