"""Does a planted cause act? Judged by taking it away, without anything of what is to name it.

- A queue, a ring or a shaper acts if the median ping waits at least 10 ms above the path, and the cure takes away at
  least 10 ms and at least half of that.
- A window, an application or losses act if goodput grows by at least a quarter without them, and the median ping waits
  less than 10 ms, so that no queue acts, too.
- Nothing is wrong if the median ping waits less than 10 ms, and there is only light traffic or the flows get at least
  80 % of the slowest link's rate.

Scenarios in which the planted cause does not act are drawn again.
"""

import random
from dataclasses import dataclass

from bufferscope.errors import EngineError
from bufferscope.overrides import toml
from bufferscope.stepping import Simulation
from bufferscope.store.memory import MemoryRun
from planting import CAUSES, JUDGE, Document, Planted, planted

DELAYS = ("queue", "ring", "shaper")
LEAST_MS = 10.0
LEAST_REMOVED = 0.5
LEAST_GAIN = 1.25
LEAST_KEPT = 0.8
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
    """The scenario of a seed; the causes take turns."""
    cause = CAUSES[seed % len(CAUSES)]
    for draw in range(1, MOST_DRAWS + 1):
        drawn = planted(cause, random.Random(1_000_003 * seed + draw))
        run = simulated(drawn.document, seed)
        outcome = _acts(drawn, run, seed)
        if outcome:
            explained = run if drawn.has_ping else simulated(_without_judge(drawn.document), seed)
            return Acting(seed, drawn, explained, draw, outcome)
    raise EngineError(f"seed {seed}: no scenario in which the cause {cause} acts among {MOST_DRAWS}")


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
    added_ms = _added_ms(run, drawn)
    if drawn.cause == "none":
        got_mbit = _goodput_mbit(run)
        is_well = added_ms < LEAST_MS and got_mbit >= LEAST_KEPT * drawn.full_mbit
        return f"{added_ms:.1f} ms added, {got_mbit:.3g} Mbit/s" if is_well else None
    without = simulated(drawn.without, seed)
    if drawn.cause in DELAYS:
        left_ms = _added_ms(without, drawn)
        removed_ms = added_ms - left_ms
        if added_ms >= LEAST_MS and removed_ms >= max(LEAST_MS, LEAST_REMOVED * added_ms):
            return f"{added_ms:.0f} ms added, {left_ms:.0f} ms without it"
        return None
    if added_ms >= LEAST_MS:
        return None
    with_it, without_it = (_goodput_mbit(each) for each in (run, without))
    return f"{with_it:.3g} Mbit/s, {without_it:.3g} Mbit/s without it" if without_it >= LEAST_GAIN * with_it else None


def _added_ms(run: MemoryRun, drawn: Planted) -> float:
    return run.metrics.get("rtt.p50_ms", float("inf")) - drawn.path_ms


def _goodput_mbit(run: MemoryRun) -> float:
    return run.metrics.get("goodput.bulk_mbit", 0.0)
