//! Timestamps that have not been echoed yet (RFC 7323, section 3).
//!
//! A timestamp clock may tick more slowly than a round trip takes, and several segments then have the same value. The
//! first echo belongs to the first of them, so only that one counts, and a value is entered only once. If the first
//! segment with a value may have been missed (at the beginning of a capture, after a gap), or was retransmitted with
//! the same value, the value is not used.

use std::collections::VecDeque;

/// Maximum number of timestamps for one stream: two seconds of a millisecond clock.
const MOST_STAMPS: usize = 2048;
/// An echo on new data may have waited for the application. It counts if that wait was less than one n-th of the time.
const WAIT_PART: i64 = 2;

#[derive(Clone, Copy, Debug)]
struct Stamp {
    value: u32,
    /// When the first segment with this value left.
    first_ns: i64,
    /// When the first segment with this value left that is acknowledged on arrival and so echoed.
    answered_ns: Option<i64>,
    /// Whether it is ambiguous which segment its echo answers.
    ambiguous: bool,
}

/// The timestamps of one stream, each with the time of the first segment that had it.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    waiting: VecDeque<Stamp>,
    /// The latest value.
    latest: Option<u32>,
    /// When the other end last sent anything with an echo.
    echoed_ns: Option<i64>,
}

/// The properties of a segment with a timestamp that affect its echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamped {
    /// It has payload, or a SYN, so that it is acknowledged on arrival.
    pub(super) answered: bool,
    /// Earlier segments with the same timestamp may have been missed.
    pub(super) after_gap: bool,
    /// It is a retransmission.
    pub(super) again: bool,
}

/// Whether `a` is later than `b` (RFC 7323, section 5.2).
#[inline]
pub(super) fn later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Stamps {
    /// Processes a segment that was sent with this timestamp.
    pub(super) fn sent(&mut self, value: u32, t_ns: i64, segment: Stamped) {
        let Some(latest) = self.latest else {
            // Unless it is a SYN, earlier segments of the same tick may have left before the capture began.
            self.latest = Some(value);
            return self.push(value, t_ns, segment);
        };
        if later(value, latest) {
            self.latest = Some(value);
            return self.push(value, t_ns, segment);
        }
        let Some(last) = self.waiting.back_mut().filter(|last| last.value == value) else { return };
        last.ambiguous |= segment.again;
        if segment.answered && last.answered_ns.is_none() {
            last.answered_ns = Some(t_ns);
        }
    }

    fn push(&mut self, value: u32, t_ns: i64, segment: Stamped) {
        if self.waiting.len() == MOST_STAMPS {
            self.waiting.pop_front();
        }
        let answered_ns = segment.answered.then_some(t_ns);
        self.waiting.push_back(Stamp { value, first_ns: t_ns, answered_ns, ambiguous: segment.after_gap });
    }

    /// Processes the echo of a timestamp at `t_ns`. Returns the time since it left, if this is its first echo.
    /// `carries`: the segment with the echo has new payload, so its sender may have waited for the application after
    /// the echoed segment arrived.
    pub(super) fn echoed(&mut self, value: u32, t_ns: i64, carries: bool) -> Option<u64> {
        let before_ns = self.echoed_ns.replace(t_ns);
        while let Some(&first) = self.waiting.front() {
            if later(first.value, value) {
                return None;
            }
            self.waiting.pop_front();
            if first.value == value {
                let next_ns = self.waiting.front().map(|next| next.first_ns);
                let since_ns = first.since(t_ns, carries, before_ns, next_ns)?;
                return u64::try_from(t_ns - since_ns).ok();
            }
        }
        None
    }
}

impl Stamp {
    /// When the echoed segment left; `None`: ambiguous. `before_ns` is when the other end sent the segment before the
    /// echo, `next_ns` when the next value left.
    fn since(&self, t_ns: i64, carries: bool, before_ns: Option<i64>, next_ns: Option<i64>) -> Option<i64> {
        if self.ambiguous {
            return None;
        }
        match self.answered_ns {
            // An acknowledgement answers data, and nothing else.
            Some(answered_ns) if !carries || answered_ns == self.first_ns => Some(answered_ns),
            Some(_) => None,
            None if !carries => None,
            // New data that answers no data. It was sent before the next value arrived, and the value arrived after the
            // previous segment was sent.
            None => {
                let waits =
                    [next_ns.map(|next_ns| next_ns - self.first_ns), before_ns.map(|before_ns| t_ns - before_ns)];
                let wait_ns = waits.into_iter().flatten().min()?;
                (wait_ns <= (t_ns - self.first_ns) / WAIT_PART).then_some(self.first_ns)
            }
        }
    }
}
