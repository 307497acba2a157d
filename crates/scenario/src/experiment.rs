//! An experiment: a file loaded, overridden, expanded into points and checked.

use std::cell::LazyCell;

use indexmap::IndexMap;
use serde::Serialize;
use toml::{Table, Value};

use crate::check::{self, Shape};
use crate::error::{ExperimentError, Problem, Problems, shorten};
use crate::expect::{self, Expectation};
use crate::file::{About, Setup, Study};
use crate::files::{Known, ReadFile, Traces, no_files};
use crate::model::{Link, Scenario};
use crate::notes::Notes;
use crate::overrides::Changes;
use crate::path::count_values;
use crate::population::{Drawn, Population, PopulationWords};
use crate::resolve::{inherit_tcp, resolve};
use crate::sweep::{Axes, Axis};
use crate::syntax;

/// Most values (keys and items of arrays) that all points may have together. This bounds the memory and the time that
/// it takes to expand a large set-up into many points.
const MOST_VALUES: usize = 5_000_000;

/// An experiment, ready to run: every point is a [`Scenario`] that engines can rely on.
///
/// ```
/// use bufferscope_scenario::Experiment;
///
/// let text = r#"
///     title = "Two queue sizes"
///     duration = "10s"
///     link = [{ name = "bottleneck", ends = ["h1", "h2"], rate = "10mbit", delay = "10ms" }]
///     traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }]
///     [sweep]
///     "link.bottleneck.queue" = { short.qdisc = "pfifo", short.limit = "20p", long.qdisc = "pfifo" }
/// "#;
/// let experiment = Experiment::parse(text, "two.toml", &["duration=5s".to_owned()])?;
/// let [short, long] = experiment.points() else { panic!("two values, two points") };
/// assert_eq!(long.values, [("link.bottleneck.queue".to_owned(), "long".to_owned())]);
/// assert_eq!(short.scenario.duration_ns, 5_000_000_000);
/// # Ok::<(), bufferscope_scenario::ExperimentError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Experiment {
    document: Document,
    points: Vec<Point>,
    expectations: Vec<Expectation>,
    origin: Origin,
}

/// What the points were made from.
#[derive(Clone, Debug)]
struct Origin {
    /// The file's name in messages.
    file: String,
    setup: Table,
    axes: Axes,
    changes: Changes,
    population: Option<Population>,
    /// The files that it names.
    traces: Known,
}

/// What the file says besides the set-up under test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Document {
    /// What the experiment shows, in one line.
    pub title: String,
    /// The document that it reproduces.
    pub source: Option<String>,
    /// The short name of that document.
    pub document: Option<String>,
    /// What is done and why.
    pub description: Option<String>,
    /// Names of the figures of its report.
    pub figures: Vec<String>,
    /// Remarks for the report, in Markdown.
    pub notes: Option<String>,
    /// Runs of each point, unless another number is requested. With a population, its members.
    pub repeat: u32,
    /// The population whose members have values of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<PopulationWords>,
    /// The swept keys' paths and the labels of their values, in the file's order.
    pub sweep: IndexMap<String, Vec<String>>,
}

/// One scenario with one choice of swept values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Path and label of each swept key, in the file's order; empty if nothing is swept.
    pub values: Vec<(String, String)>,
    /// What an engine runs.
    pub scenario: Scenario,
    /// What the user should know about the values of this point, such as rates in bytes per second; a few lines.
    pub notes: Vec<String>,
}

/// A member of a population at a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Member {
    /// What was drawn for it.
    pub drawn: Drawn,
    /// The point with these values.
    pub point: Point,
}

impl Experiment {
    /// Loads an experiment. `file` is its name in messages; `overrides` have the form `PATH=VALUE` and apply in order.
    ///
    /// # Errors
    /// All problems, each with its path, what was found there and what is allowed.
    pub fn parse(text: &str, file: &str, overrides: &[String]) -> Result<Self, ExperimentError> {
        Self::load(text, file, overrides, &no_files).map_err(|problems| problems.into_error(file))
    }

    /// Loads an experiment from a file's bytes, which need not be text.
    ///
    /// # Errors
    /// As [`Experiment::parse`].
    pub fn from_bytes(bytes: &[u8], file: &str, overrides: &[String]) -> Result<Self, ExperimentError> {
        Self::from_bytes_and_files(bytes, file, overrides, &no_files)
    }

    /// Loads an experiment from a file's bytes. `read` reads the files that it names, each once.
    ///
    /// # Errors
    /// As [`Experiment::parse`].
    pub fn from_bytes_and_files(
        bytes: &[u8],
        file: &str,
        overrides: &[String],
        read: &ReadFile<'_>,
    ) -> Result<Self, ExperimentError> {
        let text = syntax::text(bytes).map_err(|problems| problems.into_error(file))?;
        Self::load(text, file, overrides, read).map_err(|problems| problems.into_error(file))
    }

