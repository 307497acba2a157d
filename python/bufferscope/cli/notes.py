"""Notes that a user should read before an experiment runs, on standard error."""

from collections.abc import Iterable

from bufferscope.cli.saying import note
from bufferscope.model.experiment import Experiment


def tell(experiments: Iterable[Experiment]) -> None:
    """Print the experiments' notes, one line each."""
    for experiment in experiments:
        for sentence in experiment.notes:
            note(f"bufferscope: note: {experiment.name}: {sentence}")
