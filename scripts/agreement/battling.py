"""Runs the experiments `battling-*` on the simulator and on a real kernel, and writes docs/battling.md.

Only the points that the document says something about are run, and so only the four disciplines that it compares.
Stored runs that would give the same result are not repeated.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bufferscope.analysis.claims import in_words
from bufferscope.base.errors import InputError
from bufferscope.base.fmt import NBSP
from bufferscope.engines import Engine, engines
from bufferscope.metrics import definition
from bufferscope.model.experiment import load
from bufferscope.report.verdicts import view
from bufferscope.results.entries import concerning
from bufferscope.results.result import Result
from bufferscope.results.verdicts import ExpectationResult
from bufferscope.running.job import Task
from bufferscope.running.plan import plan
from bufferscope.store.reading import is_run
from bufferscope.store.run import Run
from bufferscope.studies.agreement import MetricComparison, PointAgreement, compare
from making import DOCS, add_changes, carried_out, parsed, parser, runs_of, template, write
from page import provenance, told

PAGE = DOCS / "battling.md"
NUMBERS: Mapping[str, Sequence[str]] = {
    "battling-tcp-bidirectional": ("rtt.p50_ms", "goodput.test_mbit"),
    "battling-tcp-asymmetric": ("rtt.p50_ms", "goodput.test.up_mbit", "goodput.test.down_mbit"),
    "battling-rrul": ("rtt.mean_ms", "goodput.rrul_mbit"),
    "battling-rrul-path": ("rtt.mean_ms", "goodput.rrul_mbit"),
    "battling-udp-flood": ("rtt.p50_ms", "goodput.tcp_mbit"),
}
"""The experiments, and the metrics of the page's tables."""


@dataclass(frozen=True)
class Claim:
    """A statement of the document, judged on both engines."""

    says: str
    measure: str
    band: str
    values: tuple[str, ...]
    """The measurements, one for each engine."""
    verdict: str
    """In words: one for both engines, or one for each."""
    is_judged_alike: bool
    """Whether both engines give the same verdict."""
    shown_by: tuple[str, ...]
    """The points that show why the measurements lie outside the band, with the measurements there."""
    apart: tuple[str, ...]
    """The repetitions in which flows share a flow queue, each in words."""
    differs: bool | None
    """Whether the engines lie further apart than their intervals allow; None if that is unknown."""


@dataclass(frozen=True)
class Test:
    """One experiment on both engines."""

    name: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """A row for each point, a cell for each metric."""
    claims: tuple[Claim, ...]


def main(arguments: Sequence[str]) -> int:
    """Make the runs and write the page."""
    return carried_out(lambda: _main(_options(arguments)))


def _main(options: argparse.Namespace) -> int:
    write(options.page, page(_results(options)))
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    options = parser("battling", __doc__)
    options.add_argument("--page", type=Path, default=PAGE, help=f"what is written (default: docs/{PAGE.name})")
    options.add_argument("--repeat", type=int, help="repetitions on the kernel (default: as the files say)")
    options.add_argument(
        "--stored", action="store_true", help="take stored runs, whichever build made them; run nothing"
    )
    add_changes(options, "only the experiments")
    chosen = parsed(options, arguments)
    if chosen.only and chosen.page == PAGE:
        options.error("--only needs --page: docs/ has the page on all experiments")
    return chosen


def _results(options: argparse.Namespace) -> list[Result]:
    """The experiments on both engines."""
    chosen = _, reference = engines([options.engine, options.reference])
    plans = [_tasks(name, chosen, options) for name in NUMBERS if options.only in name]
    if not plans:
        raise InputError(f"no experiment has {options.only!r} in its name; there are: {', '.join(NUMBERS)}")
    if options.stored:
        return [Result([Run(task.directory) for task in tasks if is_run(task.directory)]) for tasks in plans]
    tasks = sorted((task for tasks in plans for task in tasks), key=lambda task: (task.engine is reference, task.seed))
    runs = runs_of(tasks, options.jobs)
    return [Result([runs[task] for task in tasks]) for tasks in plans]


