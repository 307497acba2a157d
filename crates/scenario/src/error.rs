//! What is wrong with an experiment file: where, what was found, what is allowed, what to do.

use std::fmt;

use toml::Value;

use crate::notes::Notes;
use crate::suggest::did_you_mean;

/// Why an experiment cannot be loaded. Displays as one line per problem, whatever the file contains.
///
/// ```
/// let error = bufferscope_scenario::Experiment::parse("title = 5", "lab.toml", &[]).unwrap_err();
/// assert!(error.to_string().starts_with("lab.toml: title: found 5; allowed: "));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentError {
    file: String,
    problems: Vec<Problem>,
    more: usize,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key's path, such as `link.bottleneck.rate`; tables with a name are identified by it, others counted from 1
    /// (`link[2]`). Empty if the problem concerns the file as a whole.
    pub path: String,
    /// What was found there; `None` where a key is missing.
    pub found: Option<String>,
    /// What is allowed there, or what the missing key must contain.
    pub allowed: String,
    /// What to do about it, if that is known.
    pub hint: Option<String>,
    /// The `PATH=VALUE` given with `--set` that caused it, if one did.
    pub set: Option<String>,
    /// The choice of swept values at which the problem occurs, if it does not occur in the file without its sweep.
    pub point: Option<String>,
}

/// Problems found so far. Keeps the first few and counts the others: a file full of errors must not produce a report
/// larger than itself.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    kept: Vec<Problem>,
    total: usize,
    /// Things that are not problems, but that the user should know.
    pub(crate) notes: Notes,
}

impl ExperimentError {
    /// The problems in order of appearance; never empty, at most fifty.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Name of the file that was loaded, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, found: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { found: Some(found.into()), ..Self::missing(path, allowed) }
    }

    /// A missing key; `required` describes what it must contain.
    pub(crate) fn missing(path: impl Into<String>, required: impl Into<String>) -> Self {
        Self { path: path.into(), found: None, allowed: required.into(), hint: None, set: None, point: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn did_you_mean(self, word: Option<&str>) -> Self {
        match word {
            Some(word) => self.hint(did_you_mean(word)),
            None => self,
        }
    }

    /// Whether the other problem says the same, at this point or at another.
    fn repeats(&self, other: &Self) -> bool {
        (&self.path, &self.found, &self.allowed) == (&other.path, &other.found, &other.allowed)
    }
}

impl Problems {
    const KEPT: usize = 50;

    /// Adds a problem, once; `make` is only called while problems are kept.
    pub(crate) fn add(&mut self, make: impl FnOnce() -> Problem) {
        if self.kept.len() >= Self::KEPT {
            self.total += 1;
            return;
        }
        let problem = make();
        if !self.contains(&problem) {
            self.total += 1;
            self.kept.push(problem);
        }
    }

    /// Takes over the problems of another list.
    pub(crate) fn extend(&mut self, others: Self) {
        let uncounted = others.total - others.kept.len();
        others.kept.into_iter().for_each(|problem| self.add(|| problem));
        self.total += uncounted;
    }

    /// Returns a success, or adds the problem of a failure.
    pub(crate) fn checked<T>(&mut self, result: Result<T, Box<Problem>>) -> Option<T> {
        result.map_err(|problem| self.add(|| *problem)).ok()
    }

    /// Returns a success, or takes over the problems of a failure.
    pub(crate) fn sift<T>(&mut self, result: Result<T, Self>) -> Option<T> {
        result.map_err(|problems| self.extend(problems)).ok()
    }

    pub(crate) fn contains(&self, problem: &Problem) -> bool {
        self.kept.iter().any(|kept| kept.repeats(problem))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Whether any problem occurs only at a choice of swept values.
    pub(crate) fn concern_a_point(&self) -> bool {
        self.kept.iter().any(|problem| problem.point.is_some())
    }

    /// Calls `explain` with each problem, to add what is known about its cause.
    pub(crate) fn annotate(&mut self, explain: impl FnMut(&mut Problem)) {
        self.kept.iter_mut().for_each(explain);
    }

    /// `Ok` if there are none.
    pub(crate) fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// The error that reports these problems. There must be at least one.
    pub(crate) fn into_error(self, file: &str) -> ExperimentError {
        let more = self.total - self.kept.len();
        ExperimentError { file: file.to_owned(), problems: self.kept, more }
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { kept: vec![problem], total: 1, notes: Notes::default() }
    }
}

/// A value as a message shows it: scalars as TOML writes them, shortened; tables and arrays by kind.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Table(table) if table.is_empty() => "an empty table".to_owned(),
        Value::Table(_) => "a table".to_owned(),
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Datetime(datetime) => format!("the date or time {datetime}"),
        scalar => scalar.to_string(),
    }
}

/// The text in quotes, on one line and not too long.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", shorten(text))
}

/// The text on one line and not too long.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short = escape(text.chars().take(LONGEST));
    if text.chars().nth(LONGEST).is_some() {
        short.push_str("...");
    }
    short
}

/// Escapes the characters that end lines, control terminals or change the direction of the text after them.
pub(crate) fn escape(chars: impl Iterator<Item = char>) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffd}')
    };
    // Every key's path comes through here, harmful or not.
    let mut escaped = String::new();
    for c in chars {
        if is_harmful(c) { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    escaped
}

impl std::error::Error for ExperimentError {}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = escape(self.file.chars());
        for (i, problem) in self.problems.iter().enumerate() {
            let end_of_last = if i > 0 { "\n" } else { "" };
            write!(f, "{end_of_last}{file}: {problem}")?;
        }
        match self.more {
            0 => Ok(()),
            1 => write!(f, "\n{file}: and 1 more problem"),
            n => write!(f, "\n{file}: and {n} more problems"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        match &self.found {
            Some(found) => write!(f, "found {found}; allowed: {}", self.allowed)?,
            None => write!(f, "missing; required: {}", self.allowed)?,
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        if let Some(set) = &self.set {
            write!(f, " (from --set {})", shorten(set))?;
        }
        if let Some(point) = &self.point {
            write!(f, " (at the point {point})")?;
        }
        Ok(())
    }
}
