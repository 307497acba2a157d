"""Fixtures that several test modules use."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from laboratory import Answer

from bufferscope.cli import run

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
