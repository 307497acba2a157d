"""Fixtures that several test modules use."""

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


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    """The system's Chromium."""
    import browsers

    with browsers.chromium() as browser:
        yield browser
