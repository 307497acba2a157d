"""Tables for people, on standard output."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from bufferscope.analysis.claims import DocumentStatement, in_words, statements
from bufferscope.base.fmt import NBSP, margin
from bufferscope.cli.terminal import console, plain_table
from bufferscope.metrics.window import described
from bufferscope.results.result import Result
from bufferscope.results.verdicts import ExpectationResult, Verdict
from bufferscope.running.reproduction import LeftOut
from bufferscope.store.live import LiveMeasurement, live_of
from bufferscope.store.metadata import sources
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


def print_expectations(
    results: Sequence[Result],
    engines: Sequence[str] = (),
    elsewhere: Mapping[str, Sequence[ExpectationResult]] | None = None,
    left_out: Mapping[tuple[str, int | None, str], str] | None = None,
) -> None:
    """What the documents say beside what each engine measured, document by document, and why something differs.

    `engines` have a column each, even without measurements. `elsewhere` has further measurements by the experiment's
    name, and `left_out` says why an engine has none: by experiment, point and engine.
    """
    made = [
        _Told(result, statement)
        for result in results
        for statement in statements([*result.expectations, *(elsewhere or {}).get(result.experiment, ())])
    ]
    names = list(dict.fromkeys([*engines, *(name for told in made for name in told.statement.by_engine)]))
    shown = [told for told in made if told.statement.applies]
    notes = _Notes(left_out or {})
    documents = list(dict.fromkeys(told.document for told in shown))
    several = len(results) > 1
    for document in documents:
        table = plain_table(f"{document}: what it says, and what was measured")
        table.expand = len(documents) > 1  # so that the columns of all tables stand below one another
        for heading, ratio in (("Experiment", 4), ("Figure or claim", 7), ("Says", 8))[not several :]:
            table.add_column(heading, ratio=ratio, overflow="fold")
        table.add_column("Band", ratio=3, justify="right")
        for name in names:
            table.add_column(in_words(name) if len(names) > 1 else "Measured", ratio=3, justify="right")
        table.add_column("Verdict", ratio=5)
        table.add_column("Why", ratio=1, justify="right")
        for told in shown:
            if told.document == document:
                table.add_row(*told.cells(names, notes)[not several :])
        console().print(table)
    if any(each.reach is not None for told in shown for each in told.statement.by_engine.values()):
        console().print(Text("Measured: means over repetitions ± half the width of their 95 % confidence interval."))
    for line in notes.lines(made):
        console().print(Text(line))
    for line in dict.fromkeys(line for told in shown for line in told.apart()):
        console().print(Text(line))


def print_left_out(left_out: Sequence[LeftOut]) -> None:
    """The points without runs: each reason once."""
    about: dict[tuple[str, str, str, bool], list[LeftOut]] = {}
    for each in left_out:
        about.setdefault((each.engine, each.experiment, each.reason, each.failed), []).append(each)
    for (engine, experiment, reason, failed), points in about.items():
        whom = f"({points[0].point})" if len(points) == 1 else f"({len(points)} points)"
        verb = "failed" if failed else "not run"
        console().print(Text(f"{verb.capitalize()} on {engine}: {experiment} {whom}: {reason}"))


def print_warnings(results: Sequence[Result]) -> None:
    """The engine's warnings."""
    for warning in dict.fromkeys(w for result in results for run in result.runs for w in run.warnings):
        console().print(Text(f"Warning: {warning}"))


def print_run(run: Run) -> None:
    """A stored run: how it was made, and every metric."""
    from bufferscope.metrics import not_measured, not_recorded

    if live_of(run.meta["summary"]):
        from bufferscope.cli.live import print_live

        print_live(run)

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
    live = live_of(meta["summary"])
    made = _of_measurement(live, meta["started"]) if live else _origin(run) if sources(meta) else _making(run)
    return {
        "Experiment": f"{run.experiment}: {meta['title']}",
        "Duration": f"{run.scenario['duration_ns'] / 1e9:g} s",
        **({} if live else {"Measured": described(run.scenario)}),
        **made,
        "Rows": ", ".join(f"{table} {rows}" for table, rows in meta["tables"].items()),
        "Warnings": "; ".join(run.warnings) or "none",
        "Files": f"{run.path}/",
    }


def _making(run: Run) -> dict[str, str]:
    """How an engine made a run."""
    meta = run.meta
    return {
        "Point": point_name(run),
        "Changed": " ".join(meta["overrides"]) or "nothing",
        "Engine": f"{run.engine} {meta['engine_version']}, seed {run.seed}",
        "Took": f"{meta['wall_s']:.3g} s, {meta['cpu_s']:.3g} s of CPU time",
        "Started": f"{meta['started']} by bufferscope {meta['bufferscope']}",
    }


def _of_measurement(live: LiveMeasurement, started: str) -> dict[str, str]:
    """How a live measurement came about."""
    ends = {"this machine": live["client"], "the server": live["server"]}
    told = [f"{end}: version {each.get('version', '?')}, Linux {each.get('kernel', '?')}" for end, each in ends.items()]
    return {
        "Server": f"{live['host']} ({live['address']})",
        "Started": started,
        "Complete": "yes" if live["complete"] else f"no: {live['reason'] or 'it ended early'}",
        "Programs": "; ".join(told),
    }


