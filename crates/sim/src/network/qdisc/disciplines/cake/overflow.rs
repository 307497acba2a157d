//! Which queue loses a packet when the buffer overflows: a heap over all queues of eight tins (`cake_heapify`,
//! `cake_heapify_up`, `cake_drop`).
//!
//! It is built when the buffer overflows, and kept up to date until 65535 packets have left since the last overflow. As in
//! the kernel, a queue sinks by one level at a time, so that after some drops the first queue need not be the longest. If
//! it turns out to be empty, the heap is built afresh.

use super::flows::QUEUES;

const TINS: usize = 8;
const ENTRIES: usize = TINS * QUEUES;

/// A queue, as the kernel numbers them in the heap at first: tins of a queue are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry(u16);

#[derive(Debug)]
pub(super) struct Heap {
    entries: Vec<Entry>,
    /// The position of each entry.
    positions: Vec<u16>,
    /// How many packets may still leave until the heap is given up.
    pub(super) timeout: u16,
}

impl Entry {
    pub(super) fn new(tin: usize, queue: usize) -> Self {
        Self((queue * TINS + tin) as u16)
    }

    pub(super) fn tin(self) -> usize {
        usize::from(self.0) % TINS
    }

    pub(super) fn queue(self) -> usize {
        usize::from(self.0) / TINS
    }
}

impl Heap {
    pub(super) fn new() -> Self {
        Self { entries: (0..ENTRIES as u16).map(Entry).collect(), positions: (0..ENTRIES as u16).collect(), timeout: 0 }
    }

    /// The queue that should be the longest. `bytes` is the length of a queue.
    pub(super) fn longest(&mut self, bytes: impl Fn(Entry) -> u64) -> Entry {
        if self.timeout == 0 {
            (0..=ENTRIES / 2).rev().for_each(|position| self.sink(position, &bytes));
        }
        self.timeout = u16::MAX;
        self.entries[0]
    }

    /// A queue has become shorter.
    pub(super) fn shrunk(&mut self, entry: Entry, bytes: impl Fn(Entry) -> u64) {
        self.sink(self.positions[usize::from(entry.0)].into(), &bytes);
    }

    /// The first queue has become shorter.
    pub(super) fn first_shrunk(&mut self, bytes: impl Fn(Entry) -> u64) {
        self.sink(0, &bytes);
    }

    /// A queue has become longer.
    pub(super) fn grown(&mut self, entry: Entry, bytes: impl Fn(Entry) -> u64) {
        let mut position = usize::from(self.positions[usize::from(entry.0)]);
        while position > 0 {
            let parent = (position - 1) / 2;
            if bytes(self.entries[position]) <= bytes(self.entries[parent]) {
                break;
            }
            self.swap(position, parent);
            position = parent;
        }
    }

    /// The kernel goes on to the next level with the length of the queue that has risen. None below is longer, so it
    /// stops there.
    fn sink(&mut self, position: usize, bytes: &impl Fn(Entry) -> u64) {
        let (mut from, mut largest, mut most) = (position, position, bytes(self.entries[position]));
        loop {
            for child in [2 * largest + 1, 2 * largest + 2].into_iter().filter(|child| *child < ENTRIES) {
                let length = bytes(self.entries[child]);
                if length > most {
                    (largest, most) = (child, length);
                }
            }
            if largest == from {
                return;
            }
            self.swap(from, largest);
            from = largest;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.entries.swap(a, b);
        for position in [a, b] {
            self.positions[usize::from(self.entries[position].0)] = position as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of all queues, of which only these are not empty.
    fn lengths(some: &[(usize, usize, u64)]) -> Vec<u64> {
        let mut lengths = vec![0; ENTRIES];
        some.iter().for_each(|&(tin, queue, bytes)| lengths[usize::from(Entry::new(tin, queue).0)] = bytes);
        lengths
    }

    fn bytes(lengths: &[u64]) -> impl Fn(Entry) -> u64 {
        |entry| lengths[usize::from(entry.0)]
    }

    #[test]
    fn an_entry_says_which_queue_it_is() {
        let entry = Entry::new(5, 1023);
        assert_eq!((entry.0, entry.tin(), entry.queue()), (8189, 5, 1023));
    }

    #[test]
    fn the_longest_queue_is_found_wherever_it_is() {
        for (tin, queue) in [(0, 0), (7, 1023), (2, 511), (3, 700)] {
            let lengths = lengths(&[(tin, queue, 100), (1, 1, 99), (4, 900, 98)]);
            assert_eq!(Heap::new().longest(bytes(&lengths)), Entry::new(tin, queue));
        }
    }

    #[test]
    fn a_queue_that_grows_or_shrinks_moves() {
        let mut lengths = lengths(&[(0, 1, 300), (0, 700, 200), (0, 800, 100)]);
        let mut heap = Heap::new();
        assert_eq!(heap.longest(bytes(&lengths)), Entry::new(0, 1));
        let grown = Entry::new(0, 800);
        lengths[usize::from(grown.0)] = 400;
        heap.grown(grown, bytes(&lengths));
        assert_eq!(heap.longest(bytes(&lengths)), grown);
        lengths[usize::from(grown.0)] = 0;
        heap.shrunk(grown, bytes(&lengths));
        assert_eq!(heap.longest(bytes(&lengths)), Entry::new(0, 1));
        for (position, entry) in heap.entries.iter().enumerate() {
            assert_eq!(usize::from(heap.positions[usize::from(entry.0)]), position);
        }
    }

    /// A queue that becomes short sinks by one level only, as in the kernel. It is then above longer ones.
    #[test]
    fn a_queue_sinks_by_one_level() {
        let mut lengths = vec![0; ENTRIES];
        lengths[..7].copy_from_slice(&[70, 60, 30, 50, 40, 20, 10]);
        let mut heap = Heap::new();
        assert_eq!(heap.longest(bytes(&lengths)), Entry(0));
        lengths[0] = 5;
        heap.first_shrunk(bytes(&lengths));
        assert_eq!(heap.entries[..4], [Entry(1), Entry(0), Entry(2), Entry(3)]);
    }
}
