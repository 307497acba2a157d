"""Finding stored runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from bufferscope.base.attach import attached
from bufferscope.base.errors import StoreError
from bufferscope.store import PARTIAL
from bufferscope.store.partition import Partition, is_partition
from bufferscope.store.reading import is_run
from bufferscope.store.run import Run

LIVE_RUNS = "run-live-*"
"""The directories of live measurements."""
EXPECTED = "expected a run directory, or an experiment's directory in results/"


def find(path: Path, overrides: Sequence[str] | None = None, *, newest: bool = False) -> list[Run]:
    """The runs that a path means: a run directory, or an experiment's directory of runs.

    An experiment's directory may hold runs of several variants (other `--set`, an edited file). All of them are
    returned, one variant after the other. `overrides` selects the runs that were made with these overrides; `newest`
    selects the runs of the variant that was run last. Within a variant, runs are in the order of the experiment's
    points, and each point has the runs of all its engines.
    """
    if is_run(path) or not path.is_dir():
        return [Run(path)]
    runs = Run.all_in(Partition(path)) if is_partition(path) else _inside(path)
    if not runs:
        raise StoreError(f"{path}: no run here; {EXPECTED}")
    return in_order(_of_one_variant(runs, overrides, newest, path))


def find_anywhere(path: Path) -> list[Run]:
    """Like `find`; the path may also be a directory of experiments' directories, such as `results/`."""
    if is_run(path) or not path.is_dir() or is_partition(path) or _inside(path):
        return find(path)
    runs = [run for entry in _directories(path) for run in in_order(_inside(entry))]
    if not runs:
        raise StoreError(f"{path}: no run here; {EXPECTED}, or results/ itself")
    return runs


def newest_live(path: Path) -> Run:
    """The newest live measurement of a run, an experiment's directory, or `results/`."""
    if is_run(path):
        return Run(path)
    if not path.is_dir():
        raise StoreError(f"{path}: no such directory; expected a live measurement (bufferscope measure makes one)")
    found = [entry for level in ("*", "*/*") for entry in path.glob(f"{level[:-1]}{LIVE_RUNS}") if is_run(entry)]
    if not found:
        raise StoreError(f"{path}: no live measurement here; bufferscope measure makes one")
    return max(map(Run, found), key=lambda run: run.meta["started"])


def _inside(path: Path) -> list[Run]:
    """The runs in an experiment's directory; of several with the same name, the latest."""
    found: dict[str, Run] = {}
    for run in _stored(path):
        other = found.get(run.id)
        if other is None or other.meta["started"] <= run.meta["started"]:
            found[run.id] = run
    return list(found.values())


def _stored(path: Path) -> Iterator[Run]:
    for entry in _directories(path):
        if is_run(entry):
            yield Run(entry)
        elif is_partition(entry):
            yield from Run.all_in(Partition(entry))


def _directories(path: Path) -> list[Path]:
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    return [entry for entry in entries if entry.is_dir() and not entry.name.startswith(PARTIAL)]


def _of_one_variant(runs: Sequence[Run], overrides: Sequence[str] | None, newest: bool, path: Path) -> list[Run]:
    wanted = [run for run in runs if overrides is None or run.meta["overrides"] == list(overrides)]
    if not wanted:
        variants = dict.fromkeys(" ".join(run.meta["overrides"]) or "none" for run in runs)
        raise StoreError(f"{path}: no run with these overrides; there are: {'; '.join(variants)}")
    if not newest:
        return wanted
    last = max(wanted, key=lambda run: run.meta["started"])
    same = ("experiment", "overrides", "document")
    return [run for run in wanted if all(run.meta.get(key) == last.meta.get(key) for key in same)]


def in_order(runs: Sequence[Run]) -> list[Run]:
    """Sort runs by experiment, variant, point, engine and seed.

    Experiments come in the order of their first runs here; of their variants, the one without overrides comes first,
    and the others in the order in which they were first made. Points are in the sweep's order.
    """
    experiments = {name: index for index, name in enumerate(dict.fromkeys(run.experiment for run in runs))}
    begun: dict[tuple[str, ...], str] = {}
    for run in runs:
        variant = (run.experiment, *run.meta["overrides"])
        begun[variant] = min(begun.get(variant, run.meta["started"]), run.meta["started"])

    rank = attached("engine.rank")

    def key(run: Run) -> tuple[object, ...]:
        overrides = run.meta["overrides"]
        variant = (bool(overrides), begun[(run.experiment, *overrides)], overrides)
        return experiments[run.experiment], *variant, run.position, rank(run.engine), run.engine, run.seed, run.id

    return sorted(runs, key=key)
