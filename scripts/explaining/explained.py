"""Measures how often `bufferscope explain` is right: 240 scenarios with a planted cause, and the named cause.

Writes docs/explained.md with the table of hits and confusions. Exits with 1 if less than 95 % are named, or if a cause
is named where nothing is wrong.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from acting import LEAST_GAIN, LEAST_KEPT, LEAST_LOST, LEAST_MS, LEAST_REMOVED, acting
from bufferscope.analysis.explanation import Cause, explain_run
from kinds import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "explained.md"
REPORTED = range(600_001, 600_241)
"""The seeds of the page, which did not influence the thresholds: other seeds found mistakes, as the page says."""
LEAST_NAMED = 0.95
NAMES = [str(cause) for cause in Cause]


@dataclass(frozen=True)
class Judged:
    """A planted cause, and what was named."""

    seed: int
    kind: str
    planted: str
    """The right answer."""
    port: str
    words: str
    outcome: str
    draws: int
    named: str
    named_port: str
    is_hit: bool
    """Whether the cause was named, and the port and layer where it is in one."""
    verdict: str


def main(arguments: Sequence[str]) -> int:
    """Judge all seeds and write the page."""
    options = _options(arguments)
    judged = judge_all(REPORTED[: options.seeds], options.jobs)
    options.page.write_text(page(judged), encoding="utf-8")
    print(f"Written: {options.page}", file=sys.stderr)
    return 0 if passes(judged) else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make explaining", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, help="processes (default: one for each processor)")
    parser.add_argument(
        "--seeds", type=int, default=len(REPORTED), help="try only so many of the scenarios, at least one of each kind"
    )
    parser.add_argument("--page", type=Path, default=PAGE, help=f"what is written (default: docs/{PAGE.name})")
    options = parser.parse_args(arguments)
    if not len(KINDS) <= options.seeds <= len(REPORTED):
        parser.error(
            f"--seeds: found {options.seeds}; allowed: {len(KINDS)} to {len(REPORTED)}, of every kind one or more"
        )
    if options.page == PAGE and options.seeds != len(REPORTED):
        parser.error("--seeds needs --page: docs/ has the page of all scenarios")
    return options


def judge_all(seeds: Sequence[int], jobs: int | None = None) -> list[Judged]:
    """Judge the scenarios of these seeds, several at once."""
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(judge, seeds))


def judge(seed: int) -> Judged:
    """Plant the cause of a seed, and explain the run."""
    found = acting(seed)
    told, planted = explain_run(found.run), found.planted
    is_there = planted.port in (None, told.port) and planted.layer in (None, told.layer)
    return Judged(
        seed=seed,
        kind=planted.kind,
        planted=planted.cause,
        port=planted.port or "",
        words=planted.words,
        outcome=found.outcome,
        draws=found.draws,
        named=str(told.cause),
        named_port=told.port or "",
        is_hit=told.cause == planted.cause and is_there,
        verdict=told.verdict,
    )


def passes(judged: Sequence[Judged]) -> bool:
    """Whether enough causes are named, and none if nothing is wrong."""
    healthy = [each for each in judged if each.planted == Cause.NONE]
    return named(judged) >= LEAST_NAMED and all(each.is_hit for each in healthy)


def named(judged: Sequence[Judged]) -> float:
    """The share of the planted causes that are named."""
    return sum(each.is_hit for each in judged) / len(judged)


def page(judged: Sequence[Judged]) -> str:
    """The whole page."""
    counts = Counter((each.kind, each.named) for each in judged)
    shown = [name for name in NAMES if any(counts[kind, name] for kind in KINDS) or name in KINDS]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template("explained.md.jinja").render(
        judged=judged,
        hits=sum(each.is_hit for each in judged),
        percent=100 * named(judged),
        kinds=KINDS,
        names=shown,
        count=lambda kind, name: counts[kind, name],
        right=partial(_hits, judged),
        drawn={kind: sum(each.draws for each in judged if each.kind == kind) for kind in KINDS},
        missed=[each for each in judged if not each.is_hit],
        examples=[next(each for each in judged if each.kind == kind and each.is_hit) for kind in KINDS],
        least_ms=LEAST_MS,
        removed=round(100 * LEAST_REMOVED),
        gain=round(100 * LEAST_GAIN - 100),
        kept=round(100 * LEAST_KEPT),
        lost=round(100 * LEAST_LOST),
    )


def _hits(judged: Sequence[Judged], kind: str) -> str:
    own = [each for each in judged if each.kind == kind]
    return f"{sum(each.is_hit for each in own)} of {len(own)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
