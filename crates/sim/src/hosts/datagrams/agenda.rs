//! The planned actions of one entry of traffic. They share a single slot of the event queue, however many flows there
//! are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event_queue::Slot;
use crate::network::Network;

/// Planned actions, ordered by time; actions at the same time are ordered by `T`.
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

    /// Forgets the entries that `is_late` says are planned too late.
    pub(super) fn forget(&mut self, is_late: impl Fn(u64, T) -> bool) {
        self.plans.retain(|&Reverse((at_ns, what))| !is_late(at_ns, what));
    }

    /// Schedules an event for the time of the next entry.
    pub(super) fn arm(&self, net: &mut Network) {
        if let Some(Reverse((at_ns, _))) = self.plans.peek() {
            net.events.schedule(self.slot, (*at_ns).max(net.now()));
        }
    }
}
