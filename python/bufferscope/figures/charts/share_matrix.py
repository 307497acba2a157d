"""Figure: which part of the goodput the first traffic gets, at each combination of swept values with competition."""

from dataclasses import replace

import altair as alt

from bufferscope.figures.matrix import Look, matrix, mean_metric
from bufferscope.figures.source import NoDataError, Point, ResultRecords
from bufferscope.metrics.network import bulk_flows, traffic_named

LOOK = Look(
    title="Share of the goodput (%)",
    subtitle="Blue: takes more than half; orange: less.",
    quantity="share of the goodput (%)",
    format=".0f",
    scale=alt.Scale(domain=[0, 50, 100], range="diverging", interpolate="rgb"),
)


def share_matrix(result: ResultRecords) -> alt.LayerChart:
    """A cell a point with the per cent of all goodput that its first TCP traffic has; the mean of its repetitions.

    Points in which nothing competes with it have no cell.
    """
    bulk = [entry["name"] for entry in traffic_named(result.runs[0].scenario, "tcp")]
    if len(bulk) < 2:
        raise NoDataError("share_matrix: it takes two traffics of kind tcp")
    own, total = mean_metric(f"goodput.{bulk[0]}_mbit"), mean_metric("goodput.total_mbit")

    def share(point: Point) -> float | None:
        entries = traffic_named(point.first.scenario, "tcp")
        alone = bulk_flows(point.first.scenario) == entries[0]["flows"]
        mine, all_of_it = own(point), total(point)
        return None if alone or mine is None or not all_of_it else 100 * mine / all_of_it

    return matrix(result, share, replace(LOOK, title=f"Share of the goodput that goes to {bulk[0]} (%)"))
