//! The minimum or maximum over a sliding window of time, in constant space: Kathleen Nichols' algorithm (the kernel's
//! `win_minmax.c`).
//!
//! The filter keeps the best, second best and third best value of the window, each newer than the one before. When the
//! best value expires, the next best replaces it.

/// A minimum over a window. Times can be in any unit, for example nanoseconds or numbers of round trips.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinFilter {
    window: u64,
    best: Option<[Measured; 3]>,
}

/// A maximum over a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxFilter(MinFilter);

#[derive(Clone, Copy, Debug)]
struct Measured {
    at: u64,
    value: u64,
}

impl MinFilter {
    /// A filter that has seen nothing.
    pub(crate) fn new(window: u64) -> Self {
        Self { window, best: None }
    }

    /// The smallest value of the window; `None` before the first.
    pub(crate) fn value(&self) -> Option<u64> {
        self.best.map(|best| best[0].value)
    }

    /// Takes in a value.
    pub(crate) fn add(&mut self, now: u64, value: u64) {
        let new = Measured { at: now, value };
        let best = match &mut self.best {
            Some(best) if value > best[0].value && now - best[2].at <= self.window => best,
            lower_or_stale => {
                *lower_or_stale = Some([new; 3]);
                return;
            }
        };
        if value <= best[1].value {
            (best[1], best[2]) = (new, new);
        } else if value <= best[2].value {
            best[2] = new;
        }
        age(best, new, self.window);
    }
}

impl MaxFilter {
    /// A filter that has seen nothing.
    pub(crate) fn new(window: u64) -> Self {
        Self(MinFilter::new(window))
    }

    /// Changes how long values are kept.
    pub(crate) fn set_window(&mut self, window: u64) {
        self.0.window = window;
    }

    /// The largest value of the window; `None` before the first.
    pub(crate) fn value(&self) -> Option<u64> {
        self.0.value().map(|complement| !complement)
    }

    /// Takes in a value.
    pub(crate) fn add(&mut self, now: u64, value: u64) {
        self.0.add(now, !value);
    }
}

/// Drops the best value when it has left the window, and spreads the runners-up over the window's quarters.
fn age(best: &mut [Measured; 3], new: Measured, window: u64) {
    let age_of_best = new.at - best[0].at;
    if age_of_best > window {
        *best = [best[1], best[2], new];
        if new.at - best[0].at > window {
            *best = [best[1], best[2], new];
        }
    } else if best[1].at == best[0].at && age_of_best > window / 4 {
        (best[1], best[2]) = (new, new);
    } else if best[2].at == best[1].at && age_of_best > window / 2 {
        best[2] = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minima(window: u64, values: impl IntoIterator<Item = (u64, u64)>) -> Vec<u64> {
        let mut filter = MinFilter::new(window);
        let add = |(at, value)| {
            filter.add(at, value);
            filter.value().unwrap()
        };
        values.into_iter().map(add).collect()
    }

    #[test]
    fn a_lower_value_counts_at_once_and_a_higher_one_not() {
        assert_eq!(minima(100, [(0, 20), (10, 30), (20, 10), (30, 40)]), [20, 20, 10, 10]);
    }

    #[test]
    fn the_minimum_is_forgotten_after_the_window() {
        // 10 at time 0, then 20 every 10: up to time 100 the minimum is 10, from 110 on it is 20.
        let minima = minima(100, (0..15).map(|i| (10 * i, if i == 0 { 10 } else { 20 })));
        assert_eq!(minima, [[10; 11].as_slice(), &[20; 4]].concat());
    }

    #[test]
    fn after_a_long_silence_the_new_value_is_the_minimum() {
        assert_eq!(minima(100, [(0, 10), (500, 90)]), [10, 90]);
    }

    #[test]
    fn a_maximum_is_kept_as_long() {
        let mut filter = MaxFilter::new(10);
        let seen = [(0, 5), (4, 9), (14, 3), (15, 2)].map(|(round, value)| {
            filter.add(round, value);
            filter.value().unwrap()
        });
        // 9 was seen in round 4, so it counts up to round 14.
        assert_eq!(seen, [5, 9, 9, 3]);
    }
}
