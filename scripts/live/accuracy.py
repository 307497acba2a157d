"""Measures how often `bufferscope-live measure` names the right queue, on paths on which we planted one, or none.

Writes docs/live-accuracy.md. Exits with 1 if less than 95 % of the verdicts are right, if a queue is named on a clean
path, if less than 90 % of the verdicts with a probability of 90 % or more are right, or if in the median the added
delay or the buffer differs from the planted one by more than 10 % or 15 %.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from labs import KINDS, Trial, drawn
from trials import Judged, judged, judged_again

PAGE = Path(__file__).parents[2] / "docs" / "live-accuracy.md"
SEEDS: Mapping[str, range] = {"guest": range(760_001, 760_053), "host": range(750_001, 750_161)}
"""The seeds of the page for each engine, which were not used while the verdict was written."""
LEAST_RIGHT = 0.95
LEAST_CALIBRATED = 0.90
LARGEST_DELAY_ERROR, LARGEST_BYTES_ERROR = 0.10, 0.15


def page(rows: Mapping[str, Sequence[Judged]]) -> str:
    """The page about the trials of each engine."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, autoescape=False
    )
    everything = [each for judged in rows.values() for each in judged]
    counted = {
        kind: {engine: [each for each in judged if each.trial.kind == kind] for engine, judged in rows.items()}
        for kind in KINDS
    }
    return templates.get_template("accuracy.md.jinja").render(
        rows=rows,
        everything=everything,
        kinds=[(KINDS[kind].text, kind, engines) for kind, engines in counted.items() if any(engines.values())],
        planned=sum(len(seeds) for seeds in SEEDS.values()),
        certain=[each for each in everything if each.probability >= 0.9],
        delay_errors=errors((each.measured_ms, each.true_ms) for each in everything),
        bytes_errors=errors((each.measured_bytes, each.true_bytes) for each in everything),
    )


def errors(pairs: Iterable[tuple[float | None, float | None]]) -> list[float]:
    """The relative errors of pairs of a measured and a true value, where both are known, in order."""
    return sorted(abs(measured / true - 1) for measured, true in pairs if measured and true)


def is_clean(each: Judged) -> bool:
    """Whether the trial's path has no queue that fills."""
    return each.trial.kind in ("clean", "policer", "window")


def failures(rows: Sequence[Judged]) -> list[str]:
    """The aims that are not met."""
    certain = [each.is_right for each in rows if each.probability >= 0.9]
    delays = errors((each.measured_ms, each.true_ms) for each in rows)
    sizes = errors((each.measured_bytes, each.true_bytes) for each in rows)
    checks = {
        "fewer verdicts are right than aimed at": sum(each.is_right for each in rows) < LEAST_RIGHT * len(rows),
        "a queue was named on a clean path": any(each.named for each in rows if is_clean(each)),
        "certain verdicts are wrong too often": sum(certain) < LEAST_CALIBRATED * len(certain),
        "added delays differ too much": bool(delays) and statistics.median(delays) > LARGEST_DELAY_ERROR,
        "buffers differ too much": bool(sizes) and statistics.median(sizes) > LARGEST_BYTES_ERROR,
    }
    return [text for text, is_missed in checks.items() if is_missed]


def from_row(row: Mapping[str, Any]) -> Judged:
    """A trial as `--rows` wrote it."""
    return Judged(**{**row, "trial": Trial(**row["trial"])})


def main(arguments: Sequence[str]) -> int:
    """Run the trials and write the page."""
    parser = argparse.ArgumentParser(prog="make live-accuracy", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trials at the same time")
    parser.add_argument(
        "--engine", choices=tuple(SEEDS), action="append", help="whose kernel (default: both, one after the other)"
    )
    parser.add_argument("--seeds", type=int, help="run only so many trials of each engine")
    parser.add_argument("--first", type=int, help="the first seed, for trials other than the page's")
    parser.add_argument("--kind", choices=tuple(KINDS), help="only trials of this kind")
    parser.add_argument("--page", type=Path, default=PAGE, help=f"what is written (default: docs/{PAGE.name})")
    parser.add_argument("--rows", type=Path, help="a file with a line of JSON per trial; those in it are not run again")
    parser.add_argument("--keep", type=Path, help="a directory for the observations of each trial")
    parser.add_argument(
        "--again", action="store_true", help="judge the observations in --keep by the present rules; no trial is run"
    )
    options = parser.parse_args(arguments)
    if options.again and (options.keep is None or options.rows is not None):
        parser.error("--again needs --keep, and takes no --rows")
    rows: dict[str, list[Judged]] = {}
    for engine in options.engine or SEEDS:
        first = SEEDS[engine].start if options.first is None else options.first
        seeds = range(first, first + (options.seeds or len(SEEDS[engine])))
        trials = [
            trial
            for trial in (drawn(seed, engine, options.kind) for seed in seeds)
            if options.kind in (None, trial.kind)
        ]
        if not trials:
            parser.error(f"no trial of {engine} is of the kind `{options.kind}`; give more --seeds")
        rows[engine] = run(trials, engine, options)
    options.page.write_text(page(rows), encoding="utf-8")
    print(f"Written: {options.page}", file=sys.stderr)
    missed = failures([each for judged in rows.values() for each in judged])
    for text in missed:
        print(f"Not met: {text}", file=sys.stderr)
    return 1 if missed else 0


def run(trials: Sequence[Trial], engine: str, options: argparse.Namespace) -> list[Judged]:
    """Run trials side by side; those that `--rows` has are read from it, and the others are appended to it."""
    file, keep = options.rows, options.keep
    known: dict[Trial, Judged] = {}
    if file is not None and file.exists():
        lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        rows = [from_row(line["judged"]) for line in lines if line["engine"] == engine]
        known = {each.trial: each for each in rows}
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    found: list[Judged] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        method = judged_again if options.again else judged
        for each in pool.map(lambda trial: known.get(trial) or method(trial, engine, keep), trials):
            found.append(each)
            mark = "right" if each.is_right else "WRONG"
            number = f"{engine} {len(found)}/{len(trials)} {each.trial.seed}"
            print(f"{number} {each.trial.kind}: {each.outcome} {each.named}: {mark} {each.error}", file=sys.stderr)
            if file is not None and each.trial not in known:
                with file.open("a", encoding="utf-8") as appended:
                    appended.write(json.dumps({"engine": engine, "judged": asdict(each)}) + "\n")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
