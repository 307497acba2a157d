"""Running experiments for the commands, with progress on standard error."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from bufferscope.base.errors import EngineError
from bufferscope.cli.interruption import CutShortError, at_once
from bufferscope.cli.notes import tell
from bufferscope.cli.progress import shown, steps
from bufferscope.engines import Engine
from bufferscope.model.experiment import Experiment, load
from bufferscope.results.result import Result
from bufferscope.running.job import Task
from bufferscope.running.plan import Interrupted, RunsFailedError, plan
from bufferscope.running.plan import execute as execute_tasks
from bufferscope.store.run import Run


def read(names: Iterable[str], overrides: Sequence[str] | None = None) -> list[Experiment]:
    """The experiments of these names, each once."""
    return at_once("reading the experiment", lambda: [load(name, overrides or ()) for name in dict.fromkeys(names)])


def execute(
    experiments: Sequence[Experiment],
    chosen: Sequence[Engine],
    out: Path,
    seed: int,
    repeat: int | None,
    jobs: int | None,
    silent: bool,
    reuse: bool | Collection[str],
    cluster: str | None,
    layout: str = "auto",
    wanted: Sequence[str] = (),
) -> list[Result]:
    """Run the points of all experiments in one pool; return one result per experiment, in their order.

    With `wanted` (`PATH=LABEL`), only the points with these swept values are run. `reuse` is as for `running.plan`.
    """
    if not silent:
        tell(experiments)
    plans = [
        plan(experiment, chosen, out, seed=seed, repeat=repeat, wanted=wanted, reuse=reuse)
        for experiment in experiments
    ]
    try:
        runs = iter(executed([task for tasks in plans for task in tasks], jobs, silent, cluster, layout))
    except RunsFailedError as failure:
        raise EngineError(f"{failure}; {_whereabouts(failure.finished)}") from failure
    return [Result([next(runs) for _ in tasks]) for tasks in plans]


def executed(
    tasks: Sequence[Task],
    jobs: int | None,
    silent: bool,
    cluster: str | None,
    layout: str = "auto",
    afterwards_s: float = 0.0,
) -> list[Run]:
    """The runs of these tasks, with progress, whose time left includes `afterwards_s`.

    Raises `RunsFailedError` if some failed, and `CutShortError` on Ctrl-C, which says where the others are.
    """
    try:
        with shown(tasks, silent=silent, afterwards_s=afterwards_s) as watcher:
            return execute_tasks(tasks, jobs=jobs, watcher=watcher, cluster=cluster, layout=layout)
    except Interrupted as interruption:
        again = "; the same command goes on from there" if all(task.reuse for task in tasks) else ""
        raise CutShortError(f"{interruption}; {_whereabouts(interruption.finished)}{again}") from None


def measure(result: Result, left: str) -> None:
    """Compute every run's metrics, which tables are built from; show progress if that takes long.

    On Ctrl-C, raises `CutShortError`, which says what is `left`.
    """
    from bufferscope.metrics import of_each

    def compute() -> None:
        with steps("Computing the metrics", announced=False) as step:
            for done, _ in enumerate(of_each(result.runs)):
                step(done, len(result.runs))

    at_once("computing the metrics", compute, left)


def _whereabouts(finished: Sequence[Run]) -> str:
    """Where the finished runs are."""
    if not finished:
        return "no run had finished, so nothing was kept"
    directories = dict.fromkeys(f"{run.experiment_dir}/" for run in finished)
    return f"the finished runs are complete, in {' and '.join(directories)}"
