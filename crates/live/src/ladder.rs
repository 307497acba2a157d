//! Which TTL is probed when.

use crate::time::{MS, SECOND};

/// Routers answer one probe per second to a destination, six at a burst (`icmp_ratelimit` in ip-sysctl), so each TTL is
/// probed that often.
pub const ROUND_NS: u64 = SECOND + 10 * MS;
/// A monitor probes each hop this often.
pub const SPARSE_ROUND_NS: u64 = 10 * SECOND;
/// While the distance is not known, the next TTL is tried after this time.
const SEARCH_NS: u64 = 100 * MS;
/// No path has more hops.
pub const LONGEST: u8 = 30;
/// If the other end has not been reached in so many rounds of the search, it cannot be found that way.
const SEARCHES: u32 = 3;

/// The schedule of one end's probes with a limited TTL: first it searches for the distance, then it goes through the hops
/// before the other end in turn, each about once a second, or once in another time.
#[derive(Clone, Debug)]
pub struct Ladder {
    next_ns: u64,
    ttl: u8,
    distance: Option<u8>,
    searches: u32,
    round_ns: u64,
}

impl Ladder {
    /// Begins at a time.
    pub fn starting_at(now_ns: u64) -> Self {
        Self::with_round(now_ns, ROUND_NS)
    }

    /// As [`Self::starting_at`], with another time between two probes of a hop; at least [`ROUND_NS`].
    pub fn with_round(now_ns: u64, round_ns: u64) -> Self {
        Self { next_ns: now_ns, ttl: 0, distance: None, searches: 0, round_ns: round_ns.max(ROUND_NS) }
    }

    /// Number of links to the other end, if it is known.
    pub fn distance(&self) -> Option<u8> {
        self.distance
    }

    /// A probe with this TTL has reached the other end.
    pub fn has_reached(&mut self, ttl: u8) {
        if (1..=LONGEST).contains(&ttl) && self.distance.is_none_or(|known| ttl < known) {
            self.distance = Some(ttl);
        }
    }

    /// When the next probe is due.
    pub fn due_ns(&self) -> u64 {
        self.next_ns
    }

    /// The TTL of the probe that is due; `None`: none is.
    pub fn next(&mut self, now_ns: u64) -> Option<u8> {
        if now_ns < self.next_ns {
            return None;
        }
        match self.distance {
            // With one link there is no hop in between.
            Some(distance) if distance <= 1 => {
                self.next_ns = u64::MAX;
                None
            }
            Some(distance) => {
                let hops = distance - 1;
                self.ttl = if self.ttl >= hops { 1 } else { self.ttl + 1 };
                // Never in a burst, also after a time in which the program did not run.
                self.next_ns = now_ns + self.round_ns / u64::from(hops);
                Some(self.ttl)
            }
            None if self.searches >= SEARCHES => {
                self.next_ns = u64::MAX;
                None
            }
            None => {
                self.ttl += 1;
                self.next_ns = now_ns + SEARCH_NS;
                let ttl = self.ttl;
                if ttl == LONGEST {
                    self.ttl = 0;
                    self.searches += 1;
                }
                Some(ttl)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a schedule in steps of a millisecond; returns the times at which each TTL was probed.
    fn probed(ladder: &mut Ladder, from_ms: u64, to_ms: u64) -> Vec<(u64, u8)> {
        (from_ms..to_ms).filter_map(|ms| Some((ms, ladder.next(ms * MS)?))).collect()
    }

    #[test]
    fn the_distance_is_searched_once_and_then_each_hop_is_probed_at_most_once_a_second() {
        let mut ladder = Ladder::starting_at(0);
        assert_eq!(probed(&mut ladder, 0, 350), [(0, 1), (100, 2), (200, 3), (300, 4)]);
        ladder.has_reached(4);
        ladder.has_reached(6);
        assert_eq!(ladder.distance(), Some(4));
        let probed = probed(&mut ladder, 350, 20_000);
        for ttl in 1..=3 {
            let times: Vec<u64> = probed.iter().filter(|(_, found)| *found == ttl).map(|(ms, _)| *ms).collect();
            assert!(times.len() >= 18, "TTL {ttl}: {times:?}");
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 1000), "TTL {ttl}: {times:?}");
        }
        assert!(probed.iter().all(|(_, ttl)| *ttl <= 3));
    }

    #[test]
    fn a_pause_makes_no_burst() {
        let mut ladder = Ladder::starting_at(0);
        ladder.next(0);
        ladder.has_reached(3);
        assert!(probed(&mut ladder, 60_000, 60_400).len() <= 1);
    }

    #[test]
    fn a_neighbour_has_no_hops_and_an_unreachable_end_is_given_up() {
        let mut ladder = Ladder::starting_at(0);
        ladder.next(0);
        ladder.has_reached(1);
        assert_eq!(probed(&mut ladder, 1, 10_000), []);
        let mut ladder = Ladder::starting_at(0);
        let probed = probed(&mut ladder, 0, 60_000);
        assert_eq!(probed.len(), usize::from(LONGEST) * SEARCHES as usize);
    }
}
