//! The pending events and the clock.
//!
//! Every entity that can have a pending event (a wire, a delay line, a timer) owns one *slot*, so there are few events
//! however many packets are in the network. Slots are in groups, and the next event is found by comparing the first
//! events of the groups. Within a group, the slots are the leaves of a tournament tree: setting a slot replays its
//! matches towards the root. Wires and delay lines have nearly all of the events. If there are few, each is a group of
//! its own, so that setting it takes one store; all timers together are one group. A key holds time, sequence and slot
//! in one integer, so a match is one comparison. The matches of a popped slot are replayed only after its owner has had
//! the chance to set the slot again, as wires and delay lines do.
//!
//! The structure was chosen by measurement (`python benches/speed.py instructions`; with `MOST_GROUPS` of 1, there are
//! two trees and no groups of one slot). A heap cannot move a timer that it holds, or mispredicts several times as many
//! branches.
//!
//! Events of the same instant occur in the order in which they were scheduled, after those scheduled with
//! [`EventQueue::schedule_first`].

/// Index of an entity.
pub(crate) type Slot = u32;

/// A key: time (64 bits), sequence (40), slot (24).
type Key = u128;
const SLOT_BITS: u32 = 24;
const SEQUENCE_BITS: u32 = 40;
const TIME_SHIFT: u32 = SLOT_BITS + SEQUENCE_BITS;
/// No pending event. This time is never reached: 2^64 ns are 584 years.
const NEVER: Key = Key::MAX;

/// The most groups that the first slots form.
const MOST_GROUPS: usize = 16;

/// The clock and the next event of each slot.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// The first key of each group of the first slots, four by four, so that four comparisons need one bounds check.
    first: Vec<[Key; 4]>,
    /// The first key of the other slots.
    first_other: Key,
    /// The groups' trees, one after the other. In each, node 1 is the root, which is not here but in `first`, the
    /// children of node `i` are nodes `2i` and `2i + 1`, and each node holds the smallest key below it. Siblings lie
    /// together: node `i` is `pairs[i / 2][i % 2]`.
    pairs: Vec<[Key; 2]>,
    /// The first slots, this many, form groups of two to the power of `group_bits`.
    busy: usize,
    group_bits: u32,
    /// The first slots, this many, are groups of their own: all of `busy` or none.
    alone: usize,
    /// The tree of the other slots: where its pairs begin, and the number of its leaves.
    others_tree: usize,
    others: usize,
    now_ns: u64,
    sequence: u64,
    /// The slot popped last, whose matches have not been replayed yet.
    unsettled: Option<Slot>,
}

/// Where the leaf of a slot is.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    /// The number of its group; `None`: that of the other slots.
    group: Option<usize>,
    /// Where the pairs of the group's tree begin.
    tree: usize,
    /// The node of the tree.
    node: usize,
}

