//! The order of the tests: those that run at the same time would falsify each other.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Clients that wait for their turn.
#[derive(Debug)]
pub struct Queue {
    tests: usize,
    waiting: usize,
    clients: Mutex<Clients>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Clients {
    next: u64,
    /// Those whose test runs come first.
    order: VecDeque<(u64, IpAddr)>,
    /// Clients of another process that come before all of them.
    ahead: usize,
}

impl Queue {
    /// For so many tests at the same time, and so many clients that wait.
    pub fn new(tests: usize, waiting: usize) -> Self {
        Self { tests: tests.max(1), waiting, clients: Mutex::default(), changes: watch::Sender::new(0) }
    }

    /// Enters a client at the end; `None` if there are too many, in all or of its address.
    pub fn enter(&self, address: IpAddr, per_address: usize) -> Option<Ticket<'_>> {
        let mut clients = self.clients();
        let of_address = clients.order.iter().filter(|(_, other)| *other == address).count();
        if clients.all() >= self.tests + self.waiting || of_address >= per_address {
            return None;
        }
        let number = clients.next;
        clients.next += 1;
        clients.order.push_back((number, address));
        Some(Ticket { queue: self, number, changes: self.changes.subscribe() })
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        let clients = self.clients();
        clients.order.len() - clients.running(self.tests)
    }

    /// How many have their turn.
    pub fn running(&self) -> usize {
        self.clients().running(self.tests)
    }

    /// Whether there are no clients.
    pub fn is_empty(&self) -> bool {
        self.clients().order.is_empty()
    }

    /// Clients, and those of another process that come before them.
    pub fn clients_and_ahead(&self) -> usize {
        self.clients().all()
    }

    /// So many clients of another process come before all clients here.
    pub fn set_ahead(&self, ahead: usize) {
        self.clients().ahead = ahead;
        self.changes.send_modify(|number| *number += 1);
    }

    /// Clients of another process that come before all clients here.
    pub fn ahead(&self) -> usize {
        self.clients().ahead
    }

    /// Whether another client would have to wait.
    pub fn is_full(&self) -> bool {
        self.clients().order.len() >= self.tests
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients {
    fn all(&self) -> usize {
        self.ahead + self.order.len()
    }

    fn running(&self, tests: usize) -> usize {
        tests.saturating_sub(self.ahead).min(self.order.len())
    }
}

/// A client's place in the queue, given up when it is dropped.
#[derive(Debug)]
pub struct Ticket<'a> {
    queue: &'a Queue,
    number: u64,
    changes: watch::Receiver<u64>,
}

impl Ticket<'_> {
    /// How many tests must end first; `None`: it is this client's turn.
    pub fn position(&self) -> Option<usize> {
        let clients = self.queue.clients();
        let at = clients.ahead + clients.order.iter().position(|(number, _)| *number == self.number)?;
        (at >= self.queue.tests).then(|| at + 1 - self.queue.tests)
    }

    /// Whether other tests run now.
    pub fn shares(&self) -> bool {
        self.queue.tests > 1 && self.queue.clients().all() > 1
    }

    /// Waits until a client has left.
    pub async fn changed(&mut self) {
        let _ = self.changes.changed().await;
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.queue.clients().order.retain(|(number, _)| *number != self.number);
        self.queue.changes.send_modify(|number| *number += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn clients_come_in_their_order_and_those_who_leave_make_room() {
        let queue = Queue::new(1, 2);
        let first = queue.enter(address(1), 8).unwrap();
        let second = queue.enter(address(2), 8).unwrap();
        let third = queue.enter(address(3), 8).unwrap();
        assert!(queue.enter(address(4), 8).is_none(), "full");
        assert_eq!([first.position(), second.position(), third.position()], [None, Some(1), Some(2)]);
        drop(second);
        assert_eq!(third.position(), Some(1));
        drop(first);
        assert_eq!((third.position(), queue.waiting()), (None, 0));
    }

    #[tokio::test]
    async fn clients_of_another_process_come_first_and_count_as_all_others() {
        let queue = Queue::new(2, 1);
        queue.set_ahead(2);
        let mut first = queue.enter(address(1), 8).unwrap();
        assert!(queue.enter(address(2), 8).is_none(), "full");
        assert_eq!((first.position(), queue.running(), queue.waiting()), (Some(1), 0, 1));
        queue.set_ahead(1);
        first.changed().await;
        assert_eq!((first.position(), queue.running(), queue.waiting()), (None, 1, 0));
        assert!(first.shares(), "with a test of the other process");
        queue.set_ahead(0);
        assert!(!first.shares());
    }

    #[test]
    fn an_address_has_a_bounded_number_of_clients() {
        let queue = Queue::new(1, 100);
        let kept: Vec<_> = (0..3).filter_map(|_| queue.enter(address(1), 2)).collect();
        assert_eq!(kept.len(), 2);
        assert!(queue.enter(address(2), 2).is_some());
    }

    #[tokio::test]
    async fn those_who_wait_notice_that_one_left() {
        let queue = Queue::new(1, 2);
        let first = queue.enter(address(1), 8).unwrap();
        let mut second = queue.enter(address(2), 8).unwrap();
        drop(first);
        second.changed().await;
        assert_eq!(second.position(), None);
    }
}
