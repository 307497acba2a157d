"""What this machine can do."""

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from bufferscope import _core, machine
from bufferscope.engines import ENGINES, NOT_YET, Engine
from bufferscope.errors import EngineError

PACKAGES = ("polars", "altair", "vl-convert-python", "jinja2", "scipy", "typer", "rich")
"""What records, figures, report and command line are made with."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: Literal["ready", "missing", "not in this version"]
    details: str


def examine() -> list[Finding]:
    """Look at the interpreter, the native core, the packages and every engine."""
    about = machine.describe()
    return [
        Finding("machine", "ready", f"{about['cpus']} x {about['cpu']}, {about['system']} {about['release']}"),
        Finding("python", "ready", f"{platform.python_version()} ({platform.python_implementation()})"),
        Finding("native core", "ready", f"bufferscope {_core.__version__} for {about['machine']}"),
        *(_package(name) for name in PACKAGES),
        *(_engine(engine) for engine in ENGINES.values()),
        *(Finding(f"engine {name}", "not in this version", about) for name, about in NOT_YET.items()),
    ]


def _engine(engine: Engine) -> Finding:
    what = f"engine {engine.name}"
    try:
        return Finding(what, "ready", f"{engine.about}{engine.examine()}")
    except EngineError as error:
        return Finding(what, "missing", str(error))


def _package(name: str) -> Finding:
    try:
        return Finding(name, "ready", version(name))
    except PackageNotFoundError:
        return Finding(name, "missing", f"install it with: python -m pip install {name}")
