"""Addresses of hops with other names in their places, for exports that others may see.

An address keeps its number in all tables of an export, and whether it is private: `hop1-private`, `hop2-public`.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bufferscope.model.table_names import TableName
from bufferscope.store.run import Run

if TYPE_CHECKING:
    import polars as pl

TABLE: TableName = "hops"
COLUMN = "address"


def masks(runs: Sequence[Run]) -> dict[str, str]:
    """The name for each address of the runs' hops, in the order of their distance from the client."""
    import polars as pl

    found: dict[str, str] = {}
    for run in runs:
        own = run.read(TABLE, ["ladder", "ttl", COLUMN]).drop_nulls(COLUMN)
        for address in own.unique(maintain_order=True).sort(pl.col("ladder"), pl.col("ttl"))[COLUMN]:
            found.setdefault(address, f"hop{len(found) + 1}-{_class(address)}")
    return found


def masked(frame: "pl.DataFrame", names: Mapping[str, str]) -> "pl.DataFrame":
    """The table of hops with these names in place of addresses; an address without a name is left out."""
    import polars as pl

    return frame.with_columns(pl.col(COLUMN).replace_strict(dict(names), default=None, return_dtype=pl.String))


def _class(address: str) -> str:
    """Whether an address is reached only from within a network; shared ones (RFC 6598) count as private."""
    try:
        return "public" if ipaddress.ip_address(address).is_global else "private"
    except ValueError:  # of a run of unknown origin
        return "unknown"
