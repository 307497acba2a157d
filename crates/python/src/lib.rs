//! `bufferscope._core`: experiment files, records, captures and the simulator for Python.
//!
//! It contains no logic: it passes arguments on, and translates results and errors. Structured data is exchanged as
//! JSON text, tables as Parquet files or as Arrow IPC streams in memory. `python/bufferscope/_core.pyi` describes it for
//! Python's readers and type checkers.

mod capture;
mod commands;
mod disciplines;
mod experiment;
mod frames;
mod kernel_packets;
mod packets;
mod playback;
mod records;
mod routes;
mod simulate;
mod simulation;
mod states;
mod tables;
mod verdict;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(_core, ExperimentError, PyValueError, "An experiment file or an override is impossible.");
create_exception!(_core, PlanError, PyValueError, "Linux can't be set to what the scenario asks for.");
create_exception!(_core, SimulationError, PyRuntimeError, "The simulator could not complete a run.");
create_exception!(
    _core,
    TablesError,
    PyRuntimeError,
    "Tables could not be written, or the received data is not a table."
);
create_exception!(_core, OtherBuildError, TablesError, "The data for a table comes from another build of bufferscope.");
create_exception!(_core, CaptureError, PyValueError, "A file is not a packet capture.");
create_exception!(_core, Interrupted, PyException, "The progress callback asked to stop.");

/// Experiment files, records and the simulator.
#[pymodule]
mod _core {
    use bufferscope_records::Table;
    use bufferscope_records::frame::PROTOCOL;
    use bufferscope_scenario::{Qdisc, Reason, sizes};
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    use super::disciplines::disciplines;

    #[pymodule_export]
    use super::capture::read_captures;
    #[pymodule_export]
    use super::commands::{cards, check_on_linux, commands, queue_arguments};
    #[pymodule_export]
    use super::disciplines::Discipline;
    #[pymodule_export]
    use super::experiment::{Experiment, Point, load, scenario_schema, schema};
    #[pymodule_export]
    use super::frames::FrameReader;
    #[pymodule_export]
    use super::kernel_packets::{PacketWriter, select_packets};
    #[pymodule_export]
    use super::packets::capture;
    #[pymodule_export]
    use super::playback::playback;
    #[pymodule_export]
    use super::routes::path;
    #[pymodule_export]
    use super::simulate::{PartitionWriter, footprint, simulate};
    #[pymodule_export]
    use super::simulation::Simulation;
    #[pymodule_export]
    use super::states::{log_samples, log_states};
    #[pymodule_export]
    use super::tables::TableWriter;
    #[pymodule_export]
    use super::verdict::judge;
    #[pymodule_export]
    use super::{CaptureError, ExperimentError, Interrupted, OtherBuildError, PlanError, SimulationError, TablesError};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("MOST_TRACE_BYTES", bufferscope_scenario::MOST_TRACE_BYTES)?;
        module.add("PROTOCOL", PROTOCOL)?;
        module.add("MSS_BYTES", sizes::MSS_BYTES)?;
        module.add("TABLES", tables(module.py())?)?;
        module.add("OPTIONAL_TABLES", optional_tables())?;
        module.add("WORDS", words_of_columns(module.py())?)?;
        module.add("QDISCS", disciplines(module.py())?)?;
        module.add("DROP_REASONS", drop_reasons(module.py())?)
    }

    /// For each reason, whether packets are marked for it and not dropped.
    fn drop_reasons(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let reasons = PyDict::new(py);
        for reason in Qdisc::KINDS.iter().flat_map(|kind| kind.reasons).chain([&Reason::PURGED, &Reason::RETRIES]) {
            reasons.set_item(reason.word, reason.marks)?;
        }
        Ok(reasons)
    }

    /// For each table, its columns that hold only certain words, each with these words.
    fn words_of_columns(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let tables = PyDict::new(py);
        for table in Table::ALL {
            let columns = PyDict::new(py);
            for (column, words) in bufferscope_records::words(table) {
                columns.set_item(column, words)?;
            }
            tables.set_item(table.name(), columns)?;
        }
        Ok(tables)
    }

    /// The tables of which a run without rows has no file.
    fn optional_tables() -> Vec<&'static str> {
        Table::ALL.into_iter().filter(|table| table.is_optional()).map(Table::name).collect()
    }

    fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let tables = PyDict::new(py);
        for table in Table::ALL {
            let schema = bufferscope_records::schema(table);
            let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            tables.set_item(table.name(), columns)?;
        }
        Ok(tables)
    }
}
