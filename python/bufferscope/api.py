"""The functions that most people need: run an experiment, choose a queue, load stored runs, compare runs."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.arguments import EXPERIMENT, FLAG, NAME, NAMES, OVERRIDES, PATH, STRINGS, WATCHER, checked, optional
from bufferscope.engines import engines, one_engine
from bufferscope.executors import Watcher
from bufferscope.experiment import load as load_experiment
from bufferscope.overrides import Overrides, as_texts
from bufferscope.result import Result
from bufferscope.running import execute, plan
from bufferscope.store.finding import find

if TYPE_CHECKING:
    from bufferscope.choice import Choice
    from bufferscope.comparison import Comparison
    from bufferscope.comparison.inputs import What


_OF_RUNS = {
    "name_or_path": EXPERIMENT,
    "overrides": OVERRIDES,
    "out": PATH,
    "kernel": optional(NAME),
    "reuse": FLAG,
    "watcher": WATCHER,
    "cluster": optional(NAME),
}
"""The arguments of everything that runs an experiment; numbers are checked where they are used."""


@checked(**_OF_RUNS, engine=NAMES, capture=FLAG, layout=NAME)
def run(
    name_or_path: str | PathLike[str],
    overrides: Overrides = (),
    *,
    seed: int = 1,
    repeat: int | None = None,
    jobs: int | None = None,
    out: str | PathLike[str] = "results",
    engine: str | Sequence[str] = "sim",
    kernel: str | None = None,
    reuse: bool = False,
    capture: bool = False,
    watcher: Watcher | None = None,
    cluster: str | None = None,
    layout: str = "auto",
) -> Result:
    """Run an experiment: every point of its sweep with `repeat` seeds from `seed` on (by default as its file says).

    `name_or_path` is a name from the catalogue (`bufferscope.catalogue()`) or a TOML file. `overrides` change its keys:
    a dict of values by path, or texts as for `--set`.
    The runs are stored under `out` and returned together, also with several engines (`["sim", "guest"]`).
    `kernel` selects the guest's kernel, as in `"6.12"`.
    Equal arguments give equal records, whatever `jobs` is. With `reuse`, a stored run is reused if a new run would give
    the same records. With `capture`, the engines guest and host store the packets that they carry, for
    `bufferscope export --format pcapng`. `cluster` is the address of a Dask scheduler (`"tcp://HOST:PORT"`), or
    `"local:4"` for four workers started here. Then its workers make the runs, which are stored on this machine all the
    same. `layout` is `"single"` to store each run in a directory of its own, or `"sweep"` to store many runs of the
    simulator together, which takes less time and space if they are short. By default, at least 200 short runs are
    stored together.

    >>> import bufferscope as bs
    >>> result = bs.run("ucas-reproduce", {"link.bottleneck.rate": "2mbit"}, repeat=3)          # doctest: +SKIP
    """
    experiment = load_experiment(name_or_path, overrides)
    chosen = engines(engine, kernel=kernel, capture=capture)
    tasks = plan(experiment, chosen, Path(out), seed=seed, repeat=repeat, reuse=reuse)
    return Result(execute(tasks, jobs=jobs, watcher=watcher, cluster=cluster, layout=layout))


@checked(**_OF_RUNS, engine=NAME, link=optional(NAME), point=STRINGS)
def choose(
    name_or_path: str | PathLike[str],
    overrides: Overrides = (),
    *,
    link: str | None = None,
    point: Sequence[str] = (),
    seed: int = 1,
    repeat: int = 3,
    jobs: int | None = None,
    out: str | PathLike[str] = "results",
    engine: str = "sim",
    kernel: str | None = None,
    reuse: bool = False,
    watcher: Watcher | None = None,
    cluster: str | None = None,
) -> "Choice":
    """Run an experiment with every queueing discipline at its bottleneck, and say which one to take and why.

    Tail drop is tried in a few sizes. The bottleneck is the port with the smallest rate on the way of the traffic's
    data; `link` (`"wan"` or `"wan.reverse"`) chooses another one. `point` chooses values of swept keys, as in
    `["traffic.rival.flows=1"]`; by default the first of each. The other arguments are those of `run`. Raises
    `InputError` if nothing queues.

    >>> choice = bs.choose("my-home.toml", repeat=5)                                            # doctest: +SKIP
    >>> choice.best.name, choice.command                                                        # doctest: +SKIP
    """
    from bufferscope.choice import Choice, plan_study

    chosen = one_engine(engine, kernel)
    experiment = load_experiment(name_or_path, overrides)
    study = plan_study(experiment, experiment.having(point)[0], chosen, link)
    tasks = plan(study.experiment, [chosen], Path(out), seed=seed, repeat=repeat, reuse=reuse)
    runs = execute(tasks, jobs=jobs, watcher=watcher, cluster=cluster, layout="single")
    return Choice(study, Result(runs))


@checked(path=PATH, overrides=optional(OVERRIDES), newest=FLAG)
def load(path: str | PathLike[str], overrides: Overrides | None = None, *, newest: bool = False) -> Result:
    """Load stored runs: one run's directory, or an experiment's directory of runs, as in `results/ucas-reproduce`.

    Runs with different overrides are loaded together, and so are runs of several engines; figures distinguish them by
    what differs (`Result.varying`). `overrides` selects the runs that were made with exactly these overrides (`[]`: the
    file without changes), `newest=True` the runs of the same variant as the newest run.

    >>> bs.load("results/ucas-reproduce", overrides=["link.bottleneck.queue.limit=20p"])        # doctest: +SKIP
    """
    return Result(find(Path(path), None if overrides is None else as_texts(overrides), newest=newest))


@checked(labels=optional(STRINGS), baseline=optional(NAME))
def compare(
    *what: "What | Mapping[str, What]", labels: Sequence[str] | None = None, baseline: str | None = None
) -> "Comparison":
    """Compare runs: results, runs, or paths and patterns of stored runs and their directories.

    Runs are grouped into sides by what differs among them, and points with the same swept values are compared. `labels`
    (one for each of `what`) or a mapping of names give the sides names. All sides are compared with the first one, or
    with the side called `baseline`. Raises `InputError` if there is nothing to compare.

    >>> bs.compare("results/ucas-reproduce")                                                    # doctest: +SKIP
    >>> bs.compare({"tail drop": bloated, "CoDel": cured}).table                                # doctest: +SKIP
    """
    from bufferscope.comparison.comparing import Comparison
    from bufferscope.comparison.inputs import all_of

    return Comparison(all_of(what, labels), baseline)
