"""One run, in memory or stored: what was asked for, and what was observed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope._core import TABLES
from bufferscope.base.attach import attached
from bufferscope.base.errors import StoreError
from bufferscope.model.identity import scenario_digest
from bufferscope.model.scenario import Scenario
from bufferscope.model.table_names import TableName
from bufferscope.store import tables
from bufferscope.store.metadata import Metadata, sources
from bufferscope.store.partition import RUN, Partition, RunFacts, is_partition
from bufferscope.store.reading import is_run, read_metadata
from bufferscope.store.settings import settings

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from bufferscope.model.metric_values import Metrics

    Chart = alt.LayerChart | alt.ConcatChart


class BaseRun(ABC):
    """The records of a run, in memory or stored.

    Tables are polars frames. Their first column is `run`, the run's `id`; the columns of `bufferscope.TABLES` follow.
    Times are integer nanoseconds since the start of the run.
    """

    meta: Metadata
    """The content of `run.json`: how the run was made."""

    @property
    @abstractmethod
    def id(self) -> str:
        """A name made of point, engine, seed and a digest of the scenario."""

    @abstractmethod
    def _table(self, name: TableName) -> "pl.DataFrame":
        """A table, read anew."""

    @property
    def facts(self) -> RunFacts:
        """What is asked of a run most often."""
        return RunFacts.of(self.meta)

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return self.facts.experiment

    @property
    def engine(self) -> str:
        """What carried the packets."""
        return self.facts.engine

    @property
    def seed(self) -> int:
        """The seed that the engine drew its random numbers from."""
        return self.facts.seed

    @property
    def point(self) -> dict[str, str]:
        """The swept values of this run, path to label; empty for an experiment without a sweep."""
        return dict(self.meta["point"])

    @property
    def position(self) -> int:
        """The index of this run's point in the sweep's order, from 0."""
        return self.facts.position

    @property
    def scenario(self) -> Scenario:
        """The resolved scenario: every default filled in, every value a plain number in the unit of its name."""
        return self.meta["scenario"]

    @property
    def settings(self) -> dict[str, str]:
        """The settings chosen for this run, path to value as written: those of `--set`, and the swept values."""
        return settings(self.meta)

    @cached_property
    def scenario_digest(self) -> str:
        """A string that is the same for equal scenarios, and for all members of a population at a point."""
        if files := sources(self.meta):
            return scenario_digest(self.scenario) + "".join(each["sha256"] for each in files)
        member = self.meta.get("member")
        return member["of"] if member else scenario_digest(self.scenario)

    @property
    def warnings(self) -> list[str]:
        """The engine's warnings about this run."""
        return list(self.meta["warnings"])

    @cached_property
    def probes(self) -> "pl.DataFrame":
        """One row for each probe sent; `rtt_ns` is null if the probe was lost."""
        return self._table("probes")

    @cached_property
    def flows(self) -> "pl.DataFrame":
        """One row for each sample of a connection's sender."""
        return self._table("flows")

    @cached_property
    def queues(self) -> "pl.DataFrame":
        """One row for each sample of a layer of a port; counters are cumulative."""
        return self._table("queues")

    @cached_property
    def flow_queues(self) -> "pl.DataFrame":
        """One row for each sample of a flow queue with packets; `flow` is null if the engine does not know it."""
        return self._table("flow_queues")

    @cached_property
    def drops(self) -> "pl.DataFrame":
        """One row for each packet dropped or marked."""
        return self._table("drops")

    @cached_property
    def transfers(self) -> "pl.DataFrame":
        """One row for each object; `finished_ns` is null if its transfer did not finish within the run."""
        return self._table("transfers")

    @cached_property
    def sojourns(self) -> "pl.DataFrame":
        """Packets, counted by the time they spent in a layer of a port."""
        return self._table("sojourns")

    @cached_property
    def capacity(self) -> "pl.DataFrame":
        """The rate of each port's link: one row for the first rate, and one for each change."""
        return self._table("capacity")

    @cached_property
    def estimates(self) -> "pl.DataFrame":
        """What tests of the path's buffers observed: one row for each direction."""
        return self._table("estimates")

    @cached_property
    def round_trips(self) -> "pl.DataFrame":
        """The round-trip times that a capture shows: one row for each answer."""
        return self._table("round_trips")

    @cached_property
    def retransmissions(self) -> "pl.DataFrame":
        """The segments that a capture shows to have been sent again."""
        return self._table("retransmissions")

    @cached_property
    def one_way(self) -> "pl.DataFrame":
        """By how much a packet's delay exceeded the smallest: one row for each packet seen at both ends."""
        return self._table("one_way")

    @cached_property
    def hops(self) -> "pl.DataFrame":
        """The probes of a live measurement that were to reach only a hop; `rtt_ns` is null without an answer."""
        return self._table("hops")

    @cached_property
    def stages(self) -> "pl.DataFrame":
        """How long packets of a live measurement stayed in their sender's own queues: one row for each stay."""
        return self._table("stages")

    @cached_property
    def metrics(self) -> "Metrics":
        """Every metric that can be computed from the records."""
        found: Metrics = attached("Run.metrics")(self)
        return found

    @cached_property
    def figures(self) -> "Mapping[str, Chart]":
        """The run's charts by name: `run.figures["rtt"]`; each is drawn when it is looked up."""
        found: Mapping[str, Chart] = attached("figures")(SingleRunResult((self,)))
        return found

    def _repr_html_(self) -> str:
        return str(attached("Run.html")(self))


