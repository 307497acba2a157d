"""What the user's cache keeps: it comes back as it was, and a cache that can't be used is no error."""

import os
from pathlib import Path

import pytest

from bufferscope.base import kept


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "bufferscope" / "pages"


def test_what_is_kept_comes_back_and_nobody_else_may_read_it(pages: Path) -> None:
    assert kept.read("script") is None
    kept.write("script", b"first")
    kept.write("script", b"second")
    assert kept.read("script") == b"second"
    assert [path.name for path in pages.iterdir()] == ["script"]
    assert pages.stat().st_mode & 0o077 == 0


def test_a_file_of_another_user_is_not_read(pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write("script", b"of this user")
    monkeypatch.setattr(os, "geteuid", lambda: (pages / "script").stat().st_uid + 1)
    assert kept.read("script") is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    kept.write("script", b"code")
    assert kept.read("script") is None


def test_a_write_that_fails_leaves_nothing(pages: Path) -> None:
    (pages / "script").mkdir(parents=True)
    kept.write("script", b"code")
    assert [path.name for path in pages.iterdir()] == ["script"]
    assert kept.read("script") is None
