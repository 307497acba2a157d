//! `[[expect]]` resolved: which points each statement of the source is about, and whether it still applies.

use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;

use crate::error::{Problem, Problems, quote};
use crate::file::{Expect, Label};
use crate::path::{KeyPath, join};
use crate::suggest::{any_of, closest};
use crate::sweep::{Axes, Axis};

/// What the source says about one metric, to be compared with the measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// The metric's name, such as `rtt.max_ms`.
    pub metric: String,
    /// The group of the population whose members it is about; `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// If given, the measurement is the share of the runs whose metric lies in this interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_in: Option<Band>,
    /// What the source says, in its own words.
    pub says: String,
    /// Where the source makes the statement: a figure, a table or a section.
    pub figure: Option<String>,
    /// The values that count as reproduced.
    pub band: Band,
    /// Why the measurement is known to lie outside the band, if it does.
    pub differs: Option<String>,
    /// The labels in the file's `where`, as path and label.
    #[serde(rename = "where")]
    pub at: IndexMap<String, String>,
    /// The labels in the file's `relative_to`.
    pub relative_to: Option<IndexMap<String, String>>,
    /// The labels in the file's `shown_by`.
    pub shown_by: Option<IndexMap<String, String>>,
    /// The points that the statement is about; each is compared with the band separately. Empty if the statement does
    /// not apply.
    pub comparisons: Vec<Comparison>,
    /// Why the statement does not apply to this set-up, if it does not: the source says nothing about a set-up that
    /// `--set` has changed.
    pub not_applicable: Option<String>,
}

/// The value to compare with an expectation's band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Index of the point at which the metric is taken.
    pub point: usize,
    /// Index of the point whose metric it is divided by, if it is divided.
    pub relative_to: Option<usize>,
    /// The same value with the cause in `differs` added or removed. It must lie in the band if that is the right cause.
    pub shown_by: Option<Measured>,
}

/// The points from which a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// Index of the point at which the metric is taken.
    pub point: usize,
    /// Index of the point whose metric it is divided by, if it is divided.
    pub relative_to: Option<usize>,
}

/// A closed interval. Serialised as `[low, high]`, an open side as null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Lowest value inside; may be -inf.
    pub low: f64,
    /// Highest value inside; may be +inf.
    pub high: f64,
}

/// The resolved expectations. `changed` is the override (`--set`) that changed the set-up, if one did.
/// `groups` are the groups of the population, if there is one.
pub(crate) fn resolve(
    expects: &[Expect],
    axes: &Axes,
    groups: &[&str],
    changed: Option<&str>,
) -> Result<Vec<Expectation>, Problems> {
    let mut problems = Problems::default();
    let each = |(number, expect): (usize, &Expect)| {
        let (comparisons, not_applicable) = match changed {
            Some(set) => (Vec::new(), Some(format!("the source says nothing about --set {set}"))),
            None => (comparisons(expect, number, axes, &mut problems), None),
        };
        Expectation {
            metric: expect.metric.to_string(),
            group: group(expect, number, groups, &mut problems),
            share_in: expect.share_in.map(|ends| Band::new(ends, format!("expect[{number}].share_in"), &mut problems)),
            says: expect.says.to_string(),
            figure: expect.figure.as_ref().map(ToString::to_string),
            band: Band::new(expect.band, format!("expect[{number}].band"), &mut problems),
            differs: expect.differs.as_ref().map(ToString::to_string),
            at: plain(&expect.at),
            relative_to: expect.relative_to.as_ref().map(plain),
            shown_by: expect.shown_by.as_ref().map(plain),
            comparisons,
            not_applicable,
        }
    };
    let resolved = (1..).zip(expects).map(each).collect();
    problems.into_result().map(|()| resolved)
}

/// The group that a statement is about, which must be one of the population's.
fn group(expect: &Expect, number: usize, groups: &[&str], problems: &mut Problems) -> Option<String> {
    let name = expect.group.as_ref()?.to_string();
    if !groups.contains(&name.as_str()) {
        let allowed = if groups.is_empty() {
            "only with a [population]".to_owned()
        } else {
            format!("a group of the population: {}", any_of(groups.iter().copied()))
        };
        let meant = closest(&name, groups.iter().copied());
        problems.add(|| Problem::new(format!("expect[{number}].group"), quote(&name), allowed).did_you_mean(meant));
    }
    Some(name)
}

fn plain(labels: &IndexMap<String, Label>) -> IndexMap<String, String> {
    labels.iter().map(|(path, label)| (path.clone(), label.to_string())).collect()
}

