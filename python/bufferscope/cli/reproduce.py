"""`bufferscope reproduce`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.cli import options
from bufferscope.cli.completion import complete_experiment
from bufferscope.cli.run import insist
from bufferscope.cli.saying import say

if TYPE_CHECKING:
    from bufferscope.model.experiment import Experiment
    from bufferscope.results.result import Result
    from bufferscope.running.job import Task
    from bufferscope.running.reproduction import LeftOut


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Experiments to run. Default: the whole catalogue.",
            show_default=False,
            autocompletion=complete_experiment,
        ),
    ] = None,
    engine: options.Engines = None,
    kernel: options.Kernel = None,
    out: options.Out = Path("results"),
    report: options.Report = None,
    no_report: options.NoReport = False,
    stills: options.Stills = False,
    seed: options.Seed = 1,
    repeat: options.RepeatAsFiled = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Run every repetition, member and point, also those that no statement of a document needs."
        ),
    ] = False,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    reuse: options.ReuseOfGuests = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Run the experiments of the catalogue, write a page with every figure, and report what was reproduced.

    The page compares the statements of the documents with measurements on the simulator and on a real kernel. Results \
already stored for the other engine are shown, too. Points that an engine cannot run are left out and listed with the \
reason. On the simulator, the longest experiments run with fewer repetitions, members and points, as far as that \
changes no verdict; the page lists them, and --full or --repeat runs all of it.

    [bold]Examples[/bold]

      bufferscope reproduce

      bufferscope reproduce ucas-mitigate mininet-buffer-size --repeat 10

      bufferscope reproduce --full

      bufferscope reproduce --engine guest

      bufferscope reproduce --strict --quiet && echo "all as the documents say"
    """
    from bufferscope.cli.execute import read
    from bufferscope.cli.notes import tell
    from bufferscope.cli.pages import page
    from bufferscope.engines import REGISTRY, carrying, default, engines
    from bufferscope.model.experiment import catalogue
    from bufferscope.report import build
    from bufferscope.running.brevity import WHOLE, part_of
    from bufferscope.running.brevity import left_out as left_out_of
    from bufferscope.running.plan import plan
    from bufferscope.running.reproduction import compared, stored

    directory = options.page(report, no_report, False, Path("report"), stills=stills)
    chosen = engines(engine or default().name, kernel=kernel)
    silent = quiet or json
    experiments = read(names or catalogue())
    if not silent:
        tell(experiments)
    reused = reuse if reuse is not None else tuple(each.name for each in carrying() if each.is_kernel)
    whole = full or repeat is not None or any(each.is_kernel for each in chosen)
    parts = {each.name: WHOLE if whole else part_of(each) for each in experiments}
    plans = [
        plan(each, chosen, out, seed=seed, repeat=part.repeat or repeat, reuse=reused, among=part.positions(each))
        for each, part in ((each, parts[each.name]) for each in experiments)
    ]
    brief = {each.name: words for each in experiments if (words := left_out_of(each, parts[each.name]))}
    if brief and not silent:
        names_of_brief = ", ".join(brief)
        print(f"In brief, without a change of any verdict (--full runs all): {names_of_brief}", file=sys.stderr)
    results, left_out = _execute(plans, jobs, silent, cluster, has_page=directory is not None)
    others = [name for name in compared() if name not in {each.name for each in chosen}]
    elsewhere = {
        each.name: [evaluated for name in others for evaluated in stored(each, name, out, seed, repeat)]
        for each in experiments
    }
    left = f"the runs are in {out}/"
    drawn = None
    if directory:
        drawn = page(
            directory,
            lambda path, step: build(results, path, step, elsewhere, brief=brief, stills=stills),
            silent=silent,
            left=left,
        )
    if json:
        from bufferscope.cli.documents import print_document, result_document

        made = [result_document(result, elsewhere[result.experiment]) for result in results]
        apart = [each.as_document() for each in left_out]
        print_document({**({"report": str(drawn)} if drawn else {}), "experiments": made, "left_out": apart})
    elif not quiet:
        from bufferscope.cli.tables import print_expectations, print_left_out, print_warnings

        print_expectations(results, compared(), elsewhere, {each.key: each.reason for each in left_out})
        print_left_out(left_out)
        print_warnings(results)
        not_run = next((name for name in others if REGISTRY[name].is_kernel), None)
        if not_run and not any(elsewhere.values()):
            print(f"A real kernel has not been run. To run it: bufferscope reproduce --engine {not_run}")
        if drawn:
            say(f"The page: {drawn.resolve()}")
    if any(each.failed for each in left_out):
        raise typer.Exit(1)
    if strict:
        insist(results)


def _execute(
    plans: Sequence["Sequence[Task]"], jobs: int | None, silent: bool, cluster: str | None, *, has_page: bool
) -> "tuple[list[Result], list[LeftOut]]":
    """The results of the experiments of which at least one run succeeded, and the points without runs.

    Raises `EngineError` if there is no run at all.
    """
    from bufferscope.base.errors import EngineError
    from bufferscope.cli.execute import executed
    from bufferscope.results.result import Result
    from bufferscope.running.plan import RunsFailedError
    from bufferscope.running.reproduction import LeftOut, possible

    tasks, left_out = possible([task for tasks in plans for task in tasks])
    if not tasks:
        raise EngineError(left_out[0].told)
    try:
        runs = executed(tasks, jobs, silent, cluster, afterwards_s=_page_s(tasks) if has_page else 0)
    except RunsFailedError as failure:
        if not failure.finished:
            raise
        runs = list(failure.finished)
        left_out += [LeftOut.of(task, str(error), failed=True) for task, error in failure.failures]
    names = dict.fromkeys(run.experiment for run in runs)
    return [Result([run for run in runs if run.experiment == name]) for name in names], left_out


def _page_s(tasks: Sequence["Task"]) -> float:
    """How long the page of these tasks' runs is likely to take, in seconds."""
    from bufferscope.figures.choosing import fitting
    from bufferscope.report.page import expected_s

    experiments: dict[Experiment, set[int]] = {}
    for task in tasks:
        experiments.setdefault(task.experiment, set()).add(task.position)
    figures = sum(len(each.document["figures"] or fitting(each.points[0].scenario)) for each in experiments)
    return expected_s(len(tasks), figures, [len(positions) for positions in experiments.values()])
