"""The commands of `ip` and `tc` that build a point's network by hand, as a script."""

from bufferscope import _core
from bufferscope.base.errors import InputError
from bufferscope.model.experiment import Experiment, Point


def script(experiment: Experiment, point: Point) -> str:
    """A script for root's `sh` that builds and removes the network. Raises `InputError` if Linux can't build it."""
    about = [f"{experiment.name}: {experiment.title}", *(f"{path} = {label}" for path, label in point.values.items())]
    about += [f"--set {override}" for override in experiment.overrides]
    try:
        return _core.commands(point.core, about)
    except _core.PlanError as error:
        raise InputError(f"{experiment.name} ({point}): {error}") from None