    /// What the file says besides the set-up under test.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The points, at least one; the file's first swept key varies slowest.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// What the user should know about this experiment before it runs, in a few lines. A note that several points have
    /// appears once.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Notes::default();
        self.points.iter().flat_map(|point| &point.notes).for_each(|note| notes.add(note.clone()));
        notes.into_lines()
    }

    /// What the source reports as the outcome.
    pub fn expectations(&self) -> &[Expectation] {
        &self.expectations
    }

    /// A member of the population at a point (by index). Members with the same number have drawn the same values at all
    /// points. `None` if the experiment has no population.
    ///
    /// # Errors
    /// If the member's values are impossible together. Each value alone has been checked when the experiment was loaded.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn member(&self, point: usize, number: u64) -> Result<Option<Member>, ExperimentError> {
        let origin = &self.origin;
        let Some(population) = &origin.population else { return Ok(None) };
        let values = population.member(number);
        let choice = self.origin.axes.choices().nth(point).expect("the point exists");
        let mut setup = origin.setup.clone();
        let made = values.apply(&mut setup);
        let made = made.and_then(|()| scenario(setup, &choice, &origin.axes, &origin.changes, &origin.traces()));
        let (scenario, notes) = made.map_err(|problems| {
            origin.changes.blame(problems.of_member(|problem| values.describe(problem))).into_error(&origin.file)
        })?;
        let values_of_point = self.points[point].values.clone();
        let point = Point { values: values_of_point, scenario, notes: notes.into_lines() };
        Ok(Some(Member { drawn: values.drawn(), point }))
    }

    /// The scenario of a point (by index), or of a member there, with further `overrides` of its set-up, as for a network that is changed
    /// while it runs. They take precedence over the swept values. Those that a later one replaces are removed.
    ///
    /// # Errors
    /// As [`Experiment::parse`]. Overrides of other keys than the set-up's are refused, too.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn changed(
        &self,
        point: usize,
        member: Option<u64>,
        overrides: &mut Vec<String>,
    ) -> Result<Scenario, ExperimentError> {
        self.origin.changed(point, member, overrides).map_err(|problems| problems.into_error(&self.origin.file))
    }
}

impl Origin {
    /// The traces that were named when the experiment was loaded.
    fn traces(&self) -> Traces<'static> {
        Traces::new(&later_file, self.traces.clone())
    }

    fn changed(&self, point: usize, member: Option<u64>, overrides: &mut Vec<String>) -> Result<Scenario, Problems> {
        let later = Changes::parse(overrides)?.last_of_each();
        *overrides = later.texts();
        later.check_setup_only()?;
        check_expansion(&self.setup, &Axes::default(), &later)?;
        let choice = self.axes.choices().nth(point).expect("the point exists");
        let changes = self.changes.followed_by(&later);
        let mut setup = self.setup.clone();
        if let (Some(population), Some(number)) = (&self.population, member) {
            population.member(number).apply(&mut setup)?;
        }
        let made = scenario(setup, &choice, &self.axes, &changes, &self.traces());
        made.map(|(scenario, _)| scenario).map_err(|problems| changes.blame(problems))
    }
}

impl Experiment {
    fn load(text: &str, file: &str, overrides: &[String], read: &ReadFile<'_>) -> Result<Self, Problems> {
        let mut tables = syntax::tables(text)?;
        let mut problems = Problems::default();
        problems.sift(check::FILE.verify(&Value::Table(tables.clone())));
        let changes = problems.sift(Changes::parse(overrides));
        let Some(changes) = changes.filter(|_| problems.is_empty()) else { return Err(problems) };
        let mut study: Study = changes.study(take(&mut tables, &check::STUDY))?;
        problems.sift(changes.apply_to_sweep(&mut study.sweep));
        let population = match study.population.take() {
            Some(table) => problems.sift(Population::new(table)),
            None => None,
        };
        let about = problems.sift(changes.about(take(&mut tables, &check::ABOUT)));
        let axes = problems.sift(Axes::new(study.sweep, population.as_ref()));
        let Some(axes) = axes.filter(|_| problems.is_empty()) else { return Err(problems) };
        check_expansion(&tables, &axes, &changes)?;
        let traces = Traces::new(read, Known::default());
        let points = problems.sift(points(&tables, &axes, &changes, &traces));
        if let Some(population) = population.as_ref().filter(|_| points.is_some()) {
            problems.sift(check_members(population, &tables, &axes, &changes, &traces));
        }
        if population.is_some() && about.as_ref().is_some_and(|about| about.repeat != 1) {
            let allowed = "1 with [population]: its members are the repetitions";
            problems
                .add(|| Problem::new("repeat", "another number of runs", allowed).hint("population.sessions sets it"));
        }
        if problems.concern_a_point() {
            // Some swept value is wrong, so `where` cannot be expected to fit the sweep.
            return Err(problems);
        }
        let groups: Vec<&str> = population.iter().flat_map(Population::group_names).collect();
        let expectations = problems.sift(expect::resolve(&study.expect, &axes, &groups, changes.first_in_setup()));
        match (about, points, expectations) {
            (Some(about), Some(points), Some(expectations)) if problems.is_empty() => {
                let document = Document::new(about, &axes, population.as_ref());
                let traces = traces.into_known();
                let origin = Origin { file: file.to_owned(), setup: tables, axes, changes, population, traces };
                Ok(Self { document, points, expectations, origin })
            }
            _ => Err(problems),
        }
    }
}

