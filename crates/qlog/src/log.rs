//! The log of a simulation, written into a directory.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use bufferscope_scenario::Scenario;
use bufferscope_sim::tcp::Transition;
use bufferscope_sim::{FlowId, LoggedFlow, StateLog};

use crate::events;
use crate::file::{self, Header};

/// Events kept in memory before they are written, of all connections together.
const KEPT_BYTES: usize = 4 << 20;

/// A log that is being written. Its clones write into the same directory.
#[derive(Clone, Debug)]
pub struct Log(Arc<Mutex<Inner>>);

/// What was written.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The names of the connections that were opened, whether or not they were logged; not more than
    /// [`MOST_NAMES`](Self::MOST_NAMES).
    pub opened: Vec<String>,
    /// The connections that were asked for and never opened.
    pub missing: Vec<String>,
}

impl Outcome {
    /// The most names of connections that are kept for a message.
    pub const MOST_NAMES: usize = 64;
}

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    title: String,
    description: String,
    /// The names of the nodes, and of the entries of traffic.
    nodes: Vec<String>,
    traffic: Vec<String>,
    /// The connections to log; empty for all.
    chosen: Vec<String>,
    opened: Vec<String>,
    flows: BTreeMap<FlowId, Flow>,
    kept_bytes: usize,
    /// The first error, after which nothing is written.
    failed: Option<io::Error>,
}

#[derive(Debug)]
struct Flow {
    name: String,
    path: PathBuf,
    mss_bytes: u32,
    /// Events that are not written yet.
    kept: Vec<u8>,
}

impl Log {
    /// A log of a run of this scenario. Writes a file into `directory` for each connection, or for those of the names
    /// `chosen`.
    pub fn begin(scenario: &Scenario, directory: &Path, (title, description): (&str, &str), chosen: &[String]) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            directory: directory.to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            nodes: scenario.nodes.iter().map(|node| node.name.clone()).collect(),
            traffic: scenario.traffic.iter().map(|entry| entry.name.clone()).collect(),
            chosen: chosen.to_vec(),
            opened: Vec::new(),
            flows: BTreeMap::new(),
            kept_bytes: 0,
            failed: None,
        })))
    }

    /// Whether writing has failed. [`finish`](Self::finish) says why.
    pub fn has_failed(&self) -> bool {
        self.inner().failed.is_some()
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first that occurred while writing.
    pub fn finish(self) -> io::Result<Outcome> {
        let mut inner = self.inner();
        inner.write_kept();
        if let Some(error) = inner.failed.take() {
            return Err(error);
        }
        let is_missing = |name: &&String| !inner.flows.values().any(|flow| flow.name == **name);
        let missing = inner.chosen.iter().filter(is_missing).cloned().collect();
        Ok(Outcome { opened: std::mem::take(&mut inner.opened), missing })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no panic while it is locked")
    }
}

impl StateLog for Log {
    fn open(&mut self, t_ns: u64, flow: &LoggedFlow<'_>) -> bool {
        self.inner().open(t_ns, flow)
    }

    fn log(&mut self, t_ns: u64, flow: FlowId, transition: &Transition) {
        self.inner().log(t_ns, flow, transition);
    }
}

impl Inner {
    fn open(&mut self, t_ns: u64, logged: &LoggedFlow<'_>) -> bool {
        let name = format!("{}/{}", self.traffic[logged.id.traffic as usize], logged.id.number);
        if self.opened.len() < Outcome::MOST_NAMES {
            self.opened.push(name.clone());
        }
        if !self.chosen.is_empty() && !self.chosen.contains(&name) {
            return false;
        }
        let title = format!("{}, {name}", self.title);
        let header = Header {
            title: &title,
            description: &self.description,
            flow: &name,
            host: &self.nodes[usize::from(logged.host)],
            of_client: logged.of_client,
            sampled_ns: None,
        };
        let mut kept = Vec::new();
        let written = file::write_header(&mut kept, &header)
            .and_then(|()| file::write_event(&mut kept, t_ns, &events::settings(logged.config)));
        self.note(written);
        let path = self.directory.join(file_name(&name));
        let flow = Flow { name, path, mss_bytes: logged.config.mss_bytes, kept };
        self.kept_bytes += flow.kept.len();
        self.flows.insert(logged.id, flow);
        true
    }

    fn log(&mut self, t_ns: u64, id: FlowId, transition: &Transition) {
        let Some(flow) = self.flows.get_mut(&id).filter(|_| self.failed.is_none()) else { return };
        let before = flow.kept.len();
        let written = file::write_event(&mut flow.kept, t_ns, &events::event(transition, flow.mss_bytes));
        self.kept_bytes += flow.kept.len() - before;
        self.note(written);
        if self.kept_bytes > KEPT_BYTES {
            self.write_kept();
        }
    }

    /// Appends the events that are kept to their files. No file stays open, so there may be any number of them.
    fn write_kept(&mut self) {
        let written = self.flows.values_mut().filter(|flow| !flow.kept.is_empty()).try_for_each(Flow::append);
        self.kept_bytes = 0;
        self.note(written);
    }

    fn note(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.failed.get_or_insert(error);
        }
    }
}

impl Flow {
    fn append(&mut self) -> io::Result<()> {
        let mut out: File = OpenOptions::new().create(true).append(true).open(&self.path)?;
        out.write_all(&std::mem::take(&mut self.kept))
    }
}

/// The name of the file of a connection: `bulk/1` is in `bulk-1.sqlog`. Names of traffic have no slash, and the number
/// is the last part, so no two connections have the same file.
pub(crate) fn file_name(flow: &str) -> String {
    format!("{}.sqlog", flow.replace('/', "-"))
}
