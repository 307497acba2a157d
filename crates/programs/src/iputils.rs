//! When `ping -i` of iputils sends (the loop of `ping_common.c`, versions 20161105 to 20240905).
//!
//! The program sends a request once the whole milliseconds since its last request have reached the interval. It checks
//! this only when it is awake. If it is late, it does not make up for the lost time: the next interval begins when the
//! request leaves. How late it is depends on how it waits:
//!
//! - If the whole interval is left, as after a request, it waits in `recvmsg` with `SO_RCVTIMEO`. The kernel counts
//!   such a timeout in ticks (`kernel/time/timer.c`): a wait of 100 ms takes 26 ticks, which are 104 ms, and one of 1 s
//!   takes 256.
//! - If an answer has come in between, it waits for the rest in `poll`, which ends late by at most a thousandth of the
//!   rest.
//! - If 10 ms or less are left, it waits for 10 ms if a request is in flight, and spins if none is.
//!
//! So at an interval of 100 ms it sends 577 requests per minute if each is answered at once, and 598 if each answer
//! comes in the middle of an interval.

use crate::random::Uniform;

const MS: u64 = 1_000_000;
/// A tick of kernels with `CONFIG_HZ=250`, such as those of Debian and, before 24.10, of Ubuntu.
const TICK_NS: u64 = 4 * MS;
/// `MINTERVAL` of iputils, the shortest time for which it waits.
const SHORTEST_WAIT_MS: u64 = 10;
/// A sleeping process may be woken this much too late: the default timer slack of Linux (prctl(2),
/// `PR_SET_TIMERSLACK`).
pub const TIMER_SLACK_NS: u64 = 50_000;
/// `poll` ends late by up to one part in this many of its timeout (`fs/select.c`), and by at most 100 ms.
const POLL_ACCURACY: u64 = 1000;
const MOST_POLL_SLACK_NS: u64 = 100 * MS;
/// The first level of the timer wheel holds this many ticks. Each further level holds eight times as many, with an
/// eighth of the resolution.
const WHEEL_LEVEL_TICKS: u64 = 63;
const WHEEL_LEVEL_SHIFT: u32 = 3;
const WHEEL_LEVELS: u32 = 9;

/// The state of the program. Times are in nanoseconds of the run.
#[derive(Clone, Debug)]
pub struct IputilsPing {
    interval_ms: u64,
    /// When the last request left.
    sent_ns: Option<u64>,
    sent: u64,
    /// One more than the highest number of a request that was answered.
    answered: u64,
}

impl IputilsPing {
    /// A program that has sent nothing yet; `interval_ns` is in whole milliseconds.
    pub fn new(interval_ns: u64) -> Self {
        Self { interval_ms: interval_ns / MS, sent_ns: None, sent: 0, answered: 0 }
    }

    /// Whether the program sends a request now. It must be awake.
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.remaining_ms(now_ns) == 0
    }

    /// A request leaves.
    pub fn sent(&mut self, now_ns: u64) {
        self.sent_ns = Some(now_ns);
        self.sent += 1;
    }

    /// The answer to the request with this number, counted from 0, has arrived. It also wakes the program.
    pub fn answered(&mut self, number: u64) {
        self.answered = self.answered.max(number + 1);
    }

    /// When the program, if it falls asleep now, wakes up unless an answer comes.
    pub fn wakes_ns(&self, now_ns: u64, slack: &mut impl Uniform) -> u64 {
        let remaining_ms = self.remaining_ms(now_ns);
        if remaining_ms == 0 {
            now_ns
        } else if remaining_ms >= self.interval_ms.max(SHORTEST_WAIT_MS) {
            timer_ns(now_ns, remaining_ms * MS)
        } else if remaining_ms > SHORTEST_WAIT_MS {
            poll_ns(now_ns, remaining_ms, slack)
        } else if self.sent > self.answered {
            poll_ns(now_ns, SHORTEST_WAIT_MS, slack)
        } else {
            self.sent_ns.map_or(now_ns, |sent_ns| sent_ns + self.interval_ms * MS)
        }
    }

    /// How much of the interval is left, in the milliseconds that the program counts.
    fn remaining_ms(&self, now_ns: u64) -> u64 {
        self.sent_ns.map_or(0, |sent_ns| self.interval_ms.saturating_sub(now_ns.saturating_sub(sent_ns) / MS))
    }
}

