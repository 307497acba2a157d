"""Fixtures that several test modules use."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from laboratory import Answer
from scheduling import Scheduling

from bufferscope.cli import run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The time that a case takes depends on the machine, so there is no deadline.
settings.register_profile("patient", settings.default, deadline=None)
settings.load_profile("patient")


ROOT = Path(__file__).parents[1]

GROUPS = {
    "tests/browser/": "one browser",
    "tests/report/test_report.py": "one browser",
    "tests/report/test_report_explained.py": "one browser",
    "tests/engines/test_host.py": "this machine's network in real time",
    "tests/engines/test_shell.py": "this machine's network in real time",
    "tests/engines/test_witnesses.py": "this machine's network in real time",
    "tests/engines/test_live_path.py": "one live measurement",
    "tests/engines/test_fix_path.py": "one live measurement",
}
"""Tests that one process runs, by their files: they share something expensive, or would disturb one another."""


@cache
def _has_module_fixture(file: str) -> bool:
    return 'scope="module"' in (ROOT / file).read_text(encoding="utf-8")


def _group(nodeid: str) -> str:
    """The group of a test; one process runs a file with a fixture of its module, so that this is created once."""
    file = nodeid.partition("::")[0]
    group = next((group for place, group in GROUPS.items() if file.startswith(place)), None)
    return group or (file if _has_module_fixture(file) else nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    """Gives each process the next test or the next group, the largest groups first."""
    return Scheduling(config, log, _group)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Guests come first, then browsers. Long tests begin early, so that no process works alone at the end."""
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("guest", "browser")])


@pytest.fixture(scope="session", autouse=True)
def _only_declared_programs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every test finds the programs of `programs.txt` in PATH, and no others."""
    directory = tmp_path_factory.mktemp("programs")
    subprocess.run([ROOT / "scripts" / "declared-programs.sh", directory], check=True)
    os.environ["PATH"] = str(directory)


@pytest.fixture(scope="session", autouse=True)
def _signals() -> None:
    """Ctrl-C ends the programs that tests start, even if a shell ignores it for what it starts in the background.

    So does the loss of a terminal, which `nohup` ignores.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _no_terminal() -> None:
    """No test depends on the terminal in which the tests are started; pytest-xdist passes its size to the workers."""
    os.environ.pop("COLUMNS", None)
    os.environ.pop("LINES", None)


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
    """The system's Chromium; without one, the tests fail and say what to install."""
    from browsers import launched

    yield from launched()


@pytest.fixture(scope="session")
def two_queues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two points with every figure, whose drawing takes some seconds; only to be read."""
    from reports import built

    return built(tmp_path_factory.mktemp("two-queues"))
