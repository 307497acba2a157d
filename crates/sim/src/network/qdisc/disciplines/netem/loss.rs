//! The models of loss: random with a correlation, a Markov chain of four states, and that of Gilbert and Elliott.

use bufferscope_scenario::Loss;

use super::drawing::{Correlated, fraction};
use crate::random::Random;

/// The state of a loss model.
#[derive(Clone, Copy, Debug)]
pub(in crate::network) enum Chain {
    Random(u32, Correlated),
    /// The state, and p13, p31, p32, p23, p14.
    State(State, [u32; 5]),
    /// Whether the state is bad, and p, r, h, 1-k.
    Gemodel(bool, [u32; 4]),
}

/// The states of the chain of four, 1 to 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) enum State {
    PassedInGap,
    PassedInBurst,
    LostInBurst,
    LostInGap,
}

impl Chain {
    pub(super) fn new(loss: Loss, random: &mut Random) -> Self {
        match loss {
            Loss::Random([probability, rho]) => Self::Random(fraction(probability), Correlated::new(rho, random)),
            Loss::State(parts) => Self::State(State::PassedInGap, parts.map(fraction)),
            Loss::Gemodel([p, r, bad, good]) => {
                Self::Gemodel(false, [fraction(p), fraction(r), u32::MAX - fraction(bad), fraction(good)])
            }
        }
    }

    /// Whether the next packet is lost (`loss_event`).
    pub(in crate::network) fn loses(&mut self, random: &mut Random) -> bool {
        match self {
            Self::Random(probability, correlated) => *probability > 0 && *probability >= correlated.next(random),
            Self::State(state, parts) => {
                let (next, is_lost) = state.next(random.next_u32(), parts);
                *state = next;
                is_lost
            }
            Self::Gemodel(is_bad, [p, r, h, good_loss]) => {
                // The loss is that of the state before the step.
                let was_bad = *is_bad;
                if random.next_u32() < if was_bad { *r } else { *p } {
                    *is_bad = !was_bad;
                }
                let drawn = random.next_u32();
                if was_bad { drawn > *h } else { drawn < *good_loss }
            }
        }
    }
}

impl State {
    /// The next state, and whether the packet is lost (`loss_4state`).
    fn next(self, drawn: u32, [p13, p31, p32, p23, p14]: &[u32; 5]) -> (Self, bool) {
        match self {
            Self::PassedInGap => {
                let second = p13.wrapping_add(*p14);
                if drawn < *p14 {
                    (Self::LostInGap, true)
                } else if *p14 < drawn && drawn < second {
                    (Self::LostInBurst, true)
                } else {
                    (Self::PassedInGap, false)
                }
            }
            Self::PassedInBurst if drawn < *p23 => (Self::LostInBurst, true),
            Self::PassedInBurst => (Self::PassedInBurst, false),
            Self::LostInBurst => {
                let second = p31.wrapping_add(*p32);
                if drawn < *p32 {
                    (Self::PassedInBurst, false)
                } else if *p32 < drawn && drawn < second {
                    (Self::PassedInGap, false)
                } else {
                    (Self::LostInBurst, second < drawn)
                }
            }
            Self::LostInGap => (Self::PassedInGap, false),
        }
    }
}
