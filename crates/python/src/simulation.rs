//! A simulation in steps.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

use bufferscope_records::{ParquetSink, Sink, Table, ipc};
use bufferscope_scenario::Scenario;
use bufferscope_sim::{self as sim, SimError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::experiment::{Point, json};
use crate::records::{Recorded, Records};
use crate::simulate::{Watch, failed, to_json};
use crate::tables::{at, failed as unwritable};
use crate::{ExperimentError, SimulationError};

/// A simulation of a point that is advanced in steps. Its tables are in memory.
#[pyclass(frozen, module = "bufferscope._core")]
pub(crate) struct Simulation {
    point: Py<Point>,
    inner: Mutex<Inner>,
}

struct Inner {
    /// The overrides in force, besides the experiment's own.
    set: Vec<String>,
    state: State,
}

enum State {
    Running(Box<sim::Simulation<Records<'static>>>),
    Finished(Box<Recorded>),
    /// It was interrupted while it was being finished.
    Lost,
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(py: Python<'_>, point: Py<Point>, seed: u64) -> PyResult<Self> {
        let scenario = point.get().inner().scenario.clone();
        let simulation = py.detach(|| sim::Simulation::new(scenario, seed, Records::in_memory())).map_err(failed)?;
        let inner = Inner { set: Vec::new(), state: State::Running(Box::new(simulation)) };
        Ok(Self { point, inner: Mutex::new(inner) })
    }

    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.lock()?.running()?.now_ns())
    }

    #[pyo3(signature = (until_ns, progress=None))]
    fn advance(&self, py: Python<'_>, until_ns: u64, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let mut inner = self.lock()?;
        let simulation = inner.running()?;
        let mut watch = Watch::new(progress);
        let outcome = py.detach(|| simulation.advance(until_ns, &mut |progress| watch.on_progress(progress)));
        watch.outcome(outcome)
    }

    fn state(&self) -> PyResult<String> {
        Ok(json(&self.lock()?.running()?.state()))
    }

    #[getter]
    fn scenario(&self) -> PyResult<String> {
        Ok(json(self.lock()?.running()?.scenario()))
    }

    fn change(&self, overrides: Vec<String>) -> PyResult<()> {
        let mut inner = self.lock()?;
        let (set, scenario) = self.changed(&inner, &overrides)?;
        inner.running()?.change(scenario, overrides).map_err(failed)?;
        inner.set = set;
        Ok(())
    }

    fn footprint(&self, overrides: Vec<String>) -> PyResult<String> {
        let (_, scenario) = self.changed(&*self.lock()?, &overrides)?;
        sim::footprint(&scenario).map(|footprint| json(&footprint)).map_err(failed)
    }

    fn table<'py>(&self, py: Python<'py>, table: usize) -> PyResult<Bound<'py, PyBytes>> {
        let table = at(table)?;
        let mut inner = self.lock()?;
        let state = &mut inner.state;
        let stream = py.detach(|| match state {
            State::Running(simulation) => {
                let recorder = simulation.recorder();
                ipc::encode_all(table, &[recorder.sink().batches(table), &[recorder.pending(table)]].concat())
            }
            State::Finished(recorded) => ipc::encode_all(table, recorded.batches(table)),
            State::Lost => ipc::encode_all(table, &[]),
        });
        Ok(PyBytes::new(py, &stream.map_err(unwritable)?))
    }

    #[pyo3(signature = (progress=None))]
    fn finish(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let mut inner = self.lock()?;
        let mut watch = Watch::new(progress);
        // If it is interrupted on the way, its tables can still be read.
        let simulation = inner.running()?;
        let duration_ns = simulation.scenario().duration_ns;
        if let Err(error) = py.detach(|| simulation.advance(duration_ns, &mut |progress| watch.on_progress(progress))) {
            return watch.outcome(Err(error));
        }
        let State::Running(simulation) = std::mem::replace(&mut inner.state, State::Lost) else {
            return Err(finished());
        };
        let outcome = py.detach(|| simulation.finish(&mut |progress| watch.on_progress(progress)));
        let summary = watch.outcome(outcome)?;
        let summary_json = to_json(&summary);
        inner.state = State::Finished(Box::new(summary.output));
        Ok(summary_json)
    }

    fn write(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        let mut inner = self.lock()?;
        let State::Finished(recorded) = &mut inner.state else {
            return Err(PyValueError::new_err("the simulation is not finished"));
        };
        py.detach(|| {
            let mut sink = ParquetSink::create(&directory)?;
            for table in Table::ALL {
                recorded.batches(table).iter().try_for_each(|batch| sink.write(table, &batch.into()))?;
            }
            sink.finish()
        })
        .map(drop)
        .map_err(unwritable)
    }
}

impl Simulation {
    /// Only one thread at a time can use a simulation. A second one gets an error: if it waited, it could hold Python's
    /// lock while the first one waits for that.
    fn lock(&self) -> PyResult<MutexGuard<'_, Inner>> {
        self.inner.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => SimulationError::new_err("another thread is using this simulation"),
            TryLockError::Poisoned(_) => SimulationError::new_err("this simulation has failed before"),
        })
    }

    /// The overrides in force with these, and the scenario that they make.
    fn changed(&self, inner: &Inner, overrides: &[String]) -> PyResult<(Vec<String>, Scenario)> {
        let mut set = [&inner.set[..], overrides].concat();
        let scenario =
            self.point.get().changed(&mut set).map_err(|error| ExperimentError::new_err(error.to_string()))?;
        Ok((set, scenario))
    }
}

impl Inner {
    fn running(&mut self) -> PyResult<&mut sim::Simulation<Records<'static>>> {
        match &mut self.state {
            State::Running(simulation) => Ok(simulation),
            State::Finished(_) => Err(finished()),
            State::Lost => Err(failed(SimError::Interrupted)),
        }
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the simulation is finished")
}
