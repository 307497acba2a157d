"""Notes that a user should read before an experiment runs, on standard error."""

import sys
from collections.abc import Iterable

from bufferscope.errors import printable
from bufferscope.experiment import Experiment


def tell(experiments: Iterable[Experiment]) -> None:
    """Print the experiments' notes, one line each."""
    for experiment in experiments:
        for note in experiment.notes:
            print(f"bufferscope: note: {experiment.name}: {printable(note)}", file=sys.stderr)
