//! `[population]` expanded: the members, each drawn from its number alone.
//!
//! A member does not depend on how many members there are, nor do its values depend on one another or on the order in the
//! file: each is drawn with the member's number and the path of its key. The arithmetic is the same on every machine.

mod distribution;
mod random;

use std::collections::HashSet;

use indexmap::IndexMap;
use serde::Serialize;
use toml::{Table, Value};

use crate::error::{Problem, Problems, quote, show};
use crate::file;
use crate::path::{KeyPath, join};
use crate::suggest::any_of;
use crate::text::TextRule;
use distribution::Distribution;
use random::uniform;

/// Most groups, and most keys that are drawn for a group.
const MOST_GROUPS: usize = 100;
/// Most values of which a choice is made.
const MOST_VALUES: usize = 1_000;
/// The tables whose keys can be drawn. Times, tables to record and the like are the same for all members.
const DRAWABLE: [&str; 4] = ["link", "host", "traffic", "tcp"];

/// The groups of members, and the distributions of their values.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    sessions: u32,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    name: String,
    weight: f64,
    /// A table comes before the keys inside it.
    draws: Vec<Draw>,
}

#[derive(Clone, Debug)]
struct Draw {
    path: KeyPath,
    from: Distribution,
}

/// What was drawn for a member.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drawn {
    /// The group that it belongs to.
    pub group: String,
    /// Path and value of each key that was drawn; of a table, the number of its choice.
    pub values: IndexMap<String, String>,
}

/// The population as the file describes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PopulationWords {
    /// Number of members that are run, unless another number is requested.
    pub sessions: u32,
    /// The groups' names and weights, in the file's order.
    pub groups: IndexMap<String, f64>,
}

/// The values of a member, to be set in a set-up.
#[derive(Clone, Debug)]
pub(crate) struct Values<'a> {
    group: &'a str,
    values: Vec<(&'a KeyPath, Value, String)>,
}

impl Population {
    /// Reads a checked `[population]`.
    pub(crate) fn new(table: file::Population) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        if table.group.is_empty() || table.group.len() > MOST_GROUPS {
            let found = format!("{} groups", table.group.len());
            problems.add(|| Problem::new("population.group", found, format!("1 to {MOST_GROUPS} groups")));
        }
        let common = draws(table.draw, "population.draw", &mut problems);
        let mut groups = Vec::new();
        for (name, group) in table.group {
            let path = join("population.group", &name);
            if !TextRule::Name.accepts(&name) {
                problems.add(|| Problem::new(&path, quote(&name), TextRule::Name.describe()));
            }
            let mut own = draws(group.draw, &join(&path, "draw"), &mut problems);
            own.extend(
                common.iter().filter(|draw| own.iter().all(|own| own.path != draw.path)).cloned().collect::<Vec<_>>(),
            );
            own.sort_by_key(|draw| draw.path.depth());
            groups.push(Group { name, weight: group.weight, draws: own });
        }
        problems.into_result().map(|()| Self { sessions: table.sessions, groups })
    }

    /// The groups' names, in the file's order.
    pub(crate) fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(|group| group.name.as_str())
    }

    pub(crate) fn words(&self) -> PopulationWords {
        let groups = self.groups.iter().map(|group| (group.name.clone(), group.weight)).collect();
        PopulationWords { sessions: self.sessions, groups }
    }

    /// Whether this key, or a key inside it, is drawn for some group.
    pub(crate) fn draws(&self, path: &KeyPath) -> bool {
        self.groups.iter().flat_map(|group| &group.draws).any(|draw| path.contains(&draw.path))
    }

    /// The member with this number.
    pub(crate) fn member(&self, number: u64) -> Values<'_> {
        let total: f64 = self.groups.iter().map(|group| group.weight).sum();
        let mut left = uniform(number, "population.group") * total;
        let mut chosen = &self.groups[0];
        for group in &self.groups {
            chosen = group;
            if left < group.weight {
                break;
            }
            left -= group.weight;
        }
        chosen.values(|draw| draw.from.draw(uniform(number, &draw.path.to_string())))
    }

    /// Members with the smallest and the largest values, and all values that can be chosen: if a set-up is possible with
    /// these, it is possible with every value of a key.
    pub(crate) fn extremes(&self) -> impl Iterator<Item = Values<'_>> {
        self.groups.iter().flat_map(|group| {
            let usual = |draw: &Draw| draw.from.extremes().into_iter().next().expect("a distribution has values");
            let largest = |draw: &Draw| draw.from.extremes().into_iter().last().expect("a distribution has values");
            let each = group.draws.iter().flat_map(move |varied| {
                let values = varied.from.extremes();
                values.into_iter().map(move |value| {
                    group.values(|draw| if draw.path == varied.path { value.clone() } else { usual(draw) })
                })
            });
            each.chain([group.values(usual), group.values(largest)])
        })
    }

    /// Number of [extremes](Self::extremes).
    pub(crate) fn count_extremes(&self) -> usize {
        let of = |group: &Group| 2 + group.draws.iter().map(|draw| draw.from.extremes().len()).sum::<usize>();
        self.groups.iter().map(of).sum()
    }
}

