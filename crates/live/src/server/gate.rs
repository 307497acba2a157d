//! Bounds the number of connections of a kind, in all and for each address: of those that have not shown a secret yet, and of
//! monitors.
//!
//! A connection of HTTP may be open without being used: some programs keep every connection of a test. If an address has
//! no room for another connection, the one of its own that has been idle the longest makes room.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::limits::user;

/// Counts them.
#[derive(Debug)]
pub struct Gate {
    most: usize,
    per_address: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    all: usize,
    of: HashMap<IpAddr, OfAddress>,
}

/// The connections of an address.
#[derive(Debug, Default)]
struct OfAddress {
    count: usize,
    /// Those that make room for others, the one that has been idle the longest first.
    idle: VecDeque<Arc<Place>>,
}

impl Gate {
    /// For so many connections, and so many of one address.
    pub fn new(most: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self { most, per_address, inside: Mutex::default() })
    }

    /// Lets a connection in; `None` if there are too many and the address has no idle one that makes room. An address whose
    /// test runs may have `of_test` more, and is not kept out by the connections of others.
    pub fn enter(self: &Arc<Self>, address: IpAddr, of_test: Option<usize>) -> Option<Pass> {
        let address = user(address);
        let most_of_address = self.per_address + of_test.unwrap_or(0);
        let mut inside = self.inside();
        loop {
            let of_address = inside.of.get(&address).map_or(0, |of| of.count);
            let is_full = inside.all >= self.most && of_test.is_none();
            if !is_full && of_address < most_of_address {
                break;
            }
            let idle = inside.of.get_mut(&address)?.idle.pop_front()?;
            idle.is_out.store(true, Ordering::Relaxed);
            idle.leaves.notify_one();
            inside.remove(address);
        }
        inside.all += 1;
        inside.of.entry(address).or_default().count += 1;
        let place = Place { gate: Arc::clone(self), address, leaves: Notify::new(), is_out: AtomicBool::new(false) };
        Some(Pass { place: Arc::new(place) })
    }

    /// How many are in.
    pub fn count(&self) -> usize {
        self.inside().all
    }

    /// The addresses of those that are in.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.inside().of.keys().copied().collect()
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn remove(&mut self, address: IpAddr) {
        self.all -= 1;
        match self.of.get_mut(&address) {
            Some(of) if of.count > 1 => of.count -= 1,
            _ => {
                self.of.remove(&address);
            }
        }
    }
}

/// Where a connection is counted, and whether it is idle.
#[derive(Debug)]
pub struct Place {
    gate: Arc<Gate>,
    address: IpAddr,
    leaves: Notify,
    /// It has made room, and is no longer counted. Changed while the gate is locked.
    is_out: AtomicBool,
}

impl Place {
    /// The connection is idle: from now on, it may have to make room for another one of its address.
    pub fn rests(self: &Arc<Self>) {
        let mut inside = self.gate.inside();
        if self.is_out.load(Ordering::Relaxed) {
            return;
        }
        if let Some(of) = inside.of.get_mut(&self.address) {
            of.idle.retain(|other| !Arc::ptr_eq(self, other));
            of.idle.push_back(Arc::clone(self));
        }
    }

    /// The connection is in use again.
    pub fn works(&self) {
        self.forget(&mut self.gate.inside());
    }

    /// Waits until the connection must make room.
    pub async fn must_leave(&self) {
        self.leaves.notified().await;
    }

    fn forget(&self, inside: &mut Inside) {
        if let Some(of) = inside.of.get_mut(&self.address) {
            of.idle.retain(|other| !std::ptr::eq(self, &raw const **other));
        }
    }
}

/// A connection's leave to be there, given up when it is dropped.
#[derive(Debug)]
pub struct Pass {
    place: Arc<Place>,
}

impl Pass {
    /// Where the connection is counted.
    pub fn place(&self) -> &Arc<Place> {
        &self.place
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.place.gate.inside();
        self.place.forget(&mut inside);
        if !self.place.is_out.swap(true, Ordering::Relaxed) {
            inside.remove(self.place.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_keep_the_others_out() {
        let gate = Gate::new(4, 2);
        let address = |last| IpAddr::from([192, 0, 2, last]);
        let mut kept: Vec<_> = (0..9).filter_map(|_| gate.enter(address(1), None)).collect();
        assert_eq!(kept.len(), 2);
        kept.extend(gate.enter(address(2), None));
        kept.extend(gate.enter(address(3), None));
        assert_eq!(kept.len(), 4);
        assert!(gate.enter(address(4), None).is_none(), "full");
        assert!(gate.enter(address(4), Some(3)).is_some(), "its test runs");
        assert!(gate.enter(address(1), Some(1)).is_some());
        drop(kept);
        let inside = gate.inside();
        assert_eq!((inside.all, inside.of.len()), (0, 0));
    }

    #[tokio::test]
    async fn the_connection_that_is_idle_the_longest_makes_room_for_another_of_its_address() {
        let gate = Gate::new(4, 2);
        let address = |last| IpAddr::from([192, 0, 2, last]);
        let (first, second) = (gate.enter(address(1), None).unwrap(), gate.enter(address(1), None).unwrap());
        second.place().rests();
        first.place().rests();
        second.place().works();
        second.place().rests();
        // The second one was in use after the first.
        let third = gate.enter(address(1), None).unwrap();
        first.place().must_leave().await;
        assert_eq!(gate.count(), 2);
        second.place().works();
        assert!(gate.enter(address(1), None).is_none(), "none is idle");
        // What has left is neither counted nor asked again.
        first.place().rests();
        assert!(gate.enter(address(1), None).is_none());
        drop(first);
        assert_eq!(gate.count(), 2);
        second.place().rests();
        drop(second);
        drop(third);
        assert_eq!(gate.count(), 0);
        assert!(gate.addresses().is_empty());
        // Nor does one make room for other addresses.
        let held: Vec<_> = [1, 1, 2, 2].map(|last| gate.enter(address(last), None).unwrap()).into();
        held[0].place().rests();
        assert!(gate.enter(address(3), None).is_none(), "full");
        assert!(gate.enter(address(1), None).is_some());
    }
}
