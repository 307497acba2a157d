//! Chooses the station of the next aggregate.
//!
//! Without airtime fairness, stations with packets take turns. With it, each station has a deficit of air time, which
//! its transmissions use up, in both directions; a station that comes back after having had nothing goes first, once
//! (the scheduler of "Ending the Anomaly", USENIX ATC 2017; `drivers/net/wireless/ath/ath9k/xmit.c` of Linux 4.11).
//!
//! The driver of the `fifo` mode keeps its list of turns itself ([`Scheduler::first`], [`Scheduler::last`] and
//! [`Scheduler::activate`]), as `ath_txq_schedule` of Linux 4.4 does.

use std::collections::VecDeque;

/// The air time that a station gets in its turn (`ATH_AIRTIME_QUANTUM`).
const QUANTUM_NS: i64 = 300_000;

/// A station as the access point's scheduler sees it: its number there.
pub(super) type Number = u16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Neither,
    New,
    Old,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    deficit_ns: i64,
    list: List,
}

/// The stations that may have packets.
#[derive(Debug)]
pub(super) struct Scheduler {
    is_fair: bool,
    accounts: Vec<Account>,
    new: VecDeque<Number>,
    old: VecDeque<Number>,
}

impl Scheduler {
    /// A scheduler of this many stations. `is_fair` says whether their air time counts.
    pub(super) fn new(stations: usize, is_fair: bool) -> Self {
        Self {
            is_fair,
            accounts: vec![Account { deficit_ns: QUANTUM_NS, list: List::Neither }; stations],
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    /// The station has packets.
    pub(super) fn activate(&mut self, station: Number) {
        let account = &mut self.accounts[usize::from(station)];
        if account.list == List::Neither {
            account.list = List::New;
            self.new.push_back(station);
        }
    }

    /// Takes the station whose turn it is off the list of turns.
    pub(super) fn first(&mut self) -> Option<Number> {
        let station = self.new.pop_front()?;
        self.accounts[usize::from(station)].list = List::Neither;
        Some(station)
    }

    /// The station whose turn comes last.
    pub(super) fn last(&self) -> Option<Number> {
        self.new.back().copied()
    }

    /// The station used the air.
    pub(super) fn charge(&mut self, station: Number, airtime_ns: u64) {
        self.accounts[usize::from(station)].deficit_ns -= i64::try_from(airtime_ns).unwrap_or(i64::MAX);
    }

    /// The station whose turn it is; `has_packets` says whether it has any that can be sent.
    pub(super) fn next(&mut self, mut has_packets: impl FnMut(Number) -> bool) -> Option<Number> {
        if !self.is_fair {
            return self.next_in_turn(has_packets);
        }
        loop {
            let is_new = !self.new.is_empty();
            let station = *if is_new { self.new.front() } else { self.old.front() }?;
            let account = &mut self.accounts[usize::from(station)];
            if account.deficit_ns <= 0 {
                account.deficit_ns += QUANTUM_NS;
                self.move_back(is_new);
            } else if has_packets(station) {
                return Some(station);
            } else if is_new && !self.old.is_empty() {
                self.move_back(is_new);
            } else {
                account.list = List::Neither;
                if is_new {
                    self.new.pop_front()
                } else {
                    self.old.pop_front()
                };
            }
        }
    }

    fn next_in_turn(&mut self, mut has_packets: impl FnMut(Number) -> bool) -> Option<Number> {
        while let Some(station) = self.new.pop_front() {
            if has_packets(station) {
                self.new.push_back(station);
                return Some(station);
            }
            self.accounts[usize::from(station)].list = List::Neither;
        }
        None
    }

    /// Moves the first station of its list to the end of the old ones.
    fn move_back(&mut self, is_new: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        if let Some(station) = list.pop_front() {
            self.accounts[usize::from(station)].list = List::Old;
            self.old.push_back(station);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stations_take_turns() {
        let mut scheduler = Scheduler::new(3, false);
        (0..3).for_each(|station| scheduler.activate(station));
        let order: Vec<_> = (0..6).map(|_| scheduler.next(|_| true)).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2].map(Some));
        assert_eq!(scheduler.next(|station| station == 2), Some(2), "the others have nothing");
        assert_eq!(scheduler.next(|_| true), Some(2), "and have left");
    }

    #[test]
    fn a_station_that_was_taken_off_the_list_comes_back_at_its_end() {
        let mut scheduler = Scheduler::new(3, false);
        assert_eq!((scheduler.first(), scheduler.last()), (None, None));
        (0..3).for_each(|station| scheduler.activate(station));
        assert_eq!((scheduler.first(), scheduler.last()), (Some(0), Some(2)));
        scheduler.activate(0);
        scheduler.activate(1);
        assert_eq!(scheduler.last(), Some(0), "the second is on the list already");
    }

    #[test]
    fn air_time_is_shared_equally_whatever_a_turn_takes() {
        let mut scheduler = Scheduler::new(2, true);
        (0..2).for_each(|station| scheduler.activate(station));
        let mut used = [0, 0];
        for _ in 0..10_000 {
            let station = scheduler.next(|_| true).unwrap();
            let airtime_ns = [400_000, 3_300_000][usize::from(station)];
            used[usize::from(station)] += airtime_ns;
            scheduler.charge(station, airtime_ns);
        }
        let share = used[0] as f64 / (used[0] + used[1]) as f64;
        assert!((share - 0.5).abs() < 0.005, "{share}");
    }

    #[test]
    fn a_station_that_was_empty_goes_first_once() {
        let mut scheduler = Scheduler::new(3, true);
        (0..2).for_each(|station| scheduler.activate(station));
        for _ in 0..10 {
            let station = scheduler.next(|station| station < 2).unwrap();
            scheduler.charge(station, 1_000_000);
        }
        scheduler.activate(2);
        assert_eq!(scheduler.next(|_| true), Some(2));
    }
}
