//! Planned tasks, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task that a program plans for a time of its own choosing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// Begin the next flow, page or peer.
    Begin,
    /// Take another step. The number says which one; only the program that planned it knows what it means.
    Step(u32),
}

/// Tasks in order of time. Tasks for the same time are in the order in which they were planned.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    tasks: BinaryHeap<Reverse<(u64, u64, Task)>>,
    planned: u64,
}

impl Agenda {
    pub(crate) fn plan(&mut self, at_ns: u64, task: Task) {
        self.tasks.push(Reverse((at_ns, self.planned, task)));
        self.planned += 1;
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.tasks.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// Takes the first task whose time has come.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<Task> {
        self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.tasks.pop().map(|Reverse((.., task))| task)
    }

    /// Forgets every such task that is planned for `from_ns` or later.
    pub(crate) fn forget(&mut self, task: Task, from_ns: u64) {
        self.tasks.retain(|Reverse((at_ns, _, planned))| *planned != task || *at_ns < from_ns);
    }

    /// Forgets the last such task. Returns whether there was one.
    pub(crate) fn forget_last(&mut self, task: Task) -> bool {
        let last = self.tasks.iter().filter(|entry| entry.0.2 == task).map(|entry| entry.0).max();
        self.tasks.retain(|entry| Some(entry.0) != last);
        last.is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.tasks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_are_too_late_or_the_last_of_a_kind_are_forgotten() {
        let mut agenda = Agenda::default();
        for (at_ns, task) in
            [(9, Task::Begin), (3, Task::Begin), (9, Task::Step(0)), (7, Task::Begin), (5, Task::Begin)]
        {
            agenda.plan(at_ns, task);
        }
        agenda.forget(Task::Begin, 9);
        assert!(agenda.forget_last(Task::Begin), "the one at 7 ns");
        assert!(!agenda.forget_last(Task::Step(1)));
        let rest: Vec<_> = std::iter::from_fn(|| Some((agenda.next_ns()?, agenda.due(u64::MAX)?))).collect();
        assert_eq!(rest, [(3, Task::Begin), (5, Task::Begin), (9, Task::Step(0))]);
    }
}
