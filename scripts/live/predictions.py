"""Measures how well models of lines predict what a change does, on Linux kernels.

Each trial builds a path with a planted queue, measures it, models it, and predicts the same test with another queue.
Then the path is built with that queue, and measured again. The table in docs/model.md is written from the trials.
"""

import argparse
import json
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bufferscope.engines.live.program import program
from bufferscope.interop.live.measuring import read_events
from bufferscope.store.run import Run
from bufferscope.store.verdict import Direction
from bufferscope.studies.modelling.fitting import LineFit, fit
from bufferscope.studies.modelling.line import MANAGED, LineModel
from bufferscope.studies.modelling.measured import PhaseResult, of_live
from bufferscope.studies.modelling.predicting import Prediction, predicted

PAGE = Path(__file__).parents[2] / "docs" / "model.md"
BEGIN, END = "<!-- Written by scripts/live/predictions.py. -->", "<!-- Up to here. -->"
LONGEST_S = 900
"""Seconds of real time that a measurement may take."""
WITHIN, WITHIN_MS = 0.15, 2.0
"""A prediction is right within this part, or a round trip within this time."""
CHANGES = {
    "cake": "a shaper on the router, `cake` at the rate that `fix` prints",
    "fq_codel": "`fq_codel` in place of the line's queue",
    "shorter": "a tail-drop queue of a quarter of the size",
}
OF_ENGINE: Mapping[str, Sequence[str]] = {"guest": tuple(CHANGES), "host": ("shorter",)}
"""The kernel of this machine may have neither cake nor fq_codel."""
NAMES = ("p50", "p95", "bounds", "unknown", "goodput")
"""Those of the answers, in the order of the table."""
FRAME = 1514
PATH = """
title = "{title}"
duration = "300s"
[[link]]
name = "home"
ends = ["h1", "r1"]
{home}
[[link]]
name = "wan"
ends = ["r1", "m1"]
{wan}
[[link]]
name = "line"
ends = ["m1", "p1"]
{line}
[[link]]
name = "path"
ends = ["p1", "h2"]
{delay}
[[traffic]]
name = "ping"
kind = "ping"
from = "h1"
to = "h2"
"""


@dataclass(frozen=True)
class Plan:
    """What is drawn from a seed."""

    seed: int
    engine: str
    change: str
    way: Direction
    up_kbit: int
    down_kbit: int
    delay_ms: float
    """The propagation delay each way; 0 on this machine, whose kernel may have no netem."""
    limit_bytes: int
    is_in_packets: bool
    flows: int

    @property
    def phase(self) -> str:
        """The phase that is measured."""
        return "upload" if self.way == "up" else "download"


@dataclass(frozen=True)
class Answer:
    """A number of a trial."""

    name: str
    """`p50`, `p95` (a number), `bounds` (of the p95), `unknown` (shares of lost probes instead of it), `goodput`."""
    predicted: float | tuple[float, float] | None
    measured: float | None
    is_right: bool | None
    """None if nothing was predicted."""


@dataclass(frozen=True)
class Predicted:
    """A trial."""

    plan: Plan
    fits: bool
    before: PhaseResult | None = None
    predicted: Prediction | None = None
    measured: PhaseResult | None = None
    error: str = ""

    def answers(self) -> Iterable[Answer]:
        """Each number that was predicted, and measured again."""
        if self.predicted is None or self.measured is None:
            return
        made, again = self.predicted, self.measured
        yield Answer("p50", made.result.p50_ms, again.p50_ms, agrees(made.result.p50_ms, again.p50_ms, WITHIN_MS))
        if made.tail == "bounds" and made.p95_range_ms:
            (least, most), found = map(_printed, made.p95_range_ms), again.p95_ms
            yield Answer("bounds", (least, most), found, found is not None and least <= _printed(found) <= most)
        elif made.tail == "unknown":
            yield Answer("unknown", made.lost_range, again.p95_ms, None)
        else:
            yield Answer("p95", made.result.p95_ms, again.p95_ms, agrees(made.result.p95_ms, again.p95_ms, WITHIN_MS))
        rates = made.result.goodput_mbit.get(self.plan.way), again.goodput_mbit.get(self.plan.way)
        yield Answer("goodput", *rates, agrees(*rates, 0.0))


def _printed(time_ms: float) -> float:
    """A time with the digits that the command prints."""
    return float(f"{time_ms:.3g}")


def agrees(predicted: float | None, measured: float | None, least: float) -> bool:
    """Whether a prediction is right."""
    if predicted is None or measured is None:
        return predicted is measured
    return abs(predicted - measured) <= max(WITHIN * measured, least)


