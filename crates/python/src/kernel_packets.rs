//! The packets that a kernel captured: into a file, and from there into another one.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use bufferscope_capture::file::{FileError, Reader};
use bufferscope_pcapng::Recording;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::packets::APPLICATION;
use crate::{CaptureError, Interrupted};

/// An interface as Python describes it: name and description.
type Described = (String, String);

/// Writes captured packets into a file.
#[pyclass(frozen, module = "bufferscope._core")]
pub(crate) struct PacketWriter(Mutex<Option<Recording<BufWriter<File>>>>);

#[pymethods]
impl PacketWriter {
    #[new]
    fn new(file: PathBuf, interfaces: Vec<Described>, snaplen: u32, comment: &str) -> PyResult<Self> {
        let begin =
            || Recording::begin(&interfaces, snaplen, (APPLICATION, comment), BufWriter::new(File::create(&file)?));
        Ok(Self(Mutex::new(Some(begin().map_err(failed)?))))
    }

    fn write(&self, py: Python<'_>, payload: &[u8]) -> PyResult<()> {
        py.detach(|| self.recording().as_mut().ok_or_else(finished)?.payload(payload).map_err(failed))
    }

    fn finish(&self, end_ns: u64) -> PyResult<Vec<u64>> {
        let recording = self.recording().take().ok_or_else(finished)?;
        Ok(recording.finish(end_ns).map_err(failed)?.1)
    }
}

impl PacketWriter {
    fn recording(&self) -> MutexGuard<'_, Option<Recording<BufWriter<File>>>> {
        self.0.lock().expect("no panic while it is locked")
    }
}

/// Copies the packets of some interfaces of a capture; returns how many there were of each. `progress` is called with the
/// number of bytes that were read; if it returns a false value, nothing more is copied.
#[pyfunction]
#[pyo3(signature = (source, file, interfaces, snaplen, comment, end_ns, progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn select_packets(
    py: Python<'_>,
    source: PathBuf,
    file: PathBuf,
    interfaces: Vec<Described>,
    snaplen: u32,
    comment: &str,
    end_ns: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<u64>> {
    let opened = File::open(&source).map_err(failed)?;
    let out = BufWriter::new(File::create(file).map_err(failed)?);
    let mut reader = Reader::open(BufReader::new(opened)).map_err(unreadable)?;
    let mut recording = Recording::begin(&interfaces, snaplen, (APPLICATION, comment), out).map_err(failed)?;
    // The target interface of each interface of the capture.
    let mut targets: Vec<Option<usize>> = Vec::new();
    let mut told_bytes = 0;
    while py.detach(|| copy_some(&mut reader, &mut recording, &interfaces, snaplen, &mut targets))? {
        if let Some(progress) = &progress
            && reader.passed_bytes() > told_bytes
        {
            told_bytes = reader.passed_bytes();
            if !progress.bind(py).call1((told_bytes,))?.is_truthy()? {
                return Err(Interrupted::new_err("stopped"));
            }
        }
    }
    Ok(recording.finish(end_ns).map_err(failed)?.1)
}

/// Packets between two calls of the callback.
const AT_ONCE: usize = 100_000;

/// Copies the next packets; returns whether there are more.
fn copy_some(
    reader: &mut Reader,
    recording: &mut Recording<BufWriter<File>>,
    interfaces: &[Described],
    snaplen: u32,
    targets: &mut Vec<Option<usize>>,
) -> PyResult<bool> {
    for _ in 0..AT_ONCE {
        if !reader.advance().map_err(unreadable)? {
            return Ok(false);
        }
        for known in &reader.interfaces()[targets.len()..] {
            targets.push(interfaces.iter().position(|(name, _)| known.name.as_ref() == Some(name)));
        }
        let packet = reader.packet();
        let (Some(target), Some(t_ns)) =
            (targets[packet.interface], packet.t_ns.and_then(|t_ns| u64::try_from(t_ns).ok()))
        else {
            continue;
        };
        let stored = packet.data.len().min(snaplen as usize);
        recording.packet(target, t_ns, &packet.data[..stored], packet.wire_bytes).map_err(failed)?;
    }
    Ok(true)
}

fn finished() -> PyErr {
    PyValueError::new_err("the capture is finished")
}

fn unreadable(error: FileError) -> PyErr {
    CaptureError::new_err(error.to_string())
}

fn failed(error: io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::InvalidData => PyValueError::new_err(error.to_string()),
        _ => PyOSError::new_err((error.raw_os_error(), error.to_string())),
    }
}
