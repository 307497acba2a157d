//! Key paths such as `link.bottleneck.queue.limit`: links, hosts and traffic by name, then keys.

use std::fmt;

use toml::{Table, Value};

use crate::error::{Problem, Problems, quote, shorten, show};
use crate::model::Traffic;
use crate::suggest::{any_of, closest};

/// The tables whose entries have names.
const NAMED: [&str; 4] = ["link", "wifi", "host", TRAFFIC];
/// The only one of these tables to which entries can be added.
const TRAFFIC: &str = "traffic";
/// A key whose plain value is short for a table with this value in each of these keys.
const SHORT: (&str, [&str; 2]) = ("sample", ["queues", "flows"]);

/// A key path, read from text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyPath {
    parts: Vec<String>,
}

/// `path.key`, with the key in quotes if TOML requires them.
pub(crate) fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let key = if bare { shorten(key) } else { quote(key) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The path of the `[[traffic]]` entry in the file.
pub(crate) fn of_traffic(traffic: &Traffic) -> String {
    join(TRAFFIC, traffic.entry())
}

/// Number of keys and items: the value itself and all its contents.
pub(crate) fn count_values(value: &Value) -> usize {
    match value {
        Value::Table(table) => 1 + table.values().map(count_values).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        _ => 1,
    }
}

impl KeyPath {
    /// More parts than any key has; prevents deep nesting by external input.
    const MOST_PARTS: usize = 8;

    /// Reads `link.bottleneck.rate`; `None` if a part is empty or there are too many.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<String> = text.split('.').take(Self::MOST_PARTS + 1).map(str::to_owned).collect();
        let sound = parts.len() <= Self::MOST_PARTS && parts.iter().all(|part| !part.is_empty() && part.trim() == part);
        sound.then_some(Self { parts })
    }

    pub(crate) fn first(&self) -> &str {
        self.parts.first().map_or("", String::as_str)
    }

    pub(crate) fn depth(&self) -> usize {
        self.parts.len()
    }

    /// Whether it names a list of tables or one of its entries, but no key of it. The whole traffic is a key.
    pub(crate) fn is_incomplete(&self) -> bool {
        NAMED.contains(&self.first()) && self.depth() < 3 && self.parts != [TRAFFIC]
    }

    /// Whether `other` is this key or one inside it.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        other.parts.starts_with(&self.parts)
    }

    /// Sets the key to this value, creating the tables on the way. A table as `traffic.NAME` is an entry of that name. A
    /// list as `traffic` is a list of entries, which join the others; an entry replaces the one of its name.
    pub(crate) fn set(&self, document: &mut Table, value: Value) -> Result<(), Problems> {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            [list] if *list == TRAFFIC => match value {
                Value::Array(entries) => entries.into_iter().try_for_each(|entry| self.join_entry(document, entry)),
                other => Err(Problem::new(self.to_string(), show(&other), "a list of tables").into()),
            },
            [list, rest @ ..] if NAMED.contains(list) => match rest {
                [_, "name"] => {
                    Err(Problem::new(self.to_string(), "a name, by which paths identify the entry", "any other key")
                        .into())
                }
                [name] if *list == TRAFFIC && value.is_table() => self.set_entry(document, name, value),
                [name, rest @ ..] if !rest.is_empty() => self.set_in(self.entry(document, list, name)?, rest, value),
                _ => Err(self.not_a_key(list).into()),
            },
            parts => self.set_in(document, parts, value),
        }
    }

    /// Sets or adds the traffic of this name.
    fn set_entry(&self, document: &mut Table, name: &str, mut value: Value) -> Result<(), Problems> {
        if let Some(table) = value.as_table_mut() {
            if table.contains_key("name") {
                return Err(Problem::new(
                    join(&self.to_string(), "name"),
                    "a name, which the path already gives",
                    "any other key",
                )
                .into());
            }
            table.insert("name".to_owned(), Value::from(name));
        }
        self.join_entry(document, value)
    }

    /// Adds traffic, or replaces the traffic of the same name.
    fn join_entry(&self, document: &mut Table, value: Value) -> Result<(), Problems> {
        let entries = document.entry(TRAFFIC).or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(entries) = entries else { return Err(self.not_a_key(TRAFFIC).into()) };
        let name = name_of(&value);
        match entries.iter_mut().find(|entry| name.is_some() && name_of(entry) == name) {
            Some(entry) => *entry = value,
            None => entries.push(value),
        }
        Ok(())
    }

    fn set_in(&self, mut table: &mut Table, parts: &[&str], value: Value) -> Result<(), Problems> {
        let Some((last, tables)) = parts.split_last() else { return Ok(()) };
        for part in tables {
            let inner = table.entry(*part).or_insert_with(|| Value::Table(Table::new()));
            if *part == SHORT.0 && !inner.is_table() {
                *inner = Value::Table(SHORT.1.map(|key| (key.to_owned(), inner.clone())).into_iter().collect());
            }
            table = match inner {
                Value::Table(table) => table,
                other => {
                    let path = self.to_string();
                    return Err(Problem::new(
                        path,
                        format!("{part} = {}", show(other)),
                        format!("keys of {part} only where it is a table"),
                    )
                    .into());
                }
            };
        }
        table.insert((*last).to_owned(), value);
        Ok(())
    }

    /// The entry of that name in a list of tables.
    ///
    /// Names are few (a thousand at most) and paths are rare, so nothing here is indexed.
    fn entry<'t>(&self, document: &'t mut Table, list: &str, name: &str) -> Result<&'t mut Table, Problems> {
        let names = names(document, list);
        if !names.contains(&name) {
            let allowed = any_of(names.iter().copied());
            let problem = Problem::new(join(list, name), format!("no {list} of this name"), allowed);
            return Err(problem.did_you_mean(closest(name, names)).into());
        }
        let entries = document.entry(list).or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(entries) = entries else { return Err(self.not_a_key(list).into()) };
        let is_this = |entry: &Value| name_of(entry) == Some(name);
        // Hosts need no entry in the file.
        if list == "host" && !entries.iter().any(is_this) {
            entries.push(Value::Table(Table::from_iter([("name".to_owned(), Value::from(name))])));
        }
        let entry = entries.iter_mut().find(|entry| is_this(entry)).and_then(Value::as_table_mut);
        entry.ok_or_else(|| self.not_a_key(list).into())
    }

    fn not_a_key(&self, list: &str) -> Problem {
        Problem::new(
            self.to_string(),
            format!("no key of a [[{list}]] entry"),
            format!("a path such as {list}.NAME.KEY"),
        )
    }
}

/// The names that a path into this list of tables can contain. For hosts, these are the nodes that the links name.
fn names<'d>(document: &'d Table, list: &str) -> Vec<&'d str> {
    let entries = |list: &str| document.get(list).and_then(Value::as_array).into_iter().flatten();
    if list != "host" {
        return entries(list).filter_map(name_of).collect();
    }
    let ends = entries("link").filter_map(|link| link.get("ends")?.as_array()).flatten();
    let mut names: Vec<&str> = Vec::new();
    for name in ends.filter_map(Value::as_str) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn name_of(entry: &Value) -> Option<&str> {
    entry.get("name")?.as_str()
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = self.parts.iter().fold(String::new(), |path, part| join(&path, part));
        f.write_str(&joined)
    }
}
