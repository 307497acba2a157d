"""Tables for people, on standard output."""

import math
from collections.abc import Sequence

from rich.text import Text

from bufferscope.cli.terminal import console, plain_table
from bufferscope.expectations import Evaluated, Verdict
from bufferscope.report.words import NBSP, margin
from bufferscope.result import Result
from bufferscope.store.run import Run

STYLES = {
    Verdict.REPRODUCED: "green",
    Verdict.EXPLAINED: "yellow",
    Verdict.NOT_SHOWN: "bold yellow",
    Verdict.NOT_REPRODUCED: "bold red",
    Verdict.NOT_APPLICABLE: "dim",
}
MOST_SUBJECTS = 3
"""If more expectations than this have the same reason, they are counted instead of named."""


def print_expectations(results: Sequence[Result]) -> None:
    """What the documents say beside what was measured; if a statement does not apply, the reason."""
    table = plain_table("What the documents say, and what was measured")
    for heading in ("Experiment", "Expectation", "Says"):
        table.add_column(heading, overflow="fold")
    table.add_column("Measured", justify="right")
    table.add_column("Band", justify="right")
    table.add_column("Verdict")
    for result in results:
        for evaluated in result.expectations:
            if evaluated.verdict is not Verdict.NOT_APPLICABLE:
                table.add_row(*_expectation_row(result, evaluated))
    if table.rows:
        console().print(table)
    if any(evaluated.reach is not None for result in results for evaluated in result.expectations):
        console().print(Text("Measured: means over repetitions ± half the width of their 95 % confidence interval."))
    for result in results:
        _print_reasons(result)


def print_warnings(results: Sequence[Result]) -> None:
    """The engine's warnings."""
    for warning in dict.fromkeys(w for result in results for run in result.runs for w in run.warnings):
        console().print(Text(f"Warning: {warning}"))


def print_run(run: Run) -> None:
    """A stored run: how it was made, and every metric."""
    from bufferscope.metrics import not_measured, not_recorded

    about = plain_table(run.id)
    about.show_header = False
    about.add_column()
    about.add_column(overflow="fold")
    for key, value in _about(run).items():
        about.add_row(key, Text(value))
    metrics = plain_table("Metrics")
    metrics.add_column("Name")
    metrics.add_column("Value", justify="right")
    for name in run.metrics:
        metrics.add_row(Text(name), number(run.metrics[name]))
    for name in not_measured(run):
        metrics.add_row(Text(name), "not measured by this engine", style="dim")
    for table in not_recorded(run):
        metrics.add_row(Text(f"metrics of {table}"), "not recorded", style="dim")
    console().print(about, metrics)


def print_rows(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table of texts."""
    table = plain_table(title)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def _about(run: Run) -> dict[str, str]:
    meta = run.meta
    return {
        "Experiment": f"{run.experiment}: {meta['title']}",
        "Point": point_name(run),
        "Changed": " ".join(meta["overrides"]) or "nothing",
        "Engine": f"{run.engine} {meta['engine_version']}, seed {run.seed}",
        "Duration": f"{run.scenario['duration_ns'] / 1e9:g} s",
        "Took": f"{meta['wall_s']:.3g} s, {meta['cpu_s']:.3g} s of CPU time",
        "Started": f"{meta['started']} by bufferscope {meta['bufferscope']}",
        "Rows": ", ".join(f"{table} {rows}" for table, rows in meta["tables"].items()),
        "Warnings": "; ".join(run.warnings) or "none",
        "Files": f"{run.path}/",
    }


def point_name(run: Run) -> str:
    """The run's swept values; without a sweep, what `--set` changed."""
    swept = ", ".join(f"{path} = {label}" for path, label in run.point.items())
    return swept or " ".join(run.meta["overrides"]) or "as in the file"


def number(value: float) -> str:
    """Four significant digits; a value hidden by lost probes or unfinished transfers has no number."""
    if math.isinf(value):
        return "censored"
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


def _expectation_row(result: Result, evaluated: Evaluated) -> tuple[Text, ...]:
    expectation = evaluated.expectation
    return (
        Text(result.experiment),
        Text(_subject(evaluated, result)),
        Text(expectation.says),
        Text(_measured(evaluated)),
        Text(_band(expectation.band)),
        Text(evaluated.verdict.words, style=STYLES[evaluated.verdict]),
    )


def _measured(evaluated: Evaluated) -> str:
    """The mean; with repetitions, also half the width of its 95 % confidence interval."""
    if evaluated.measured is None:
        return "-"
    chance = "" if evaluated.reach is None else f"{NBSP}±{NBSP}{margin(evaluated.reach)}"
    return number(evaluated.measured) + chance


def _subject(evaluated: Evaluated, result: Result) -> str:
    """The metric and where it is measured: the labels of the swept values, and the engine if there are several."""
    where = ", ".join(evaluated.point.values())
    relative = ", ".join((evaluated.expectation.relative_to or {}).values())
    place = (f" at {where}" if where else "") + (f" / at {relative}" if relative else "")
    return evaluated.expectation.metric + place + (f" on {evaluated.engine}" if len(result.by_engine) > 1 else "")


def _band(band: tuple[float, float]) -> str:
    low, high = band
    if math.isinf(high):
        return f">= {low:g}"
    return f"<= {high:g}" if math.isinf(low) else f"{low:g} to {high:g}"


def _print_reasons(result: Result) -> None:
    """Each reason once, with the expectations that it concerns."""
    subjects: dict[str, list[str]] = {}
    for evaluated in result.expectations:
        if evaluated.reason:
            shown = f" Shown by {evaluated.shown_by}." if evaluated.shown_by else ""
            subjects.setdefault(evaluated.reason + shown, []).append(_subject(evaluated, result))
    for reason, about in subjects.items():
        whom = "; ".join(about) if len(about) <= MOST_SUBJECTS else f"{len(about)} expectations"
        console().print(Text(f"{result.experiment}, {whom}: {reason}"))
