//! Estimates the skew between two clocks from packets that travelled between them in both directions.
//!
//! Where the second clock is faster, delays seem to grow in one direction and to shrink in the other. Queues only add
//! to delays, so the line below all delays of a direction that is closest to them (Moon, Skelly and Towsley, INFOCOM
//! 1999) follows the clocks, unless a queue never empties. Hence a slope counts as skew only if both directions have
//! it, with opposite signs.

/// Minimum number of delays in each direction.
const LEAST_DELAYS: usize = 100;
/// Minimum time span. A queue may grow for any shorter time.
const LEAST_SPAN_NS: i64 = 10_000_000_000;
/// Maximum skew. Oscillators are within about 100 parts per million of their frequency; a clock that differs by more
/// was adjusted.
const MOST: f64 = 1e-3;
/// Minimum skew. A smaller one cannot be distinguished from chance.
const LEAST: f64 = 1e-6;

/// A delay, and the time at which it was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Delay {
    pub(super) t_ns: i64,
    pub(super) delay_ns: i64,
}

/// The skew of the second clock relative to the first, as a fraction: 1e-5 for 10 parts per million. `towards` are the
/// delays of the packets towards the vantage point of the second clock, `back` those of the others. `None`: not known.
pub(super) fn skew(towards: Vec<Delay>, back: Vec<Delay>) -> Option<f64> {
    let (growing, shrinking) = (slope_below(towards)?, -slope_below(back)?);
    let share = if growing * shrinking <= 0.0 { 0.0 } else { growing.signum() * growing.abs().min(shrinking.abs()) };
    (share.abs() <= MOST).then_some(if share.abs() < LEAST { 0.0 } else { share })
}

/// The slope of the line below all delays that has the smallest sum of distances to them. That is the edge of their
/// lower convex hull at their mean time.
fn slope_below(mut delays: Vec<Delay>) -> Option<f64> {
    delays.sort_unstable();
    let (first, last) = (*delays.first()?, *delays.last()?);
    if delays.len() < LEAST_DELAYS || last.t_ns.saturating_sub(first.t_ns) < LEAST_SPAN_NS {
        return None;
    }
    // Relative to the first, whole numbers of nanoseconds are exact in a float for more than a hundred days.
    let points = delays
        .iter()
        .map(|each| (each.t_ns.wrapping_sub(first.t_ns) as f64, each.delay_ns.wrapping_sub(first.delay_ns) as f64));
    let mean = points.clone().map(|(t, _)| t).sum::<f64>() / delays.len() as f64;
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        while let [.., a, b] = hull[..]
            && turn(a, b, point) <= 0.0
        {
            hull.pop();
        }
        hull.push(point);
    }
    let edge = hull.windows(2).find(|ends| ends[1].0 >= mean && ends[1].0 > ends[0].0)?;
    Some((edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0))
}

/// Positive if the path from `a` over `b` to `c` turns left.
fn turn(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Delays of 20 ms and what `added_ms` says, each 10 ms, seen by a clock that gains `ppm`.
    fn delays(ppm: f64, seconds: i64, added_ms: impl Fn(i64) -> f64) -> Vec<Delay> {
        (0..100 * seconds)
            .map(|number| {
                let t_ns = 10_000_000 * number;
                let delay_ns = 20e6 + added_ms(number) * 1e6 + ppm * 1e-6 * t_ns as f64;
                Delay { t_ns, delay_ns: delay_ns as i64 }
            })
            .collect()
    }

    /// A queue of up to 100 ms that fills and empties every 2.5 s.
    fn sawtooth(number: i64) -> f64 {
        (number % 250) as f64 * 0.4
    }

    #[test]
    fn a_faster_clock_is_seen_below_a_queue() {
        for ppm in [-80.0, 5.0, 300.0] {
            let found = skew(delays(ppm, 60, sawtooth), delays(-ppm, 60, |_| 0.0)).unwrap() * 1e6;
            assert!((found - ppm).abs() < 0.1, "{ppm}: found {found}");
        }
    }

    #[test]
    fn a_queue_that_only_grows_is_no_clock() {
        assert_eq!(skew(delays(0.0, 60, |number| 0.02 * number as f64), delays(0.0, 60, |_| 0.0)), Some(0.0));
        let both = |ppm| delays(ppm, 60, |number| 0.02 * number as f64);
        assert_eq!(skew(both(0.0), both(0.0)), Some(0.0), "queues in both directions grow");
        // The skew follows from the direction without a queue.
        let found = skew(both(50.0), delays(-50.0, 60, |_| 0.0)).unwrap() * 1e6;
        assert!((found - 50.0).abs() < 0.1, "found {found}");
    }

    #[test]
    fn little_and_absurd_things_show_nothing() {
        assert_eq!(skew(delays(50.0, 9, sawtooth), delays(-50.0, 9, sawtooth)), None, "too short");
        assert_eq!(skew(delays(50.0, 60, sawtooth), Vec::new()), None, "one direction only");
        assert_eq!(skew(delays(5000.0, 60, sawtooth), delays(-5000.0, 60, sawtooth)), None, "a clock that is set");
    }

    proptest! {
        #[test]
        fn the_line_lies_below_all_delays(delays in proptest::collection::vec((0_i64..1 << 40, 0_i64..1 << 30), 100..300)) {
            let delays: Vec<_> = delays.into_iter().map(|(t_ns, delay_ns)| Delay { t_ns, delay_ns }).collect();
            if let Some(slope) = slope_below(delays.clone()) {
                let above = |each: &Delay| each.delay_ns as f64 - slope * each.t_ns as f64;
                // A line with this slope through the lowest point touches the hull at two.
                let mut heights: Vec<f64> = delays.iter().map(above).collect();
                heights.sort_by(f64::total_cmp);
                prop_assert!(heights[1] - heights[0] < 1.0 || delays.len() < 2, "{:?}", &heights[..2]);
            }
        }

        #[test]
        fn no_times_make_it_panic(delays in proptest::collection::vec((any::<i64>(), any::<i64>()), 0..300)) {
            let delays: Vec<_> = delays.into_iter().map(|(t_ns, delay_ns)| Delay { t_ns, delay_ns }).collect();
            let _ = skew(delays.clone(), delays);
        }
    }
}
