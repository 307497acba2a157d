"""The figures that an experiment file may name, and the tables that each of them needs."""

from collections.abc import Mapping
from typing import Literal, get_args

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

NEEDED: Mapping[str, tuple[TableName, ...]] = {
    "queue_length": ("queues", "capacity"),
    "rtt": ("probes",),
    "cwnd": ("flows",),
    "goodput": ("flows", "queues", "capacity"),
    "rtt_cdf": ("probes",),
    "rtt_by_point": ("probes",),
    "download_time": ("transfers",),
    "rtt_equation": ("probes", "capacity"),
    "goodput_delay": ("flows", "probes"),
    "trade_offs": ("flows", "probes"),
    "buffers": ("estimates",),
    "rtt_members": ("probes",),
    "rtt_by_size": ("probes",),
    "drops_by_size": ("drops", "queues", "capacity"),
    "retransmits_by_size": ("flows",),
    "receive_window": ("flows",),
    "rtt_cdf_panels": ("probes",),
    "throughput_delay": ("flows", "probes", "queues", "capacity"),
    "smoke": ("probes",),
    "reaction_time": ("flows", "sojourns"),
    "rtt_window": ("flows",),
    "round_trips": ("round_trips", "retransmissions"),
    "rtt_matrix": ("probes",),
    "goodput_matrix": ("flows",),
    "share_matrix": ("flows",),
    "jain_matrix": ("flows",),
    "live": ("probes",),
}
"""The tables of the records from which each figure is drawn; `queues` and `capacity` show which port is the
bottleneck."""
