//! Round-trip times by the spin bit (RFC 9000, section 17.4; RFC 9312, section 3.8).
//!
//! The server sends the bit as it received it, and the client inverts it, so that it flips once in each round trip.
//! Each end may also leave it constant or set it at random. If it works, the flips of both directions alternate: each
//! flip of one is answered by a flip of the other. This is checked before any time is reported.

use serde::Serialize;

/// Minimum number of flips before the bit is judged.
const LEAST_TURNS: usize = 6;
/// Maximum number of round-trip times that are kept.
const MOST_SAMPLES: usize = 100_000;

/// The bit in both directions of a connection.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// The bit of the last packet of each direction.
    last: [Option<bool>; 2],
    packets: [u64; 2],
    /// The direction of the last flip, and the times of the last two flips of each direction.
    last_turn: Option<usize>,
    turned_ns: [Option<u64>; 2],
    turns: [u64; 2],
    alternating: u64,
    samples_ns: [Vec<u64>; 2],
}

/// The round-trip times by the spin bit.
#[derive(Clone, Debug, Serialize)]
pub struct SpinNotes {
    /// `works`, `constant`, `random` (or it looks random because of lost packets), `few` (too few flips), `one-way`
    /// (its flips cannot be checked, because one direction was not captured).
    pub behaviour: &'static str,
    /// Round-trip times that were measured. They include the time that the ends wait before they send.
    pub samples: usize,
    /// The minimum; `None`: there are none.
    pub min_ns: Option<u64>,
    /// The median.
    pub median_ns: Option<u64>,
    /// The 95th percentile.
    pub p95_ns: Option<u64>,
}

impl Spin {
    /// Processes a packet with a short header.
    pub(super) fn seen(&mut self, bit: bool, direction: usize, t_ns: u64) {
        self.packets[direction] += 1;
        let before = self.last[direction].replace(bit);
        if before.is_none_or(|before| before == bit) {
            return;
        }
        self.turns[direction] += 1;
        // The server answers with the client's bit, and the client with the inverse of the server's bit.
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

    /// The result. It uses the times of the direction with more packets, whose flips are seen earlier.
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
            // One end leaves it constant: its direction never flips, however often the other's does.
            () if self.turns.contains(&0) && turns >= LEAST_TURNS as u64 => "constant",
            () if turns < LEAST_TURNS as u64 => "few",
            () if 10 * self.alternating >= 9 * turns => "works",
            () => "random",
        }
    }
}
