"""The commit of bufferscope in `--version` and in `run.json`: of a checkout, of a wheel, and where nobody knows it."""

import json
import subprocess
from pathlib import Path

import pytest
from laboratory import SMALL, write

import bufferscope as bs
from bufferscope import cli
from bufferscope.base.commit import WRITTEN, commit, commit_of
from bufferscope.store.metadata import checked

HASH = "0123456789abcdef0123456789abcdef01234567"


def git(directory: Path, *words: str) -> str:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *author, *words], cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def checkout(directory: Path) -> Path:
    """A repository with one commit and a package as in ours; returns the package's directory."""
    package = directory / "python" / "bufferscope"
    package.mkdir(parents=True)
    (package / "module.py").write_text("1\n")
    git(directory, "init", "--quiet")
    git(directory, "add", ".")
    git(directory, "commit", "--quiet", "--message", "One")
    return package


def test_a_checkout_has_the_commit_of_git_and_says_if_files_were_changed(tmp_path: Path) -> None:
    package = checkout(tmp_path)
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit_of(package) == head
    (package / "module.py").write_text("2\n")
    assert commit_of(package) == f"{head}-dirty"


def test_a_stale_file_in_a_checkout_is_not_believed(tmp_path: Path) -> None:
    package = checkout(tmp_path)
    (package / WRITTEN).parent.mkdir()
    (package / WRITTEN).write_text(HASH)
    assert commit_of(package) == git(tmp_path, "rev-parse", "HEAD")


def test_a_wheel_has_the_commit_that_was_left_in_it(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "bufferscope"
    (package / WRITTEN).parent.mkdir(parents=True)
    (package / WRITTEN).write_text(f"{HASH}\n")
    assert commit_of(package) == HASH


def test_a_wheel_inside_another_repository_does_not_take_that_ones_commit(tmp_path: Path) -> None:
    checkout(tmp_path)
    package = tmp_path / ".venv" / "bufferscope"
    package.mkdir(parents=True)
    assert commit_of(package) == ""


def test_a_source_archive_has_none(tmp_path: Path) -> None:
    package = tmp_path / "python" / "bufferscope"
    package.mkdir(parents=True)
    assert commit_of(package) == ""


def test_without_git_it_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = checkout(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(package) == ""


@pytest.mark.parametrize(("known", "shown"), [(HASH, f" (commit {HASH})"), ("", "")])
def test_the_version_shows_it_if_it_is_known(
    known: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bufferscope.base.commit.commit", lambda: known)
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"bufferscope {bs.__version__}{shown}\n"


def test_a_run_remembers_it_and_a_run_without_it_can_be_read(tmp_path: Path) -> None:
    (run,) = bs.run(write(tmp_path, SMALL), out=tmp_path / "results").runs
    document = json.loads((run.path / "run.json").read_text())
    assert document["commit"] == run.meta["commit"] == commit()
    del document["commit"]
    assert checked(document)["commit"] == ""
