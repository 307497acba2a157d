//! Captures of packets.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bufferscope_capture::session::{Choice, SessionError, Source};
use bufferscope_capture::{InspectError, Inspected, inspect};
use bufferscope_records::{ParquetSink, Recorder, RowCounts};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::{CaptureError, Interrupted, tables};

/// Reads captures, writes their tables into `directory`, and gives a summary as JSON. `-` is standard input.
#[pyfunction]
#[pyo3(signature = (files, directory, hosts=Vec::new(), ports=Vec::new(), progress=None))]
pub(crate) fn read_captures(
    py: Python<'_>,
    files: Vec<PathBuf>,
    directory: PathBuf,
    hosts: Vec<IpAddr>,
    ports: Vec<u16>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let raised = Raised::default();
    let sources = files.iter().map(|file| source(file, &raised)).collect::<PyResult<Vec<_>>>()?;
    let recorder = Recorder::new(ParquetSink::create(&directory).map_err(tables::failed)?);
    let choice = Choice { hosts, ports };
    let outcome =
        py.detach(|| inspect(sources, &choice, recorder, &mut |bytes| raised.on_progress(progress.as_ref(), bytes)));
    if let Some(raised) = raised.take() {
        return Err(raised);
    }
    outcome.map(|inspected| to_json(&inspected)).map_err(failed)
}

/// An exception that Python code raised while packets were read.
#[derive(Clone, Default)]
struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn keep(&self, error: PyErr) {
        *self.0.lock().expect("no panic while it is locked") = Some(error);
    }

    fn take(&self) -> Option<PyErr> {
        self.0.lock().expect("no panic while it is locked").take()
    }

    /// Calls the callback. Reading continues as long as this returns a true value.
    fn on_progress(&self, callback: Option<&Py<PyAny>>, bytes: u64) -> ControlFlow<()> {
        let Some(callback) = callback else { return ControlFlow::Continue(()) };
        match Python::attach(|py| callback.bind(py).call1((bytes,))?.is_truthy()) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(raised) => {
                self.keep(raised);
                ControlFlow::Break(())
            }
        }
    }
}

fn source(file: &Path, raised: &Raised) -> PyResult<Source> {
    let name = file.to_string_lossy().into_owned();
    if name == "-" {
        let stream = Box::new(Interruptible { stream: io::stdin(), raised: raised.clone() });
        return Ok(Source { name: "standard input".to_owned(), stream });
    }
    let stream = File::open(file)
        .map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string(), name.clone())))?;
    Ok(Source { name, stream: Box::new(Interruptible { stream, raised: raised.clone() }) })
}

/// A stream that may keep us waiting: Ctrl-C ends the wait.
struct Interruptible<R> {
    stream: R,
    raised: Raised,
}

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    if let Err(raised) = Python::attach(|py| py.check_signals()) {
                        self.raised.keep(raised);
                        return Err(io::Error::other("interrupted"));
                    }
                }
                outcome => return outcome,
            }
        }
    }
}

/// The summary as JSON, with the number of rows of each table.
fn to_json(inspected: &Inspected<RowCounts>) -> String {
    let mut value = serde_json::to_value(inspected).expect("plain data is written as JSON");
    value["tables"] = serde_json::to_value(inspected.output).expect("plain data is written as JSON");
    value.to_string()
}

fn failed(error: InspectError) -> PyErr {
    match error {
        InspectError::Session(SessionError::Stopped) => Interrupted::new_err("stopped"),
        InspectError::Session(SessionError::File { .. }) => CaptureError::new_err(error.to_string()),
        InspectError::Session(SessionError::TooMany { .. }) => PyValueError::new_err(error.to_string()),
        InspectError::Records(error) => tables::failed(error),
    }
}
