//! Samples over time, of which at most a stated number is kept: those at which a quantity is largest or smallest.

use crate::columns::Columns;

/// Points that a series has at most: more than a chart has pixels.
pub(crate) const MOST_POINTS: u64 = 2000;
/// Rows that are kept of an interval: those with the smallest and the largest value of two columns.
const ROWS_PER_INTERVAL: u64 = 4;

/// A series of rows with `N` columns. NaN: not measured.
#[derive(Debug)]
pub(crate) struct Series<const N: usize> {
    /// The columns of which extreme values are kept.
    leading: [usize; 2],
    /// Length of an interval of which at most [`ROWS_PER_INTERVAL`] rows are kept; 0: all are kept.
    interval_ns: u64,
    /// The interval that has begun.
    current: u64,
    /// Its extreme rows so far: smallest and largest, of each leading column. A row may be several of these.
    extremes: [Option<Point<N>>; ROWS_PER_INTERVAL as usize],
    last: Option<Point<N>>,
    /// The time of the newest row that was given away.
    given_ns: Option<u64>,
    ready: Vec<Point<N>>,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point<const N: usize> {
    t_ns: u64,
    values: [f64; N],
}

impl<const N: usize> Series<N> {
    /// A series of rows that come every `sample_ns` until `end_ns`. Of its columns, the `leading` ones keep their extreme values.
    pub(crate) fn new(leading: [usize; 2], sample_ns: u64, end_ns: u64) -> Self {
        let are_few = end_ns / sample_ns.max(1) < MOST_POINTS;
        let interval_ns = if are_few { 0 } else { end_ns.div_ceil(MOST_POINTS / ROWS_PER_INTERVAL) };
        Self { leading, interval_ns, current: 0, extremes: [None; _], last: None, given_ns: None, ready: Vec::new() }
    }

    /// Adds a row, later than all before.
    pub(crate) fn push(&mut self, t_ns: u64, values: [f64; N]) {
        let point = Point { t_ns, values };
        let Some(interval) = t_ns.checked_div(self.interval_ns) else { return self.ready.push(point) };
        if interval != self.current {
            self.end_interval();
            self.current = interval;
        }
        for (index, kept) in self.extremes.iter_mut().enumerate() {
            let value = |point: &Point<N>| point.values[self.leading[index / 2]];
            let is_better = |before: &Point<N>| match index % 2 {
                0 => value(&point) < value(before),
                _ => value(&point) > value(before),
            };
            if kept.as_ref().is_none_or(|before| value(before).is_nan() || is_better(before)) {
                *kept = Some(point);
            }
        }
        self.last = Some(point);
    }

    fn end_interval(&mut self) {
        let mut kept: Vec<Point<N>> = self.extremes.iter_mut().filter_map(Option::take).collect();
        kept.sort_by_key(|point| point.t_ns);
        kept.dedup_by_key(|point| point.t_ns);
        self.ready.append(&mut kept);
    }

    /// Ends the last interval. The last row is kept.
    pub(crate) fn finish(&mut self) {
        self.end_interval();
        let newest_ns = self.ready.last().map(|point| point.t_ns).or(self.given_ns);
        if let Some(last) = self.last.take().filter(|last| newest_ns.is_none_or(|newest_ns| last.t_ns > newest_ns)) {
            self.ready.push(last);
        }
    }

    /// Gives away the rows of all intervals that have ended.
    pub(crate) fn drain(&mut self, part: &str, name: &str, names: [&str; N], columns: &mut Columns) {
        let Some(newest) = self.ready.last() else { return };
        self.given_ns = Some(newest.t_ns);
        columns.f64([part, name, "t_ns"], self.ready.iter().map(|point| point.t_ns as f64));
        for (index, key) in names.into_iter().enumerate() {
            columns.f64([part, name, key], self.ready.iter().map(|point| point.values[index]));
        }
        self.ready.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kept rows of a series of `count` rows, one each nanosecond.
    fn kept(count: u64, value: impl Fn(u64) -> f64) -> Vec<Point<1>> {
        let mut series = Series::new([0, 0], 1, count - 1);
        (0..count).for_each(|t_ns| series.push(t_ns, [value(t_ns)]));
        series.finish();
        series.ready
    }

    #[test]
    fn few_rows_are_all_kept() {
        let rows = kept(MOST_POINTS, |t_ns| t_ns as f64);
        assert!(rows.iter().map(|row| row.t_ns).eq(0..MOST_POINTS));
    }

    #[test]
    fn of_many_rows_the_extreme_ones_and_the_last_are_kept() {
        let value = |t_ns: u64| match t_ns {
            12_345 => 1e9,
            54_321 => -1e9,
            _ => (t_ns % 97) as f64,
        };
        let rows = kept(100_000, value);
        assert!((500..=MOST_POINTS as usize).contains(&rows.len()), "{}", rows.len());
        assert!(rows.iter().all(|row| row.values == [value(row.t_ns)]), "each is a row of the run");
        assert!(rows.is_sorted_by(|one, next| one.t_ns < next.t_ns));
        let times: Vec<u64> = rows.iter().map(|row| row.t_ns).collect();
        assert!([12_345, 54_321, 99_999].iter().all(|t_ns| times.contains(t_ns)));
    }

    #[test]
    fn a_quantity_that_was_not_measured_gives_way_to_one_that_was() {
        let rows = kept(100_000, |t_ns| if t_ns % 10 == 5 { t_ns as f64 } else { f64::NAN });
        let measured = rows.iter().filter(|row| !row.values[0].is_nan()).count();
        assert!(measured >= rows.len() - 1, "all but the last row");
    }
}
