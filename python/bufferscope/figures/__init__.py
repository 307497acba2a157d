"""Charts from records: each figure is a function that takes a result and returns an Altair chart.

>>> from bufferscope import figures
>>> figures.queue_length(result).save("queue.html")                                             # doctest: +SKIP
>>> figures.draw(result, "rtt_cdf")                            # by the name that experiment files use  # doctest: +SKIP

Figures are loaded when they are first used, so it is cheap to look at their names (`NAMES`). If the records hold no
data for a figure, it raises `NoDataError`, whose message says what is missing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from bufferscope.base.errors import InputError
from bufferscope.base.names import closest
from bufferscope.model.figure_names import NAMES, FigureName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bufferscope.figures.chart import LayerFigure, PanelFigure
    from bufferscope.figures.source import NoDataError, ResultRecords
    from bufferscope.model.table_names import TableName

    Chart: TypeAlias = LayerFigure | PanelFigure
    Figure = Callable[..., Chart]
    FIGURES: Mapping[str, Figure]
    NEEDED: Mapping[str, Sequence[TableName]]

__all__ = [
    "FIGURES",
    "NAMES",
    "NEEDED",
    "FigureName",
    "NoDataError",
    "UnknownFigureError",
    "draw",
    *NAMES,
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
    from bufferscope.figures.declaring import function

    chart: Chart = function(name)(result)
    return chart


class UnknownFigureError(InputError, KeyError):
    """There is no figure of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


if TYPE_CHECKING:

    def __getattr__(name: str) -> Figure:
        """A figure by its name."""

else:

    def __getattr__(name: str) -> object:
        if name == "NoDataError":
            from bufferscope.figures.source import NoDataError

            return NoDataError
        if name not in ("FIGURES", "NEEDED", *NAMES):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from bufferscope.figures.declaring import function, needed

        if name == "FIGURES":
            return {figure: function(figure) for figure in NAMES}
        if name == "NEEDED":
            return {figure: needed(figure) for figure in NAMES}
        return function(name)