impl Document {
    fn new(about: About, axes: &Axes, population: Option<&Population>) -> Self {
        let population = population.map(Population::words);
        let labels = |axis: &Axis| axis.values.iter().map(|(label, _)| label.to_string()).collect();
        Self {
            title: about.title.into(),
            document: about.document.or_else(|| about.source.clone()).map(String::from),
            source: about.source.map(String::from),
            description: about.description.map(String::from),
            figures: about.figures.into_iter().map(String::from).collect(),
            notes: about.notes.map(String::from),
            repeat: population.as_ref().map_or(about.repeat, |population| population.sessions),
            population,
            sweep: axes.iter().map(|axis| (axis.path.to_string(), labels(axis))).collect(),
        }
    }
}

/// For files that are named later.
fn later_file(_name: &str) -> Result<Vec<u8>, String> {
    Err("only files that were named when the experiment was loaded can be read".to_owned())
}

/// Takes the keys of one part out of the file's tables.
fn take(tables: &mut Table, part: &Shape) -> Table {
    part.key_names().filter_map(|name| tables.remove_entry(name)).collect()
}

fn check_expansion(setup: &Table, axes: &Axes, changes: &Changes) -> Result<(), Problems> {
    let own: usize = setup.values().map(count_values).sum();
    let (points, values) = (axes.count(), own + axes.most_values() + changes.values());
    if points.saturating_mul(values) <= MOST_VALUES {
        return Ok(());
    }
    let found = format!("{points} points of a set-up of {values} keys and items");
    let allowed = format!("points times keys and items up to {MOST_VALUES}");
    Err(Problem::new("sweep", found, allowed).hint("split the experiment").into())
}

fn points(setup: &Table, axes: &Axes, changes: &Changes, traces: &Traces<'_>) -> Result<Vec<Point>, Problems> {
    let everywhere = LazyCell::new(|| scenario_unswept(setup, changes, traces).err().unwrap_or_default());
    let mut problems = Problems::default();
    let mut points = Vec::new();
    for choice in axes.choices() {
        let values = axes.labels(&choice);
        match scenario(setup.clone(), &choice, axes, changes, traces) {
            Ok((scenario, notes)) => points.push(Point { values, scenario, notes: notes.into_lines() }),
            Err(here) => problems.extend(changes.blame(here.at_point(&values, &everywhere))),
        }
    }
    problems.into_result().map(|()| points)
}

/// Checks that every value that can be drawn is possible at every point.
fn check_members(
    population: &Population,
    setup: &Table,
    axes: &Axes,
    changes: &Changes,
    traces: &Traces<'_>,
) -> Result<(), Problems> {
    let extremes = population.count_extremes();
    let own: usize = setup.values().map(count_values).sum();
    if extremes.saturating_mul(axes.count()).saturating_mul(own) > MOST_VALUES {
        let found = format!("{extremes} values to check with each of {} points", axes.count());
        let allowed = format!("at most {MOST_VALUES} keys and items in all the set-ups that are checked");
        return Err(Problem::new("population", found, allowed).into());
    }
    let mut problems = Problems::default();
    for choice in axes.choices() {
        for values in population.extremes() {
            let mut drawn = setup.clone();
            let made = values.apply(&mut drawn).and_then(|()| scenario(drawn, &choice, axes, changes, traces));
            if let Err(here) = made {
                problems.extend(changes.blame(here.of_member(|problem| values.describe(problem))));
            }
        }
    }
    problems.into_result()
}

fn scenario_unswept(setup: &Table, changes: &Changes, traces: &Traces<'_>) -> Result<(Scenario, Notes), Problems> {
    scenario(setup.clone(), &[], &Axes::default(), changes, traces)
}

fn scenario(
    mut setup: Table,
    choice: &[usize],
    axes: &Axes,
    changes: &Changes,
    traces: &Traces<'_>,
) -> Result<(Scenario, Notes), Problems> {
    axes.apply(choice, &mut setup)?;
    changes.apply_to_setup(&mut setup)?;
    let (setup, mut notes): (Setup, Notes) = check::SETUP.read_completed(setup, inherit_tcp)?;
    let scenario = resolve(&setup, traces)?;
    scenario.links.iter().flat_map(Link::cautions).for_each(|caution| notes.add(caution));
    Ok((scenario, notes))
}

impl Problems {
    /// Adds the member that has the problem.
    fn of_member(mut self, describe: impl Fn(&Problem) -> String) -> Self {
        self.annotate(|problem| problem.point = Some(describe(problem)));
        self
    }

    /// Adds the point to those problems that the file does not have without its sweep.
    fn at_point(mut self, values: &[(String, String)], without_sweep: &Self) -> Self {
        let point: Vec<String> = values.iter().map(|(path, label)| format!("{path} = {}", shorten(label))).collect();
        self.annotate(|problem| {
            if !values.is_empty() && !without_sweep.contains(problem) {
                problem.point = Some(point.join(", "));
            }
        });
        self
    }
}
