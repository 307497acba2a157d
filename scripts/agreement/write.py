"""Runs every scenario of a matrix on the simulator and on a real kernel, and writes its page.

matrix.toml is about queueing disciplines (docs/agreement.md), devices.toml about what is below them
(docs/agreement-devices.md). `--matrix` names another, such as dualpi2.toml, whose guest takes a module that must be
built, and `--random` draws scenarios instead (docs/agreement-random.md).

Stored runs that would give the same result are not repeated. So after a change of the simulator, only the simulator is
run, and an interrupted job continues. The runs are made seed by seed, so that an unfinished matrix has runs everywhere.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import drawing
import matrix
from bufferscope.base.errors import InputError
from bufferscope.engines import engines
from bufferscope.engines.guest import extra_modules, kernels
from bufferscope.results.result import Result
from bufferscope.running.job import Task
from bufferscope.running.plan import plan
from bufferscope.store.reading import is_run
from bufferscope.store.run import Run
from bufferscope.studies.agreement import PointAgreement, compare
from causes import Cause, causes
from making import DOCS, add_changes, carried_out, parsed, parser, runs_of, write
from page import comparable, differences, is_saturated, page, saturation, told, unneeded, verdict


def main(arguments: Sequence[str]) -> int:
    """Run the matrix, write the page, and report differences that have no cause."""
    return carried_out(lambda: _main(_options(arguments)))


def _main(options: argparse.Namespace) -> int:
    wholes = _matrices(options)
    if options.only and not any(_chosen(whole, options.only) for whole in wholes):
        raise InputError(f"no scenario has {options.only!r} in its name")
    ready = []
    for whole in (whole for whole in wholes if _chosen(whole, options.only)):
        if (lacking := _lacking(whole, options)) is None:
            ready.append(whole)
        else:
            print(lacking, file=sys.stderr)
    return max([_carry_out(whole, options) for whole in ready], default=1)


def _lacking(whole: matrix.Matrix, options: argparse.Namespace) -> str | None:
    """What a matrix lacks, and what to do; `None` if it can run."""
    if whole.module is None or whole.kernel is None or "guest" not in (options.engine, options.reference):
        return None
    kernel = kernels.matching(whole.kernel, kernels.at_hand())
    if kernel is not None and extra_modules.has(kernel, whole.module):
        return None
    command = matrix.build_command(whole.module, whole.kernel)
    return f"Skipped: {whole.page} takes a guest with {whole.module.module}: {command}"


def _matrices(options: argparse.Namespace) -> list[matrix.Matrix]:
    if options.random:
        return [drawing.random_matrix(options.seed, options.random, options.kernel, options.most)]
    return [matrix.read(file) for file in ([options.matrix] if options.matrix else matrix.FILES)]


def _carry_out(whole: matrix.Matrix, options: argparse.Namespace) -> int:
    """Run a matrix, and write its page; or print the chosen part of it."""
    known = causes(whole)
    chosen = _chosen(whole, options.only)
    if options.settings:
        chosen = [entry.changed(options.settings) for entry in chosen]
    results = _results(whole, chosen, options)
    if options.only:
        for scenario, point in results.items():
            print(scenario, *(f"    {c.metric}: {told(c)}" for c in point.judged), sep="\n")
            if is_saturated(point):
                print(f"    not comparable: a processor was saturated for {saturation(point):.0%} of a run")
        return 0
    write(options.pages / whole.page, page(results, known, whole, kept=options.keep_reference))
    return _judge(comparable(results), known, whole.causes.name)


def _chosen(whole: matrix.Matrix, only: str) -> list[matrix.Entry]:
    """The entries with this in a scenario's name."""
    return [entry for entry in whole.entries if any(only in scenario for scenario in entry.scenarios)]