def drawn(seed: int, engine: str) -> Plan:
    """A trial at random."""
    draw = random.Random(f"{seed} {engine}")
    way: Direction = draw.choice(["up", "down"])
    up, down = round(10 ** draw.uniform(3.3, 4.2)), round(10 ** draw.uniform(3.6, 4.5))
    full_ms = 10 ** draw.uniform(2.0, 2.7)
    limit = max(round((up if way == "up" else down) * full_ms / 8), 20 * FRAME)
    return Plan(
        seed,
        engine,
        draw.choice(OF_ENGINE[engine]),
        way,
        up,
        down,
        round(draw.uniform(3, 40), 1) if engine == "guest" else 0.0,
        limit,
        draw.random() < 0.5,
        draw.choice([2, 4, 8]),
    )


def experiment(plan: Plan, change: str = "", shaper_kbit: int = 0) -> str:
    """The experiment file of the path, with a change."""
    size = plan.limit_bytes // (4 if change == "shorter" else 1)
    limit = f"{size // FRAME}p" if plan.is_in_packets else f"{size}b"
    queue = f'{{ qdisc = "{"pfifo" if plan.is_in_packets else "bfifo"}", limit = "{limit}" }}'
    if change == "fq_codel":
        queue = '{ qdisc = "fq_codel" }'
    plain = '{ qdisc = "pfifo", limit = "1000p" }'
    shaper = f'rate = "1gbit", queue = {{ qdisc = "cake", bandwidth = "{shaper_kbit}kbit"'
    up, down = (queue, plain) if plan.way == "up" else (plain, queue)
    return PATH.format(
        title="A line whose queue is changed",
        home=f"reverse = {{ {shaper}, ingress = true }} }}" if change == "cake" and plan.way == "down" else "",
        wan=f"forward = {{ {shaper} }} }}" if change == "cake" and plan.way == "up" else "",
        line=f'forward = {{ rate = "{plan.up_kbit}kbit", queue = {up} }}\n'
        f'reverse = {{ rate = "{plan.down_kbit}kbit", queue = {down} }}',
        delay=f'delay = "{plan.delay_ms}ms"' if plan.delay_ms else "",
    )


def measured(plan: Plan, text: str, directory: Path) -> Run:
    """A live measurement of a path. Raises `ValueError` if it fails."""
    return measure(plan.engine, plan.seed, (plan.phase,), plan.flows, text, directory)


