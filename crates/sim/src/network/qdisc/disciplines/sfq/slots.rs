//! The queues of `sfq`: the queue of each hash value, the queue whose turn it is, and the longest queue.
//!
//! As in the kernel, a queue is the number of its slot, and every list is threaded through the slots. Among queues of
//! one length, the one that reached it last comes first, both where a packet is to be dropped and where a free slot is
//! taken.

use crate::network::pool::Fifo;
use crate::network::qdisc::shared::red_core::Watch;

/// The number of a slot.
pub(super) type Index = u16;

/// The end of a list, and the slot of a hash value that has none.
const NONE: Index = Index::MAX;
/// One list for each length up to the kernel's `SFQ_MAX_DEPTH`.
const LENGTHS: usize = 128;

/// The queue of one hash value.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) queue: Fifo,
    pub(super) watch: Watch,
    /// Bytes that it may still send in its turn.
    pub(super) allot: i32,
    pub(super) hash: u16,
    /// The slot whose turn is next, if packets wait here.
    next: Index,
    /// The neighbours in the list of slots of the same length.
    before: Index,
    after: Index,
}

#[derive(Debug)]
pub(super) struct Slots {
    slots: Box<[Slot]>,
    /// The slot of each hash value.
    by_hash: Box<[Index]>,
    /// The first slot of each length. Those of length 0 are free.
    by_length: [Index; LENGTHS],
    longest: u8,
    /// The slot whose turn is last. The next in turn comes behind it in a ring.
    last: Index,
}

impl Slots {
    /// All free. There are `divisor` hash values.
    pub(super) fn new(flows: u32, divisor: u32) -> Self {
        let slot = |_| Slot {
            queue: Fifo::new(),
            watch: Watch::default(),
            allot: 0,
            hash: 0,
            next: NONE,
            before: NONE,
            after: NONE,
        };
        let mut slots = Self {
            slots: (0..flows).map(slot).collect(),
            by_hash: vec![NONE; divisor as usize].into_boxed_slice(),
            by_length: [NONE; LENGTHS],
            longest: 0,
            last: NONE,
        };
        for index in 0..slots.slots.len() {
            slots.link(index as Index, 0);
        }
        slots
    }

    pub(super) fn get(&self, index: Index) -> &Slot {
        &self.slots[usize::from(index)]
    }

    pub(super) fn get_mut(&mut self, index: Index) -> &mut Slot {
        &mut self.slots[usize::from(index)]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    /// The numbers of all slots.
    pub(super) fn indices(&self) -> std::ops::Range<Index> {
        0..self.slots.len() as Index
    }

    /// The slot of a hash value, if it has one.
    pub(super) fn find(&self, hash: u16) -> Option<Index> {
        some(self.by_hash[usize::from(hash)])
    }

    /// Gives a free slot to a hash value.
    pub(super) fn claim(&mut self, hash: u16) -> Option<Index> {
        let index = some(self.by_length[0])?;
        self.by_hash[usize::from(hash)] = index;
        self.get_mut(index).hash = hash;
        Some(index)
    }

    /// A packet has entered the queue, which gets its turn after all others if it was empty (`sfq_inc`).
    pub(super) fn lengthened(&mut self, index: Index, quantum_bytes: u32) {
        let length = self.get(index).queue.packets();
        self.unlink(index, length - 1);
        self.link(index, length);
        self.longest = self.longest.max(length as u8);
        if length == 1 {
            self.join(index);
            self.get_mut(index).allot = quantum_bytes as i32;
        }
    }

    /// A packet has left the queue (`sfq_dec`). A queue that is empty now loses its turn by [`leave`](Self::leave).
    pub(super) fn shortened(&mut self, index: Index) {
        let length = self.get(index).queue.packets();
        self.unlink(index, length + 1);
        if u32::from(self.longest) == length + 1 && self.by_length[usize::from(self.longest)] == NONE {
            self.longest -= 1;
        }
        self.link(index, length);
        if length == 0 {
            let hash = self.get(index).hash;
            self.by_hash[usize::from(hash)] = NONE;
        }
    }

    /// The length of the longest queue, and the one that reached it last.
    pub(super) fn longest(&self) -> (u8, Option<Index>) {
        (self.longest, some(self.by_length[usize::from(self.longest)]).filter(|_| self.longest > 0))
    }

    /// The slot whose turn it is.
    pub(super) fn in_turn(&self) -> Option<Index> {
        some(self.last).map(|last| self.get(last).next)
    }

    /// Moves the slot whose turn it is to the end of the turns.
    pub(super) fn pass_on(&mut self) {
        if let Some(index) = self.in_turn() {
            self.last = index;
        }
    }

    /// Removes the slot whose turn it is, which is empty, from the turns.
    pub(super) fn leave(&mut self) {
        let Some(index) = self.in_turn() else { return };
        if index == self.last {
            self.last = NONE;
        } else {
            let (last, next) = (self.last, self.get(index).next);
            self.get_mut(last).next = next;
        }
    }

    /// Removes all slots from the turns.
    pub(super) fn leave_all(&mut self) {
        self.last = NONE;
    }

    fn join(&mut self, index: Index) {
        let next = match some(self.last) {
            None => index,
            Some(last) => std::mem::replace(&mut self.get_mut(last).next, index),
        };
        self.get_mut(index).next = next;
        self.last = index;
    }

    fn link(&mut self, index: Index, length: u32) {
        let first = std::mem::replace(&mut self.by_length[length as usize], index);
        let slot = self.get_mut(index);
        (slot.before, slot.after) = (NONE, first);
        if let Some(first) = some(first) {
            self.get_mut(first).before = index;
        }
    }

    fn unlink(&mut self, index: Index, length: u32) {
        let Slot { before, after, .. } = *self.get(index);
        match some(before) {
            None => self.by_length[length as usize] = after,
            Some(before) => self.get_mut(before).after = after,
        }
        if let Some(after) = some(after) {
            self.get_mut(after).before = before;
        }
    }
}

fn some(index: Index) -> Option<Index> {
    (index != NONE).then_some(index)
}
