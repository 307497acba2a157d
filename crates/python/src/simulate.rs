//! Running the simulator.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use bufferscope_records::{Partition, Recorder, Table};
use bufferscope_scenario::Scenario;
use bufferscope_sim::{Progress, SimError, Summary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::experiment::{Point, json};
use crate::records::{Recorded, Records};
use crate::tables;
use crate::{Interrupted, SimulationError};

/// Simulates a point and writes its tables into `directory`. Other Python threads continue to run meanwhile.
#[pyfunction]
#[pyo3(signature = (point, seed, directory, progress=None))]
pub(crate) fn simulate(
    py: Python<'_>,
    point: &Bound<'_, Point>,
    seed: u64,
    directory: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, point, progress, |scenario, watch| run(scenario, seed, Records::in_files(&directory)?, watch))
}

/// Simulates runs and writes their tables together into the files of a directory.
#[pyclass(frozen, module = "bufferscope._core")]
pub(crate) struct PartitionWriter(Mutex<Option<Partition>>);

#[pymethods]
impl PartitionWriter {
    #[new]
    fn new(directory: PathBuf) -> PyResult<Self> {
        Ok(Self(Mutex::new(Some(Partition::create(&directory).map_err(tables::failed)?))))
    }

    #[pyo3(signature = (point, seed, progress=None))]
    fn simulate(
        &self,
        py: Python<'_>,
        point: &Bound<'_, Point>,
        seed: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let mut partition = self.take()?;
        let summary = watched(py, point, progress, |scenario, watch| {
            run(scenario, seed, Records::in_partition(&mut partition), watch)
        })?;
        *self.partition() = Some(partition);
        Ok(summary)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let partition = self.take()?;
        py.detach(|| partition.finish()).map_err(tables::failed)
    }
}

impl PartitionWriter {
    fn partition(&self) -> MutexGuard<'_, Option<Partition>> {
        self.0.lock().expect("no panic while it is locked")
    }

    /// Takes the partition out. It is put back only after a success: a run that fails leaves rows of no complete run.
    fn take(&self) -> PyResult<Partition> {
        self.partition().take().ok_or_else(|| PyValueError::new_err("the partition is finished, or a run in it failed"))
    }
}

/// Runs a simulation without holding Python's lock; gives its summary as JSON.
fn watched(
    py: Python<'_>,
    point: &Bound<'_, Point>,
    progress: Option<Py<PyAny>>,
    simulate: impl FnOnce(&Scenario, &mut Watch) -> Result<Summary<Recorded>, SimError> + Send,
) -> PyResult<String> {
    let scenario = &point.get().inner().scenario;
    let mut watch = Watch::new(progress);
    let outcome = py.detach(|| simulate(scenario, &mut watch));
    let summary = watch.outcome(outcome)?;
    Ok(to_json(&summary))
}

fn run(
    scenario: &Scenario,
    seed: u64,
    recorder: Recorder<Records<'_>>,
    watch: &mut Watch,
) -> Result<Summary<Recorded>, SimError> {
    bufferscope_sim::run(scenario, seed, recorder, &mut |progress| watch.on_progress(progress))
}

/// The resources that a simulation of a point will take, as JSON.
#[pyfunction]
pub(crate) fn footprint(point: &Bound<'_, Point>) -> PyResult<String> {
    bufferscope_sim::footprint(&point.get().inner().scenario).map(|footprint| json(&footprint)).map_err(failed)
}

/// The caller's callback, and the exception that it raised.
pub(crate) struct Watch {
    callback: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Watch {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, raised: None }
    }

    /// The outcome of a simulation that was watched.
    pub(crate) fn outcome<T>(self, outcome: Result<T, SimError>) -> PyResult<T> {
        match self.raised {
            Some(raised) => Err(raised),
            None => outcome.map_err(failed),
        }
    }

    /// Calls the callback. The simulation continues as long as this returns a true value.
    pub(crate) fn on_progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let Some(callback) = &self.callback else { return ControlFlow::Continue(()) };
        let answer = Python::attach(|py| callback.bind(py).call1((progress.now_ns, progress.duration_ns))?.is_truthy());
        match answer {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(raised) => {
                self.raised = Some(raised);
                ControlFlow::Break(())
            }
        }
    }
}

/// The summary as JSON, with the number of rows of each table.
pub(crate) fn to_json(summary: &Summary<Recorded>) -> String {
    let mut value = serde_json::to_value(summary).expect("plain data is written as JSON");
    let tables = Table::ALL.into_iter().filter(|table| !table.is_optional());
    let counts = tables.map(|table| (table.name().to_owned(), summary.output.rows(table).into()));
    value["tables"] = Value::Object(counts.collect());
    value.to_string()
}

pub(crate) fn failed(error: SimError) -> PyErr {
    let message = error.to_string();
    match error {
        SimError::Interrupted => Interrupted::new_err(message),
        SimError::Time { .. } | SimError::Fixed { .. } => PyValueError::new_err(message),
        _ => SimulationError::new_err(message),
    }
}
