//! Running the simulator.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bufferscope_records::{ParquetSink, Recorder, RowCounts};
use bufferscope_scenario::Scenario;
use bufferscope_sim::{Progress, SimError, Summary};
use pyo3::prelude::*;

use crate::experiment::Point;
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
    let scenario = &point.get().inner().scenario;
    let mut watch = Watch { callback: progress, raised: None };
    let outcome = py.detach(|| run(scenario, seed, &directory, &mut watch));
    match (watch.raised, outcome) {
        (Some(raised), _) => Err(raised),
        (None, Ok(summary)) => Ok(json(&summary)),
        (None, Err(SimError::Interrupted)) => Err(Interrupted::new_err(SimError::Interrupted.to_string())),
        (None, Err(error)) => Err(SimulationError::new_err(error.to_string())),
    }
}

fn run(scenario: &Scenario, seed: u64, directory: &Path, watch: &mut Watch) -> Result<Summary<RowCounts>, SimError> {
    let recorder = Recorder::new(ParquetSink::create(directory)?);
    bufferscope_sim::run(scenario, seed, recorder, &mut |progress| watch.tell(progress))
}

/// The resources that a simulation of a point will take, as JSON.
#[pyfunction]
pub(crate) fn footprint(point: &Bound<'_, Point>) -> PyResult<String> {
    bufferscope_sim::footprint(&point.get().inner().scenario)
        .map(|footprint| serde_json::to_string(&footprint).expect("plain data is written as JSON"))
        .map_err(|error| SimulationError::new_err(error.to_string()))
}

/// The caller's callback, and the exception that it raised.
struct Watch {
    callback: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Watch {
    /// Calls the callback. The simulation continues as long as this returns a true value.
    fn tell(&mut self, progress: Progress) -> ControlFlow<()> {
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

/// The summary with the number of rows of each table.
fn json(summary: &Summary<RowCounts>) -> String {
    let mut value = serde_json::to_value(summary).expect("plain data is written as JSON");
    value["tables"] = serde_json::to_value(summary.output).expect("plain data is written as JSON");
    value.to_string()
}
