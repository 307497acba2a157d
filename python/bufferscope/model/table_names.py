"""The tables of the records, by name."""

from typing import Literal, get_args

from bufferscope.model.scenario import Table

TableName = Literal[Table, "round_trips", "retransmissions", "one_way", "hops", "stages"]
"""A table of the records, a key of `bufferscope.TABLES`; the first are those that an experiment's `record` may name."""
FrameName = Literal[TableName, "metrics"]
"""A table of the records, or the metrics that are computed from them."""

TABLE_NAMES: tuple[TableName, ...] = get_args(TableName)
FRAME_NAMES: tuple[FrameName, ...] = get_args(FrameName)
