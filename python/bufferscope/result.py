"""An experiment's runs together."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bufferscope.errors import StoreError
from bufferscope.expectations import Evaluated, evaluate, gathered
from bufferscope.store.run import Run

if TYPE_CHECKING:
    import polars as pl


class Result:
    """What `bufferscope.run` and `bufferscope.load` return: runs of one experiment, in the order of its points.

    The tables (`probes`, `flows`, ...) are those of the runs one after the other, told apart by their column `run`.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        """Put together runs of one experiment; raises `StoreError` if there is none, or they don't belong together."""
        experiments = list(dict.fromkeys(run.experiment for run in runs))
        if len(experiments) != 1:
            found = " and ".join(experiments) or "no run"
            raise StoreError(f"a result has the runs of one experiment: found {found}")
        self.runs = tuple(runs)

    @property
    def experiment(self) -> str:
        """The experiment's name, as in the catalogue."""
        return self.runs[0].experiment

    @property
    def document(self) -> dict[str, Any]:
        """The experiment's own words: `title`, `description`, ...; its `sweep` as far as these runs have it."""
        meta = self.runs[0].meta
        sweep = {path: list(dict.fromkeys(run.point.get(path, "") for run in self.runs)) for path in self.runs[0].point}
        return {"title": meta["title"], "figures": [], **meta["document"], "sweep": sweep}

    @property
    def overrides(self) -> list[str]:
        """What was changed with `--set PATH=VALUE`."""
        return list(self.runs[0].meta["overrides"])

    @property
    def by_engine(self) -> dict[str, list[Run]]:
        """The runs of each engine, in their order."""
        names = dict.fromkeys(run.engine for run in self.runs)
        return {name: [run for run in self.runs if run.engine == name] for name in names}

    @cached_property
    def probes(self) -> "pl.DataFrame":
        """Every run's `Run.probes`."""
        return self._concatenated("probes")

    @cached_property
    def flows(self) -> "pl.DataFrame":
        """Every run's `Run.flows`."""
        return self._concatenated("flows")

    @cached_property
    def queues(self) -> "pl.DataFrame":
        """Every run's `Run.queues`."""
        return self._concatenated("queues")

    @cached_property
    def drops(self) -> "pl.DataFrame":
        """Every run's `Run.drops`."""
        return self._concatenated("drops")

    @cached_property
    def transfers(self) -> "pl.DataFrame":
        """Every run's `Run.transfers`."""
        return self._concatenated("transfers")

    @cached_property
    def sojourns(self) -> "pl.DataFrame":
        """Every run's `Run.sojourns`."""
        return self._concatenated("sojourns")

    @cached_property
    def metrics(self) -> "pl.DataFrame":
        """One row a run and metric, as `bufferscope.metrics.frame` makes it."""
        from bufferscope import metrics

        return metrics.frame(self.runs)

    @cached_property
    def expectations(self) -> list[Evaluated]:
        """What the experiment's document says, beside what these runs measured: every engine's by themselves."""
        return evaluate(gathered(self.runs), self.runs)

    def _concatenated(self, table: str) -> "pl.DataFrame":
        import polars as pl

        frames: list[pl.DataFrame] = [getattr(run, table) for run in self.runs]
        return pl.concat(frames)

    def __repr__(self) -> str:
        return f"Result({self.experiment!r}, {len(self.runs)} run{'s' * (len(self.runs) != 1)})"
