"""The page's content: from results to what the template shows, every text ready to be read."""

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from markupsafe import Markup

from bufferscope.figures.source import points
from bufferscope.report import drawing, metrics_table, parameters, verdicts
from bufferscope.report.prose import markdown
from bufferscope.report.words import number, plural

if TYPE_CHECKING:
    from bufferscope.result import Result
    from bufferscope.store.run import Run

DEFAULT_FIGURES = ("queue_length", "rtt", "cwnd", "goodput")
"""What is drawn for an experiment that names no figures."""


@dataclass(frozen=True)
class RunView:
    """One run: what it is and where its files are."""

    point: str
    seed: int
    href: str
    name: str
    wall_s: str
    rows: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ExperimentView:
    """One section of the page."""

    name: str
    title: str
    source: str
    description: Markup
    notes: Markup
    overrides: tuple[str, ...]
    figures: tuple[drawing.FigureView, ...]
    missing: tuple[drawing.Missing, ...]
    verdicts: tuple[verdicts.VerdictView, ...]
    parameters: tuple[parameters.Table, ...]
    metrics: metrics_table.MetricsTable
    runs: tuple[RunView, ...]
    command: str
    provenance: str


@dataclass(frozen=True)
class PageView:
    """The whole page."""

    title: str
    summary: str
    counts: tuple[tuple[str, str, int], ...]
    """Verdicts as CSS class, words and number."""
    experiments: tuple[ExperimentView, ...]


def page_view(results: Sequence["Result"], page: Path) -> PageView:
    """What the page at `page` shows of these results; writes the figures' pictures beside it."""
    experiments = tuple(_experiment(result, page) for result in results)
    runs = sum(len(view.runs) for view in experiments)
    title = (
        experiments[0].title if len(experiments) == 1 else "Bufferbloat: what the documents say, and what was measured"
    )
    summary = f"{plural(len(experiments), 'experiment')}, {plural(runs, 'run')}"
    verdict_kinds = Counter((v.kind, v.verdict) for view in experiments for v in view.verdicts)
    order = [kind.replace(" ", "-") for kind in verdicts.SYMBOLS]
    counts = sorted(((kind, words, n) for (kind, words), n in verdict_kinds.items()), key=lambda c: order.index(c[0]))
    return PageView(title, summary, tuple(counts), experiments)


def _experiment(result: "Result", page: Path) -> ExperimentView:
    document = result.document
    grouped = points(result)
    drawn = [drawing.draw(result, name, page) for name in document.get("figures") or DEFAULT_FIGURES]
    return ExperimentView(
        name=result.experiment,
        title=document.get("title") or result.runs[0].meta["title"],
        source=document.get("source") or "",
        description=markdown(document.get("description") or ""),
        notes=markdown(document.get("notes") or ""),
        overrides=tuple(result.overrides),
        figures=tuple(figure for figure in drawn if isinstance(figure, drawing.FigureView)),
        missing=tuple(figure for figure in drawn if isinstance(figure, drawing.Missing)),
        verdicts=tuple(verdicts.view(evaluated) for evaluated in result.expectations),
        parameters=tuple(parameters.tables(grouped)),
        metrics=metrics_table.table(grouped),
        runs=tuple(_run(point.label, run, page) for point in grouped for run in _stored(result, point.label)),
        command=_command(result),
        provenance=_provenance(result),
    )


def _stored(result: "Result", label: str) -> list["Run"]:
    return [run for run in result.runs if ", ".join(run.point.values()) == label]


def _run(label: str, run: "Run", page: Path) -> RunView:
    return RunView(
        point=label,
        seed=run.seed,
        href=quote(Path(os.path.relpath(run.path.resolve(), page.parent.resolve())).as_posix()) + "/",
        name=run.id,
        wall_s=f"{number(round(float(run.meta['wall_s']), 2))} s",
        rows=number(sum(run.meta["tables"].values())),
        warnings=tuple(run.warnings),
    )


def _command(result: "Result") -> str:
    """The command that makes the same records again."""
    seeds = sorted({run.seed for run in result.runs})
    words = ["bufferscope", "run", result.experiment, "--seed", str(seeds[0])]
    if len(seeds) > 1:
        words += ["--repeat", str(len(seeds))]
    for override in result.overrides:
        words += ["--set", override]
    return shlex.join(words)


def _provenance(result: "Result") -> str:
    """Which program, on which machine, when."""
    meta = result.runs[0].meta
    machine = meta["machine"]
    on = ", ".join(str(machine[key]) for key in ("system", "machine", "cpu") if machine.get(key))
    sampled = number(meta["sampling"]["achieved_ns"] / 1e6)
    started = datetime.fromisoformat(meta["started"]).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"bufferscope {meta['bufferscope']}, engine {meta['engine']} {meta['engine_version']}, "
        f"sampled every {sampled} ms, started {started}, on {on}"
    )
