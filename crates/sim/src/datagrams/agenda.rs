//! What one traffic has planned: it has a single slot of the event queue, however many flows it has.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::events::Slot;
use crate::network::Network;

/// Times, each with what happens then; at the same time, the smaller `T` first.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    slot: Slot,
    plans: BinaryHeap<Reverse<(u64, T)>>,
}

impl<T: Ord + Copy> Agenda<T> {
    pub(super) fn new(slot: Slot) -> Self {
        Self { slot, plans: BinaryHeap::new() }
    }

    pub(super) fn plan(&mut self, at_ns: u64, what: T) {
        self.plans.push(Reverse((at_ns, what)));
    }

    /// The next entry that is due.
    pub(super) fn due(&mut self, now_ns: u64) -> Option<T> {
        let Reverse((at_ns, what)) = *self.plans.peek()?;
        (at_ns <= now_ns).then(|| {
            self.plans.pop();
            what
        })
    }

    /// Schedules an event so that the next entry is not missed.
    pub(super) fn arm(&self, net: &mut Network) {
        if let Some(Reverse((at_ns, _))) = self.plans.peek() {
            net.events.schedule(self.slot, (*at_ns).max(net.now()));
        }
    }
}
