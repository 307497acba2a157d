//! The state of TCP in a run, as qlog files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bufferscope_qlog::file::Header;
use bufferscope_qlog::samples::{self, Sample};
use bufferscope_qlog::{Log, Outcome};
use bufferscope_scenario::Scenario;
use bufferscope_sim::tcp::{Metrics, State, Windows};
use bufferscope_sim::{SimError, Simulation, Summary};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::records::{Recorded, Records};
use crate::simulate::{Watch, to_json};

/// A sample as Python describes it: its time; window, threshold, payload in flight; smoothed and smallest round trip,
/// pacing rate; the state; and the times for which the sender was busy, and limited by window and buffer.
type Described = (u64, (u64, Option<u64>, u64), (Option<u64>, Option<u64>, Option<u64>), String, [u64; 3]);

type Run = Result<Summary<Recorded>, SimError>;

/// Simulates a scenario again, and writes the changes of TCP's state into a file for each connection. Other Python
/// threads continue to run meanwhile.
#[pyfunction]
#[pyo3(signature = (scenario, seed, directory, title, description, flows=Vec::new(), progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn log_states(
    py: Python<'_>,
    scenario: &str,
    seed: u64,
    directory: PathBuf,
    title: &str,
    description: &str,
    flows: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>, Vec<String>)> {
    let scenario: Scenario =
        serde_json::from_str(scenario).map_err(|error| PyValueError::new_err(format!("the scenario: {error}")))?;
    let mut watch = Watch::new(progress);
    let outcome = py.detach(|| write(scenario, seed, &directory, (title, description), &flows, &mut watch));
    let (summary, Outcome { opened, missing }) = outcome.map_err(failed)?;
    Ok((to_json(&watch.outcome(summary)?), opened, missing))
}

fn write(
    scenario: Scenario,
    seed: u64,
    directory: &Path,
    about: (&str, &str),
    flows: &[String],
    watch: &mut Watch,
) -> io::Result<(Run, Outcome)> {
    let log = Log::begin(&scenario, directory, about, flows);
    let simulation = match Simulation::new(scenario, seed, Records::discarded()) {
        Ok(simulation) => simulation.logged(Box::new(log.clone())),
        Err(error) => return Ok((Err(error), Outcome::default())),
    };
    let summary = simulation.finish(&mut |progress| match log.has_failed() {
        true => ControlFlow::Break(()),
        false => watch.on_progress(progress),
    });
    Ok((summary, log.finish()?))
}

/// Writes the log that samples of a connection allow into `file`.
#[pyfunction]
#[pyo3(signature = (file, samples, interval_ns, title, description, flow, host, of_client))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn log_samples(
    file: PathBuf,
    samples: Vec<Described>,
    interval_ns: u64,
    title: &str,
    description: &str,
    flow: &str,
    host: &str,
    of_client: bool,
) -> PyResult<()> {
    let samples = samples.into_iter().map(sample).collect::<PyResult<Vec<_>>>()?;
    let header = Header { title, description, flow, host, of_client, sampled_ns: Some(interval_ns) };
    let write = || {
        let mut out = BufWriter::new(File::create(file)?);
        samples::write(&mut out, &header, &samples)?;
        out.flush()
    };
    write().map_err(failed)
}

fn sample((t_ns, window, measured, state, times_ns): Described) -> PyResult<Sample> {
    let (cwnd_bytes, ssthresh_bytes, inflight_bytes) = window;
    let (srtt_ns, min_rtt_ns, pacing_bps) = measured;
    let windows = Windows { cwnd_bytes, ssthresh_bytes };
    let state = match state.as_str() {
        "open" => State::Open,
        "disorder" => State::Disorder,
        "cwr" => State::Cwr,
        "recovery" => State::Recovery,
        "loss" => State::Loss,
        _ => return Err(PyValueError::new_err(format!("no state of TCP is called {state:?}"))),
    };
    Ok(Sample { t_ns, metrics: Metrics { windows, inflight_bytes, srtt_ns, min_rtt_ns, pacing_bps }, state, times_ns })
}

fn failed(error: io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), error.to_string()))
}
