//! What it takes to build a point on Linux.

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

/// Raises `PlanError` if no released kernel can run the point.
#[pyfunction]
pub(crate) fn check_on_linux(point: &Bound<'_, Point>) -> PyResult<()> {
    bufferscope_plan::check(&point.get().inner().scenario).map_err(|error| PlanError::new_err(error.to_string()))
}
