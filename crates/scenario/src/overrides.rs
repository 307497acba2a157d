//! `--set PATH=VALUE`: keys changed from the command line. The command line takes precedence over the file.

use indexmap::IndexMap;
use toml::{Table, Value};

use crate::check::{ABOUT, SETUP, STUDY, Shape};
use crate::error::{Problem, Problems, quote};
use crate::file::{About, Study, SweepValues};
use crate::path::{KeyPath, count_values};
use crate::suggest::{any_of, closest};

/// The table of the population.
const POPULATION: &str = "population";

/// One `PATH=VALUE`.
#[derive(Clone, Debug)]
struct Override {
    /// As it was given.
    text: String,
    path: KeyPath,
    value: Value,
    target: Target,
}

/// The overrides of a load, in order.
#[derive(Clone, Debug)]
pub(crate) struct Changes(Vec<Override>);

/// What an override changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The title and similar keys, which do not affect what happens in the experiment.
    About,
    /// The set-up under test.
    Setup,
    /// Which values a key takes.
    Sweep,
    /// Who the members of the population are, or how many.
    Population,
}

impl Changes {
    pub(crate) fn parse(overrides: &[String]) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let changes = overrides.iter().filter_map(|text| problems.sift(Override::parse(text))).collect();
        problems.into_result().map(|()| Self(changes))
    }

    /// These overrides without those that a later one replaces.
    pub(crate) fn last_of_each(mut self) -> Self {
        let mut kept: Vec<Override> = Vec::new();
        while let Some(change) = self.0.pop() {
            if !kept.iter().any(|later| later.path.contains(&change.path)) {
                kept.push(change);
            }
        }
        kept.reverse();
        Self(kept)
    }

    /// As they were given.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.iter().map(|change| change.text.clone()).collect()
    }

    /// These overrides, and then those of `later`.
    pub(crate) fn followed_by(&self, later: &Self) -> Self {
        Self(self.0.iter().chain(&later.0).cloned().collect())
    }

    /// Refuses overrides of anything but the set-up under test.
    pub(crate) fn check_setup_only(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        for change in self.0.iter().filter(|change| change.target != Target::Setup) {
            let found = format!("{} (no key of the network or its traffic)", quote(&change.text));
            problems.add(|| Problem::new("--set", found, "PATH=VALUE, such as link.bottleneck.rate=2mbit"));
        }
        problems.into_result()
    }

    /// The original text of the first override that changes what happens in the experiment. With such an override, the
    /// statements of the source about the outcome no longer apply.
    pub(crate) fn first_in_setup(&self) -> Option<&str> {
        let matters = |change: &&Override| change.target != Target::About && !change.is_number_of_members();
        self.0.iter().find(matters).map(|change| change.text.as_str())
    }

    /// Applies the overrides of the title and similar keys.
    pub(crate) fn about(&self, mut tables: Table) -> Result<About, Problems> {
        self.of(Target::About).try_for_each(|change| change.path.set(&mut tables, change.value.clone()))?;
        ABOUT.read(tables).map_err(|problems| self.blame(problems))
    }

    /// Applies the overrides of the set-up under test. This is done at each point, after the swept values are set.
    pub(crate) fn apply_to_setup(&self, setup: &mut Table) -> Result<(), Problems> {
        let mut problems = Problems::default();
        for change in self.of(Target::Setup) {
            problems.sift(change.path.set(setup, change.value.clone()));
        }
        problems.into_result()
    }

    /// Reads the sweep, the expectations and the population. Overrides may replace the population or some of its keys.
    pub(crate) fn study(&self, mut tables: Table) -> Result<Study, Problems> {
        for change in self.of(Target::Population) {
            if change.path.depth() > 1 && !tables.contains_key(POPULATION) {
                let found = format!("{} (no [population])", quote(&change.text));
                return Err(Problem::new("--set", found, "keys of tables that the experiment has").into());
            }
            change.path.set(&mut tables, change.value.clone())?;
        }
        STUDY.read(tables).map_err(|problems| self.blame(problems))
    }

    /// Replaces the values over which a key is swept. A key that is set is no longer swept, and neither are the keys
    /// inside it.
    pub(crate) fn apply_to_sweep(&self, sweep: &mut IndexMap<String, SweepValues>) -> Result<(), Problems> {
        let mut problems = Problems::default();
        for change in self.of(Target::Sweep) {
            if let Some(values) = problems.sift(change.values()) {
                sweep.insert(change.path.to_string(), values);
            }
        }
        for change in self.of(Target::Setup) {
            sweep.retain(|key, _| KeyPath::parse(key).is_none_or(|swept| !change.path.contains(&swept)));
        }
        problems.into_result().map_err(|problems| self.blame(problems))
    }

    /// Adds to each problem the override that caused it, if one did.
    pub(crate) fn blame(&self, mut problems: Problems) -> Problems {
        problems.annotate(|problem| {
            let Some(path) = KeyPath::parse(&problem.path) else { return };
            let is_guilty = |change: &&Override| change.path.contains(&path) || path.contains(&change.path);
            problem.set = self.0.iter().rev().find(is_guilty).map(|change| change.text.clone());
        });
        problems
    }

    /// Number of keys and items that the overrides add to a point.
    pub(crate) fn values(&self) -> usize {
        self.of(Target::Setup).map(|change| count_values(&change.value)).sum()
    }

    fn of(&self, target: Target) -> impl Iterator<Item = &Override> {
        self.0.iter().filter(move |change| change.target == target)
    }
}