impl EventQueue {
    /// A queue for `slots` entities, at time 0. The first `busy` of them have most of the events. The queue grows when
    /// higher slots are used.
    pub(crate) fn new(busy: usize, slots: usize) -> Self {
        let group_bits = busy.div_ceil(MOST_GROUPS).next_power_of_two().ilog2();
        let groups = busy.div_ceil(1 << group_bits);
        let others = (slots - busy).next_power_of_two();
        Self {
            first: vec![[NEVER; 4]; groups.div_ceil(4)],
            first_other: NEVER,
            pairs: vec![[NEVER; 2]; (groups << group_bits) + others],
            busy,
            group_bits,
            alone: if group_bits == 0 { busy } else { 0 },
            others_tree: groups << group_bits,
            others,
            now_ns: 0,
            sequence: 0,
            unsettled: None,
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now_ns
    }

    /// Sets the event of `slot`, replacing its previous event.
    #[inline]
    pub(crate) fn schedule(&mut self, slot: Slot, at_ns: u64) {
        assert!(at_ns >= self.now_ns, "an event at {at_ns} ns lies before now, {} ns", self.now_ns);
        self.sequence += 1;
        assert!(self.sequence >> SEQUENCE_BITS == 0, "a run has fewer than 2^40 events");
        self.set(slot, key(at_ns, self.sequence, slot));
    }

    /// Like [`schedule`](Self::schedule), but before all other events of that instant. The instant must lie in the
    /// future.
    pub(crate) fn schedule_first(&mut self, slot: Slot, at_ns: u64) {
        assert!(at_ns > self.now_ns || self.sequence == 0, "{at_ns} ns has begun: its first event is over");
        self.set(slot, key(at_ns, 0, slot));
    }

    /// When the event of `slot` is due.
    #[inline]
    pub(crate) fn scheduled_at(&self, slot: Slot) -> Option<u64> {
        if slot as usize >= self.slots() {
            return None;
        }
        let key = self.key(slot);
        (key != NEVER).then_some((key >> TIME_SHIFT) as u64)
    }

    /// Forgets the event of `slot`, if it has one.
    pub(crate) fn cancel(&mut self, slot: Slot) {
        if self.scheduled_at(slot).is_some() {
            self.set(slot, NEVER);
        }
    }

    /// Advances the clock to the next event, if it is before `until_ns`, and returns its slot.
    #[inline]
    pub(crate) fn pop_before(&mut self, until_ns: u64) -> Option<Slot> {
        if let Some(slot) = self.unsettled.take() {
            self.replay(slot, NEVER);
        }
        let first = self.smallest();
        // If nothing is pending, this is the latest time of all.
        let at_ns = (first >> TIME_SHIFT) as u64;
        if at_ns >= until_ns {
            return None;
        }
        assert!(at_ns >= self.now_ns, "time went back from {} ns to {at_ns} ns", self.now_ns);
        self.now_ns = at_ns;
        let slot = (first as Slot) & ((1 << SLOT_BITS) - 1);
        if (slot as usize) < self.alone {
            *self.first_of(slot as usize) = NEVER;
        } else {
            // The ancestors still hold the popped key. Until they are replayed, no smaller key can be set, so no other
            // replay changes them.
            let Leaf { tree, node, .. } = self.leaf(slot);
            if node == 1 {
                self.first_other = NEVER;
            } else {
                self.pairs[tree + node / 2][node % 2] = NEVER;
            }
            self.unsettled = Some(slot);
        }
        Some(slot)
    }

    /// Advances the clock to `now_ns`. No event may be pending before that.
    pub(crate) fn pass(&mut self, now_ns: u64) {
        assert!(now_ns >= self.now_ns, "time went back from {} ns to {now_ns} ns", self.now_ns);
        assert!((self.smallest() >> TIME_SHIFT) as u64 >= now_ns, "an event before {now_ns} ns is pending");
        self.now_ns = now_ns;
    }

    /// The same clock with the events in other slots: `slot` maps each old slot to its new one. `busy` and `slots` are
    /// as for [`new`](Self::new).
    pub(crate) fn renumbered(&self, busy: usize, slots: usize, slot: impl Fn(Slot) -> Slot) -> Self {
        let mut other = Self { now_ns: self.now_ns, sequence: self.sequence, ..Self::new(busy, slots) };
        for old in 0..self.slots() as Slot {
            let key = self.key(old);
            if key != NEVER {
                let new = slot(old);
                other.set(new, key >> SLOT_BITS << SLOT_BITS | Key::from(new));
            }
        }
        other
    }

    #[inline]
    fn set(&mut self, slot: Slot, key: Key) {
        if (slot as usize) < self.alone {
            *self.first_of(slot as usize) = key;
            return;
        }
        if slot as usize >= self.slots() {
            self.grow(slot);
        }
        if self.unsettled == Some(slot) {
            self.unsettled = None;
        }
        self.replay(slot, key);
    }

    /// Sets the key of a slot and replays its matches up to the root. The current winner stays in registers, because
    /// reading back the value just stored in each node would take a third of the time of a match.
    #[inline]
    fn replay(&mut self, slot: Slot, key: Key) {
        let Leaf { group, tree, mut node } = self.leaf(slot);
        let mut winner = key;
        while node > 1 {
            let pair = &mut self.pairs[tree + node / 2];
            let rival = pair[1 - node % 2];
            pair[node % 2] = winner;
            winner = winner.min(rival);
            node /= 2;
        }
        match group {
            Some(group) => *self.first_of(group) = winner,
            None => self.first_other = winner,
        }
    }

    /// The smallest key of all.
    #[inline]
    fn smallest(&self) -> Key {
        let of_four = |&[a, b, c, d]: &[Key; 4]| a.min(b).min(c.min(d));
        self.first.iter().map(of_four).fold(self.first_other, Key::min)
    }

    #[inline]
    fn first_of(&mut self, group: usize) -> &mut Key {
        &mut self.first[group / 4][group % 4]
    }

    #[inline]
    fn leaf(&self, slot: Slot) -> Leaf {
        let slot = slot as usize;
        if slot < self.busy {
            let (group, size) = (slot >> self.group_bits, 1 << self.group_bits);
            Leaf { group: Some(group), tree: group << self.group_bits, node: size + slot % size }
        } else {
            Leaf { group: None, tree: self.others_tree, node: self.others + slot - self.busy }
        }
    }

    #[inline]
    fn key(&self, slot: Slot) -> Key {
        let Leaf { group, tree, node } = self.leaf(slot);
        match group {
            _ if node > 1 => self.pairs[tree + node / 2][node % 2],
            Some(group) => self.first[group / 4][group % 4],
            None => self.first_other,
        }
    }

    /// The number of slots that there are.
    #[inline]
    fn slots(&self) -> usize {
        self.busy + self.others
    }

    #[cold]
    fn grow(&mut self, slot: Slot) {
        assert!(slot < 1 << SLOT_BITS, "fewer than 2^24 entities have events");
        *self = self.renumbered(self.busy, slot as usize + 1, |old| old);
    }
}

#[inline]
fn key(at_ns: u64, sequence: u64, slot: Slot) -> Key {
    Key::from(at_ns) << TIME_SHIFT | Key::from(sequence) << SLOT_BITS | Key::from(slot)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl EventQueue {
        fn pop(&mut self) -> Option<Slot> {
            self.pop_before(u64::MAX)
        }
    }

    #[test]
    fn events_of_one_instant_come_in_the_order_of_scheduling() {
        let mut queue = EventQueue::new(2, 4);
        for slot in [2, 0, 3, 1] {
            queue.schedule(slot, 7);
        }
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [2, 0, 3, 1]);
        assert_eq!(queue.now(), 7);
    }