def _judge(results: dict[str, PointAgreement], known: Sequence[Cause], name: str) -> int:
    """The exit status: 1 if the known causes, from the file of this name, and the differences don't match."""
    unexplained = [d for d in differences(results, known) if d.cause is None]
    for found in unexplained:
        print(f"No cause in {name}: {found.scenario}: {found.metric}: {found.words}", file=sys.stderr)
    for scenario, metric in (left := unneeded(results, known)):
        print(f"No difference for the cause in {name}: {scenario}: {metric}", file=sys.stderr)
    return 1 if unexplained or left else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    options = parser("agreement", __doc__)
    options.add_argument("--repeat", type=int, help="repetitions, of every scenario (default: as in matrix.toml)")
    options.add_argument(
        "--keep-reference", action="store_true", help="take the reference's stored runs, whichever build made them"
    )
    add_changes(options, "write no page, and print only the scenarios")
    options.add_argument(
        "--random", type=int, metavar="N", help="draw N scenarios, and write their page (default: the matrices)"
    )
    options.add_argument("--seed", type=int, default=1, help="with --random: the seed of the draw (default: 1)")
    options.add_argument(
        "--most",
        type=int,
        default=drawing.MOST_REPETITIONS,
        metavar="N",
        help="with --random: repetitions, at most, of a scenario that exceeds a tolerance (default: %(default)s)",
    )
    options.add_argument("--kernel", help="with --random: the guest's kernel series (default: 6.1)")
    options.add_argument("--matrix", type=Path, help="the scenarios (default: both matrix.toml and devices.toml)")
    options.add_argument("--pages", type=Path, default=DOCS, help="where pages are written (default: docs/)")
    chosen = parsed(options, arguments)
    if chosen.random is not None and chosen.random < 1:
        options.error(f"--random: found {chosen.random}; allowed: at least 1")
    if chosen.most < drawing.REPETITIONS:
        options.error(f"--most: found {chosen.most}; allowed: at least {drawing.REPETITIONS}")
    if chosen.kernel is None:
        return chosen
    if chosen.random is None:
        options.error("--kernel needs --random: each matrix has kernels of its own")
    if not re.fullmatch(r"\d+\.\d+", chosen.kernel):
        options.error(f"--kernel: found {chosen.kernel!r}; allowed: a series, such as 6.12")
    return chosen


def _results(
    whole: matrix.Matrix, chosen: Sequence[matrix.Entry], options: argparse.Namespace
) -> dict[str, PointAgreement]:
    """Every chosen scenario by its name. Few repetitions may exceed a tolerance by chance; then there are more."""
    repetitions = options.repeat or whole.repetitions
    most = options.repeat or whole.most
    results = _compared(chosen, repetitions, options)
    while repetitions < most and (missing := [entry for entry in chosen if _misses(entry, results)]):
        repetitions = min(2 * repetitions, most)
        results |= _compared(missing, repetitions, options)
    return results


def _misses(entry: matrix.Entry, results: Mapping[str, PointAgreement]) -> bool:
    """Whether a scenario that can be compared exceeds a tolerance."""
    points = (point for name in entry.scenarios if not is_saturated(point := results[name]))
    return any(verdict(found) in ("missed", "chance") for point in points for found in point.judged)


def _compared(
    entries: Sequence[matrix.Entry], repetitions: int, options: argparse.Namespace
) -> dict[str, PointAgreement]:
    """The scenarios of these entries by their names, on both engines."""
    plans = [_tasks(entry, options, repetitions) for entry in entries]
    tasks = sorted((task for tasks in plans for task in tasks), key=lambda task: task.seed)
    runs = _stored(tasks, options.reference) if options.keep_reference else {}
    runs |= runs_of([task for task in tasks if task not in runs], options.jobs)
    compared = [compare(Result([runs[task] for task in tasks])) for tasks in plans]
    return {
        scenario: point
        for entry, agreement in zip(entries, compared, strict=True)
        for scenario, point in zip(entry.scenarios, agreement.points, strict=True)
    }


def _tasks(entry: matrix.Entry, options: argparse.Namespace, repetitions: int) -> list[Task]:
    """The runs of the points that are compared."""
    names = [options.engine, options.reference]
    has_guest = "guest" in names
    chosen = engines(names, kernel=entry.kernel if has_guest else None)
    tasks = plan(entry.experiment, chosen, options.out, repeat=repetitions, reuse=True)
    return [task for task in tasks if entry.has(task.point)]


def _stored(tasks: Sequence[Task], engine: str) -> dict[Task, Run]:
    """The engine's stored runs of these tasks' scenarios."""
    own = [task for task in tasks if task.engine.name == engine and is_run(task.directory)]
    runs = {task: Run(task.directory) for task in own}
    return {task: run for task, run in runs.items() if run.meta["scenario"] == task.point.scenario}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
