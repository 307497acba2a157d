//! The commands that build a point's network by hand.

use bufferscope_plan::Script;
use pyo3::prelude::*;

use crate::PlanError;
use crate::experiment::Point;

/// A script of them, which begins with the lines `about`.
#[pyfunction]
pub(crate) fn commands(point: &Bound<'_, Point>, about: Vec<String>) -> PyResult<String> {
    let script = Script::new(&point.get().inner().scenario, &about);
    script.map(|script| script.to_string()).map_err(|error| PlanError::new_err(error.to_string()))
}
