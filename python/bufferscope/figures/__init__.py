"""Charts from records: each figure is a function that takes a result and returns an Altair chart.

>>> from bufferscope import figures
>>> figures.queue_length(result).save("queue.html")                                             # doctest: +SKIP
>>> figures.draw(result, "rtt_cdf")                            # by the name that experiment files use  # doctest: +SKIP

Figures are loaded when they are first used, so it is cheap to look at their names (`NAMES`). If the records hold no
data for a figure, it raises `NoDataError`, whose message says what is missing.
"""

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bufferscope.base.errors import InputError
from bufferscope.base.names import closest
from bufferscope.model.figure_names import NAMES, NEEDED, FigureName

if TYPE_CHECKING:
    import altair as alt

    from bufferscope.figures.charts.buffers import buffers
    from bufferscope.figures.charts.cwnd import cwnd
    from bufferscope.figures.charts.download_time import download_time
    from bufferscope.figures.charts.drops_by_size import drops_by_size
    from bufferscope.figures.charts.goodput import goodput
    from bufferscope.figures.charts.goodput_delay import goodput_delay
    from bufferscope.figures.charts.goodput_matrix import goodput_matrix
    from bufferscope.figures.charts.jain_matrix import jain_matrix
    from bufferscope.figures.charts.live import live
    from bufferscope.figures.charts.queue_length import queue_length
    from bufferscope.figures.charts.reaction_time import reaction_time
    from bufferscope.figures.charts.receive_window import receive_window
    from bufferscope.figures.charts.retransmits_by_size import retransmits_by_size
    from bufferscope.figures.charts.round_trips import round_trips
    from bufferscope.figures.charts.rtt import rtt
    from bufferscope.figures.charts.rtt_by_point import rtt_by_point
    from bufferscope.figures.charts.rtt_by_size import rtt_by_size
    from bufferscope.figures.charts.rtt_cdf import rtt_cdf
    from bufferscope.figures.charts.rtt_cdf_panels import rtt_cdf_panels
    from bufferscope.figures.charts.rtt_equation import rtt_equation
    from bufferscope.figures.charts.rtt_matrix import rtt_matrix
    from bufferscope.figures.charts.rtt_members import rtt_members
    from bufferscope.figures.charts.rtt_window import rtt_window
    from bufferscope.figures.charts.share_matrix import share_matrix
    from bufferscope.figures.charts.smoke import smoke
    from bufferscope.figures.charts.throughput_delay import throughput_delay
    from bufferscope.figures.charts.trade_offs import trade_offs
    from bufferscope.figures.source import NoDataError, ResultRecords

    Chart = alt.LayerChart | alt.ConcatChart
    Figure = Callable[..., Chart]
    FIGURES: dict[str, Figure]

__all__ = [
    "FIGURES",
    "NAMES",
    "NEEDED",
    "FigureName",
    "NoDataError",
    "UnknownFigureError",
    "buffers",
    "cwnd",
    "download_time",
    "draw",
    "drops_by_size",
    "goodput",
    "goodput_delay",
    "goodput_matrix",
    "jain_matrix",
    "live",
    "queue_length",
    "reaction_time",
    "receive_window",
    "retransmits_by_size",
    "round_trips",
    "rtt",
    "rtt_by_point",
    "rtt_by_size",
    "rtt_cdf",
    "rtt_cdf_panels",
    "rtt_equation",
    "rtt_matrix",
    "rtt_members",
    "rtt_window",
    "share_matrix",
    "smoke",
    "throughput_delay",
    "trade_offs",
]


def draw(result: "ResultRecords", name: FigureName) -> "Chart":
    """The figure of this name.

    Parameters
    ----------
    result
        A result, or anything else with `runs`.
    name
        One of `NAMES`.

    Returns
    -------
    altair.LayerChart or altair.ConcatChart
        The chart; `chart.save("rtt.svg")` writes it to a file.

    Raises
    ------
    UnknownFigureError
        There is no figure of this name.
    NoDataError
        The records hold no data for the figure; the text says what is missing.
    """
    if name not in NAMES:
        raise UnknownFigureError(f"no figure is called {name!r}{closest(str(name), NAMES)}")
    function: Figure = _figure(name)
    return function(result)


class UnknownFigureError(InputError, KeyError):
    """There is no figure of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


@cache
def _figure(name: FigureName) -> "Figure":
    """The function of a figure. It first checks the number of points, and that the needed tables were recorded."""
    from bufferscope.figures.source import check_recorded, check_size

    function: Figure = getattr(import_module(f"{__name__}.charts.{name}"), name)

    @wraps(function)
    def checked(result: "ResultRecords", *arguments: Any, **named: Any) -> "Chart":
        check_size(result, name)
        check_recorded(result, name, NEEDED[name])
        return function(result, *arguments, **named)

    return checked


def __getattr__(name: str) -> object:
    if name == "FIGURES":
        return {figure: _figure(figure) for figure in NAMES}
    if name == "NoDataError":
        from bufferscope.figures.source import NoDataError

        return NoDataError
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _figure(name)
