"""Carrying out runs: points times seeds, several at once, results in the order of the plan."""

from collections.abc import Collection, Sequence
from pathlib import Path

from bufferscope.base.errors import EngineError, InputError, check_number
from bufferscope.engines import Engine
from bufferscope.model.experiment import Experiment
from bufferscope.model.identity import LARGEST_SEED
from bufferscope.running.executors import Ended, NullWatcher, Watcher, executor, how_to_run_others
from bufferscope.running.job import Task
from bufferscope.store.run import Run
from bufferscope.store.writing import prepare

MOST_RUNS = 1_000_000
"""The most runs in one call."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: the runs that had finished are stored and complete."""

    def __init__(self, finished: Sequence[Run], planned: int) -> None:
        """Remember what was finished."""
        super().__init__(f"interrupted after {len(finished)} of {planned} runs")
        self.finished = tuple(finished)
        self.planned = planned


class RunsFailedError(EngineError):
    """Some runs failed; the others are stored."""

    def __init__(self, failures: Sequence[tuple[Task, Exception]], finished: Sequence[Run], others: str = "") -> None:
        """Remember what failed and what was finished; `others` says how to run what did not fail."""
        task, error = failures[0]
        more = f" (and {len(failures) - 1} more failed)" if len(failures) > 1 else ""
        super().__init__(f"{task.experiment.name} ({task.point}; seed {task.seed}): {error}{more}{others}")
        self.failures = tuple(failures)
        self.finished = tuple(finished)


def plan(
    experiment: Experiment,
    engines: Sequence[Engine],
    out: Path,
    *,
    seed: int = 1,
    repeat: int | None = None,
    wanted: Sequence[str] = (),
    reuse: bool | Collection[str] = False,
    among: Collection[int] | None = None,
) -> list[Task]:
    """Every point on each engine with `repeat` seeds from `seed` on, point by point; by default as the file says.

    With `wanted` (`PATH=LABEL`), only the points that have one of the given values of each key. With `reuse`, a stored
    run that would come out the same is used instead of running again; the names of engines say for which of them.
    `among` has the numbers of the only points to run.
    """
    repeat = experiment.document["repeat"] if repeat is None else repeat
    positions = [each for each in experiment.positions(wanted) if among is None or each in among]
    apiece = len(positions) * len(engines)
    check_number("repeat", repeat, 1, MOST_RUNS // apiece, f"{MOST_RUNS} runs at a time, {apiece} for each seed")
    check_number("seed", seed, 0, LARGEST_SEED - (repeat - 1), f"--repeat {repeat} goes on counting from it")
    seeds = range(seed, seed + repeat)
    reused = {engine.name for engine in engines if (reuse if isinstance(reuse, bool) else engine.name in reuse)}
    return [
        Task(experiment, position, seed, engine, out, engine.name in reused)
        for position in positions
        for engine in engines
        for seed in seeds
    ]


def execute(
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    watcher: Watcher | None = None,
    cluster: str | None = None,
    layout: str = "auto",
) -> list[Run]:
    """Carry out the tasks, `jobs` at a time; returns the runs in the tasks' order.

    By default, there is one job per processor, or fewer if the memory does not suffice. Real-time runs come after all
    others, one at a time, whatever `jobs` is. With `cluster` (`tcp://HOST:PORT`, `local` or `local:N`), the workers of
    that cluster carry out the tasks and send the runs back. `layout` says how the runs are stored: `single`, each in a
    directory of its own; `sweep`, many together; `auto`, together if there are many short ones.

    Raises `InputError` for wrong arguments. Raises `EngineError`, before anything runs, if the cluster does not answer
    or an engine can't run a task's point. Raises `RunsFailedError` if an engine failed, after all other runs are done,
    and `Interrupted` on Ctrl-C.
    """
    if cluster and any(task.engine.capture for task in tasks):
        raise InputError("--capture: not with --cluster, whose workers send no captures")
    ended: Ended = {}
    try:
        with executor(jobs, cluster, layout) as chosen:
            chosen.check(tasks)
            for directory in dict.fromkeys(task.experiment_dir for task in tasks):
                prepare(directory)
            chosen.carry_out(tasks, watcher or NullWatcher(), ended)
    except KeyboardInterrupt:
        raise Interrupted(_finished(tasks, ended), len(tasks)) from None
    failures = [(task, _failure(error)) for task in tasks if isinstance(error := ended[task], BaseException)]
    if failures:
        others = how_to_run_others([task for task, _ in failures], tasks)
        raise RunsFailedError(failures, _finished(tasks, ended), others)
    return _finished(tasks, ended)


def _finished(tasks: Sequence[Task], ended: Ended) -> list[Run]:
    """The finished runs, in the tasks' order."""
    return [run for task in tasks if isinstance(run := ended.get(task), Run)]


def _failure(error: BaseException) -> Exception:
    """The failure of an engine or the file system; anything else is a bug and raised unchanged."""
    if isinstance(error, EngineError):
        return error
    if isinstance(error, OSError):
        return EngineError(f"cannot write {error.filename or 'the run'}: {error.strerror}")
    raise error
