//! Experiment files.

use std::sync::Arc;

use bufferscope_scenario::{Member, Scenario};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::ExperimentError;

/// A checked experiment file.
#[pyclass(frozen, module = "bufferscope._core")]
pub(crate) struct Experiment(Arc<bufferscope_scenario::Experiment>);

/// One choice of swept values with its scenario, or a member of the population there.
#[pyclass(frozen, module = "bufferscope._core")]
pub(crate) struct Point {
    experiment: Arc<bufferscope_scenario::Experiment>,
    index: usize,
    /// The member, and its number.
    member: Option<(u64, Arc<Member>)>,
}

/// Parses and checks an experiment. `read` returns the content of a file that the experiment names; the text of an exception
/// that it raises says why it can't.
#[pyfunction]
pub(crate) fn load(
    py: Python<'_>,
    content: &[u8],
    file: &str,
    overrides: Vec<String>,
    read: Py<PyAny>,
) -> PyResult<Experiment> {
    let read = |name: &str| {
        Python::attach(|py| {
            let found = read.call1(py, (name,)).and_then(|content| content.extract::<Vec<u8>>(py));
            found.map_err(|error| error.value(py).to_string())
        })
    };
    py.detach(|| bufferscope_scenario::Experiment::from_bytes_and_files(content, file, &overrides, &read))
        .map(|experiment| Experiment(Arc::new(experiment)))
        .map_err(|error| ExperimentError::new_err(error.to_string()))
}

/// The JSON Schema of experiment files.
#[pyfunction]
pub(crate) fn schema() -> String {
    serde_json::to_string_pretty(&bufferscope_scenario::schema()).expect("a JSON value is written as JSON")
}

/// The JSON Schema of resolved scenarios.
#[pyfunction]
pub(crate) fn scenario_schema() -> String {
    serde_json::to_string_pretty(&bufferscope_scenario::scenario_schema()).expect("a JSON value is written as JSON")
}

#[pymethods]
impl Experiment {
    #[getter]
    fn document(&self) -> String {
        json(self.0.document())
    }

    #[getter]
    fn points(&self) -> Vec<Point> {
        let point = |index| Point { experiment: Arc::clone(&self.0), index, member: None };
        (0..self.0.points().len()).map(point).collect()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    #[getter]
    fn expectations(&self) -> String {
        json(self.0.expectations())
    }
}

impl Point {
    pub(crate) fn inner(&self) -> &bufferscope_scenario::Point {
        match &self.member {
            Some((_, member)) => &member.point,
            None => &self.experiment.points()[self.index],
        }
    }

    /// The point's scenario with further overrides, of which those without effect are removed.
    pub(crate) fn changed(
        &self,
        overrides: &mut Vec<String>,
    ) -> Result<Scenario, bufferscope_scenario::ExperimentError> {
        let member = self.member.as_ref().map(|(number, _)| *number);
        self.experiment.changed(self.index, member, overrides)
    }
}

#[pymethods]
impl Point {
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        for (path, label) in &self.inner().values {
            values.set_item(path, label)?;
        }
        Ok(values)
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.inner().notes.clone()
    }

    /// The member of the population with this number at this point; the point itself if there is no population.
    fn member(&self, py: Python<'_>, number: u64) -> PyResult<Self> {
        let made = py.detach(|| self.experiment.member(self.index, number));
        let member = made.map_err(|error| ExperimentError::new_err(error.to_string()))?;
        let member = member.map(|member| (number, Arc::new(member)));
        Ok(Self { experiment: Arc::clone(&self.experiment), index: self.index, member })
    }

    /// What was drawn for the member, as JSON; `None` for a point.
    #[getter]
    fn drawn(&self) -> Option<String> {
        self.member.as_ref().map(|(_, member)| json(&member.drawn))
    }

    #[getter]
    fn scenario(&self) -> String {
        json(&self.inner().scenario)
    }
}

pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("plain data is written as JSON")
}
