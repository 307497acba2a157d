"""Choose one point of an experiment, for commands that take a single point."""

import sys
from collections.abc import Sequence

from bufferscope.model.experiment import Experiment, Point


def one_point(experiment: Experiment, wanted: Sequence[str]) -> Point:
    """The first point that has the `wanted` values; if there are others, say so on standard error."""
    points = experiment.having(wanted)
    if others := len(points) - 1:
        print(
            f"This is the first of {len(points)} points: {points[0]}. For {'the other' if others == 1 else 'another'}: "
            f"--point, with {experiment.choices}",
            file=sys.stderr,
        )
    return points[0]
