"""The package as others install it: a wheel, in an environment of its own and away from the source tree.

Under `make test`, cargo has already built all of its contents when these tests run.
"""

import json
import os
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
from laboratory import SMALL, write

import bufferscope as bs
from bufferscope.base.commit import WRITTEN, commit
from bufferscope.engines import agent

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the agent that is in the wheel is Linux'")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    written = ROOT / "python" / "bufferscope" / WRITTEN
    written.parent.mkdir(exist_ok=True)
    written.write_text(f"{commit()}\n")  # as `make wheel` does
    command = ["maturin", "build", "--release", "--locked", "--offline", "--quiet", "--out", str(directory)]
    # As the Makefile sets it: another value would have cargo build everything again.
    environment = os.environ | {"PYO3_PYTHON": sys.executable}
    subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment, check=True)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program `bufferscope` of an environment with the wheel, and the packages it needs lent by this one."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin/python"
    install = ["-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run([sys.executable, *install], check=True)
    (own,) = home.glob("lib/python*/site-packages")
    # Found after the environment's own, and without following what makes this environment's bufferscope editable.
    (own / "lent.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return home / "bin/bufferscope"


def call(program: Path, directory: Path, *arguments: str) -> str:
    """The output of the installed program, away from everything that would lead it to the source tree."""
    environment = {name: value for name, value in os.environ.items() if name not in (agent.VARIABLE, "PYTHONPATH")}
    done = subprocess.run(
        [program, *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def diagnoses(program: Path, directory: Path) -> dict[str, Any]:
    return {each["engine"]: each for each in json.loads(call(program, directory, "doctor", "--json"))["engines"]}


def metadata(directory: Path) -> dict[str, Any]:
    (path,) = directory.glob("results/*/*/run.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_the_agent_is_in_it_and_may_be_executed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        member = archive.getinfo("bufferscope/bin/bufferscope-agent")
        assert member.external_attr >> 16 & 0o111
        assert archive.read(member) == agent.program().read_bytes()
        assert not [name for name in archive.namelist() if "__pycache__" in name]


def test_the_installed_program_knows_the_commit_that_it_was_built_from(installed: Path, tmp_path: Path) -> None:
    assert commit()
    assert call(installed, tmp_path, "--version") == f"bufferscope {bs.__version__} (commit {commit()})\n"


def test_the_installed_program_runs_the_simulator(installed: Path, tmp_path: Path) -> None:
    call(installed, tmp_path, "run", "ucas-reproduce", "--set", "duration=2s", "--set", "tcp.gso_max_segs=1", "--quiet")
    assert metadata(tmp_path)["engine"] == "sim"
    assert diagnoses(installed, tmp_path)["sim"]["state"] == "ready"


def test_doctor_finds_the_agent_that_came_along(installed: Path, tmp_path: Path) -> None:
    (home,) = installed.parents[1].glob("lib/python*/site-packages")
    found = diagnoses(installed, tmp_path)
    for engine in ("guest", "host"):
        (details,) = (check["details"] for check in found[engine]["checks"] if check["what"] == "agent")
        assert details == str(home / "bufferscope/bin/bufferscope-agent")


def test_the_installed_program_runs_on_this_machines_kernel(installed: Path, tmp_path: Path) -> None:
    host = diagnoses(installed, tmp_path)["host"]
    if host["state"] == "missing":
        pytest.skip("; ".join(check["details"] for check in host["checks"] if check["state"] == "missing"))
    call(installed, tmp_path, "run", str(write(tmp_path, SMALL)), "--engine", "host", "--quiet")
    assert metadata(tmp_path)["tables"]["probes"] == 20


@pytest.mark.guest
def test_the_installed_program_runs_in_a_guest(installed: Path, tmp_path: Path) -> None:
    if diagnoses(installed, tmp_path)["guest"]["install"] == "bufferscope guest build":
        call(installed, tmp_path, "guest", "build")
    call(installed, tmp_path, "run", str(write(tmp_path, SMALL)), "--engine", "guest", "--quiet")
    assert metadata(tmp_path)["tables"]["probes"] == 20
