//! The look-ups that have no answer yet, and the time until which each may get one.
//!
//! What counts is when the kernel saw the answer arrive and when the questions were due, not when this program reads
//! the answer or repeats a question. An answer after the last timeout is too late even if the program was later still.

use std::collections::BTreeMap;

/// A look-up that has no answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LookUp {
    pub(super) started_ns: u64,
    /// Questions asked so far.
    asked: u32,
}

/// What to do about a look-up whose timer has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Ask, and check again at this time.
    Ask {
        /// When the question times out.
        until_ns: u64,
    },
    /// The look-up has failed.
    Fail(LookUp),
    /// The look-up is already over.
    Nothing,
}

/// The look-ups of one traffic, by number.
#[derive(Debug)]
pub(super) struct LookUps {
    timeout_ns: u64,
    attempts: u32,
    open: BTreeMap<u64, LookUp>,
    begun: u64,
}

impl LookUps {
    pub(super) fn new(timeout_ns: u64, attempts: u32) -> Self {
        Self { timeout_ns, attempts, open: BTreeMap::new(), begun: 0 }
    }

    /// Begins a look-up; returns its number.
    pub(super) fn begin(&mut self, now_ns: u64) -> u64 {
        let number = self.begun;
        self.begun += 1;
        self.open.insert(number, LookUp { started_ns: now_ns, asked: 0 });
        number
    }

    /// It is time to ask, for the first time or again. Everything that has arrived so far must have been reported
    /// before this call.
    pub(super) fn next(&mut self, number: u64) -> Next {
        let Some(look_up) = self.open.get_mut(&number) else { return Next::Nothing };
        if look_up.asked == self.attempts {
            return self.open.remove(&number).map_or(Next::Nothing, Next::Fail);
        }
        look_up.asked += 1;
        Next::Ask { until_ns: look_up.started_ns.saturating_add(self.timeout_ns.saturating_mul(look_up.asked.into())) }
    }

    /// An answer arrived at that time. Returns the look-up that this answer ends; `None` if the look-up is already
    /// over, or if the answer came too late.
    pub(super) fn answered(&mut self, number: u64, at_ns: u64) -> Option<LookUp> {
        let look_up = self.open.get(&number)?;
        let patience_ns = self.timeout_ns.saturating_mul(self.attempts.into());
        if at_ns.saturating_sub(look_up.started_ns) > patience_ns { None } else { self.open.remove(&number) }
    }

    /// Gives up a look-up that is still open.
    pub(super) fn give_up(&mut self) -> Option<LookUp> {
        self.open.pop_first().map(|(_, look_up)| look_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT_NS: u64 = 5;

    /// One look-up, begun and asked at 100.
    fn asked_once() -> LookUps {
        let mut look_ups = LookUps::new(TIMEOUT_NS, 2);
        assert_eq!(look_ups.begin(100), 0);
        assert_eq!(look_ups.next(0), Next::Ask { until_ns: 105 });
        look_ups
    }

    #[test]
    fn an_answer_ends_it_and_a_second_one_is_nothing() {
        let mut look_ups = asked_once();
        assert_eq!(look_ups.answered(0, 103).unwrap().started_ns, 100);
        assert_eq!((look_ups.answered(0, 104), look_ups.next(0)), (None, Next::Nothing));
    }

    #[test]
    fn an_answer_to_an_earlier_question_counts_while_the_last_one_may_be_answered() {
        let mut look_ups = asked_once();
        assert_eq!(look_ups.next(0), Next::Ask { until_ns: 110 });
        assert!(look_ups.answered(0, 110).is_some());
    }

    /// The program was late to repeat the question, or to read the answer. In neither case may a look-up wait for
    /// longer than twice 5.
    #[test]
    fn an_answer_after_the_last_timeout_does_not_count_however_late_the_program_is() {
        let mut look_ups = asked_once();
        assert_eq!(look_ups.answered(0, 142), None, "it should have asked again at 105");
        look_ups.next(0);
        assert_eq!(look_ups.answered(0, 111), None);
        assert!(matches!(look_ups.next(0), Next::Fail(LookUp { started_ns: 100, .. })));
        assert_eq!(look_ups.next(0), Next::Nothing);
    }

    #[test]
    fn numbers_that_were_never_asked_for_are_nothing() {
        let mut look_ups = asked_once();
        assert_eq!((look_ups.answered(7, 101), look_ups.answered(u64::MAX, 101)), (None, None));
        assert!(look_ups.give_up().is_some());
        assert_eq!(look_ups.give_up(), None);
    }
}