impl Group {
    fn values(&self, value: impl Fn(&Draw) -> (Value, String)) -> Values<'_> {
        let values = self.draws.iter().map(|draw| {
            let (value, label) = value(draw);
            (&draw.path, value, label)
        });
        Values { group: &self.name, values: values.collect() }
    }
}

impl Values<'_> {
    /// Sets the drawn values.
    pub(crate) fn apply(&self, setup: &mut Table) -> Result<(), Problems> {
        self.values.iter().try_for_each(|(path, value, _)| path.set(setup, value.clone()))
    }

    pub(crate) fn drawn(&self) -> Drawn {
        let values = self.values.iter().map(|(path, _, label)| (path.to_string(), label.clone())).collect();
        Drawn { group: self.group.to_owned(), values }
    }

    /// In words, for a message about some of the values.
    pub(crate) fn describe(&self, problem: &Problem) -> String {
        let concerned = |path: &KeyPath| {
            KeyPath::parse(&problem.path).is_some_and(|found| path.contains(&found) || found.contains(path))
        };
        let own: Vec<String> = self
            .values
            .iter()
            .filter(|(path, ..)| concerned(path))
            .map(|(path, _, label)| format!("{path} = {label}"))
            .collect();
        let group = format!("a member of population.group.{}", self.group);
        if own.is_empty() { group } else { format!("{group} with {}", own.join(", ")) }
    }
}

fn draws(table: IndexMap<String, file::Drawn>, table_path: &str, problems: &mut Problems) -> Vec<Draw> {
    if table.len() > MOST_GROUPS {
        let found = format!("{} keys", table.len());
        problems.add(|| Problem::new(table_path, found, format!("at most {MOST_GROUPS}")));
        return Vec::new();
    }
    let mut paths = HashSet::new();
    let mut found = Vec::new();
    for (key, drawn) in table {
        let here = join(table_path, &key);
        let path = problems.sift(drawn_path(&key, &here));
        let from = problems.sift(Distribution::new(drawn, &here));
        let (Some(path), Some(from)) = (path, from) else { continue };
        if paths.insert(path.clone()) {
            found.push(Draw { path, from });
        } else {
            problems.add(|| Problem::new(here, "a second entry for this key", "one entry for each key"));
        }
    }
    found
}

/// The path that a key of `draw` names.
fn drawn_path(key: &str, here: &str) -> Result<KeyPath, Problems> {
    let example = "the path of a key in quotes, such as \"link.access.rate\"";
    let Some(path) = KeyPath::parse(key) else {
        return Err(Problem::new(here, "a malformed key path", example).into());
    };
    if !DRAWABLE.contains(&path.first()) {
        let allowed = format!("a path that begins with {}", any_of(DRAWABLE.into_iter()));
        return Err(Problem::new(here, quote(path.first()), allowed).into());
    }
    if path.depth() < 3 && path.first() != "tcp" || path.depth() < 2 {
        let hint = "without quotes TOML reads the dots as nested tables";
        return Err(Problem::new(here, "an incomplete path", example).hint(hint).into());
    }
    Ok(path)
}

/// A value as a member's records show it: a table by the number of its choice, counted from 1.
fn label(value: &Value, number: usize) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Table(_) | Value::Array(_) => format!("choice {}", number + 1),
        scalar => show(scalar),
    }
}
