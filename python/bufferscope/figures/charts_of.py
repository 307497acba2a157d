"""A result's charts by name; each is drawn when it is looked up."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from bufferscope import figures
from bufferscope.figures.choosing import chosen

if TYPE_CHECKING:
    from bufferscope.figures.source import ResultRecords


class Charts(Mapping[str, "figures.Chart"]):
    """Charts of a result: `charts["rtt"]`.

    Iteration gives the names that the experiment lists, or those that fit its traffic; other charts can be looked up,
    too.
    """

    def __init__(self, result: "ResultRecords") -> None:
        """Make the mapping for this result, without drawing anything yet.

        Parameters
        ----------
        result
            A result, or anything else with `runs`.
        """
        self._result = result

    def __getitem__(self, name: str) -> "figures.Chart":
        return figures.draw(self._result, cast("figures.FigureName", name))

    def __iter__(self) -> Iterator[str]:
        return iter(chosen(self._result.runs))

    def __len__(self) -> int:
        return len(chosen(self._result.runs))

    def __repr__(self) -> str:
        return f"Charts({', '.join(self)})"