fn poll_ns(now_ns: u64, timeout_ms: u64, slack: &mut impl Uniform) -> u64 {
    let timeout_ns = timeout_ms * MS;
    let most_ns = (timeout_ns / POLL_ACCURACY).clamp(TIMER_SLACK_NS, MOST_POLL_SLACK_NS);
    now_ns + timeout_ns + slack.below(most_ns)
}

/// When a timer of the kernel's wheel fires: one tick of its level late, so that it is never early.
fn timer_ns(now_ns: u64, timeout_ns: u64) -> u64 {
    let ticks = timeout_ns.div_ceil(TICK_NS);
    let level =
        (1..WHEEL_LEVELS).take_while(|level| ticks >= WHEEL_LEVEL_TICKS << ((level - 1) * WHEEL_LEVEL_SHIFT)).count();
    let shift = level as u32 * WHEEL_LEVEL_SHIFT;
    let expires = now_ns / TICK_NS + ticks;
    (((expires >> shift) + 1) << shift) * TICK_NS
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// No slack, so that times are exact.
    struct Prompt;

    impl Uniform for Prompt {
        fn bits(&mut self) -> u64 {
            0
        }
    }

    /// The number of requests sent in `time_ns` if each answer takes `answer_ns`; `None`: no answers come.
    fn requests(interval_ms: u64, answer_ns: Option<u64>, time_ns: u64) -> u64 {
        let mut ping = IputilsPing::new(interval_ms * MS);
        let (mut now_ns, mut answers) = (0, VecDeque::new());
        while now_ns < time_ns {
            if ping.is_due(now_ns) {
                answers.extend(answer_ns.map(|after_ns| (now_ns + after_ns, ping.sent)));
                ping.sent(now_ns);
            }
            let wakes_ns = ping.wakes_ns(now_ns, &mut Prompt);
            now_ns = wakes_ns;
            if let Some((at_ns, number)) = answers.front().copied().filter(|(at_ns, _)| *at_ns <= wakes_ns) {
                answers.pop_front();
                ping.answered(number);
                now_ns = at_ns;
            }
        }
        ping.sent
    }

    #[test]
    fn an_answer_at_once_leaves_a_wait_in_ticks() {
        // `ping -i 0.1 -w 60 127.0.0.1`, iputils 20221126, Linux 6.1 and 6.18: 577 packets transmitted.
        assert_eq!(requests(100, Some(50_000), 60_000 * MS), 577);
    }

    #[test]
    fn an_answer_in_between_leaves_a_wait_in_milliseconds() {
        assert_eq!(requests(100, Some(40 * MS), 60_000 * MS), 600);
        assert_eq!(requests(100, Some(40 * MS + MS / 2), 60_000 * MS), 598, "the milliseconds are cut off");
    }

    #[test]
    fn without_answers_every_wait_is_in_ticks() {
        assert_eq!(requests(100, None, 60_000 * MS), 577);
    }

    #[test]
    fn a_second_is_counted_in_groups_of_eight_ticks() {
        // `ping -c 10` on an idle network: "10 packets transmitted, ... time 9216ms".
        assert_eq!(requests(1000, Some(MS / 2), 9_216 * MS), 9);
        assert_eq!(requests(1000, Some(MS / 2), 9_217 * MS), 10);
    }

    #[test]
    fn shortly_before_the_next_request_it_waits_for_ten_milliseconds_or_spins() {
        let mut ping = IputilsPing::new(100 * MS);
        ping.sent(0);
        assert_eq!(ping.wakes_ns(95 * MS, &mut Prompt), 105 * MS, "a request is in flight");
        ping.answered(0);
        assert_eq!(ping.wakes_ns(95 * MS, &mut Prompt), 100 * MS);
    }

    #[test]
    fn a_late_program_does_not_catch_up() {
        let mut ping = IputilsPing::new(100 * MS);
        ping.sent(0);
        assert!(ping.is_due(350 * MS));
        ping.sent(350 * MS);
        assert!(!ping.is_due(400 * MS));
    }
}
