"""The records of several runs in frames with a column `run`, so that one query measures all of them.

In these frames, `run` is a run's index in the batch, and each metric's query groups by it. A single run is a batch of
one. Sums are over whole numbers or in a fixed order, so a run's metrics do not depend on the other runs of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Protocol, TypeVar, cast

from bufferscope._core import TABLES
from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.capacity import steps
from bufferscope.metrics.declared import columns as columns_of
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window, window
from bufferscope.model.network import ports, traffic_named
from bufferscope.model.scenario import Scenario, Traffic

Made = TypeVar("Made")
MOST_RUNS = 250
"""The most runs of a batch."""
MOST_ROWS = 1_000_000
"""The most rows that the largest table of a batch may have, unless one run has more. This bounds memory."""


def run_type() -> Any:
    """The type of the column `run`."""
    return pl.Int32


class PartitionTables(Protocol):
    """Tables that several runs share."""

    def scan(self, table: str) -> pl.LazyFrame:
        """A table of all its runs; the column `run` is the number of a run."""


class Shared(Protocol):
    """A run whose tables are in a partition."""

    partition: PartitionTables
    number: int


class Batch:
    """Runs that are measured together."""

    def __init__(self, runs: Sequence[RunRecords]) -> None:
        """Create a batch of these runs; their tables are read when they are needed."""
        self.runs = tuple(runs)
        self._tables: dict[str, pl.LazyFrame] = {}
        self._made: dict[Callable[[Batch], object], Any] = {}

    def table(self, name: str, *columns: str) -> pl.LazyFrame:
        """`run` and these columns of a table, for all runs; a metric must read them."""
        if name not in self._tables:
            self._tables[name] = pl.concat(list(self._parts(name, columns_of(name))))
        return self._tables[name].select("run", *columns)

    def once(self, make: Callable[[Batch], Made]) -> Made:
        """What this function makes of the batch; it is called once, and its result shared by all who ask for it."""
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made

    def whole(self, name: str) -> pl.LazyFrame:
        """`run` and all columns of a table, for all runs."""
        return pl.concat(list(self._parts(name, TABLES[name])))

    def rows(self, name: str, *columns: str, time: str = "t_ns") -> pl.LazyFrame:
        """`run`, the time and these columns of the rows whose time lies in their run's window, both ends included."""
        return self.rows_in(self.windows, name, *columns, time=time)

    def rows_in(self, times: pl.LazyFrame, name: str, *columns: str, time: str = "t_ns") -> pl.LazyFrame:
        """`run`, the time and these columns of the rows whose time lies in one of `times` of their run."""
        inside = pl.col(time).is_between(pl.col("start_ns"), pl.col("end_ns"))
        return self.table(name, time, *columns).join(times, on="run").filter(inside).drop("start_ns", "end_ns")

    @cached_property
    def windows(self) -> pl.LazyFrame:
        """The window of each run's metrics: `run, start_ns, end_ns`."""
        return self.times(lambda scenario: [window(scenario)])

    def times(self, chosen: Callable[[Scenario], Sequence[Window]]) -> pl.LazyFrame:
        """The intervals that `chosen` finds in each run's scenario: `run, start_ns, end_ns`."""
        columns = {"start_ns": pl.Int64, "end_ns": pl.Int64}
        return self.frame(columns, lambda run: [(each.start_ns, each.end_ns) for each in chosen(run.scenario)])

    @cached_property
    def rated(self) -> pl.LazyFrame:
        """The ports that the experiment gives a rate, in the file's order: `run, port`."""
        return self.frame(
            {"port": pl.String}, lambda run: [(port.name,) for port in ports(run.scenario).values() if port.rate]
        )

    @cached_property
    def all_ports(self) -> pl.LazyFrame:
        """All ports, in the file's order: `run, port`."""
        return self.frame({"port": pl.String}, lambda run: [(name,) for name in ports(run.scenario)])

    @cached_property
    def rates(self) -> pl.LazyFrame:
        """The steps of the ports' rates as recorded, in order of time: `run, port, t_ns, rate_bps`."""
        recorded = steps(self.table("capacity", "t_ns", "port", "rate_bps"), "run", "port")
        return recorded.collect(engine="in-memory").lazy()

    def traffic(self, *kinds: str, only: Callable[[Traffic], bool] = lambda entry: True) -> pl.LazyFrame:
        """The traffic entries of these kinds that `only` accepts, in the file's order: `run, traffic`."""
        return self.frame(
            {"traffic": pl.String},
            lambda run: [(entry["name"],) for entry in traffic_named(run.scenario, *kinds) if only(entry)],
        )

    def having(self, *kinds: str) -> pl.LazyFrame:
        """The runs with traffic of these kinds: `run`."""
        return self.frame({}, lambda run: [()] if traffic_named(run.scenario, *kinds) else [])

    def frame(
        self, columns: Mapping[str, type[pl.DataType]], rows: Callable[[RunRecords], Sequence[tuple[object, ...]]]
    ) -> pl.LazyFrame:
        """A frame with `run` and these columns, whose `rows` are computed from each run without its tables."""
        found = [(number, *row) for number, run in enumerate(self.runs) for row in rows(run)]
        return pl.LazyFrame(found, schema={"run": run_type(), **columns}, orient="row")

    def _parts(self, table: str, columns: Sequence[str]) -> Iterator[pl.LazyFrame]:
        """The table's parts: one for runs with tables of their own, and one for each group of runs that share them."""
        for shared, group in groupby(enumerate(self.runs), lambda each: getattr(each[1], "partition", None)):
            if shared is None:
                yield pl.concat([_numbered(run, index, table, columns) for index, run in group]).lazy()
            else:
                indices = {run.number: index for index, run in cast("Iterator[tuple[int, Shared]]", group)}
                yield _renumbered(shared.scan(table), indices).select("run", *columns)


def _numbered(run: RunRecords, index: int, table: str, columns: Sequence[str]) -> pl.DataFrame:
    """A run's table with the run's index. A stored run reads it from its file and does not keep it in memory."""
    read: Callable[[str, Sequence[str]], pl.DataFrame] | None = getattr(run, "read", None)
    frame: pl.DataFrame = read(table, columns) if read else getattr(run, table)
    return frame.select(pl.lit(index, run_type()).alias("run"), *columns)


def _renumbered(rows: pl.LazyFrame, indices: Mapping[int, int]) -> pl.LazyFrame:
    """The rows of these runs, with their index in the batch instead of their number."""
    if list(indices.items()) == [(index, index) for index in range(len(indices))]:
        return rows.filter(pl.col("run").is_between(0, len(indices) - 1))
    known = pl.LazyFrame(
        {"run": list(indices), "index": list(indices.values())}, schema={"run": run_type(), "index": run_type()}
    )
    own = rows.filter(pl.col("run").is_between(min(indices), max(indices))).join(known, on="run", maintain_order="left")
    return own.with_columns(run="index").drop("index")


def batches(runs: Sequence[RunRecords]) -> Iterator[Batch]:
    """The runs in their order, in batches of limited size."""
    chosen: list[RunRecords] = []
    rows = 0
    for run in runs:
        more = run.facts.most_rows
        if chosen and (len(chosen) == MOST_RUNS or rows + more > MOST_ROWS):
            yield Batch(chosen)
            chosen, rows = [], 0
        chosen.append(run)
        rows += more
    if chosen:
        yield Batch(chosen)
