"""A result's charts by name; each is drawn when it is looked up."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bufferscope import figures
from bufferscope.base.errors import InputError
from bufferscope.base.names import closest
from bufferscope.figures.choosing import chosen

if TYPE_CHECKING:
    from bufferscope.figures.source import ResultRecords


class Charts(Mapping[str, "figures.Chart"]):
    """Charts of a result: `charts["rtt"]`.

    Iteration gives the names that the experiment lists, or those that fit its traffic; other charts can be looked up,
    too.
    """

    def __init__(self, result: "ResultRecords") -> None:
        """Make the mapping for this result, without drawing anything yet."""
        self._result = result

    def __getitem__(self, name: str) -> "figures.Chart":
        if name not in figures.NAMES:
            raise UnknownFigureError(f"no figure is called {name!r}{closest(name, figures.NAMES)}")
        return figures.draw(self._result, name)

    def __iter__(self) -> Iterator[str]:
        return iter(chosen(self._result.runs))

    def __len__(self) -> int:
        return len(chosen(self._result.runs))

    def __repr__(self) -> str:
        return f"Charts({', '.join(self)})"


class UnknownFigureError(InputError, KeyError):
    """There is no figure of this name."""

    def __str__(self) -> str:
        return str(self.args[0])
