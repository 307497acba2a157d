//! Writes the tables of an engine that runs in another process.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use bufferscope_records::{ParquetSink, RecordsError, Sink, Table, ipc};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::{OtherBuildError, TablesError};

/// Writes batches into the tables of a directory.
#[pyclass(frozen, module = "bufferscope._core")]
pub(crate) struct TableWriter(Mutex<Option<ParquetSink>>);

#[pymethods]
impl TableWriter {
    #[new]
    fn new(directory: PathBuf) -> PyResult<Self> {
        Ok(Self(Mutex::new(Some(ParquetSink::create(&directory).map_err(failed)?))))
    }

    fn write(&self, py: Python<'_>, table: usize, stream: &[u8]) -> PyResult<()> {
        let table = at(table)?;
        py.detach(|| {
            let batch = ipc::decode(table, stream).map_err(failed)?;
            let mut sink = self.sink();
            sink.as_mut().ok_or_else(finished)?.write(table, &(&batch).into()).map_err(failed)
        })
    }

    fn finish(&self) -> PyResult<String> {
        let rows = self.sink().take().ok_or_else(finished)?.finish().map_err(failed)?;
        Ok(serde_json::to_string(&rows).expect("plain data is written as JSON"))
    }
}

impl TableWriter {
    fn sink(&self) -> MutexGuard<'_, Option<ParquetSink>> {
        self.0.lock().expect("no panic while it is locked")
    }
}

/// The table at an index in `TABLES`.
pub(crate) fn at(index: usize) -> PyResult<Table> {
    Table::ALL.get(index).copied().ok_or_else(|| PyIndexError::new_err(format!("there is no table {index}")))
}

fn finished() -> PyErr {
    PyValueError::new_err("the tables are finished")
}

/// The exception for records that could not be written.
pub(crate) fn failed(error: RecordsError) -> PyErr {
    let message = error.to_string();
    match error {
        RecordsError::OtherColumns { .. } => OtherBuildError::new_err(message),
        _ => TablesError::new_err(message),
    }
}
