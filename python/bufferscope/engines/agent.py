"""The agent's program: where to find it, and how to request a run from it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from bufferscope import _core
from bufferscope.base.commit import PACKAGE
from bufferscope.base.errors import EngineError
from bufferscope.model.experiment import Point

NAME = "bufferscope-agent"
VARIABLE = "BUFFERSCOPE_AGENT"
"""The environment variable that selects another agent."""

_TARGET = PACKAGE.parents[1] / "target"
_PATHS = (
    PACKAGE / "bin" / NAME,
    _TARGET / "x86_64-unknown-linux-gnu" / "agent" / NAME,
    _TARGET / "release" / NAME,
    _TARGET / "debug" / NAME,
)
"""Where the agent may be: in the package, or where cargo builds it in a source tree."""


def program() -> Path:
    """The agent's path. Raises `EngineError` if there is no agent."""
    if chosen := os.environ.get(VARIABLE):
        paths: tuple[Path, ...] = (Path(chosen),)
    else:
        paths = _PATHS
    for path in paths:
        if os.access(path, os.X_OK) and path.is_file():
            return path
    raise EngineError(
        f"no {NAME} at {paths[0]}: build it with `make agent`, install a package that was built with `make wheel`, "
        f"or set {VARIABLE} to where it is"
    )


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
