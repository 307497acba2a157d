//! The verdict about a live measurement.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The verdict about what a live measurement observed, both as JSON. Raises `ValueError` for other JSON.
#[pyfunction]
pub(crate) fn judge(py: Python<'_>, observations: &str) -> PyResult<String> {
    py.detach(|| bufferscope_verdict::judge_json(observations)).map_err(PyValueError::new_err)
}
