//! Once its tokens are used up, a policer drops traffic that exceeds its rate instead of queueing it. BBR detects a
//! policer by two consecutive intervals with heavy loss and equal delivery rates. It then sends at that rate for 48
//! round trips, without probing (Flach et al., *An Internet-Wide Analysis of Traffic Policing*, SIGCOMM 2016; the
//! kernel's `bbr_lt_bw_sampling`).

use super::{Bbr, Phase};
use crate::transport::congestion::Context;
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};

/// An interval takes at least this many rounds (`bbr_lt_intvl_min_rtts`), and is discarded after four times as many.
const INTERVAL_ROUNDS: u32 = 4;
const INTERVAL_MAX_ROUNDS: u32 = 4 * INTERVAL_ROUNDS;
/// An interval is lossy if it lost this many 256ths of what was delivered (`bbr_lt_loss_thresh`).
const LOSSY_256THS: u64 = 50;
/// Bandwidths that differ by no more than an eighth (`bbr_lt_bw_ratio`), or 4 kbit/s (`bbr_lt_bw_diff`), are equal.
const EQUAL_WITHIN: Gain = Gain::of(1, 8);
const EQUAL_WITHIN_BYTES_PER_S: u64 = 4_000 / 8;
/// The policer's rate is used for this many rounds (`bbr_lt_bw_max_rtts`).
const BELIEVED_ROUNDS: u32 = 48;
const NS_PER_MS: u64 = 1_000_000;

/// The state of the policer's detection.
#[derive(Debug, Default)]
pub(super) struct Policer {
    /// The rate of the last lossy interval.
    rate: Option<Bandwidth>,
    /// That rate is a policer's, because two intervals agreed.
    believed: bool,
    /// An interval has begun.
    sampling: bool,
    /// Rounds since the interval began, or since the rate has been in use.
    rounds: u32,
    start: Start,
}

/// The counters when an interval began.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    delivered: u64,
    lost: u64,
    at_ms: u64,
}

impl Policer {
    /// The policer's rate, if there seems to be one.
    pub(super) fn bandwidth(&self) -> Option<Bandwidth> {
        self.rate.filter(|_| self.believed)
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self, context: &Context) {
        *self = Self::default();
        self.begin_interval(context);
    }

    fn begin_interval(&mut self, context: &Context) {
        self.start =
            Start { delivered: context.delivered, lost: context.lost, at_ms: context.delivered_ns / NS_PER_MS };
        self.rounds = 0;
    }

    /// Processes an acknowledgement with `lost` losses. Returns whether it reveals a policer.
    fn sample(&mut self, context: &Context, lost: u32, is_app_limited: bool, round_begins: bool) -> bool {
        if !self.sampling {
            // The first loss shows that the tokens are used up. Deliveries before it may have been a burst.
            if lost == 0 {
                return false;
            }
            self.begin_interval(context);
            self.sampling = true;
        }
        if is_app_limited {
            self.reset(context);
            return false;
        }
        self.rounds += u32::from(round_begins);
        if self.rounds > INTERVAL_MAX_ROUNDS {
            self.reset(context);
            return false;
        }
        // An interval also has to end with a loss, when the tokens are used up again.
        if self.rounds < INTERVAL_ROUNDS || lost == 0 {
            return false;
        }
        self.interval_rate(context).is_some_and(|rate| self.end_interval(context, rate))
    }

    /// The delivery rate of the interval so far; `None` if it did not lose enough.
    fn interval_rate(&self, context: &Context) -> Option<Bandwidth> {
        let lost = context.lost - self.start.lost;
        let delivered = context.delivered - self.start.delivered;
        let is_lossy = delivered > 0 && lost * 256 >= LOSSY_256THS * delivered;
        let took_ms = context.delivered_ns / NS_PER_MS - self.start.at_ms;
        is_lossy.then(|| Bandwidth::of(delivered, took_ms * NS_PER_MS))?
    }

    /// `bbr_lt_bw_interval_done`
    fn end_interval(&mut self, context: &Context, rate: Bandwidth) -> bool {
        if let Some(before) = self.rate {
            let difference = rate.abs_diff(before);
            if difference <= before.times(EQUAL_WITHIN)
                || difference.pacing_bytes_per_s(Gain::ONE, context.mss_bytes) <= EQUAL_WITHIN_BYTES_PER_S
            {
                *self = Self { rate: Some(rate.midpoint(before)), believed: true, rounds: 0, ..*self };
                return true;
            }
        }
        self.rate = Some(rate);
        self.begin_interval(context);
        false
    }
}

impl Bbr {
    /// `bbr_lt_bw_sampling`
    pub(super) fn watch_for_policer(&mut self, context: &Context, lost: u32, is_app_limited: bool) {
        let round_begins = self.path.round_begins;
        if self.policer.believed {
            self.policer.rounds += u32::from(self.phase == Phase::ProbeBw && round_begins);
            if self.policer.rounds >= BELIEVED_ROUNDS {
                self.policer.reset(context);
                self.enter_probe_bw(context);
            }
        } else if self.policer.sample(context, lost, is_app_limited, round_begins) {
            self.pacing_gain = Gain::ONE;
        }
    }
}
