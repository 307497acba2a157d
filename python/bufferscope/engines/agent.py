"""The agent's program: where to find it, and how to request a run from it."""

import json
from collections.abc import Mapping
from pathlib import Path

from bufferscope import _core
from bufferscope.base.errors import EngineError
from bufferscope.engines.built import find
from bufferscope.model.experiment import Point

NAME = "bufferscope-agent"
VARIABLE = "BUFFERSCOPE_AGENT"
"""The environment variable that selects another agent."""


def program() -> Path:
    """The agent's path. Raises `EngineError` if there is no agent."""
    return find(NAME, "agent", VARIABLE)


def another_build(how_known: str) -> EngineError:
    """The error for an agent and a package that do not understand each other."""
    return EngineError(
        f"{NAME} and this package are from different builds: {how_known}; reinstall the package, which has both, or "
        f"in a source tree run `make agent`, and unset {VARIABLE} where it names another agent"
    )


def request(point: Point, seed: int, options: Mapping[str, object]) -> bytes:
    """A request, which the agent reads from its standard input."""
    return json.dumps(
        {"protocol": _core.PROTOCOL, "scenario": point.scenario, "seed": seed, "options": dict(options)}
    ).encode()