    #[test]
    fn the_first_event_of_an_instant_comes_first_whenever_it_was_scheduled() {
        let mut queue = EventQueue::new(1, 2);
        queue.schedule(0, 7);
        queue.schedule_first(1, 7);
        assert_eq!((queue.pop(), queue.pop()), (Some(1), Some(0)));
    }

    #[test]
    fn a_slot_has_one_event_the_one_scheduled_last() {
        let mut queue = EventQueue::new(0, 1);
        queue.schedule(0, 9);
        queue.schedule(0, 5);
        assert_eq!(queue.scheduled_at(0), Some(5));
        assert_eq!((queue.pop(), queue.scheduled_at(0), queue.pop()), (Some(0), None, None));
    }

    #[test]
    #[should_panic(expected = "an event at 4 ns lies before now, 5 ns")]
    fn time_does_not_go_back() {
        let mut queue = EventQueue::new(0, 1);
        queue.schedule(0, 5);
        queue.pop();
        queue.schedule(0, 4);
    }

    #[test]
    fn events_in_other_slots_come_at_their_times_and_in_their_order() {
        let mut queue = EventQueue::new(2, 4);
        queue.schedule_first(2, 3);
        for (slot, at_ns) in [(0, 9), (3, 7), (5, 7), (1, 2)] {
            queue.schedule(slot, at_ns);
        }
        assert_eq!(queue.pop(), Some(1));
        let mut other = queue.renumbered(2, 4, |slot| if slot < 2 { slot } else { slot + 10 });
        assert_eq!(other.now(), 2);
        other.schedule(1, 7);
        assert_eq!(std::iter::from_fn(|| other.pop()).collect::<Vec<_>>(), [12, 13, 15, 1, 0]);
    }

    /// The operations on a queue.
    #[derive(Clone, Debug)]
    enum Step {
        Schedule { slot: Slot, after_ns: u64 },
        Cancel { slot: Slot },
        Pop,
        Pass { ns: u64 },
    }

    fn step() -> impl Strategy<Value = Step> {
        // Few slots and few times, so that slots are rescheduled and times coincide; some slots lie beyond the initial
        // size.
        let slot = || prop_oneof![4 => 0..6_u32, 2 => 0..100_u32];
        prop_oneof![
            4 => (slot(), 0..5_u64).prop_map(|(slot, after_ns)| Step::Schedule { slot, after_ns }),
            1 => slot().prop_map(|slot| Step::Cancel { slot }),
            4 => Just(Step::Pop),
            1 => (0..5_u64).prop_map(|ns| Step::Pass { ns }),
        ]
    }

    proptest! {
        #[test]
        fn the_queue_agrees_with_a_sorted_list(busy in prop_oneof![0..7_usize, 15..60_usize], steps in prop::collection::vec(step(), 1..400)) {
            let mut queue = EventQueue::new(busy, busy.max(6));
            // (time, order of scheduling, slot)
            let mut list: Vec<(u64, usize, Slot)> = Vec::new();
            for (order, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Schedule { slot, after_ns } => {
                        let at_ns = queue.now() + after_ns;
                        queue.schedule(slot, at_ns);
                        list.retain(|entry| entry.2 != slot);
                        list.push((at_ns, order, slot));
                        prop_assert_eq!(queue.scheduled_at(slot), Some(at_ns));
                    }
                    Step::Cancel { slot } => {
                        queue.cancel(slot);
                        list.retain(|entry| entry.2 != slot);
                        prop_assert_eq!(queue.scheduled_at(slot), None);
                    }
                    Step::Pop => {
                        list.sort_unstable();
                        let expected = (!list.is_empty()).then(|| list.remove(0));
                        prop_assert_eq!(queue.pop(), expected.map(|entry| entry.2));
                        if let Some((at_ns, ..)) = expected {
                            prop_assert_eq!(queue.now(), at_ns);
                        }
                    }
                    Step::Pass { ns } => {
                        list.sort_unstable();
                        let until_ns = queue.now() + ns;
                        while let Some(slot) = queue.pop_before(until_ns) {
                            prop_assert_eq!(slot, list.remove(0).2);
                        }
                        prop_assert!(list.first().is_none_or(|entry| entry.0 >= until_ns));
                        queue.pass(until_ns);
                        prop_assert_eq!(queue.now(), until_ns);
                    }
                }
            }
        }
    }
}
