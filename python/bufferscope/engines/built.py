"""The programs that come with the package: where they are, in a package or in a source tree."""

import os
from pathlib import Path

from bufferscope.base.commit import PACKAGE
from bufferscope.base.errors import EngineError

_TARGET = PACKAGE.parents[1] / "target"


def find(name: str, target: str, variable: str) -> Path:
    """The path of a program that `make TARGET` builds.

    It is in the package, or where cargo builds it in a source tree, unless the environment variable `variable` selects
    another one. Raises `EngineError` if it is missing.
    """
    if chosen := os.environ.get(variable):
        paths: tuple[Path, ...] = (Path(chosen),)
    else:
        paths = (
            PACKAGE / "bin" / name,
            _TARGET / "x86_64-unknown-linux-gnu" / target / name,
            _TARGET / "release" / name,
            _TARGET / "debug" / name,
        )
    for path in paths:
        if os.access(path, os.X_OK) and path.is_file():
            return path
    raise EngineError(
        f"no {name} at {paths[0]}: build it with `make {target}`, install a package that was built with `make wheel`, "
        f"or set {variable} to where it is"
    )
