//! Decides which peers may receive from a BitTorrent peer that has the whole torrent. This is the choking of BEP 3, as
//! implemented in the original client (version 3.4).
//!
//! Every ten seconds, the peers that received most are unchoked. They fill all upload slots but one. The peers have an
//! order, and the first of the others in that order gets the remaining slot. Every thirty seconds the order is rotated
//! to bring a choked peer to the front: the optimistic unchoke. A new peer is three times as likely to enter at the
//! front as at any other position.
//!
//! Departures from the original: all peers are always interested, and none is snubbed. The rate is that of the last
//! round instead of a rolling average over about twenty seconds.

use std::cmp::Reverse;

use crate::random::{Random, Uniform};

/// Rounds between two rotations of the order.
const ROUNDS_PER_ROTATION: u64 = 3;

/// The choking state of one torrent.
#[derive(Debug)]
pub(crate) struct Choker {
    /// Upload slots: the number of peers that may receive.
    slots: usize,
    /// In the current order.
    peers: Vec<Peer>,
    rounds: u64,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    connection: u32,
    choked: bool,
    /// Bytes that it had received when the last round ended, and bytes that it received during that round.
    received: u64,
    gained: u64,
}

/// A peer is unchoked or choked from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) connection: u32,
    pub(crate) choked: bool,
}

impl Choker {
    pub(crate) fn new(slots: u32, random: Random) -> Self {
        Self { slots: slots.max(1) as usize, peers: Vec::new(), rounds: 0, random }
    }

    /// A peer has connected. It is choked unless it is unchoked at once.
    pub(crate) fn connected(&mut self, connection: u32) -> Vec<Change> {
        let position = self.random.below(self.peers.len() as u64 + 3).saturating_sub(2);
        self.peers.insert(position as usize, Peer { connection, choked: true, received: 0, gained: 0 });
        self.choose()
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = u32> {
        self.peers.iter().map(|peer| peer.connection)
    }

    /// Ten seconds have passed; `received` is what each of [`connections`](Self::connections) has received so far.
    pub(crate) fn round(&mut self, received: &[u64]) -> Vec<Change> {
        for (peer, &received) in self.peers.iter_mut().zip(received) {
            peer.gained = received.saturating_sub(peer.received);
            peer.received = received;
        }
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS_PER_ROTATION)
            && let Some(front) = self.peers.iter().position(|peer| peer.choked)
        {
            self.peers.rotate_left(front);
        }
        self.choose()
    }

    /// The time that this takes is proportional to the number of peers, however many of them may receive. In a swarm of
    /// ten thousand, it runs ten thousand times while they connect.
    fn choose(&mut self) -> Vec<Change> {
        let mut is_free = vec![false; self.peers.len()];
        self.first_by_gain(self.slots - 1).into_iter().for_each(|index| is_free[index] = true);
        let left = self.slots - is_free.iter().filter(|is_free| **is_free).count();
        is_free.iter_mut().filter(|is_free| !**is_free).take(left).for_each(|is_free| *is_free = true);
        let mut changes = Vec::new();
        for (peer, is_free) in self.peers.iter_mut().zip(is_free) {
            let choked = !is_free;
            if std::mem::replace(&mut peer.choked, choked) != choked {
                changes.push(Change { connection: peer.connection, choked });
            }
        }
        // Peers that are choked to make room come first.
        changes.sort_by_key(|change| !change.choked);
        changes
    }

    /// The `count` peers that received most in the last round. Of two that received the same, the first in the order
    /// wins.
    fn first_by_gain(&self, count: usize) -> Vec<usize> {
        let mut by_gain: Vec<usize> = (0..self.peers.len()).collect();
        if 0 < count && count < by_gain.len() {
            by_gain.select_nth_unstable_by_key(count - 1, |&index| (Reverse(self.peers[index].gained), index));
        }
        by_gain.truncate(count);
        by_gain
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn choker(slots: u32, peers: u32) -> Choker {
        let mut choker = Choker::new(slots, Random::new(1, 0));
        for connection in 1..=peers {
            choker.connected(connection);
        }
        choker
    }

    fn unchoked(choker: &Choker) -> Vec<u32> {
        let mut unchoked: Vec<u32> =
            choker.peers.iter().filter(|peer| !peer.choked).map(|peer| peer.connection).collect();
        unchoked.sort_unstable();
        unchoked
    }

    /// A round in which each unchoked peer receives as much as `gain` says.
    fn round(choker: &mut Choker, gain: impl Fn(u32) -> u64) {
        let received: Vec<u64> = choker
            .peers
            .iter()
            .map(|peer| peer.received + if peer.choked { 0 } else { gain(peer.connection) })
            .collect();
        choker.round(&received);
    }

    #[test]
    fn all_may_receive_where_there_are_no_more_than_slots() {
        assert_eq!(unchoked(&choker(4, 3)), [1, 2, 3]);
        assert_eq!(unchoked(&choker(4, 4)), [1, 2, 3, 4]);
    }

    #[test]
    fn the_three_that_take_most_stay_and_the_fourth_slot_rotates() {
        let mut choker = choker(4, 10);
        let mut had_a_turn = std::collections::BTreeSet::new();
        for rounds in 1..=60 {
            round(&mut choker, u64::from);
            assert_eq!(unchoked(&choker).len(), 4);
            if rounds >= 33 {
                // Eleven turns: each of ten peers has been at the front, and 8, 9 and 10 have stayed unchoked since
                // then.
                assert!([8, 9, 10].iter().all(|peer| unchoked(&choker).contains(peer)), "{:?}", unchoked(&choker));
                had_a_turn.extend(unchoked(&choker));
            }
        }
        assert_eq!(had_a_turn.len(), 10, "{had_a_turn:?}");
    }

    #[test]
    fn the_optimistic_unchoke_lasts_three_rounds() {
        let mut choker = choker(1, 5);
        let fronts: Vec<u32> = (0..15)
            .map(|_| {
                round(&mut choker, |_| 1000);
                unchoked(&choker)[0]
            })
            .collect();
        let turns: Vec<usize> = (1..15).filter(|&n| fronts[n] != fronts[n - 1]).collect();
        assert_eq!(turns, [2, 5, 8, 11, 14], "rounds 3, 6, 9 ... of {fronts:?}");
    }

    proptest! {
        #[test]
        fn as_many_receive_as_there_are_slots_or_peers(
            slots in 1..6_u32,
            peers in 0..12_u32,
            gains in prop::collection::vec(prop::collection::vec(0..1000_u64, 12), 0..20),
        ) {
            let mut choker = choker(slots, peers);
            for gain in gains {
                round(&mut choker, |connection| gain[connection as usize - 1]);
                prop_assert_eq!(unchoked(&choker).len() as u32, slots.min(peers));
            }
        }
    }
}
