"""Checks for the simulator, metrics, figures and reports: this package and the packages that it depends on."""

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from bufferscope import _core
from bufferscope.engines.doctor.findings import Check, Remedy
from bufferscope.engines.doctor.system import System

PACKAGES = ("polars", "altair", "vl-convert-python", "jinja2", "scipy", "typer", "rich")
"""The packages that records, figures, reports and the command line use."""


def checks(_system: System) -> Iterator[Check]:
    """The native core, the interpreter and the packages."""
    yield Check("native core", "ready", f"bufferscope {_core.__version__}")
    yield Check("python", "ready", f"{platform.python_version()} ({platform.python_implementation()})")
    yield from map(_package, PACKAGES)


def _package(name: str) -> Check:
    try:
        return Check(name, "ready", version(name))
    except PackageNotFoundError:
        install = Remedy(commands=(f"{sys.executable} -m pip install {name}",))
        return Check(name, "missing", "metrics, figures or reports can't be made", install)
