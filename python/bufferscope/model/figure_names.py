"""The names of the figures, which an experiment file may list. Each is declared in a file of that name in `charts`."""

from collections.abc import Sequence
from typing import Literal, get_args

from bufferscope.base.attach import attached
from bufferscope.model.table_names import TableName

FigureName = Literal[
    "queue_length",
    "rtt",
    "cwnd",
    "goodput",
    "rtt_cdf",
    "rtt_by_point",
    "download_time",
    "rtt_equation",
    "goodput_delay",
    "trade_offs",
    "buffers",
    "rtt_members",
    "rtt_by_size",
    "drops_by_size",
    "retransmits_by_size",
    "receive_window",
    "rtt_cdf_panels",
    "throughput_delay",
    "smoke",
    "reaction_time",
    "rtt_window",
    "round_trips",
    "rtt_matrix",
    "goodput_matrix",
    "share_matrix",
    "jain_matrix",
    "live",
]
"""The name of a figure."""
NAMES: tuple[FigureName, ...] = get_args(FigureName)
"""The names that an experiment file's key `figures` may list; each is a function in a file of that name in `charts`."""


def needed(name: FigureName) -> Sequence[TableName]:
    """The tables of the records that a figure needs."""
    found: Sequence[TableName] = attached("figures.needed")(name)
    return found