impl Override {
    /// Whether it says only how many members of a population are run.
    fn is_number_of_members(&self) -> bool {
        self.target == Target::Population && self.path.to_string() == "population.sessions"
    }

    /// Reads `PATH=VALUE`. VALUE is TOML if it can be read as such, otherwise a string: `2mbit` needs no quotes.
    fn parse(text: &str) -> Result<Self, Problems> {
        let form = "PATH=VALUE, such as link.bottleneck.rate=2mbit";
        let refuse = |found: &str| Problem::new("--set", format!("{} ({found})", quote(text)), form);
        let (path, value) = text.split_once('=').ok_or_else(|| refuse("no ="))?;
        let (swept, path) = match path.trim().strip_prefix("sweep.") {
            Some(swept) => (true, swept.trim_matches('"')),
            None => (false, path.trim()),
        };
        if path == "sweep" {
            let found = "the whole sweep; its keys are set one by one";
            return Err(Problem::new("--set", format!("{} ({found})", quote(text)), "sweep.PATH=[VALUE, VALUE]").into());
        }
        let path = KeyPath::parse(path).ok_or_else(|| refuse("a malformed key path"))?;
        let target = if swept { Target::Sweep } else { Target::of(&path).ok_or_else(|| unknown(&path))? };
        let value = value.trim();
        let value = value.parse::<Value>().unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok(Self { text: text.to_owned(), path, value, target })
    }

    /// The value, read as one of the values of `[sweep]`.
    fn values(&self) -> Result<SweepValues, Problems> {
        let sweep = Table::from_iter([(self.path.to_string(), self.value.clone())]);
        let study: Study = STUDY.read(Table::from_iter([("sweep".to_owned(), Value::Table(sweep))]))?;
        study.sweep.into_values().next().ok_or_else(|| unknown(&self.path).into())
    }
}

impl Target {
    fn of(path: &KeyPath) -> Option<Self> {
        let has = |shape: &Shape| shape.key_names().any(|name| name == path.first());
        match path.first() {
            POPULATION => Some(Self::Population),
            _ if has(&ABOUT) => Some(Self::About),
            _ => has(&SETUP).then_some(Self::Setup),
        }
    }
}

fn unknown(path: &KeyPath) -> Problem {
    let names = || ABOUT.key_names().chain(SETUP.key_names()).chain(["sweep"]);
    Problem::new(path.to_string(), "an unknown key", any_of(names())).did_you_mean(closest(path.first(), names()))
}