fn comparisons(expect: &Expect, number: usize, axes: &Axes, problems: &mut Problems) -> Vec<Comparison> {
    let here = |key: &str| format!("expect[{number}].{key}");
    if expect.shown_by.is_some() && expect.differs.is_none() {
        let allowed = "shown_by only together with differs, which names the cause";
        problems.add(|| Problem::new(here("shown_by"), "shown_by without differs", allowed));
    }
    let at = fixed_positions(&expect.at, &here("where"), axes, problems);
    let reference = other_positions(expect.relative_to.as_ref(), &here("relative_to"), axes, problems);
    let shown = other_positions(expect.shown_by.as_ref(), &here("shown_by"), axes, problems);
    let (Some(at), Some(reference), Some(shown)) = (at, reference, shown) else { return Vec::new() };
    let measured = |choice: &[usize]| {
        let relative_to = reference.as_ref().map(|reference| axes.point(&replaced(choice, reference)));
        Measured { point: axes.point(choice), relative_to }
    };
    let comparison = |choice: Vec<usize>| {
        let Measured { point, relative_to } = measured(&choice);
        let shown_by = shown.as_ref().map(|shown| measured(&replaced(&choice, shown)));
        Comparison { point, relative_to, shown_by }
    };
    let comparisons: Vec<Comparison> = axes.choices().filter(|choice| agree(choice, &at)).map(comparison).collect();
    if comparisons.iter().any(|comparison| comparison.relative_to == Some(comparison.point)) {
        let allowed = "labels that select a different point for each point of where";
        problems.add(|| Problem::new(here("relative_to"), "a point compared with itself", allowed));
    }
    if comparisons.iter().any(|comparison| comparison.shown_by.is_some_and(|shown| shown.point == comparison.point)) {
        let allowed = "labels that select a different point for each point of where";
        problems.add(|| Problem::new(here("shown_by"), "labels that select the same point", allowed));
    }
    comparisons
}

/// The positions that the labels fix: `Some(None)` if there are no labels, `None` if a label is wrong.
fn other_positions(
    labels: Option<&IndexMap<String, Label>>,
    path: &str,
    axes: &Axes,
    problems: &mut Problems,
) -> Option<Option<Vec<Option<usize>>>> {
    match labels {
        None => Some(None),
        Some(labels) => fixed_positions(labels, path, axes, problems).map(Some),
    }
}

/// For each axis, the position that a label fixes, if there is one.
fn fixed_positions(
    labels: &IndexMap<String, Label>,
    path: &str,
    axes: &Axes,
    problems: &mut Problems,
) -> Option<Vec<Option<usize>>> {
    let mut positions = vec![None; axes.iter().count()];
    let mut sound = true;
    for (key, label) in labels {
        match find(key, label, path, axes, problems) {
            Some((axis, position)) => positions[axis] = Some(position),
            None => sound = false,
        }
    }
    sound.then_some(positions)
}

/// The axis that the key names, and the position of the label on that axis.
fn find(key: &str, label: &Label, path: &str, axes: &Axes, problems: &mut Problems) -> Option<(usize, usize)> {
    let key_path = KeyPath::parse(key);
    let axis = axes.iter().enumerate().find(|(_, axis)| Some(&axis.path) == key_path.as_ref());
    let position = axis.and_then(|(_, axis)| axis.position(label));
    match (axis, position) {
        (Some((index, _)), Some(position)) => return Some((index, position)),
        (Some((_, axis)), None) => problems.add(|| unknown_label(axis, label, join(path, key))),
        (None, _) => problems.add(|| not_swept(axes, key, path)),
    }
    None
}

fn not_swept(axes: &Axes, key: &str, path: &str) -> Problem {
    let swept: Vec<String> = axes.iter().map(|axis| axis.path.to_string()).collect();
    let names = || swept.iter().map(String::as_str);
    let allowed = format!("a key of [sweep]: {}", any_of(names()));
    Problem::new(path, format!("{}, which is not swept", quote(key)), allowed).did_you_mean(closest(key, names()))
}

fn unknown_label(axis: &Axis, label: &Label, path: String) -> Problem {
    let labels = || axis.values.iter().map(|(label, _)| label.as_str());
    let meant = closest(label.as_str(), labels()).map(quote);
    Problem::new(path, quote(label.as_str()), any_of(labels())).did_you_mean(meant.as_deref())
}

fn agree(choice: &[usize], fixed: &[Option<usize>]) -> bool {
    choice.iter().zip(fixed).all(|(position, fixed)| fixed.is_none_or(|fixed| fixed == *position))
}

fn replaced(choice: &[usize], fixed: &[Option<usize>]) -> Vec<usize> {
    choice.iter().zip(fixed).map(|(position, fixed)| fixed.unwrap_or(*position)).collect()
}

impl Axis {
    fn position(&self, label: &Label) -> Option<usize> {
        self.values.iter().position(|(own, _)| own == label)
    }
}

impl Axes {
    /// Index of the point that this choice of positions gives.
    fn point(&self, choice: &[usize]) -> usize {
        self.iter().zip(choice).fold(0, |point, (axis, position)| point * axis.values.len() + position)
    }
}

impl Expectation {
    /// Whether the statement of the source applies to the experiment as it was loaded.
    pub fn applies(&self) -> bool {
        self.not_applicable.is_none()
    }
}

impl Band {
    fn new((low, high): (f64, f64), path: String, problems: &mut Problems) -> Self {
        let is_bounded = low.is_finite() || high.is_finite();
        if low > high || !is_bounded {
            let found = format!("[{low}, {high}]");
            let allowed = "[lowest, highest], one of which may be -inf or inf";
            problems.add(|| Problem::new(path, found, allowed));
        }
        Self { low, high }
    }

    /// Whether the value counts as reproduced.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.low, self.high)
    }
}

impl Serialize for Band {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.low, self.high].map(|side| side.is_finite().then_some(side)).serialize(serializer)
    }
}