def _tasks(name: str, chosen: Sequence[Engine], options: argparse.Namespace) -> list[Task]:
    experiment, (judged, reference) = load(name, options.settings), chosen
    tasks = [
        *plan(experiment, [judged], options.out, reuse=True),
        *plan(experiment, [reference], options.out, repeat=options.repeat, reuse=True),
    ]
    return [task for task in tasks if concerning(experiment.expectations, task.position)]


def page(results: Sequence[Result]) -> str:
    """The whole page."""
    tests = [_test(result) for result in results]
    every = [claim for test in tests for claim in test.claims]
    return template("battling.md.jinja").render(
        tests=tests,
        claims=every,
        alike=sum(claim.is_judged_alike for claim in every),
        differing=[claim for claim in every if claim.differs],
        kernel=_kernel(results),
        repetitions=[_repetitions(results, engine) for engine in results[0].by_engine],
        provenance=provenance(run for result in results for run in result.runs),
    )


def _test(result: Result) -> Test:
    metrics = NUMBERS[result.experiment]
    _, _, title = str(result.document["title"]).partition(": ")
    return Test(
        name=result.experiment,
        title=title[:1].upper() + title[1:],
        headings=tuple(f"`{name}` ({known.unit})" for name in metrics if (known := definition(name))),
        rows=tuple(_row(point, metrics) for point in compare(result).points),
        claims=tuple(claims(result.expectations)),
    )


def _row(point: PointAgreement, metrics: Sequence[str]) -> tuple[str, ...]:
    found = {comparison.metric: comparison for comparison in point.comparisons}
    return (", ".join(point.values.values()), *(_cell(found[name]) for name in metrics))


def _cell(comparison: MetricComparison) -> str:
    """Both values and their difference, in bold if it is more than the repetitions scatter."""
    mark = "**" if comparison.within_spread is False else ""
    return f"{mark}{told(comparison)}{mark}"


def claims(evaluated: Sequence[ExpectationResult]) -> Iterator[Claim]:
    """The statements, each with what both engines measure; the second engine is the reference."""
    names = list(dict.fromkeys(each.engine for each in evaluated))
    for pair in zip(*([each for each in evaluated if each.engine == name] for name in names), strict=True):
        views = [view(each, "") for each in pair]
        verdicts = [f"{each.symbol} {each.verdict}" for each in views]
        is_judged_alike = len(set(verdicts)) == 1
        yield Claim(
            says=views[0].says,
            measure=views[0].measure,
            band=views[0].band,
            values=tuple(each.measured for each in views),
            verdict=verdicts[0] if is_judged_alike else _each(names, verdicts),
            is_judged_alike=is_judged_alike,
            shown_by=tuple(
                f"{each.shown_by} on {name}" for name, each in zip(names, views, strict=True) if each.shown_by
            ),
            apart=tuple(f"{in_words(each.engine)}, {one.sentence}" for each in pair for one in each.apart),
            differs=_differ(*pair),
        )


def _each(names: Sequence[str], verdicts: Sequence[str]) -> str:
    return "; ".join(f"{name}:{NBSP}{verdict}" for name, verdict in zip(names, verdicts, strict=True))


def _differ(judged: ExpectationResult, reference: ExpectationResult) -> bool | None:
    """Whether two measurements lie further apart than both intervals together, taken as independent."""
    if judged.measured is None or reference.measured is None or judged.reach is None or reference.reach is None:
        return None
    return abs(judged.measured - reference.measured) > math.hypot(judged.reach, reference.reach)


def _kernel(results: Sequence[Result]) -> str:
    """`Linux 6.1`; without a guest, the name of the reference."""
    run = results[0].runs[-1]
    guest = run.meta["summary"].get("guest")
    return f"Linux {'.'.join(guest['release'].split('.')[:2])}" if guest else run.engine


def _repetitions(results: Sequence[Result], engine: str) -> int:
    """The fewest runs of a point."""
    runs = [(result.experiment, run.position) for result in results for run in result.by_engine[engine]]
    return min(runs.count(point) for point in set(runs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
