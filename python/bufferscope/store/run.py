"""One run, in memory or stored: what was asked for, and what was observed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.scenario import Scenario
from bufferscope.store import tables
from bufferscope.store.metadata import Metadata
from bufferscope.store.reading import read_metadata

if TYPE_CHECKING:
    import polars as pl

    from bufferscope.figures.charts_of import Charts
    from bufferscope.metrics import Metrics


class BaseRun(ABC):
    """The records of a run, wherever they are kept.

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
    def _table(self, name: str) -> "pl.DataFrame":
        """A table, read anew."""

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return self.meta["experiment"]

    @property
    def engine(self) -> str:
        """What carried the packets."""
        return self.meta["engine"]

    @property
    def seed(self) -> int:
        """The seed that the engine drew its random numbers from."""
        return self.meta["seed"]

    @property
    def point(self) -> dict[str, str]:
        """The swept values of this run, path to label; empty for an experiment without a sweep."""
        return dict(self.meta["point"])

    @property
    def position(self) -> int:
        """The index of this run's point in the sweep's order, from 0."""
        return self.meta["position"]

    @property
    def scenario(self) -> Scenario:
        """The resolved scenario: every default filled in, every value a plain number in the unit of its name."""
        return self.meta["scenario"]

    @property
    def settings(self) -> dict[str, str]:
        """The settings chosen for this run, path to value as written: those of `--set`, and the swept values."""
        from bufferscope.variation import settings

        return settings(self.meta)

    @cached_property
    def scenario_digest(self) -> str:
        """A text that is the same for equal scenarios."""
        from bufferscope.variation.varying import scenario_digest

        return scenario_digest(self.scenario)

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
        """The rate of each port's link: one row for the first, and one for each change."""
        return self._table("capacity")

    @cached_property
    def metrics(self) -> "Metrics":
        """Every metric that can be computed from the records."""
        from bufferscope import metrics

        return metrics.compute(self)

    @cached_property
    def figures(self) -> "Charts":
        """The run's charts by name: `run.figures["rtt"]`; each is drawn when it is looked up."""
        from bufferscope.figures.charts_of import Charts

        return Charts(Alone((self,)))

    def _repr_html_(self) -> str:
        from bufferscope.notebook import run_html

        return run_html(self)


@dataclass(frozen=True)
class Alone:
    """The only run of a result, for figures."""

    runs: tuple[BaseRun]


class Run(BaseRun):
    """A run directory; its files are read when they are needed.

    >>> run = Run("results/ucas-reproduce/run-sim-s1-0f3a2b1c")                                 # doctest: +SKIP
    >>> run.probes.filter(pl.col("rtt_ns").is_null())      # the probes that were lost          # doctest: +SKIP
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open a run directory; raises `StoreError` if it is not a run, or not a complete one."""
        self.path = Path(path)
        self.meta = read_metadata(self.path)

    @property
    def id(self) -> str:
        """The directory's name: point, engine, seed and a digest of the scenario."""
        return self.path.resolve().name

    def _table(self, name: str) -> "pl.DataFrame":
        if name in self._undecodable:
            raise tables.unreadable(tables.file_of(self.path, name), self._undecodable[name])
        return tables.read(self.path, self.id, name, self.meta)

    @cached_property
    def _undecodable(self) -> Mapping[str, str]:
        return tables.undecodable(self.path, self.meta)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"
