//! The round-trip time of a path, computed from the round-trip times of the two half paths that a vantage point sees.
//!
//! If the vantage point is at an end of the path, one half is nearly zero and reflects delayed acknowledgements and
//! applications; the other half is then the path's round-trip time. Between the ends, the path's is the sum of both.
//! `metrics/round_trips.py` makes the same choice for the recorded round trips.

use bufferscope_records::{Half, Method};

/// A half that is shorter than this fraction of the other means that the vantage point is at that end.
const SHORT: f64 = 0.1;
/// A half that is shorter than this is an end's own processing time, even on the fastest networks.
const INSTANT_NS: u64 = 300_000;
/// Timestamp echoes are used if there are more than this many for each acknowledged segment.
const MORE_ECHOES: u64 = 2;
/// While one half has no round trips, this many of the other are needed for an estimate.
const FEW: u64 = 8;

/// The estimate of one half by one method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Estimate {
    count: u64,
    least_ns: u64,
    smoothed_ns: u64,
}

/// The round trips of the half to the receiver and of the half to the sender, by method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Halves([[Estimate; 2]; 2]);

/// The round trip of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) least_ns: u64,
    pub(super) smoothed_ns: u64,
    /// Whether the vantage point is at the sender, so that it sees everything in flight.
    pub(super) at_sender: bool,
}

impl Halves {
    /// Adds a round-trip time, smoothed as in RFC 6298.
    pub(super) fn add(&mut self, half: Half, method: Method, rtt_ns: u64) {
        let known = &mut self.0[half as usize][method as usize];
        *known = if known.count == 0 {
            Estimate { count: 1, least_ns: rtt_ns, smoothed_ns: rtt_ns }
        } else {
            Estimate {
                count: known.count + 1,
                least_ns: known.least_ns.min(rtt_ns),
                smoothed_ns: known.smoothed_ns - known.smoothed_ns / 8 + rtt_ns / 8,
            }
        };
    }

    /// The path's round trip; `None`: not known, or not yet.
    pub(super) fn path(&self, at_end: bool) -> Option<Path> {
        let path =
            |each: &Estimate, at_sender| Path { least_ns: each.least_ns, smoothed_ns: each.smoothed_ns, at_sender };
        match [self.best(Half::Receiver), self.best(Half::Sender)] {
            [None, None] => None,
            [Some(to_receiver), None] => (at_end || to_receiver.count >= FEW).then(|| path(&to_receiver, true)),
            [None, Some(to_sender)] => (at_end || to_sender.count >= FEW).then(|| path(&to_sender, false)),
            [Some(to_receiver), Some(to_sender)] if is_short(&to_sender, &to_receiver) => {
                Some(path(&to_receiver, true))
            }
            [Some(to_receiver), Some(to_sender)] if is_short(&to_receiver, &to_sender) => Some(path(&to_sender, false)),
            [Some(to_receiver), Some(to_sender)] => Some(Path {
                least_ns: to_receiver.least_ns.saturating_add(to_sender.least_ns),
                smoothed_ns: to_receiver.smoothed_ns.saturating_add(to_sender.smoothed_ns),
                at_sender: false,
            }),
        }
    }

    /// The better of the two estimates of a half.
    fn best(&self, half: Half) -> Option<Estimate> {
        let of = |method| self.0[half as usize][method as usize];
        let (acknowledged, echoed) = (of(Method::Acknowledgement), of(Method::Timestamp));
        let best = if echoed.count > MORE_ECHOES * acknowledged.count { echoed } else { acknowledged };
        (best.count > 0).then_some(best)
    }
}

fn is_short(half: &Estimate, other: &Estimate) -> bool {
    half.smoothed_ns <= other.smoothed_ns
        && (half.smoothed_ns < INSTANT_NS || (half.smoothed_ns as f64) < SHORT * other.smoothed_ns as f64)
}
