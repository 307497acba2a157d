"""Checks for the simulator, metrics, figures and reports: this package and the packages that it depends on."""

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from bufferscope import _core
from bufferscope.engines.doctor.findings import EngineCheck, Fix
from bufferscope.engines.doctor.system import System

PACKAGES = ("polars", "altair", "vl-convert-python", "jinja2", "typer", "rich")
"""The packages that records, figures, reports and the command line use."""


def checks(_system: System) -> Iterator[EngineCheck]:
    """The native core, the interpreter and the packages."""
    yield EngineCheck("native core", "ready", f"bufferscope {_core.__version__}")
    yield EngineCheck("python", "ready", f"{platform.python_version()} ({platform.python_implementation()})")
    yield from map(_package, PACKAGES)


def _package(name: str) -> EngineCheck:
    try:
        return EngineCheck(name, "ready", version(name))
    except PackageNotFoundError:
        install = Fix(commands=(f"{sys.executable} -m pip install {name}",))
        return EngineCheck(name, "missing", "metrics, figures or reports can't be made", install)