@dataclass(frozen=True)
class SingleRunResult:
    """A single run in the form in which figures take a result."""

    runs: tuple[BaseRun]


class Run(BaseRun):
    """A stored run, in a directory of its own or in a partition; its tables are read when they are needed.

    >>> run = Run("results/ucas-reproduce/run-sim-s1-0f3a2b1c")                                 # doctest: +SKIP
    >>> run.probes.filter(pl.col("rtt_ns").is_null())  # the probes that were lost          # doctest: +SKIP
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open a stored run.

        Parameters
        ----------
        path
            The run's directory, or its path in a partition of many runs.

        Raises
        ------
        StoreError
            It is not a complete run.
        """
        path = Path(path)
        self.partition: Partition | None = None
        """The partition that holds the run's tables; None if it has a directory of its own."""
        self.number = 0
        """The run's number in its partition."""
        self._own: tuple[Path, Metadata] | None = None
        """The run's path and metadata, if it has a directory of its own."""
        if not is_run(path) and is_partition(path.parent):
            self._take(Partition(path.parent), path.name)
        else:
            self._own = path, read_metadata(path)

    @classmethod
    def all_in(cls, partition: Partition) -> "list[Run]":
        """The runs of a partition.

        Parameters
        ----------
        partition
            A directory in which many runs are stored together.

        Returns
        -------
        list of Run
            The runs, in their order in the partition.
        """
        return [cls._in(partition, name) for name in partition.names]

    @classmethod
    def _in(cls, partition: Partition, name: str) -> "Run":
        run = cls.__new__(cls)
        run._own = None
        run._take(partition, name)
        return run

    def _take(self, partition: Partition, name: str) -> None:
        """Become the run of this name in a partition."""
        if name not in partition.numbers:
            raise StoreError(f"{partition.path / name}: no such run; the partition has {partition.names[0]} and others")
        self.partition, self.number = partition, partition.numbers[name]

    @property
    def path(self) -> Path:
        """The run's directory, or its path in a partition."""
        if self._own:
            return self._own[0]
        assert self.partition, "a run has a directory of its own or is in a partition"
        return self.partition.path / self.partition.names[self.number]

    @property
    def meta(self) -> Metadata:  # type: ignore[override]
        """The content of `run.json`: how the run was made."""
        if self._own:
            return self._own[1]
        assert self.partition, "a run has a directory of its own or is in a partition"
        return self.partition.metadata[self.number]

    @property
    def facts(self) -> RunFacts:
        """What is asked of a run most often. Of a run in a partition, it is always in memory, which `meta` is not."""
        return self.partition.facts[self.number] if self.partition else super().facts

    @property
    def id(self) -> str:
        """The directory's name: point, engine, seed and a digest of the scenario."""
        return self.partition.names[self.number] if self.partition else self.path.resolve().name

    @property
    def experiment_dir(self) -> Path:
        """The directory of all runs of the experiment."""
        return self.path.parent.parent if self.partition else self.path.parent

    def read(self, table: TableName, columns: Sequence[str]) -> "pl.DataFrame":
        """Some columns of a table. They are not kept in memory.

        Parameters
        ----------
        table
            A key of `bufferscope.TABLES`.
        columns
            Names of its columns.

        Returns
        -------
        polars.DataFrame
            The column `run`, and the chosen ones.

        Raises
        ------
        StoreError
            The table is damaged.
        """
        if table in vars(self):
            kept: pl.DataFrame = vars(self)[table]
            return kept.select("run", *columns)
        if self.partition:
            return self._read_from(self.partition, table, columns)
        if table in self._undecodable:
            raise tables.unreadable(tables.file_of(self.path, table), self._undecodable[table])
        return tables.read(self.path, self.id, table, columns, self.meta)

    def _read_from(self, partition: Partition, table: str, columns: Sequence[str]) -> "pl.DataFrame":
        import polars as pl

        own = partition.scan(table).filter(pl.col(RUN) == self.number).select(pl.lit(self.id).alias("run"), *columns)
        return tables.collected(partition.path, table, own)

    def _table(self, name: TableName) -> "pl.DataFrame":
        return self.read(name, TABLES[name])

    @cached_property
    def _undecodable(self) -> Mapping[str, str]:
        return tables.undecodable(self.path, self.meta)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"
