//! The packets of a simulation, as a pcapng file.

use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::PathBuf;

use bufferscope_pcapng::{Capture, Interface};
use bufferscope_scenario::{PortIndex, Scenario};
use bufferscope_sim::{Hook, SimError, Simulation, Summary};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::records::{Recorded, Records};
use crate::simulate::{Watch, to_json};

/// The program that writes the files, as they name it.
pub(crate) const APPLICATION: &str = concat!("bufferscope ", env!("CARGO_PKG_VERSION"));

/// An interface as Python describes it: port, hook, name, description.
type Described = (PortIndex, String, String, String);

/// Simulates a scenario again, and writes its packets into `file`. Other Python threads continue to run meanwhile.
#[pyfunction]
#[pyo3(signature = (scenario, seed, file, interfaces, snaplen, comment, progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn capture(
    py: Python<'_>,
    scenario: &str,
    seed: u64,
    file: PathBuf,
    interfaces: Vec<Described>,
    snaplen: u32,
    comment: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<u64>)> {
    let scenario: Scenario =
        serde_json::from_str(scenario).map_err(|error| PyValueError::new_err(format!("the scenario: {error}")))?;
    let interfaces: Vec<Interface> = interfaces.into_iter().map(interface).collect::<PyResult<_>>()?;
    let mut watch = Watch::new(progress);
    let outcome = py.detach(|| {
        let out = BufWriter::new(File::create(file)?);
        let capture = Capture::begin(&scenario, seed, &interfaces, snaplen, (APPLICATION, comment), out)?;
        write(scenario, seed, capture, &mut watch)
    });
    let (summary, packets) = outcome.map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string())))?;
    Ok((to_json(&watch.outcome(summary)?), packets))
}

type Run = Result<Summary<Recorded>, SimError>;

fn write(
    scenario: Scenario,
    seed: u64,
    capture: Capture<BufWriter<File>>,
    watch: &mut Watch,
) -> io::Result<(Run, Vec<u64>)> {
    let simulation = match Simulation::new(scenario, seed, Records::discarded()) {
        Ok(simulation) => simulation.tapped(Box::new(capture.clone())),
        Err(error) => return Ok((Err(error), Vec::new())),
    };
    let summary = simulation.finish(&mut |progress| match capture.has_failed() {
        true => ControlFlow::Break(()),
        false => watch.on_progress(progress),
    });
    let end_ns = summary.as_ref().map_or(0, |summary| summary.ended_ns);
    let outcome = capture.finish(end_ns)?;
    Ok((summary, outcome.packets))
}

fn interface((port, hook, name, description): Described) -> PyResult<Interface> {
    let hook = match hook.as_str() {
        "qdisc" => Hook::Qdisc,
        "ring" => Hook::Ring,
        "wire" => Hook::Wire,
        "arrived" => Hook::Arrived,
        "dropped" => Hook::Dropped,
        _ => return Err(PyValueError::new_err(format!("no hook of a port is called {hook:?}"))),
    };
    Ok(Interface { port, hook, name, description })
}