def measure(
    engine: str,
    seed: int,
    phases: Sequence[str],
    flows: int,
    text: str,
    directory: Path,
    setup: Mapping[str, str] | None = None,
) -> Run:
    """A live measurement from `h1` to `h2` of an experiment's network; `setup` has commands for its nodes.

    Raises `ValueError` if it fails.
    """
    file = directory / "path.toml"
    file.write_text(text, encoding="utf-8")
    # A guest has none of this machine's files but the programs.
    inside, live = ("/tmp", "bufferscope-live") if engine == "guest" else (str(directory), str(program()))
    token = f"{inside}/token"
    options = ("--phases", ",".join(phases), "--token-file", token, "--flows", str(flows))
    test = shlex.join([live, "measure", "h2", "--events", *options])
    commands = {"h2": f"exec {shlex.join([live, 'serve', '--token-file', token])}", **(setup or {})}
    before = commands.pop("h1", "true")
    others = [
        f"{node}={shlex.join(['sh', '-ec', typed if node == 'h2' else f'{typed}; exec sleep 100000'])}"
        for node, typed in commands.items()
    ]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bufferscope", "shell", str(file), "--engine", engine, "--quiet"),
            *("--seed", str(seed), "--on", "h1"),
            *(word for each in others for word in ("--with", each)),
            *("--", "sh", "-ec", f"{before}; sleep 5; {test}"),
        ],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    lines = [line.encode() for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise ValueError((done.stderr or done.stdout)[-300:] or "no output")
    return read_events(lines, directory / "results")


def changed(plan: Plan, fitted: LineFit) -> tuple[LineModel, int]:
    """The model with the change, and the rate of the shaper in kbit/s."""
    queue = fitted.model.queues[plan.way]
    if plan.change == "cake":
        kbit = round((fitted.line.directions[plan.way].shaper_bps or 0) / 1000)
        return replace(fitted.model, shapers={plan.way: kbit}), kbit
    if plan.change == "fq_codel":
        other = replace(queue, qdisc=MANAGED, limit_bytes=None)
    else:
        # The size that the plan takes, as far as the model knows the present one.
        other = replace(queue, limit_bytes=max((queue.limit_bytes or 0) // 4, 2 * FRAME))
    return replace(fitted.model, queues={**fitted.model.queues, plan.way: other}), 0


def tried(plan: Plan) -> Predicted:
    """Measure, model, predict, change, and measure again."""
    try:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            fitted = fit(of_live(measured(plan, experiment(plan), directory)))
            (phase,) = fitted.phases
            if not fitted.fits:
                return Predicted(plan, fits=False, before=phase.measured)
            model, kbit = changed(plan, fitted)
            made = predicted(model, phase.phase)
            again = of_live(measured(plan, experiment(plan, plan.change, kbit), directory))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Predicted(plan, fits=False, error=str(error)[-200:])
    return Predicted(plan, True, phase.measured, made, again.phases[0].result)


def table(rows: Sequence[Predicted]) -> str:
    """What docs/model.md says of the trials."""
    lines = [
        "| kernel | change | trials | models that fit | p50 | p95 | bounds of p95 | p95 not known | goodput |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for engine in OF_ENGINE:
        for change, text in CHANGES.items():
            kind = (engine, change)
            own = [each for each in rows if (each.plan.engine, each.plan.change) == kind and not each.error]
            if not own:
                continue
            answers = [answer for each in own for answer in each.answers()]
            cells = [_cell([each for each in answers if each.name == name]) for name in NAMES]
            where = "guest" if engine == "guest" else "this machine"
            fitting = sum(each.predicted is not None for each in own)
            lines.append(f"| {where} | {text} | {len(own)} | {fitting} | {' | '.join(cells)} |")
    failed = [each for each in rows if each.error]
    if failed:
        lines += ["", f"{len(failed)} trials did not run to their end."]
    return "\n".join(lines)


def _cell(found: Sequence[Answer]) -> str:
    """How many of these answers are right, or how many there are of those that tell nothing."""
    told = [each.is_right for each in found if each.is_right is not None]
    return f"{sum(told)} of {len(told)}" if told else str(len(found) or "")


def written(page: str, rows: Sequence[Predicted]) -> str:
    """The page with the table of these trials."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{PAGE}: found no {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}"


def from_row(row: Mapping[str, Any]) -> Predicted:
    """A trial as `--rows` wrote it."""
    results: dict[str, Any] = {
        key: None if row[key] is None else PhaseResult(**row[key]) for key in ("before", "measured")
    }
    made: dict[str, Any] | None = row["predicted"]
    if made is not None:
        bounds = made["p95_range_ms"]
        results["predicted"] = Prediction(
            PhaseResult(**made["result"]), None if bounds is None else tuple(bounds), tuple(made["lost_range"])
        )
    return Predicted(**{**row, **results, "plan": Plan(**row["plan"])})


def _is_wanted(wanted: str | None, found: str) -> bool:
    return wanted in (None, found)


def main(arguments: Sequence[str]) -> int:
    """Run the trials and write the table; the exit status is 1 if a prediction is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", choices=tuple(OF_ENGINE), action="append", help="whose kernel (default: both)")
    parser.add_argument("--first", type=int, required=True, help="the first seed")
    parser.add_argument("--seeds", type=int, default=12, help="trials of each engine (default: 12)")
    parser.add_argument("--change", choices=tuple(CHANGES), help="only trials with this change; others of --rows stay")
    parser.add_argument("--way", choices=("up", "down"), help="only trials of this direction; others of --rows stay")
    parser.add_argument("--jobs", type=int, default=1, help="trials at the same time (default: 1)")
    parser.add_argument("--rows", type=Path, help="a file with a line of JSON per trial; those in it are not run again")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose table is written")
    options = parser.parse_args(arguments)
    file: Path | None = options.rows
    known = {}
    if file is not None and file.exists():
        known = {row.plan: row for row in map(from_row, map(json.loads, file.read_text().splitlines()))}
    plans = [
        drawn(seed, engine)
        for engine in options.engine or OF_ENGINE
        for seed in range(options.first, options.first + options.seeds)
    ]
    wanted = (options.change, options.way)
    plans = [plan for plan in plans if plan in known or all(map(_is_wanted, wanted, (plan.change, plan.way)))]
    rows: list[Predicted] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda plan: known.get(plan) or tried(plan), plans):
            rows.append(row)
            shown = ", ".join(
                f"{each.name} {each.predicted} {each.measured}{' WRONG' if each.is_right is False else ''}"
                for each in row.answers()
            )
            print(f"{row.plan}: {shown or row.error or 'does not fit'}", file=sys.stderr, flush=True)
            if file is not None and row.plan not in known:
                with file.open("a", encoding="utf-8") as appended:
                    appended.write(json.dumps(asdict(row)) + "\n")
    options.page.write_text(written(options.page.read_text(encoding="utf-8"), rows), encoding="utf-8")
    return int(any(each.is_right is False for row in rows for each in row.answers()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
