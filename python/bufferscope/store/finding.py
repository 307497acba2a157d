"""Finding stored runs again."""

from collections.abc import Sequence
from pathlib import Path

from bufferscope.errors import StoreError
from bufferscope.store import PARTIAL
from bufferscope.store.reading import is_run
from bufferscope.store.run import Run


def find(path: Path, overrides: Sequence[str] | None = None) -> list[Run]:
    """The runs that a path means: a run directory, or an experiment's directory of runs.

    An experiment's directory may hold runs of several variants (other `--set`, an edited file). Those of `overrides`
    are meant, or without `overrides` those of the newest run's variant; in the order of the experiment's points, each
    with all its engines.
    """
    if is_run(path) or not path.is_dir():
        return [Run(path)]
    runs = [Run(entry) for entry in sorted(path.iterdir()) if is_run(entry) and not entry.name.startswith(PARTIAL)]
    if not runs:
        raise StoreError(f"{path}: no run here; expected a run directory, or an experiment's directory in results/")
    return _in_order(_of_one_variant(runs, overrides, path))


def _of_one_variant(runs: Sequence[Run], overrides: Sequence[str] | None, path: Path) -> list[Run]:
    wanted = [run for run in runs if overrides is None or run.meta["overrides"] == list(overrides)]
    if not wanted:
        variants = dict.fromkeys(" ".join(run.meta["overrides"]) or "none" for run in runs)
        raise StoreError(f"{path}: no run with these overrides; there are: {'; '.join(variants)}")
    newest = max(wanted, key=lambda run: run.meta["started"])
    same = ("experiment", "overrides", "document")
    return [run for run in wanted if all(run.meta[key] == newest.meta[key] for key in same)]


def _in_order(runs: Sequence[Run]) -> list[Run]:
    """By point in the sweep's order, then engine, then seed; of two runs alike in all three the newer one."""
    newest = {
        (tuple(run.point.items()), run.engine, run.seed): run
        for run in sorted(runs, key=lambda run: str(run.meta["started"]))
    }
    return sorted(newest.values(), key=lambda run: (run.position, run.engine, run.seed))
