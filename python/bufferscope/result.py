"""An experiment's runs together."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bufferscope.errors import StoreError
from bufferscope.expectations import Evaluated, evaluate
from bufferscope.store.run import Run
from bufferscope.variation import Variation

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
        """The experiment's own words: `title`, `source`, `description`, `figures`, `notes` and `sweep`."""
        meta = self.runs[0].meta
        return {"title": meta["title"], "figures": [], "sweep": {}, **meta["document"]}

    @property
    def overrides(self) -> list[str]:
        """What was changed with `--set PATH=VALUE` for every one of the runs; `Run.settings` has the rest."""
        first, *others = (run.meta["overrides"] for run in self.runs)
        return [override for override in first if all(override in other for other in others)]

    @cached_property
    def variation(self) -> Variation:
        """What differs among the runs, and what they are called by it."""
        return Variation(self.runs)

    @property
    def varying(self) -> tuple[str, ...]:
        """What differs among the runs, seeds aside: paths of settings, and `engine`, `kernel` or `experiment`.

        Where two runs differ in their scenarios though in no setting, because the experiment's file was edited in
        between, these are the paths of what is unlike in them.
        """
        return self.variation.keys

    @property
    def variants(self) -> list["Result"]:
        """The result taken apart: each has the runs of one experiment file as it was, with the same overrides."""
        files: dict[str, list[Run]] = {}
        for run in self.runs:
            told = [run.meta[key] for key in ("overrides", "document", "expectations")]
            files.setdefault(json.dumps(told, sort_keys=True), []).append(run)
        return [Result(runs) for runs in files.values()]

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
        """What the experiment's document says, beside what these runs measured: every engine's by themselves.

        Of several variants, each is held against what its own file says.
        """
        return [
            evaluated
            for variant in self.variants
            for evaluated in evaluate(variant.runs[0].meta["expectations"], variant.runs)
        ]

    def _concatenated(self, table: str) -> "pl.DataFrame":
        import polars as pl

        frames: list[pl.DataFrame] = [getattr(run, table) for run in self.runs]
        return pl.concat(frames)

    def __repr__(self) -> str:
        return f"Result({self.experiment!r}, {len(self.runs)} run{'s' * (len(self.runs) != 1)})"
