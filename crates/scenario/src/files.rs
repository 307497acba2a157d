//! Files that an experiment's file names. This crate does no I/O, so its caller reads them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::error::{Problem, Problems, quote};
use crate::trace::{NoTrace, Trace};

/// Reads a file that an experiment names, by the name in the experiment. An error gives the reason in a few words.
pub type ReadFile<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;

/// The traces by the names of their files. Each file is read once.
pub(crate) type Known = BTreeMap<String, Result<Trace, NoTrace>>;

/// The traces that an experiment names.
pub(crate) struct Traces<'a> {
    read: &'a ReadFile<'a>,
    known: RefCell<Known>,
}

impl<'a> Traces<'a> {
    pub(crate) fn new(read: &'a ReadFile<'a>, known: Known) -> Self {
        Self { read, known: RefCell::new(known) }
    }

    /// The trace in a file; `path` is that of the key that names it.
    pub(crate) fn find(&self, file: &str, path: String, problems: &mut Problems) -> Option<Trace> {
        let mut known = self.known.borrow_mut();
        let found = known.entry(file.to_owned()).or_insert_with(|| match (self.read)(file) {
            Ok(content) => Trace::read(&content),
            Err(why) => {
                let found = format!("{}: {why}", quote(file));
                Err(NoTrace {
                    found,
                    allowed: "a trace's file that can be read, relative to the experiment's".to_owned(),
                })
            }
        });
        match found {
            Ok(trace) => Some(trace.clone()),
            Err(NoTrace { found, allowed }) => {
                problems.add(|| Problem::new(path, found.as_str(), allowed.as_str()));
                None
            }
        }
    }

    pub(crate) fn into_known(self) -> Known {
        self.known.into_inner()
    }
}

/// For callers that have no files.
pub(crate) fn no_files(_name: &str) -> Result<Vec<u8>, String> {
    Err("files cannot be read here".to_owned())
}
