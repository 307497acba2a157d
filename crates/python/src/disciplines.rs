//! What is known of each queueing discipline, whatever its parameters.

use bufferscope_scenario::{Aqm, Kind, Qdisc, Queues};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What is known of a queueing discipline, whatever its parameters.
#[pyclass(frozen, get_all)]
pub(crate) struct Discipline {
    purpose: &'static str,
    source: &'static str,
    module: &'static str,
    is_loadable: bool,
    queues: &'static str,
    aqm: Option<&'static str>,
    contains_others: bool,
    holds_back: bool,
    has_kernel_defaults: bool,
}

impl From<&Kind> for Discipline {
    fn from(kind: &Kind) -> Self {
        Self {
            purpose: kind.purpose,
            source: kind.source,
            module: kind.module,
            is_loadable: kind.loadable,
            queues: Queues::name(kind.queues),
            aqm: kind.aqm.map(Aqm::name),
            contains_others: kind.contains_others,
            holds_back: kind.holds_back,
            has_kernel_defaults: kind.kernel_defaults,
        }
    }
}

/// Every discipline by its name.
pub(crate) fn disciplines(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let disciplines = PyDict::new(py);
    for kind in Qdisc::KINDS {
        disciplines.set_item(kind.name, Bound::new(py, Discipline::from(kind))?)?;
    }
    Ok(disciplines)
}
