"""`programs.txt` is true and complete: every test here runs with what it lists, and with nothing else in PATH."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from laboratory import program

from bufferscope.base import programs
from bufferscope.engines.guest.programs import BORROWED

ROOT = Path(__file__).parents[2]
USERS = {"base", "build", "host", "guest", "tests", "explorer", "bench", "optional"}
NAMES = {name for each in programs.listed() for name in each.names}
SCRIPTS = sorted((ROOT / "scripts").glob("*.sh"))
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
NO_SOURCES = (".md", ".txt", ".lock", ".svg")

on_debian = pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="only Debian knows what is in its packages")


def there(names: Sequence[str]) -> bool:
    """Whether root's directories have a program by any of its names."""
    return any(shutil.which(name, path="/usr/sbin:/sbin") for name in names)


def links(name: str) -> set[str]:
    """Where a program is, and every file that leads there, with and without the `/usr` that Debian has merged."""
    path = Path(program(name)).readlink()
    found = {str(path)}
    while path.is_symlink():
        path = path.parent / path.readlink()
        found.add(os.path.normpath(path))
    return found | {path.removeprefix("/usr") for path in found}


def told(*arguments: str) -> list[str]:
    done = subprocess.run(["dpkg-query", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def test_the_tests_find_what_is_listed_and_nothing_else() -> None:
    (directory,) = os.environ["PATH"].split(":")
    assert {path.name for path in Path(directory).iterdir()} <= NAMES
    assert all(path.is_symlink() for path in Path(directory).iterdir())


def test_each_program_is_listed_once_with_who_needs_it() -> None:
    assert len(NAMES) == sum(len(each.names) for each in programs.listed())
    for each in programs.listed():
        assert each.users <= USERS, each.names
    assert {name for each in programs.needed_by("guest") for name in each.names} == {*BORROWED, "qemu-system-x86_64"}


@on_debian
@pytest.mark.parametrize(
    "each", programs.needed_by("base", "host", "guest", "tests", "optional"), ids=lambda p: p.names[0]
)
def test_debian_has_a_program_in_the_package_that_is_named(each: programs.Program) -> None:
    if not (name := next(filter(shutil.which, each.names), None)):
        assert each.users <= {"optional"}, f"apt-get install {' '.join(each.packages)}"
        pytest.skip(f"{each.names[0]} is not installed here")
    if not each.packages:
        return
    owners = {line.rpartition(": ")[0].split(":")[0] for line in told("--search", *links(name))}
    if not owners:
        pytest.skip(f"{name} was not installed from a package")
    assert owners & set(each.packages), f"{links(name)} are of {owners}"


@on_debian
def test_what_needs_no_installation_is_part_of_every_debian() -> None:
    packages = {package for each in programs.needed_by("base") for package in each.packages}
    fields = "${Package} ${Essential} ${Priority}\n"
    elsewhere = [line for line in told("--show", f"--showformat={fields}", *packages) if not line.endswith(" required")]
    assert elsewhere == []


def test_what_is_listed_is_used() -> None:
    sources = [ROOT / path for path in TRACKED if not path.endswith(NO_SOURCES)]
    words = {
        word for path in sources if path.is_file() for word in re.findall(r"[\w+-]+", path.read_text(errors="replace"))
    }
    brought_by_others = {"as", "ld", "rustc", "expr", "readlink", "uname", "tty"}
    assert {each.names[0] for each in programs.listed()} - words - brought_by_others == set()


@pytest.mark.parametrize(
    ("document", "users"), [("docs/getting-started.md", ["build"]), ("docs/guest.md", ["guest"])], ids=lambda x: str(x)
)
def test_the_documents_tell_what_to_install(document: str, users: list[str]) -> None:
    (line,) = re.findall(r"apt-get install (.+)", (ROOT / document).read_text())
    packages = programs.packages(each.names[0] for each in programs.needed_by(*users))
    # The assembler and the linker come with the compiler.
    assert set(line.split()) == set(packages) - {"binutils"}


def test_make_asks_for_users_that_the_list_knows() -> None:
    lines = re.findall(r"scripts/ensure-system-packages\.sh (.+)", (ROOT / "Makefile").read_text())
    assert lines
    assert {user for line in lines for user in line.split()} <= USERS


def test_the_scripts_are_correct() -> None:
    said = subprocess.run(
        [program("shellcheck"), "--external-sources", "--source-path", ROOT, *SCRIPTS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout == ""


# --- missing programs are reported


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with the programs that every Debian has."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for each in programs.needed_by("base"):
        if found := shutil.which(each.names[0]):
            (directory / each.names[0]).symlink_to(found)
    return directory


def run(path: Path, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": str(path), "PYTHON": "", "CC": "cc", **more}
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_a_bare_debian_is_told_everything_that_a_build_needs(tmp_path: Path, bare: Path) -> None:
    done = run(bare, "scripts/make-venv.sh", tmp_path / "venv")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "bufferscope: Python 3.11 or newer is needed; found: no python3",
        "    Debian 12, Ubuntu 24.04 and newer: apt-get install python3 python3-venv",
        "    elsewhere: https://www.python.org/downloads/, then `make PYTHON=/path/to/python3 ...`",
        "bufferscope: a C compiler is needed to link Rust programs, and cc was not found",
        "    Debian, Ubuntu: apt-get install gcc libc6-dev",
        "    Fedora: dnf install gcc",
        "bufferscope: Rust is needed, and cargo was not found",
        f"    install Rust {rust_version()} or newer from https://rustup.rs",
    ]


def rust_version() -> str:
    found = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_what_is_declared_suffices_to_begin_a_build(tmp_path: Path) -> None:
    # Not what an environment, or a manager of Pythons, puts in its place.
    python = Path(sys.base_prefix) / "bin/python3"
    done = run(Path(os.environ["PATH"]), "scripts/make-venv.sh", tmp_path / "venv", PYTHON=str(python))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "venv/bin/pip").exists()


def test_missing_packages_are_installed_each_once_where_root_asks(tmp_path: Path, bare: Path) -> None:
    for name, script in {"id": "echo 0", "apt-get": f'echo "$*" >> {tmp_path}/asked'}.items():
        (bare / name).unlink(missing_ok=True)
        (bare / name).write_text(f"#!/bin/sh\n{script}\n")
        (bare / name).chmod(0o755)
    # Where the test's machine has them, root's directories hold ip and ethtool.
    done = run(bare, "scripts/ensure-system-packages.sh", "tests")
    assert done.returncode == 0, done.stderr
    packages = programs.packages(each.names[0] for each in programs.needed_by("tests"))
    assert (tmp_path / "asked").read_text().splitlines() == [
        "update --quiet=2",
        f"install --yes --no-install-recommends {' '.join(packages)} --quiet=2",
    ]


def test_whoever_may_not_install_is_told_what_root_has_to(bare: Path) -> None:
    (bare / "id").unlink()
    (bare / "id").write_text("#!/bin/sh\necho 1000\n")
    (bare / "id").chmod(0o755)
    done = run(bare, "scripts/ensure-system-packages.sh", "tests")
    assert done.returncode == 1
    # The script looks into root's directories, too, where this machine may have some.
    missing = [each.names[0] for each in programs.needed_by("tests") if not there(each.names)]
    packages = " ".join(programs.packages(missing))
    assert "ping" in missing
    assert f"only root may install them: {' '.join(missing)}\n" in done.stderr
    assert f"    sudo apt-get install --yes --no-install-recommends {packages}\n" in done.stderr
