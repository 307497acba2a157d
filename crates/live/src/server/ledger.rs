//! What each address has used in the past hour.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::{Limits, user};
use crate::time::{MS, SECOND};

/// An hour is counted in parts, each of which is forgotten as a whole.
const PARTS: usize = 12;
const PART_NS: u64 = 3600 * SECOND / PARTS as u64;
/// Addresses that are remembered; if there are more, those without a test in the past hour are forgotten.
const MOST_ADDRESSES: usize = 16_384;
/// The answer to a wrong token comes after this time, doubled with each one of the same address ...
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// ... up to this time.
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// A count over the past hour, which forgets in steps of five minutes, never too early.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Hour {
    parts: [u64; PARTS],
    /// The number of the part that is counted in now, since the clock's zero.
    present: u64,
}

impl Hour {
    fn turn(&mut self, now_ns: u64) {
        let present = now_ns / PART_NS;
        let passed = present.saturating_sub(self.present).min(PARTS as u64);
        for part in 0..passed {
            self.parts[((self.present + 1 + part) % PARTS as u64) as usize] = 0;
        }
        self.present = self.present.max(present);
    }

    fn total(&mut self, now_ns: u64) -> u64 {
        self.turn(now_ns);
        self.parts.iter().sum()
    }

    fn add(&mut self, now_ns: u64, more: u64) {
        self.turn(now_ns);
        self.parts[(self.present % PARTS as u64) as usize] += more;
    }

