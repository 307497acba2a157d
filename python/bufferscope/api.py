"""The two calls most people need: run an experiment, load what was stored."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from bufferscope.engines import engines
from bufferscope.experiment import load as load_experiment
from bufferscope.result import Result
from bufferscope.running import Watcher, execute, plan
from bufferscope.store.finding import find


def run(
    name_or_path: str | PathLike[str],
    overrides: Sequence[str] = (),
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

    `name_or_path` is a name of the catalogue (`bufferscope.catalogue()`) or a TOML file; `overrides` change keys of it.
    The runs are stored under `out` and returned together; those of several engines (`["sim", "guest"]`) side by side.
    `kernel` chooses the guest's, as in `"6.12"`.
    Equal arguments give equal records, whatever `jobs` is. With `reuse`, runs that are stored already and would come
    out the same are not made again.

    >>> import bufferscope as bs
    >>> result = bs.run("ucas-reproduce", ["link.bottleneck.rate=2mbit"], repeat=3)             # doctest: +SKIP
    """
    experiment = load_experiment(name_or_path, overrides)
    tasks = plan(experiment, engines(engine, kernel=kernel), Path(out), seed=seed, repeat=repeat)
    return Result(execute(tasks, jobs=jobs, watcher=watcher, reuse=reuse))


def load(path: str | PathLike[str], overrides: Sequence[str] | None = None, *, newest: bool = False) -> Result:
    """Load stored runs: one run's directory, or an experiment's directory of runs, as in `results/ucas-reproduce`.

    Runs that were made with different overrides come together, and figures tell them apart by what was changed
    (`Result.varying`); so do runs of several engines. `overrides` chooses the runs that were made with exactly these
    (`[]`: those of the file as it stands), `newest=True` those that were made like the newest.

    >>> bs.load("results/ucas-reproduce", overrides=["link.bottleneck.queue.limit=20p"])        # doctest: +SKIP
    """
    return Result(find(Path(path), overrides, newest=newest))
