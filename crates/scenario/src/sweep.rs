//! `[sweep]` expanded: every combination of the swept keys' values is a point.

use std::collections::HashSet;

use indexmap::IndexMap;
use toml::{Table, Value};

use crate::check::SETUP;
use crate::error::{Problem, Problems, quote};
use crate::file::{Label, SweepValues};
use crate::path::{KeyPath, count_values, join};
use crate::population::Population;
use crate::suggest::{any_of, closest};
use crate::text::TextRule;

/// The swept value that leaves a key as it was drawn for the member of a population.
const DRAWN: &str = "drawn";
/// Most points in an experiment.
const MOST_POINTS: usize = 10_000;

/// One swept key and the values it takes.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) path: KeyPath,
    pub(crate) values: Vec<(Label, Value)>,
    /// Whether a population draws this key, or keys inside it.
    is_drawn: bool,
}

/// The axes of an experiment: none, one or several. A point is a choice of one value from each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axes(Vec<Axis>);

impl Axes {
    /// Reads a checked `[sweep]`. Refuses too many points. It counts them by multiplication, without creating any.
    pub(crate) fn new(sweep: IndexMap<String, SweepValues>, population: Option<&Population>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let mut axes: Vec<Axis> = Vec::new();
        for (key, values) in sweep {
            let Some(axis) = problems.sift(Axis::new(&key, values, population)) else { continue };
            if axes.iter().any(|other| other.path == axis.path) {
                let path = join("sweep", &key);
                problems.add(|| Problem::new(path, "a second entry for this key", "one entry for each key"));
            } else {
                axes.push(axis);
            }
        }
        problems.into_result()?;
        let axes = Self(axes);
        let points = axes.count();
        if points > MOST_POINTS {
            let found = if points == usize::MAX {
                "more points than can be counted".to_owned()
            } else {
                format!("{points} points")
            };
            return Err(Problem::new("sweep", found, format!("at most {MOST_POINTS} points")).into());
        }
        Ok(axes)
    }

    /// Number of points, or `usize::MAX` if there are even more; 1 where nothing is swept.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().fold(1, |points, axis| points.saturating_mul(axis.values.len()))
    }

    /// Largest number of keys and items that the sweep adds to a point.
    pub(crate) fn most_values(&self) -> usize {
        let most = |axis: &Axis| axis.values.iter().map(|(_, value)| count_values(value)).max();
        self.0.iter().filter_map(most).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Axis> {
        self.0.iter()
    }

    /// The points in order, each as one position for each axis; the first axis varies slowest.
    pub(crate) fn choices(&self) -> impl Iterator<Item = Vec<usize>> {
        (0..self.count()).map(|point| {
            let mut rest = point;
            let mut choice: Vec<usize> = self
                .0
                .iter()
                .rev()
                .map(|axis| {
                    let position = rest % axis.values.len();
                    rest /= axis.values.len();
                    position
                })
                .collect();
            choice.reverse();
            choice
        })
    }

    /// Path and label of each axis at a choice.
    pub(crate) fn labels(&self, choice: &[usize]) -> Vec<(String, String)> {
        let label = |(axis, position): (&Axis, &usize)| {
            let label = axis.values.get(*position).map(|(label, _)| label.to_string());
            (axis.path.to_string(), label.unwrap_or_default())
        };
        self.0.iter().zip(choice).map(label).collect()
    }

    /// Sets the swept keys to their values at a choice, except those that stay as they were drawn. A table is set before the keys inside it, whatever their order
    /// in the file.
    pub(crate) fn apply(&self, choice: &[usize], setup: &mut Table) -> Result<(), Problems> {
        let mut chosen: Vec<(&Axis, usize)> = self.0.iter().zip(choice.iter().copied()).collect();
        chosen.sort_by_key(|(axis, _)| axis.path.depth());
        for (axis, position) in chosen {
            if let Some((_, value)) = axis.values.get(position)
                && !(axis.is_drawn && value.as_str() == Some(DRAWN))
            {
                axis.path.set(setup, value.clone())?;
            }
        }
        Ok(())
    }
}

impl Axis {
    fn new(key: &str, values: SweepValues, population: Option<&Population>) -> Result<Self, Problems> {
        let path = swept_path(key)?;
        let values: Vec<(Label, Value)> = match values {
            SweepValues::List(values) => {
                values.into_iter().filter_map(|value| Some((Label::of(&value)?, value))).collect()
            }
            SweepValues::Named(values) => {
                values.into_iter().map(|(name, value)| (Label::named(&name), value)).collect()
            }
        };
        let here = || join("sweep", key);
        if values.is_empty() {
            return Err(Problem::new(here(), "no values", "at least one value").into());
        }
        let mut seen = HashSet::new();
        for (label, _) in &values {
            if !TextRule::Line.accepts(label.as_str()) {
                return Err(Problem::new(here(), quote(label.as_str()), TextRule::Line.describe()).into());
            }
            if !seen.insert(label.as_str()) {
                return Err(Problem::new(here(), format!("{} twice", quote(label.as_str())), "each value once").into());
            }
        }
        let is_drawn = population.is_some_and(|population| population.draws(&path));
        Ok(Self { path, values, is_drawn })
    }
}

/// The path that a key of `[sweep]` names: one of the set-up's keys, or one inside them.
fn swept_path(key: &str) -> Result<KeyPath, Problems> {
    let here = join("sweep", key);
    let example = "the path of a key in quotes, such as \"link.bottleneck.queue.limit\"";
    let Some(path) = KeyPath::parse(key) else {
        return Err(Problem::new(here, "a malformed key path", example).into());
    };
    if !SETUP.key_names().any(|name| name == path.first()) {
        let allowed = format!("a path that begins with {}", any_of(SETUP.key_names()));
        let meant = closest(path.first(), SETUP.key_names());
        return Err(Problem::new(here, quote(path.first()), allowed).did_you_mean(meant).into());
    }
    if path.is_incomplete() {
        let hint = "without quotes TOML reads the dots as nested tables";
        return Err(Problem::new(here, "an incomplete path", example).hint(hint).into());
    }
    Ok(path)
}
