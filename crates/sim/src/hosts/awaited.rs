//! Items that were sent, numbered in the order of sending, until their outcome is known.

use std::collections::VecDeque;
use std::ops::Range;

/// The items that were sent and are not settled yet. Items are settled in the order of sending.
#[derive(Debug)]
pub(crate) struct Awaited<T> {
    /// Number of the next item.
    next: u64,
    things: VecDeque<T>,
}

impl<T> Awaited<T> {
    pub(crate) fn new() -> Self {
        Self { next: 0, things: VecDeque::new() }
    }

    /// The number of items sent so far. The next item gets this number.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Adds an item that is sent now.
    pub(crate) fn push(&mut self, thing: T) {
        self.things.push_back(thing);
        self.next += 1;
    }

    /// The item with that number, unless it is already settled.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let first = self.first();
        self.things.get_mut(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    pub(crate) fn oldest(&self) -> Option<&T> {
        self.things.front()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.things.iter_mut()
    }

    /// Takes the oldest item, with its number, if its outcome is known.
    pub(crate) fn conclude(&mut self, is_known: impl FnOnce(&T) -> bool) -> Option<(u64, T)> {
        let number = self.first();
        self.things.front().is_some_and(is_known).then(|| self.things.pop_front().map(|thing| (number, thing)))?
    }

    /// The numbers of the items that are not settled.
    pub(crate) fn numbers(&self) -> Range<u64> {
        self.first()..self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    fn first(&self) -> u64 {
        self.next - self.things.len() as u64
    }
}
