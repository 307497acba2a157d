"""The simulator: virtual time, and the same records for the same seed on every machine."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from bufferscope import _core
from bufferscope.base import machine
from bufferscope.base.errors import EngineError
from bufferscope.engines.outcome import Outcome
from bufferscope.model.experiment import Point
from bufferscope.store.metadata import Summary


def run(point: Point, seed: int, directory: Path, progress: Callable[[int, int], bool]) -> Outcome:
    """Simulate a point; raises `EngineError`, or `_core.Interrupted` after `progress` returned False."""
    try:
        summary = _core.simulate(point.core, seed, directory, progress)
    except _core.SimulationError as error:
        raise EngineError(str(error)) from error
    return outcome(point, json.loads(summary))


class SimBatchRunner:
    """Simulates one run after the other, and writes their tables into shared files. Raises the same errors as `run`."""

    def __init__(self, directory: Path) -> None:
        """Write to this directory."""
        try:
            self._writer = _core.PartitionWriter(directory)
        except _core.TablesError as error:
            raise EngineError(str(error)) from error

    def run(self, point: Point, seed: int, progress: Callable[[int, int], bool]) -> Outcome:
        """Simulate the next run; after an error, the tables are incomplete and must not be used."""
        try:
            summary = self._writer.simulate(point.core, seed, progress)
        except _core.SimulationError as error:
            raise EngineError(str(error)) from error
        return outcome(point, json.loads(summary))

    def finish(self) -> None:
        """Complete the tables."""
        try:
            self._writer.finish()
        except _core.TablesError as error:
            raise EngineError(str(error)) from error


def outcome(point: Point, summary: dict[str, Any]) -> Outcome:
    """The outcome of a simulation with this summary."""
    return Outcome(
        engine_version=_core.__version__,
        mss_bytes=_core.MSS_BYTES,
        sample_interval_ns=point.scenario["sample_interval_ns"],
        warnings=summary["warnings"],
        tables=summary["tables"],
        summary=cast(Summary, {key: value for key, value in summary.items() if key not in ("warnings", "tables")}),
    )


def refusals(points: Sequence[Point]) -> list[str | None]:
    """For each of these points, why the simulator can't run it; None if it can."""
    available = machine.available_bytes()
    return [_refusal(point, available) for point in points]


def memory_bytes(point: Point) -> int:
    """A rough estimate of the memory that a run takes, more likely too large than too small."""
    return int(json.loads(_core.footprint(point.core))["memory_bytes"])


def _refusal(point: Point, available: int | None) -> str | None:
    """Why the simulator can't run a point, or this machine lacks the memory for it or for its records."""
    try:
        needs = json.loads(_core.footprint(point.core))
    except _core.SimulationError as error:
        return str(error)
    return shortage(needs, available)


def shortage(needs: Mapping[str, Any], available: int | None) -> str | None:
    """Why the available memory is too little for a simulation with these needs; None if it suffices or is not known."""
    if available is None or max(needs["memory_bytes"], needs["reading_bytes"]) <= available:
        return None
    here = f"this machine has {machine.gigabytes(available)} left"
    if needs["memory_bytes"] > available:
        largest = f", most of it for the traffic `{needs['largest']}`" if needs["largest"] else ""
        return (
            f"would need about {machine.gigabytes(needs['memory_bytes'])} of memory{largest}, but {here}: use fewer "
            "flows, pages or links, shorter queues, or smaller buffers (rmem_max, wmem_max of a [[host]])"
        )
    return (
        f"would record {needs['rows'] / 1e6:.3g} million rows, which need about "
        f"{machine.gigabytes(needs['reading_bytes'])} of memory to process, but {here}: raise `sample`, leave tables "
        "out of `record`, shorten `duration`, or use fewer flows"
    )


@cache
def identity() -> str:
    """The hash of the simulator's file, because another build may give other records."""
    return sha256(Path(_core.__file__).read_bytes()).hexdigest()[:16]
