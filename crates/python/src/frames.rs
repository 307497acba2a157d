//! Reads the frames of an engine that runs in another process.

use std::sync::Mutex;

use bufferscope_records::frame::{self, FrameError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{OtherBuildError, TablesError};

/// Reassembles frames from the pieces in which they arrive.
#[pyclass(frozen, module = "bufferscope._core")]
pub(crate) struct FrameReader(Mutex<frame::FrameReader>);

#[pymethods]
impl FrameReader {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn feed(&self, piece: &[u8]) {
        self.0.lock().expect("no panic while it is locked").feed(piece);
    }

    fn next_frame<'py>(&self, py: Python<'py>) -> PyResult<Option<(&'static str, Bound<'py, PyBytes>)>> {
        let frame = self.0.lock().expect("no panic while it is locked").next_frame().map_err(failed)?;
        Ok(frame.map(|(kind, payload)| (kind.name(), PyBytes::new(py, &payload))))
    }

    fn is_between_frames(&self) -> bool {
        self.0.lock().expect("no panic while it is locked").is_between_frames()
    }
}

fn failed(error: FrameError) -> PyErr {
    let message = error.to_string();
    match error {
        FrameError::OtherProtocol { .. } => OtherBuildError::new_err(message),
        FrameError::Unknown { .. } => TablesError::new_err(message),
    }
}
