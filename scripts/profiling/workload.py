"""Simulates what a profile-guided build is optimised for: two points of each experiment of the catalogue.

`wheel.sh` runs it with a simulator that counts what it does.
"""

from collections.abc import Sequence
from contextlib import suppress

from bufferscope import _core
from bufferscope.base.errors import ExperimentError
from bufferscope.model.experiment import Point, catalogue, load

SECONDS = 10


def main(names: Sequence[str], seconds: int = SECONDS) -> None:
    """Simulate these experiments, and discard the results."""
    for name in names:
        for point in brief(name, seconds):
            _core.Simulation(point.core, 1).finish()


def brief(name: str, seconds: int) -> list[Point]:
    """Two points of an experiment for some seconds, if its traffic fits into them."""
    experiment = load(name)
    with suppress(ExperimentError):
        experiment = load(name, [f"duration={seconds}s"])
    return [experiment.points[0], experiment.points[-1]]


if __name__ == "__main__":
    main(catalogue())
