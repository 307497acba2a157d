"""Fixtures that several test modules use."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from laboratory import Answer

from bufferscope.cli import run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# How long a case takes is this machine's affair.
settings.register_profile("patient", settings.default, deadline=None)
settings.load_profile("patient")


ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session", autouse=True)
def _only_declared_programs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every test finds the programs of `programs.txt` in PATH, and no others."""
    directory = tmp_path_factory.mktemp("programs")
    subprocess.run([ROOT / "scripts" / "declared-programs.sh", directory], check=True)
    os.environ["PATH"] = str(directory)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """The command line, called in an empty directory of its own (`tmp_path`)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Answer:
        capfd.readouterr()
        status = run(arguments)
        out, err = capfd.readouterr()
        return Answer(status, out, err)

    return call


@pytest.fixture(scope="session")
def chromium() -> "Iterator[Browser]":
    """The system's Chromium; a machine without one fails the tests, and is told what to install."""
    from browsers import launched

    yield from launched()
