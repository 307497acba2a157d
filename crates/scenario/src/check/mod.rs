//! Checks a document against the schema and describes in words what does not fit.
//!
//! serde would find the same mistakes. But it cannot say where a mistake is inside tables that a tag (`kind`, `qdisc`)
//! distinguishes, and it cannot guess what was meant. serde accepts every document that passes this check; a property
//! test verifies that.

mod describe;
mod shape;

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

pub(crate) use shape::{ABOUT, FILE, SETUP, STUDY, Shape};

use crate::error::{Problem, Problems, quote, show};
use crate::notes::Notes;
use crate::path::join;
use crate::suggest::{any_of, closest, did_you_mean};
use crate::text::TextRule;
use shape::{Key, Keys};

impl Shape {
    /// Checks `value`, which was found at `path`, and adds what is wrong with it to `problems`.
    pub(crate) fn check(&self, value: &Value, path: &str, problems: &mut Problems) {
        match (self, value) {
            (Self::Anything, _) => {}
            (Self::Recursive(shape), _) => shape.check(value, path, problems),
            (Self::Table(keys), Value::Table(table)) => keys.check(table, path, problems),
            (Self::Tagged { tag, variants }, Value::Table(table)) => check_tagged(tag, variants, table, path, problems),
            (Self::Map(values), Value::Table(table)) => {
                table.iter().for_each(|(key, value)| values.check(value, &join(path, key), problems));
            }
            (Self::Array { items, at_least }, Value::Array(values)) if values.len() >= *at_least => {
                check_items(values, |_| Some(items.as_ref()), path, problems);
            }
            (Self::Tuple(items), Value::Array(values)) if items.len() == values.len() => {
                check_items(values, |i| items.get(i), path, problems);
            }
            (Self::Either(shapes), _) if self.suits_kind(value) => {
                match shapes.iter().filter(|shape| shape.suits_kind(value)).collect::<Vec<_>>().as_slice() {
                    [only] => only.check(value, path, problems),
                    several => match several.iter().find(|shape| shape.accepts_plain(value)) {
                        Some(shape) => shape.check(value, path, problems),
                        None => problems.add(|| self.refuse(value, path)),
                    },
                }
            }
            _ if self.accepts_plain(value) => self.note(value, path, problems),
            _ => problems.add(|| self.refuse(value, path)),
        }
    }

    fn refuse(&self, value: &Value, path: &str) -> Problem {
        let (found, hint) = match (self, value) {
            (Self::Quantity(bounds), _) => match bounds.read(value) {
                Err(refusal) => (refusal.found, refusal.hint),
                Ok(_) => (show(value), None),
            },
            (Self::Choice(_) | Self::Either(_), Value::String(word)) => {
                let meant = closest(word, self.words().iter().map(String::as_str));
                (show(value), meant.map(|word| did_you_mean(&quote(word))))
            }
            _ => (show(value), None),
        };
        Problem { hint, ..Problem::new(path, found, self.describe()) }
    }

    /// The words of a choice, or of the first choice among alternatives.
    fn words(&self) -> &[String] {
        match self {
            Self::Choice(words) => words,
            Self::Either(shapes) => shapes.iter().map(Self::words).find(|words| !words.is_empty()).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// Adds a note if a valid scalar value may not mean what it says.
    fn note(&self, value: &Value, path: &str, problems: &mut Problems) {
        if let Self::Quantity(bounds) = self
            && let Some(note) = bounds.note(value)
        {
            problems.notes.add(format!("{path}: {note}"));
        }
    }

    /// Checks `value`, which is the whole document. Returns notes about it if it fits.
    pub(crate) fn verify(&self, value: &Value) -> Result<Notes, Problems> {
        let mut problems = Problems::default();
        self.check(value, "", &mut problems);
        if problems.is_empty() { Ok(problems.notes) } else { Err(problems) }
    }

    /// Checks the tables and reads them.
    pub(crate) fn read<T: DeserializeOwned>(&self, tables: Table) -> Result<T, Problems> {
        self.read_completed(tables, |_| {}).map(|(read, _)| read)
    }

    /// Checks the tables, passes them to `complete` and reads the result; also returns notes about them.
    pub(crate) fn read_completed<T: DeserializeOwned>(
        &self,
        tables: Table,
        complete: impl FnOnce(&mut Table),
    ) -> Result<(T, Notes), Problems> {
        let mut value = Value::Table(tables);
        let notes = self.verify(&value)?;
        if let Value::Table(tables) = &mut value {
            complete(tables);
        }
        // serde can read everything that fits the shape (a property test verifies that), so no user sees this message.
        let read = T::deserialize(value).map_err(|error| {
            let found = format!("a value that can't be read ({error})");
            Problem::new(String::new(), found, "what the schema says")
        })?;
        Ok((read, notes))
    }

    /// Whether a scalar value fits.
    fn accepts_plain(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Recursive(shape), _) => shape.accepts_plain(value),
            (Self::Boolean, Value::Boolean(_)) => true,
            (Self::Choice(words), Value::String(word)) => words.contains(word),
            (Self::Quantity(bounds), _) => bounds.read(value).is_ok(),
            (Self::Text(rule), Value::String(text)) => rule.accepts(text),
            (Self::Integer { min, max }, Value::Integer(number)) => (min..=max).contains(&number),
            (Self::Number(range), Value::Float(number)) => range.contains(*number),
            (Self::Number(range), Value::Integer(number)) => range.contains(*number as f64),
            (Self::Plain, Value::String(text)) => TextRule::Line.accepts(text),
            (Self::Plain, Value::Integer(_) | Value::Boolean(_)) => true,
            (Self::Plain, Value::Float(number)) => number.is_finite(),
            _ => false,
        }
    }

