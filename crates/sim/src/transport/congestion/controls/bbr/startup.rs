//! BBR's first phase: the rate doubles each round trip until the pipe is full.

use super::Bbr;
use crate::transport::congestion::Ack;
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};

/// 2/ln 2, the smallest gain that lets a paced sender double its rate each round trip; rounded up.
pub(super) const HIGH_GAIN: Gain = Gain::of(2885, 1000).next_up();
/// Growth by a quarter counts as growth.
const GROWTH: Gain = Gain::of(5, 4);
/// The pipe is full after this many rounds without growth (`bbr_full_bw_cnt`).
const FULL_ROUNDS: u32 = 3;

/// Looks for the point where sending faster stops increasing the delivery rate.
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// The bandwidth to compare with.
    base: Option<Bandwidth>,
    /// Rounds without growth.
    rounds: u32,
    reached: bool,
}

impl FullPipe {
    /// Whether the pipe was ever full.
    pub(super) fn is_reached(&self) -> bool {
        self.reached
    }

    /// Reverts conclusions from spurious losses.
    pub(super) fn restart(&mut self) {
        self.base = None;
        self.rounds = 0;
    }

    /// After a timeout.
    pub(super) fn forget_bandwidth(&mut self) {
        self.base = None;
    }

    /// A round has ended with this bandwidth (`bbr_check_full_bw_reached`).
    fn on_round(&mut self, bandwidth: Bandwidth) {
        if self.base.is_none_or(|base| bandwidth >= base.times(GROWTH)) {
            self.base = Some(bandwidth);
            self.rounds = 0;
        } else {
            self.rounds += 1;
            self.reached = self.rounds >= FULL_ROUNDS;
        }
    }
}

impl Bbr {
    /// Rounds limited by the application are ignored.
    pub(super) fn check_full_pipe(&mut self, ack: &Ack) {
        let app_limited = ack.rate.is_some_and(|sample| sample.is_app_limited);
        if !self.full_pipe.reached && self.path.round_begins && !app_limited {
            self.full_pipe.on_round(self.path.max_bandwidth());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the bandwidths of rounds as packets in 100 ms; returns the round at which the pipe is full.
    fn full_after(rounds: &[u64]) -> Option<usize> {
        let mut pipe = FullPipe::default();
        rounds.iter().position(|&packets| {
            pipe.on_round(Bandwidth::of(packets, 100_000_000).unwrap());
            pipe.is_reached()
        })
    }

    #[test]
    fn the_pipe_is_full_after_three_rounds_of_less_than_a_quarter_more() {
        assert_eq!(full_after(&[10, 20, 40, 80, 99, 99, 99]), Some(6));
        // 100 is a quarter more than 80: counting starts over.
        assert_eq!(full_after(&[10, 20, 40, 80, 99, 99, 100, 100, 100, 100]), Some(9));
        assert_eq!(full_after(&[10, 13, 17, 22, 28, 35]), None);
    }

    #[test]
    fn high_gain_is_two_over_ln_two_rounded_up() {
        // 2/ln 2 = 2.8854: 738.66 parts of 256, 739.
        assert_eq!(HIGH_GAIN.times(256), 739);
    }
}
