"""The simulator: virtual time, the same records for the same seed on every machine."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from bufferscope import _core
from bufferscope.engines import rings
from bufferscope.engines.outcome import Outcome
from bufferscope.errors import EngineError
from bufferscope.experiment import Point


def run(point: Point, seed: int, directory: Path, progress: Callable[[int, int], bool]) -> Outcome:
    """Simulate a point; raises `EngineError`, or `_core.Interrupted` after `progress` returned False."""
    try:
        summary = json.loads(_core.simulate(point.core, seed, directory, progress))
    except _core.SimulationError as error:
        raise EngineError(str(error)) from error
    return Outcome(
        engine_version=_core.__version__,
        mss_bytes=_core.MSS_BYTES,
        sample_interval_ns=point.scenario["sample_interval_ns"],
        warnings=summary.pop("warnings"),
        tables=summary.pop("tables"),
        summary=summary,
    )


def refusals(points: Sequence[Point]) -> list[str | None]:
    """Why the simulator can't run each of these points; None for one that it can."""
    return [rings.refusal(point, "the simulator has none") for point in points]


@cache
def identity() -> str:
    """The simulator's build, by its file's hash: any other may give other records."""
    return sha256(Path(_core.__file__).read_bytes()).hexdigest()[:16]
