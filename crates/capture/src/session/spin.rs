//! Round-trip times by the spin bit (RFC 9000, section 17.4; RFC 9312, section 3.8).
//!
//! The server sends the bit as it received it, and the client sends its opposite, so that it turns once a round trip. Each
//! end may leave it constant, or set it by chance. Where it works, the turns of both directions alternate: each turn of
//! one is answered by a turn of the other. That is what is checked before any time is reported.

use serde::Serialize;

/// Turns after which it can be judged whether the bit works.
const LEAST_TURNS: usize = 6;
/// Round-trip times that are kept.
const MOST_SAMPLES: usize = 100_000;

/// The bit in both directions of a connection.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// The bit of the last packet of each direction.
    last: [Option<bool>; 2],
    packets: [u64; 2],
    /// The direction of the last turn, and the last two times at which each direction turned.
    last_turn: Option<usize>,
    turned_ns: [Option<u64>; 2],
    turns: [u64; 2],
    alternating: u64,
    samples_ns: [Vec<u64>; 2],
}

/// What the bit shows.
#[derive(Clone, Debug, Serialize)]
pub struct SpinNotes {
    /// What it does: `works`, `constant`, `random` (or lost packets make it look so), `few` (turns), `one-way` (its turns
    /// can't be checked, because one direction was not captured).
    pub behaviour: &'static str,
    /// Round-trip times that were measured. They include how long the ends wait before they send.
    pub samples: usize,
    /// The smallest; `None`: there are none.
    pub min_ns: Option<u64>,
    /// The median.
    pub median_ns: Option<u64>,
    /// The 95th percentile.
    pub p95_ns: Option<u64>,
}

impl Spin {
    /// A packet of data.
    pub(super) fn seen(&mut self, bit: bool, direction: usize, t_ns: u64) {
        self.packets[direction] += 1;
        let before = self.last[direction].replace(bit);
        if before.is_none_or(|before| before == bit) {
            return;
        }
        self.turns[direction] += 1;
        // An answer has the server's bit as the client's was, and the client's as the server's was not.
        let follows = self.last_turn.is_none_or(|last| last != direction);
        self.alternating += u64::from(follows);
        self.last_turn = Some(direction);
        let since = self.turned_ns[direction].replace(t_ns);
        if let Some(rtt_ns) = since.and_then(|since| t_ns.checked_sub(since))
            && follows
            && self.samples_ns[direction].len() < MOST_SAMPLES
        {
            self.samples_ns[direction].push(rtt_ns);
        }
    }

    /// What it shows. The times of the direction with more packets are used: its turns are seen at once.
    pub(super) fn finish(self, opener: usize) -> SpinNotes {
        let behaviour = self.behaviour();
        let denser = if self.packets[opener] > self.packets[1 - opener] { opener } else { 1 - opener };
        let [first, second] = self.samples_ns;
        let mut samples = match (behaviour, denser) {
            ("works", 0) => first,
            ("works", _) => second,
            _ => Vec::new(),
        };
        samples.sort_unstable();
        let at = |share: f64| samples.get((share * samples.len().saturating_sub(1) as f64).round() as usize).copied();
        SpinNotes { behaviour, samples: samples.len(), min_ns: at(0.0), median_ns: at(0.5), p95_ns: at(0.95) }
    }

    fn behaviour(&self) -> &'static str {
        let turns = self.turns[0] + self.turns[1];
        match () {
            () if self.packets.contains(&0) && turns > 0 => "one-way",
            () if turns == 0 && self.packets[0] + self.packets[1] > 1 => "constant",
            // One end has it constant: its direction never turns, however often the other's does.
            () if self.turns.contains(&0) && turns >= LEAST_TURNS as u64 => "constant",
            () if turns < LEAST_TURNS as u64 => "few",
            () if 10 * self.alternating >= 9 * turns => "works",
            () => "random",
        }
    }
}
