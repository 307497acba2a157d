//! What is wrong with an experiment file: where, what was found, what is allowed, what to do.

use std::fmt;

use toml::Value;

/// Why an experiment can't be loaded. Displays as one line that tells the first problem.
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
    /// The key's path, such as `link.bottleneck.rate`; tables that have a name are named by it, others counted from 1
    /// (`link[2]`). Empty where the file as a whole is meant.
    pub path: String,
    /// What was found there.
    pub found: String,
    /// What is allowed there.
    pub allowed: String,
    /// What to do about it, where that can be said.
    pub hint: Option<String>,
    /// The `PATH=VALUE` given with `--set` that brought it about, if one did.
    pub set: Option<String>,
    /// The choice of swept values at which it shows, if it does not show in the file as it stands.
    pub point: Option<String>,
}

/// Problems found so far. Keeps the first few and counts the others: a file of nothing but errors must not become a report
/// larger than itself.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    kept: Vec<Problem>,
    total: usize,
}

impl ExperimentError {
    /// The problems in order of appearance; never empty, at most a few dozen.
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
        let (path, found, allowed) = (path.into(), found.into(), allowed.into());
        Self { path, found, allowed, hint: None, set: None, point: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn did_you_mean(self, word: Option<&str>) -> Self {
        match word {
            Some(word) => self.hint(format!("did you mean {word}?")),
            None => self,
        }
    }
}

impl Problems {
    const KEPT: usize = 20;

    /// Takes note of a problem, once; `make` is only called while problems are kept.
    pub(crate) fn add(&mut self, make: impl FnOnce() -> Problem) {
        if self.kept.len() >= Self::KEPT {
            self.total += 1;
            return;
        }
        let problem = make();
        if !self.kept.contains(&problem) {
            self.total += 1;
            self.kept.push(problem);
        }
    }

    pub(crate) fn contains(&self, problem: &Problem) -> bool {
        self.kept.contains(problem)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Lets `tell` add to each problem what is known about how it came about.
    pub(crate) fn annotate(&mut self, tell: impl FnMut(&mut Problem)) {
        self.kept.iter_mut().for_each(tell);
    }

    /// `Ok` if there are none.
    pub(crate) fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// The error that reports them. There must be some.
    pub(crate) fn into_error(self, file: &str) -> ExperimentError {
        let more = self.total - self.kept.len();
        ExperimentError { file: file.to_owned(), problems: self.kept, more }
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { kept: vec![problem], total: 1 }
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
    let escape =
        |c: char| if c.is_control() || c == '\u{fffd}' { c.escape_default().to_string() } else { c.to_string() };
    let mut short: String = text.chars().take(LONGEST).map(escape).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push_str("...");
    }
    short
}

impl std::error::Error for ExperimentError {}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(first), more) = (self.problems.first(), self.problems.len().saturating_sub(1) + self.more) else {
            return f.write_str(&self.file);
        };
        write!(f, "{}: {first}", self.file)?;
        match more {
            0 => Ok(()),
            1 => f.write_str(" (and 1 more problem)"),
            n => write!(f, " (and {n} more problems)"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "found {}; allowed: {}", self.found, self.allowed)?;
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