def _origin(run: Run) -> dict[str, str]:
    """How an observed run came about."""
    meta = run.meta
    origin = meta["summary"]["observed"]
    by = f"{origin['tool']} {origin['version']}".strip()
    values = {name: value if isinstance(value, str) else number(value) for name, value in origin["reported"].items()}
    told = ", ".join(f"{name} {value}" for name, value in values.items())
    return {
        "Observed": f"by {by}, " + (f"from {meta['started']} on" if origin["clock"] else "at an unknown time"),
        "Read from": ", ".join(f"{each['file']} ({each['bytes']} bytes)" for each in origin["sources"]),
        "It reports": told or "nothing else",
    }


def point_name(run: Run) -> str:
    """The run's swept values; without a sweep, what `--set` changed; of an observed run, its files."""
    if sources(run.meta):
        return ", ".join(each["file"] for each in run.meta["summary"]["observed"]["sources"])
    swept = ", ".join(f"{path} = {label}" for path, label in run.point.items())
    return swept or " ".join(run.meta["overrides"]) or "as in the file"


def number(value: float) -> str:
    """Four significant digits; a value hidden by lost probes or unfinished transfers has no number."""
    if math.isinf(value):
        return "censored"
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


@dataclass(frozen=True)
class _Told:
    """A statement of an experiment's document."""

    result: Result
    statement: DocumentStatement

    @property
    def document(self) -> str:
        document = self.result.document
        return document["document"] or document["title"]

    @property
    def subject(self) -> str:
        """The metric and where it is measured: the labels of the swept values."""
        expectation = self.statement.expectation
        where = ", ".join(self.statement.first.point.values())
        relative = ", ".join((expectation.relative_to or {}).values())
        return expectation.subject + (f" at {where}" if where else "") + (f" / at {relative}" if relative else "")

    def cells(self, names: Sequence[str], notes: "_Notes") -> tuple[Text, ...]:
        expectation, by_engine = self.statement.expectation, self.statement.by_engine
        figure = f"{expectation.figure}: " if expectation.figure else ""
        return (
            Text(self.result.experiment),
            Text(figure + self.subject),
            Text(expectation.says),
            Text(_band(expectation.band)),
            *(Text(_measured(by_engine[name]) if name in by_engine else "-") for name in names),
            self._verdict(),
            Text(", ".join(map(str, notes.numbers(self)))),
        )

    def _verdict(self) -> Text:
        """The verdict; if the engines get different ones, each with its engine."""
        verdicts = self.statement.verdicts
        alike = len(set(verdicts.values())) == 1
        parts = [
            Text(verdict.words if alike else f"{in_words(name)}: {verdict.words}", style=STYLES[verdict])
            for name, verdict in list(verdicts.items())[: 1 if alike else None]
        ]
        return Text("\n").join(parts)

    def reasons(self, left_out: Mapping[tuple[str, int | None, str], str]) -> Iterator[str]:
        """Why an engine's measurement differs, or is missing."""
        for name, each in self.statement.by_engine.items():
            if reason := left_out.get((self.result.experiment, each.position, name), each.reason):
                yield reason

    def apart(self) -> Iterator[str]:
        """The repetitions in which flows share a flow queue."""
        for name, evaluated in self.statement.by_engine.items():
            for each in evaluated.apart:
                yield f"{self.result.experiment}, {self.subject}, {in_words(name)}, {each.sentence}."

    @property
    def shown_by(self) -> str:
        """The points that show why the engines' measurements differ."""
        shown = {name: each.shown_by for name, each in self.statement.by_engine.items() if each.shown_by}
        several = len(self.statement.by_engine) > 1
        return "; ".join(f"{by} ({in_words(name)})" if several else by for name, by in shown.items())


class _Notes:
    """The reasons below the tables, numbered in the order in which the tables refer to them."""

    def __init__(self, left_out: Mapping[tuple[str, int | None, str], str]) -> None:
        self._left_out = left_out
        self._numbers: dict[str, int] = {}

    def numbers(self, told: _Told) -> list[int]:
        """The numbers of a statement's reasons."""
        reasons = dict.fromkeys(told.reasons(self._left_out))
        return [self._numbers.setdefault(reason, len(self._numbers) + 1) for reason in reasons]

    def lines(self, made: Sequence[_Told]) -> Iterator[str]:
        """Each reason once, with the statements that it concerns and the points that show it."""
        subjects: dict[str, list[_Told]] = {reason: [] for reason in self._numbers}
        for told in made:
            for reason in dict.fromkeys(told.reasons(self._left_out)):
                subjects.setdefault(reason, []).append(told)
        for reason, about in subjects.items():
            number = f"[{self._numbers[reason]}] " if reason in self._numbers else ""
            whom = "; ".join(told.subject for told in about)
            if len(about) > MOST_SUBJECTS:
                whom = f"{len(about)} expectations"
            experiments = " and ".join(dict.fromkeys(told.result.experiment for told in about))
            shown = "; ".join(dict.fromkeys(told.shown_by for told in about if told.shown_by))
            yield f"{number}{experiments}, {whom}: {reason}" + (f" Shown by {shown}." if shown else "")


def _measured(evaluated: ExpectationResult) -> str:
    """The mean; with repetitions, also half the width of its 95 % confidence interval."""
    if evaluated.measured is None:
        return "-"
    chance = "" if evaluated.reach is None else f"{NBSP}±{NBSP}{margin(evaluated.reach, evaluated.measured)}"
    return number(evaluated.measured) + chance


def _band(band: tuple[float, float]) -> str:
    low, high = band
    if math.isinf(high):
        return f">= {low:g}"
    return f"<= {high:g}" if math.isinf(low) else f"{low:g} to {high:g}"
