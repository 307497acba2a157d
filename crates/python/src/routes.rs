//! The paths of packets, as the engines route them.

use bufferscope_scenario::{NodeIndex, PortIndex, Routing};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

/// The ports that a packet crosses from one node to another; `None` if no path leads there.
#[pyfunction]
pub(crate) fn path(
    nodes: NodeIndex,
    links: Vec<[NodeIndex; 2]>,
    sender: NodeIndex,
    receiver: NodeIndex,
) -> PyResult<Option<Vec<PortIndex>>> {
    let mut used = links.as_flattened().iter().copied().chain([sender, receiver]);
    if let Some(node) = used.find(|&node| node >= nodes) {
        return Err(PyIndexError::new_err(format!("there is no node {node}")));
    }
    Ok(Routing::new(nodes.into(), links).path(sender, receiver))
}
