//! What is needed to build a point's network on Linux: by hand, or in a virtual machine.

use bufferscope_plan::{Cards, Clock, DelayBy, Kernel, Plan, Script, qdisc_arguments};
use bufferscope_scenario::{Qdisc, Scenario};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::PlanError;
use crate::experiment::Point;

/// A script of the commands that build a point's network. It begins with the lines `about`.
#[pyfunction]
pub(crate) fn commands(point: &Bound<'_, Point>, about: Vec<String>) -> PyResult<String> {
    let script = Script::new(&point.get().inner().scenario, &about);
    script.map(|script| script.to_string()).map_err(|error| PlanError::new_err(error.to_string()))
}

/// The queueing discipline of the port of this name, as arguments of `tc qdisc add`; without the parameters that the
/// same port has in `defaults`.
#[pyfunction]
#[pyo3(signature = (point, port, defaults=None))]
pub(crate) fn queue_arguments(
    point: &Bound<'_, Point>,
    port: &str,
    defaults: Option<&Bound<'_, Point>>,
) -> PyResult<String> {
    let known = defaults.map(|point| queue_of(&point.get().inner().scenario, port)).transpose()?;
    let queue = queue_of(&point.get().inner().scenario, port)?;
    qdisc_arguments(queue, known, port).map_err(|error| PlanError::new_err(error.to_string()))
}

fn queue_of<'a>(scenario: &'a Scenario, port: &str) -> PyResult<&'a Qdisc> {
    let ports = scenario.links.iter().flat_map(|link| link.port_names(&scenario.nodes).into_iter().zip(link.ports()));
    let (_, found) = ports
        .into_iter()
        .find(|(name, _)| name == port)
        .ok_or_else(|| PyValueError::new_err(format!("no port is called {port:?}")))?;
    Ok(&found.queue)
}

/// Raises `PlanError` if no released kernel can run the point.
#[pyfunction]
pub(crate) fn check_on_linux(point: &Bound<'_, Point>) -> PyResult<()> {
    bufferscope_plan::check(&point.get().inner().scenario).map_err(|error| PlanError::new_err(error.to_string()))
}

/// A pair of network cards: their factory addresses, and how many nanoseconds each takes to send a packet.
type Pair = [(String, Option<u64>); 2];

/// The pairs of network cards that a virtual machine needs for a point's network.
#[pyfunction]
pub(crate) fn cards(point: &Bound<'_, Point>) -> PyResult<Vec<Pair>> {
    let kernel = Kernel { delay_by: DelayBy::Netem, clock: Clock::Virtual };
    let plan = Plan::new(&point.get().inner().scenario, kernel);
    let plan = plan.map_err(|error| PlanError::new_err(error.to_string()))?;
    let pair = |cards: Cards| [0, 1].map(|end| (Cards::factory_address(cards.number, end), cards.wire_ns[end]));
    Ok(plan.cards().map(pair).collect())
}
