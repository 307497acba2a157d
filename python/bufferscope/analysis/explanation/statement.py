"""What an explanation is made of: statements with their numbers, the figures that show them, and what stays unknown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, get_args

from bufferscope.base.errors import InputError
from bufferscope.base.names import closest
from bufferscope.model.figure_names import FigureName


class Cause(StrEnum):
    """What kept a run from being fast, or that nothing did."""

    QUEUE = "queue"
    """There is a standing queue in a port's queueing discipline."""
    RING = "ring"
    """There is a standing queue in a driver's transmit ring."""
    SHAPER = "shaper"
    """There is a standing queue in a shaper, which sends less than the wire behind it could."""
    WINDOW = "window"
    """A window of one of the ends is smaller than the BDP."""
    APPLICATION = "application"
    """The applications write less than the path takes."""
    LOSS = "loss"
    """Packets are lost outside of queues: TCP treats that as congestion, and calls lose speech."""
    SHALLOW = "shallow"
    """A queue drops packets before the link is full, or packets of pings and calls: it is too short, or its AQM drops
    too early."""
    NONE = "none"
    """The data fills the path without a standing queue, or there is little to send."""
    UNKNOWN = "unknown"
    """The records do not show it, or contradict one another."""


Number = float | int | str
StatementKind = Literal[
    "verdict",
    "where",
    "layers",
    "since",
    "who",
    "window",
    "limit",
    "sender",
    "losses",
    "call",
    "game",
    "page",
    "video",
    "advice",
    "cure",
    "unknown",
]
"""What a statement is about: `verdict` is the main cause, `cure` the effect of a change, and `unknown` what the records
do not show."""
KINDS: tuple[StatementKind, ...] = get_args(StatementKind)


@dataclass(frozen=True)
class Statement:
    """One thing that the records show, or that they do not show."""

    kind: StatementKind
    """What it is about."""
    sentence: str
    """The statement in one sentence."""
    numbers: Mapping[str, Number] = field(default_factory=dict)
    """The numbers of the sentence by name; the unit is in the name."""
    figure: FigureName | None = None
    """The name of the figure that shows it."""
    unknown: str | None = None
    """What the records leave open about it."""

    def anchor(self, section: str) -> str | None:
        """The id of the statement's figure on a page.

        Parameters
        ----------
        section
            The name of the page's section.

        Returns
        -------
        str or None
            The id; None if no figure shows it.
        """
        return f"{section}-{self.figure}" if self.figure else None

    def document(self) -> dict[str, Any]:
        """The statement for programs.

        Returns
        -------
        dict
            `kind`, `sentence`, `numbers`, `figure` and `unknown`; the name of a number ends in its unit.
        """
        return {
            "kind": self.kind,
            "sentence": self.sentence,
            "numbers": dict(self.numbers),
            "figure": self.figure,
            "unknown": self.unknown,
        }


@dataclass(frozen=True)
class Explanation:
    """What a run shows: its main cause, where that is, and all statements."""

    run: str
    """The run's `id`."""
    cause: Cause
    """The main cause."""
    port: str | None
    """The port of the cause; None if it is not in a port."""
    layer: str | None
    """The layer of the port."""
    flow: str | None
    """The flow whose packets are in the queue, or that is limited; None if it is not known, or not a single flow."""
    statements: tuple[Statement, ...]
    """All statements, in the order in which they are printed."""

    def of(self, *kinds: StatementKind) -> list[Statement]:
        """The statements of some kinds.

        Parameters
        ----------
        *kinds
            What the statements are about, as in `"verdict"` or `"cure"`.

        Returns
        -------
        list of Statement
            In their order.

        Raises
        ------
        InputError
            There is no such kind.
        """
        for kind in kinds:
            if kind not in KINDS:
                raise InputError(f"no kind of statement is called {kind!r}{closest(str(kind), KINDS)}")
        return [each for each in self.statements if each.kind in kinds]

    @property
    def verdict(self) -> str:
        """The main cause in one sentence."""
        return self.of("verdict")[0].sentence

    def having(self, more: Iterable[Statement]) -> "Explanation":
        """The explanation with further statements at its end.

        Parameters
        ----------
        more
            The statements to add.

        Returns
        -------
        Explanation
            A new explanation; this one is unchanged.
        """
        return Explanation(self.run, self.cause, self.port, self.layer, self.flow, (*self.statements, *more))

    def document(self) -> dict[str, Any]:
        """The explanation for programs.

        Returns
        -------
        dict
            `run`, `cause`, `port`, `layer`, `flow`, and the documents of all `statements`.
        """
        return {
            "run": self.run,
            "cause": str(self.cause),
            "port": self.port,
            "layer": self.layer,
            "flow": self.flow,
            "statements": [each.document() for each in self.statements],
        }