    /// Whether the value has the right TOML type. This decides between alternatives.
    fn suits_kind(&self, value: &Value) -> bool {
        match self {
            Self::Table(_) | Self::Tagged { .. } | Self::Map(_) => value.is_table(),
            Self::Array { .. } | Self::Tuple(_) => value.is_array(),
            Self::Quantity(bounds) => value.is_str() || (bounds.dimension.bare && value.is_integer()),
            Self::Choice(_) | Self::Text(_) => value.is_str(),
            Self::Integer { .. } => value.is_integer(),
            Self::Number(_) => value.is_integer() || value.is_float(),
            Self::Boolean => value.is_bool(),
            Self::Recursive(shape) => shape.suits_kind(value),
            Self::Plain => !value.is_table() && !value.is_array(),
            Self::Either(shapes) => shapes.iter().any(|shape| shape.suits_kind(value)),
            Self::Anything => true,
        }
    }
}

impl shape::Range {
    fn contains(&self, number: f64) -> bool {
        !number.is_nan() && self.above.is_none_or(|above| number > above) && self.max.is_none_or(|max| number <= max)
    }
}

impl Keys {
    fn check(&self, table: &Table, path: &str, problems: &mut Problems) {
        for (name, value) in table {
            match self.get(name) {
                Some(key) => key.shape.check(value, &join(path, name), problems),
                None => problems.add(|| self.unknown(name, path)),
            }
        }
        let is_missing = |key: &&Key| key.required && !table.contains_key(&key.name);
        for key in self.0.iter().filter(is_missing) {
            problems.add(|| Problem::missing(join(path, &key.name), key.shape.describe()));
        }
    }

    fn unknown(&self, name: &str, path: &str) -> Problem {
        let meant = closest(name, self.names());
        Problem::new(join(path, name), "an unknown key", any_of(self.names())).did_you_mean(meant)
    }
}

fn check_tagged(tag: &str, variants: &[(String, Keys)], table: &Table, path: &str, problems: &mut Problems) {
    let words = || variants.iter().map(|(word, _)| word.as_str());
    let found = table.get(tag);
    match variants.iter().find(|(word, _)| found.and_then(Value::as_str) == Some(word)) {
        Some((_, keys)) => keys.check(table, path, problems),
        None => problems.add(|| {
            let Some(found) = found else { return Problem::missing(join(path, tag), any_of(words())) };
            let meant = found.as_str().and_then(|word| closest(word, words())).map(quote);
            Problem::new(join(path, tag), show(found), any_of(words())).did_you_mean(meant.as_deref())
        }),
    }
}

/// Messages identify an item by its `name` if it has one, otherwise by its number, counted from 1.
fn check_items<'a>(values: &[Value], shape: impl Fn(usize) -> Option<&'a Shape>, path: &str, problems: &mut Problems) {
    let mut names = HashSet::new();
    for (i, value) in values.iter().enumerate() {
        let name = value.get("name").and_then(Value::as_str).filter(|name| TextRule::Name.accepts(name));
        let item = name.map_or_else(|| format!("{path}[{}]", i + 1), |name| join(path, name));
        if name.is_some_and(|name| !names.insert(name)) {
            let found = format!("a second [[{path}]] entry with this name");
            problems.add(|| Problem::new(&item, found, "a unique name for each"));
        }
        if let Some(shape) = shape(i) {
            shape.check(value, &item, problems);
        }
    }
}
