//! Access to the channel: the distributed coordination function of IEEE 802.11 (DCF).
//!
//! Every sender draws a number of slots after each of its transmissions, whether or not it has more to send, and
//! counts them down while the channel is idle. It may begin when they are counted down and the channel has been idle
//! for DIFS. Senders that begin in the same slot collide, and each doubles its window, up to the largest; an
//! acknowledgement brings it back to the smallest.
//!
//! The paper's model has a single sender, whose mean wait is half of the smallest window. A sender without
//! competitors waits as long here. All senders have the same priority: EDCA's other classes, its longer AIFS and its
//! TXOPs are not modelled. There are no hidden stations.

use bufferscope_programs::Uniform;

use super::airtime::{CW_MAX, CW_MIN, DIFS_NS, SLOT_NS};
use crate::random::Random;

/// A sender's state in the contention.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    /// Slots still to be counted down when the channel last became idle.
    slots: u32,
    /// The largest number that is drawn.
    window: u32,
}

impl Backoff {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut new = Self { slots: 0, window: CW_MIN };
        new.draw(random);
        new
    }

    /// When the sender may begin on a channel that has been idle since then; not before now.
    pub(super) fn begins_at(self, idle_since_ns: u64, now_ns: u64) -> u64 {
        (idle_since_ns + DIFS_NS + u64::from(self.slots) * SLOT_NS).max(now_ns)
    }

    /// Another station begins to transmit now, on a channel that has been idle since then.
    pub(super) fn interrupt(&mut self, idle_since_ns: u64, now_ns: u64) {
        let counted = now_ns.saturating_sub(idle_since_ns + DIFS_NS) / SLOT_NS;
        self.slots = self.slots.saturating_sub(u32::try_from(counted).unwrap_or(u32::MAX));
    }

    /// The sender's transmission is over.
    pub(super) fn renew(&mut self, is_acknowledged: bool, random: &mut Random) {
        self.window = if is_acknowledged { CW_MIN } else { (2 * self.window + 1).min(CW_MAX) };
        self.draw(random);
    }

    fn draw(&mut self, random: &mut Random) {
        self.slots = random.below(u64::from(self.window) + 1) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn a_backoff_continues_where_it_was_interrupted() {
        let mut backoff = Backoff { slots: 5, window: CW_MIN };
        assert_eq!(backoff.begins_at(0, 0), 34_000 + 5 * 9_000);
        // Two slots and a part of the third are over at 34 + 25 us.
        backoff.interrupt(0, 59_000);
        assert_eq!(backoff.begins_at(1_000_000, 1_000_000), 1_034_000 + 3 * 9_000);
        assert_eq!(backoff.begins_at(1_000_000, 5_000_000), 5_000_000, "counted down long ago");
        backoff.interrupt(1_000_000, 1_000_010);
        assert_eq!(backoff.slots, 3, "DIFS was not over");
    }

    #[test]
    fn the_window_doubles_with_every_loss_and_is_reset_by_an_acknowledgement() {
        let mut random = Random::new(1, Stream::Wifi(0));
        let mut backoff = Backoff::new(&mut random);
        let mut windows = Vec::new();
        for _ in 0..8 {
            backoff.renew(false, &mut random);
            windows.push(backoff.window);
        }
        assert_eq!(windows, [31, 63, 127, 255, 511, 1023, 1023, 1023]);
        backoff.renew(true, &mut random);
        assert_eq!(backoff.window, 15);
    }

    #[test]
    fn the_mean_of_the_first_draw_is_half_of_the_window() {
        let mut random = Random::new(1, Stream::Wifi(0));
        let sum: u64 = (0..10_000).map(|_| u64::from(Backoff::new(&mut random).slots)).sum();
        // The mean of 0 to 15 is 7.5, its standard error here 0.046.
        assert!((75_000 - 1_400..=75_000 + 1_400).contains(&sum), "{sum}");
    }
}