    /// Takes back what was added in the past hour, the latest first.
    fn take_back(&mut self, now_ns: u64, mut less: u64) {
        self.turn(now_ns);
        for back in 0..PARTS as u64 {
            let part = &mut self.parts[((self.present + PARTS as u64 - back) % PARTS as u64) as usize];
            let taken = less.min(*part);
            *part -= taken;
            less -= taken;
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Account {
    bytes: Hour,
    tests: Hour,
    connections: Hour,
    wrong: Hour,
}

/// What a new process must know of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Accounts {
    of: HashMap<IpAddr, Account>,
    tests: Hour,
}

/// The accounts of all addresses.
#[derive(Debug)]
pub struct Ledger {
    limits: Limits,
    accounts: Mutex<Accounts>,
}

impl Ledger {
    /// With nothing in it.
    pub fn new(limits: Limits) -> Self {
        Self::with(limits, Accounts::default())
    }

    /// With the accounts of the process before this one.
    pub(super) fn with(limits: Limits, accounts: Accounts) -> Self {
        Self { limits, accounts: Mutex::new(accounts) }
    }

    /// The accounts for a new process. Its clock is the same.
    pub(super) fn snapshot(&self) -> Accounts {
        self.accounts().clone()
    }

    /// Counts a control connection; returns whether the address may have it.
    pub fn connects(&self, address: IpAddr, now_ns: u64) -> bool {
        let mut accounts = self.accounts();
        let Some(account) = accounts.of(address, now_ns) else { return false };
        let is_allowed = account.connections.total(now_ns) < self.limits.connections_per_hour;
        if is_allowed {
            account.connections.add(now_ns, 1);
        }
        is_allowed
    }

    /// Counts a wrong token; returns how long the answer must wait.
    pub fn shows_wrong_token(&self, address: IpAddr, now_ns: u64) -> Duration {
        let mut accounts = self.accounts();
        let Some(account) = accounts.of(address, now_ns) else { return LONGEST_DELAY };
        let before = account.wrong.total(now_ns);
        account.wrong.add(now_ns, 1);
        FIRST_DELAY.saturating_mul(1 << before.min(10)).min(LONGEST_DELAY)
    }

    /// Whether an address may begin a test; if not, why.
    pub fn may_begin(&self, address: IpAddr, now_ns: u64) -> Result<(), String> {
        self.accounts().may_begin(&self.limits, address, now_ns).map(|_| ())
    }

    /// Counts a test that begins; returns the bytes that it may use, which are counted as used until the rest is given back.
    pub fn begins(&self, address: IpAddr, now_ns: u64) -> Result<u64, String> {
        let mut accounts = self.accounts();
        let left = accounts.may_begin(&self.limits, address, now_ns)?;
        let granted = left.min(self.limits.session.bytes);
        accounts.tests.add(now_ns, 1);
        if let Some(account) = accounts.of(address, now_ns) {
            account.tests.add(now_ns, 1);
            account.bytes.add(now_ns, granted);
        }
        Ok(granted)
    }

    /// A test has ended and has not used so many bytes.
    pub fn gives_back(&self, address: IpAddr, now_ns: u64, bytes: u64) {
        if let Some(account) = self.accounts().of(address, now_ns) {
            account.bytes.take_back(now_ns, bytes);
        }
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts {
    /// An address's account; `None` if too many addresses have one.
    fn of(&mut self, address: IpAddr, now_ns: u64) -> Option<&mut Account> {
        let address = user(address);
        if self.of.len() >= MOST_ADDRESSES && !self.of.contains_key(&address) {
            // Those without a test cost an attacker nothing, so they must not take the room of others; the number of tests is bounded.
            self.of.retain(|_, account| account.tests.total(now_ns) > 0);
            if self.of.len() >= MOST_ADDRESSES {
                return None;
            }
        }
        Some(self.of.entry(address).or_default())
    }

    /// The bytes that an address has left.
    fn may_begin(&mut self, limits: &Limits, address: IpAddr, now_ns: u64) -> Result<u64, String> {
        if self.tests.total(now_ns) >= limits.all_tests_per_hour {
            let most = limits.all_tests_per_hour;
            return Err(format!("the server's limit of {most} tests an hour is reached: try again later"));
        }
        let account = self.of(address, now_ns).ok_or("the server has too many clients: try again later")?;
        if account.tests.total(now_ns) >= limits.tests_per_hour {
            let most = limits.tests_per_hour;
            return Err(format!(
                "the server's limit of {most} tests an hour for an address is reached: try again later"
            ));
        }
        match limits.bytes_per_hour.saturating_sub(account.bytes.total(now_ns)) {
            0 => {
                let most = limits.bytes_per_hour;
                Err(format!("the server's limit of {most} bytes an hour for an address is reached: try again later"))
            }
            left => Ok(left),
        }
    }
}

/// Five minutes after an hour, nothing of it is remembered.
pub const FORGOTTEN_NS: u64 = 3600 * SECOND + PART_NS + MS;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u16) -> IpAddr {
        let [high, low] = last.to_be_bytes();
        IpAddr::from([10, 0, high, low])
    }

    fn ledger(change: impl FnOnce(&mut Limits)) -> Ledger {
        let mut limits = Limits::default();
        change(&mut limits);
        Ledger::new(limits)
    }

    #[test]
    fn an_address_has_so_many_bytes_in_an_hour_and_no_other_pays_for_it() {
        let ledger = ledger(|limits| (limits.bytes_per_hour, limits.session.bytes) = (1000, 700));
        assert_eq!(ledger.begins(address(1), 0), Ok(700));
        assert_eq!(ledger.begins(address(1), SECOND), Ok(300), "the rest");
        assert!(ledger.begins(address(1), 2 * SECOND).unwrap_err().contains("1000 bytes"));
        assert_eq!(ledger.begins(address(2), 2 * SECOND), Ok(700));
        ledger.gives_back(address(1), 3 * SECOND, 600);
        assert_eq!(ledger.begins(address(1), 4 * SECOND), Ok(600));
        assert!(ledger.may_begin(address(1), 3600 * SECOND - 1).is_err(), "within the hour");
        assert_eq!(ledger.begins(address(1), FORGOTTEN_NS), Ok(700));
    }

    #[test]
    fn a_new_process_knows_what_was_used() {
        let before = ledger(|limits| limits.tests_per_hour = 1);
        assert!(before.begins(address(1), SECOND).is_ok());
        let text = serde_json::to_string(&before.snapshot()).unwrap();
        let after = Ledger::with(before.limits.clone(), serde_json::from_str(&text).unwrap());
        assert!(after.begins(address(1), 2 * SECOND).is_err());
        assert!(after.begins(address(2), 2 * SECOND).is_ok());
    }

    #[test]
    fn tests_are_counted_for_each_address_and_for_all() {
        let ledger = ledger(|limits| (limits.tests_per_hour, limits.all_tests_per_hour) = (2, 3));
        assert!(ledger.begins(address(1), 0).is_ok() && ledger.begins(address(1), 0).is_ok());
        assert!(ledger.begins(address(1), 0).unwrap_err().contains("2 tests an hour for an address"));
        assert!(ledger.begins(address(2), 0).is_ok());
        assert!(ledger.begins(address(3), 0).unwrap_err().contains("3 tests an hour is"));
    }

    #[test]
    fn wrong_tokens_slow_their_address_down_and_no_other() {
        let ledger = ledger(|_| {});
        let delays: Vec<_> = (0..8).map(|_| ledger.shows_wrong_token(address(1), 0)).collect();
        assert_eq!(delays[..3], [100, 200, 400].map(Duration::from_millis));
        assert_eq!(delays[7], LONGEST_DELAY);
        assert_eq!(ledger.shows_wrong_token(address(2), 0), FIRST_DELAY);
    }

    #[test]
    fn the_number_of_accounts_is_bounded_and_those_without_a_test_make_room() {
        let ledger = ledger(|limits| (limits.connections_per_hour, limits.tests_per_hour) = (1, 1));
        assert!(ledger.begins(address(0), 0).is_ok());
        for last in 1..=2 * MOST_ADDRESSES as u16 {
            assert!(ledger.connects(address(last), 0), "{last}");
            assert!(ledger.accounts().of.len() <= MOST_ADDRESSES);
        }
        assert!(!ledger.connects(address(2 * MOST_ADDRESSES as u16), 0), "the second connection");
        assert!(ledger.begins(address(0), 0).is_err(), "its test is remembered");
    }
}
