"""The calls that most people need: run an experiment, load what was stored, compare."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.engines import engines
from bufferscope.experiment import load as load_experiment
from bufferscope.overrides import Overrides, as_texts
from bufferscope.result import Result
from bufferscope.running import Watcher, execute, plan
from bufferscope.store.finding import find

if TYPE_CHECKING:
    from bufferscope.comparison import Comparison
    from bufferscope.comparison.inputs import What


def run(
    name_or_path: str | PathLike[str],
    overrides: Overrides = (),
    *,
    seed: int = 1,
    repeat: int = 1,
    jobs: int | None = None,
    out: str | PathLike[str] = "results",
    engine: str | Sequence[str] = "sim",
    kernel: str | None = None,
    reuse: bool = False,
    watcher: Watcher | None = None,
) -> Result:
    """Run an experiment: every point of its sweep with `repeat` seeds from `seed` on.

    `name_or_path` is a name of the catalogue (`bufferscope.catalogue()`) or a TOML file; `overrides` change keys of it:
    a dict of values by path, or texts as `--set` takes them.
    The runs are stored under `out` and returned together; those of several engines (`["sim", "guest"]`) side by side.
    `kernel` chooses the guest's, as in `"6.12"`.
    Equal arguments give equal records, whatever `jobs` is. With `reuse`, runs that are stored already and would come
    out the same are not made again.

    >>> import bufferscope as bs
    >>> result = bs.run("ucas-reproduce", {"link.bottleneck.rate": "2mbit"}, repeat=3)          # doctest: +SKIP
    """
    experiment = load_experiment(name_or_path, overrides)
    tasks = plan(experiment, engines(engine, kernel=kernel), Path(out), seed=seed, repeat=repeat)
    return Result(execute(tasks, jobs=jobs, watcher=watcher, reuse=reuse))


def load(path: str | PathLike[str], overrides: Overrides | None = None, *, newest: bool = False) -> Result:
    """Load stored runs: one run's directory, or an experiment's directory of runs, as in `results/ucas-reproduce`.

    Runs that were made with different overrides come together, and figures tell them apart by what was changed
    (`Result.varying`); so do runs of several engines. `overrides` chooses the runs that were made with exactly these
    (`[]`: those of the file as it stands), `newest=True` those that were made like the newest.

    >>> bs.load("results/ucas-reproduce", overrides=["link.bottleneck.queue.limit=20p"])        # doctest: +SKIP
    """
    return Result(find(Path(path), None if overrides is None else as_texts(overrides), newest=newest))


def compare(
    *what: "What | Mapping[str, What]", labels: Sequence[str] | None = None, baseline: str | None = None
) -> "Comparison":
    """Hold runs against one another: results, runs, or paths and patterns of stored runs and their directories.

    What differs among them makes the sides; points with the same swept values are compared with one another. `labels`
    (one for each of `what`) or a mapping of names choose what the sides are called. All are held against the first
    side, or the one called `baseline`. Raises `InputError` where there is nothing to compare.

    >>> bs.compare("results/ucas-reproduce")                                                    # doctest: +SKIP
    >>> bs.compare({"tail drop": bloated, "CoDel": cured}).table                                # doctest: +SKIP
    """
    from bufferscope.comparison.comparing import Comparison
    from bufferscope.comparison.inputs import all_of

    return Comparison(all_of(what, labels), baseline)
