"""Does a planted cause act? Judged by taking it away, without anything of what is to name it.

- A queue, a ring or a shaper acts if the median ping waits at least 10 ms above the path, and the cure takes away at
  least 10 ms and at least half of that.
- A window, an application or losses act if goodput grows by at least a quarter without them, and the median ping waits
  less than 10 ms, so that no queue acts, too.
- Loss without delay acts if at least 4 % of the pings are lost, a quarter of that or less without it, and the median
  ping waits less than 10 ms.
- Nothing is wrong if the median ping waits less than 10 ms, less than 1 % of the pings are lost, and there is only
  light traffic or the flows get at least 80 % of the slowest link's rate. An ack filter must have removed packets; a
  queue of the warm-up must have delayed the pings of that time by at least 10 ms.

Scenarios in which the planted cause does not act are drawn again.
"""

import random
from dataclasses import dataclass

import polars as pl

from bufferscope.base.errors import EngineError
from bufferscope.model.overrides import toml
from bufferscope.running.stepping import Simulation
from bufferscope.store.memory import MemoryRun
from kinds import KINDS, planted
from planting import JUDGE, Document, Planted

DELAYS = ("queue", "ring", "shaper")
LEAST_MS = 10.0
LEAST_REMOVED = 0.5
LEAST_GAIN = 1.25
LEAST_KEPT = 0.8
LEAST_LOST, LOST_LEFT = 0.04, 0.25
MOST_LOST = 0.01
"""Of the pings, where nothing is wrong."""
FEWEST_FILTERED = 100
MOST_DRAWS = 200


@dataclass(frozen=True)
class Acting:
    """A planted scenario whose cause acts, with the run that is to be explained."""

    seed: int
    planted: Planted
    run: MemoryRun
    draws: int
    """How many scenarios were drawn until the cause acted."""
    outcome: str
    """What the criterion measured, in words."""


def acting(seed: int) -> Acting:
    """The scenario of a seed; the kinds take turns."""
    kind = KINDS[seed % len(KINDS)]
    for draw in range(1, MOST_DRAWS + 1):
        drawn = planted(kind, random.Random(1_000_003 * seed + draw))
        run = simulated(drawn.document, seed)
        outcome = _acts(drawn, run, seed)
        if outcome:
            explained = run if drawn.has_ping else simulated(_without_judge(drawn.document), seed)
            return Acting(seed, drawn, explained, draw, outcome)
    raise EngineError(f"seed {seed}: no scenario of the kind {kind} acts among {MOST_DRAWS}")


def simulated(document: Document, seed: int) -> MemoryRun:
    """Simulate an experiment."""
    text = "".join(f"{toml(key)} = {toml(value)}\n" for key, value in document.items())
    return Simulation(text, seed=seed).finish()


def _without_judge(document: Document) -> Document:
    """The experiment without its ping, if there is anything else."""
    left = [each for each in document["traffic"] if each["name"] != JUDGE]
    return {**document, "traffic": left or document["traffic"]}


def _acts(drawn: Planted, run: MemoryRun, seed: int) -> str | None:
    """What shows that the cause acts; None if it does not."""
    if drawn.cause == "none":
        return _is_well(drawn, run)
    without = simulated(drawn.without, seed)
    if drawn.cause in DELAYS:
        return _delays(drawn, run, without)
    if _added_ms(run, drawn) >= LEAST_MS:
        return None
    if drawn.kind == "loss without delay":
        lost, left = (_lost(each) for each in (run, without))
        return f"{100 * lost:.2g} % of the pings lost" if lost >= LEAST_LOST and left <= LOST_LEFT * lost else None
    with_it, without_it = (_goodput_mbit(each) for each in (run, without))
    return f"{with_it:.3g} Mbit/s, {without_it:.3g} Mbit/s without it" if without_it >= LEAST_GAIN * with_it else None


def _is_well(drawn: Planted, run: MemoryRun) -> str | None:
    added_ms, got_mbit = _added_ms(run, drawn), _goodput_mbit(run)
    if added_ms >= LEAST_MS or got_mbit < LEAST_KEPT * drawn.full_mbit or _lost(run) >= MOST_LOST:
        return None
    outcome = f"{added_ms:.1f} ms added, {got_mbit:.3g} Mbit/s"
    if drawn.kind == "ack filter":
        filtered = run.drops.filter(pl.col("reason") == "ack_filter").height
        return f"{outcome}, {filtered} acknowledgements removed" if filtered >= FEWEST_FILTERED else None
    if drawn.kind == "warm-up":
        before_ms = _before_ms(run, drawn)
        return f"{outcome}, {before_ms:.0f} ms added before" if before_ms >= LEAST_MS else None
    return outcome


def _delays(drawn: Planted, run: MemoryRun, without: MemoryRun) -> str | None:
    added_ms, left_ms = (_added_ms(each, drawn) for each in (run, without))
    removed_ms = added_ms - left_ms
    if added_ms >= LEAST_MS and removed_ms >= max(LEAST_MS, LEAST_REMOVED * added_ms):
        return f"{added_ms:.0f} ms added, {left_ms:.0f} ms without it"
    return None


def _added_ms(run: MemoryRun, drawn: Planted) -> float:
    return run.metrics.get("rtt.p50_ms", float("inf")) - drawn.path_ms


def _before_ms(run: MemoryRun, drawn: Planted) -> float:
    """What the mean ping of the first 6 s waits."""
    early = run.probes.filter((pl.col("probe") == JUDGE) & (pl.col("sent_ns") < 6 * 10**9))["rtt_ns"].drop_nulls()
    return float(early.to_numpy().mean()) / 1e6 - drawn.path_ms if len(early) else 0.0


def _lost(run: MemoryRun) -> float:
    """The share of the pings that are lost."""
    return run.metrics.get("rtt.lost", 0.0) / max(1.0, run.metrics.get("rtt.sent", 0.0))


def _goodput_mbit(run: MemoryRun) -> float:
    return run.metrics.get("goodput.bulk_mbit", 0.0)
