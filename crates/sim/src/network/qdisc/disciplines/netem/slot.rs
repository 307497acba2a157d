//! Slots: delayed packets leave only within these, in bursts.

use bufferscope_scenario::{NetemSlot, SlotDelay};

use super::drawing::deviating;
use super::tables;
use crate::random::Random;

/// When packets may leave, and how many more (`struct slotstate`).
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) parameters: NetemSlot,
    pub(super) next_ns: u64,
    packets_left: i64,
    bytes_left: i64,
}

impl Slot {
    /// The first begins at once.
    pub(super) fn new(parameters: NetemSlot, now_ns: u64) -> Self {
        let mut slot = Self { parameters, next_ns: now_ns, packets_left: 0, bytes_left: 0 };
        slot.fill();
        slot
    }

    /// When the slot begins in which a packet that is delayed until `at_ns` may leave.
    pub(super) fn begins_ns(&mut self, at_ns: u64, now_ns: u64, random: &mut Random) -> u64 {
        if self.next_ns < at_ns {
            self.advance(now_ns, random);
        }
        self.next_ns
    }

    /// A packet leaves.
    pub(super) fn take(&mut self, frame_bytes: u32, now_ns: u64, random: &mut Random) {
        self.packets_left -= 1;
        self.bytes_left -= i64::from(frame_bytes);
        if self.packets_left <= 0 || self.bytes_left <= 0 {
            self.advance(now_ns, random);
        }
    }

    /// `get_slot_next`.
    pub(super) fn advance(&mut self, now_ns: u64, random: &mut Random) {
        let drawn = random.next_u32();
        let delay_ns = match self.parameters.delay {
            SlotDelay::Between([min, max]) => min as i64 + ((i64::from(drawn) * (max as i64 - min as i64)) >> 32),
            SlotDelay::Distributed(distribution, [mean, sigma]) => {
                deviating(mean as i64, (sigma as i64).max(1), tables::of(distribution), drawn)
            }
        };
        self.next_ns = now_ns.saturating_add_signed(delay_ns);
        self.fill();
    }

    fn fill(&mut self) {
        let most = |limit: Option<u32>| limit.map_or(i64::from(i32::MAX), i64::from);
        (self.packets_left, self.bytes_left) = (most(self.parameters.packets), most(self.parameters.bytes));
    }
}
