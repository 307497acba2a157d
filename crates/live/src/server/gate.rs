//! Bounds the number of connections of a kind, in all and for each address: of those that have not shown a secret yet, and of
//! monitors.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    of: HashMap<IpAddr, usize>,
}

impl Gate {
    /// For so many connections, and so many of one address.
    pub fn new(most: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self { most, per_address, inside: Mutex::default() })
    }

    /// Lets a connection in; `None` if there are too many. An address whose test runs may have `of_test` more, and is not kept out
    /// by the connections of others.
    pub fn enter(self: &Arc<Self>, address: IpAddr, of_test: Option<usize>) -> Option<Pass> {
        let address = user(address);
        let mut inside = self.inside();
        let of_address = inside.of.get(&address).copied().unwrap_or(0);
        let is_full = inside.all >= self.most && of_test.is_none();
        if is_full || of_address >= self.per_address + of_test.unwrap_or(0) {
            return None;
        }
        inside.all += 1;
        inside.of.insert(address, of_address + 1);
        Some(Pass { gate: Arc::clone(self), address })
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

/// A connection's leave to be there, given up when it is dropped.
#[derive(Debug)]
pub struct Pass {
    gate: Arc<Gate>,
    address: IpAddr,
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.gate.inside();
        inside.all -= 1;
        match inside.of.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                inside.of.remove(&self.address);
            }
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
}
