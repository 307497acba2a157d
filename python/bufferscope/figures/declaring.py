"""How a figure is declared: a function that takes a result, in a file of its name, with what else is to be known of it.

Reading declarations loads no library for charts or data, so it is cheap to ask which figures there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from typing import Any, Literal, TypeVar, cast

from bufferscope.figures.source import ResultRecords, check_recorded, check_size
from bufferscope.model.figure_names import FigureName
from bufferscope.model.scenario import Scenario
from bufferscope.model.table_names import TableName

Function = TypeVar("Function", bound=Callable[..., Any])
Shape = Literal["plot", "panels", "matrix", "by size"]
"""What a figure looks like.

A `plot` shows all points in one diagram, in their colours; of a `matrix`, each point is a cell; a figure `by size` has
a swept size as its axis.
"""


@dataclass(frozen=True)
class Declaration:
    """What is known of a figure without drawing it."""

    needs: Sequence[TableName]
    """The tables of the records from which it is drawn; `queues` and `capacity` show which port is the bottleneck."""
    shape: Shape
    fits: Callable[[Scenario], object]
    """Whether it is drawn of an experiment that names no figures."""
    only_of: str
    """What its runs must have, in words, if it is not for any traffic."""


def figure(
    *,
    needs: Sequence[TableName],
    shape: Shape = "plot",
    fits: Callable[[Scenario], object] = lambda scenario: False,
    only_of: str = "",
) -> Callable[[Function], Function]:
    """Declare a figure. The function is called only of results that are not too large and have the needed tables."""

    def declared(function: Function) -> Function:
        name = function.__name__

        @wraps(function)
        def checked(result: ResultRecords, *arguments: Any, **named: Any) -> object:
            check_size(result, name)
            check_recorded(result, name, needs)
            return function(result, *arguments, **named)

        vars(checked)[DECLARATION] = Declaration(needs, shape, fits, only_of)
        return cast(Function, checked)

    return declared


DECLARATION = "declaration"


def function(name: FigureName) -> Callable[..., Any]:
    """The function of a figure."""
    found: Callable[..., Any] = getattr(import_module(f"bufferscope.figures.charts.{name}"), name)
    return found


@cache
def declaration(name: FigureName) -> Declaration:
    """What is known of a figure."""
    known: Declaration = vars(function(name))[DECLARATION]
    return known


def needed(name: FigureName) -> Sequence[TableName]:
    """The tables that a figure needs."""
    return declaration(name).needs
