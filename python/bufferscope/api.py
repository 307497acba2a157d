"""The two calls most people need: run an experiment, load what was stored."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from bufferscope.engines import engines
from bufferscope.experiment import load as load_experiment
from bufferscope.overrides import Overrides, as_texts
from bufferscope.result import Result
from bufferscope.running import Watcher, execute, plan
from bufferscope.store.finding import find


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


def load(path: str | PathLike[str], overrides: Overrides | None = None) -> Result:
    """Load stored runs: one run's directory, or an experiment's directory of runs, as in `results/ucas-reproduce`.

    Of runs made with different overrides, `overrides` chooses; without it those of the newest run are loaded. Runs of
    several engines come side by side.
    """
    return Result(find(Path(path), None if overrides is None else as_texts(overrides)))
