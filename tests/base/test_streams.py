"""The command line with streams that are closed, full or of another encoding, with odd names, and stopped early."""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import SMALL, Answer, write

SHELL = "/bin/sh"


def called(command: str, directory: Path, **environment: str) -> Answer:
    """What a shell leaves behind of a command line, in which `bufferscope` is ours."""
    program = f"bufferscope() {{ '{sys.executable}' -m bufferscope \"$@\"; }}"
    done = subprocess.run(
        [SHELL, "-c", f"{program}\n{command}"],
        cwd=directory,
        capture_output=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"} | environment,
    )
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["list", "list --json", "show ucas-reproduce", "schema", "--help"])
def test_a_full_standard_output_is_an_error_in_a_line(command: str, unbuffered: str, tmp_path: Path) -> None:
    answer = called(f"bufferscope {command} > /dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert answer == Answer(1, "", "bufferscope: standard output: No space left on device\n")


def test_a_closed_standard_output_is_an_error_where_something_was_to_be_printed(tmp_path: Path) -> None:
    assert called("bufferscope list >&-", tmp_path).err == "bufferscope: standard output: Bad file descriptor\n"
    write(tmp_path, SMALL)
    assert called("bufferscope run lab.toml --quiet >&-", tmp_path) == Answer(0, "", "")
    assert called("bufferscope list <&- >&- 2>&-", tmp_path) == Answer(1, "", "")


def test_no_table_is_written_to_where_a_closed_stream_was(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    assert called("bufferscope run lab.toml <&- >&- 2>&-; bufferscope show results/lab/*", tmp_path).status == 0


@needs_full
@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&-"])
def test_what_cannot_be_said_on_the_way_stops_nothing(stream: str, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    answer = called(f"bufferscope run lab.toml --no-report {stream}", tmp_path)
    assert answer.status == 0
    assert answer.out.endswith("Stored in results/lab/\n")
    assert called(f"bufferscope run nope {stream}", tmp_path) == Answer(2, "", "")


def test_a_reader_that_has_gone_is_not_mourned(tmp_path: Path) -> None:
    assert called("bufferscope show ucas-reproduce | true", tmp_path) == Answer(0, "", "")
    write(tmp_path, SMALL)
    assert called("(bufferscope run lab.toml; echo $? >&3) 3>status 2>&1 >/dev/null | true", tmp_path).err == ""
    assert (tmp_path / "status").read_text() == "0\n"


def test_an_ascii_standard_output_gets_what_it_can_show(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace("A small lab", "Ein Überblick"))
    for variables in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        answer = called("bufferscope run lab.toml", tmp_path, **variables)
        assert answer.status == 0
        assert r"lab: Ein \xdcberblick" in answer.out
        assert answer.out.isascii()
        document = called("bufferscope show lab.toml --json", tmp_path, **variables)
        assert json.loads(document.out)["document"]["title"] == "Ein Überblick"
        assert called("bufferscope show näme", tmp_path, **variables).status == 2


@pytest.mark.parametrize("command", ["run X", "show X", "run lab.toml --out X", "commands X", "agree X", "reproduce X"])
def test_an_argument_that_is_no_text_is_refused_before_anything_is_done(command: str, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    answer = called("bufferscope " + command.replace("X", "\"$(printf 'a\\377.toml')\""), tmp_path)
    assert (answer.status, answer.out) == (2, "")
    assert "not UTF-8" in answer.err
    assert answer.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["lab.toml"]


LONG = "a" * 300


TOO_LONG, UNKNOWN = "File name too long", "no experiment is called"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", LONG), UNKNOWN),
        (("run", f"{LONG}.toml"), TOO_LONG),
        (("show", LONG), UNKNOWN),
        (("commands", LONG), UNKNOWN),
        (("agree", LONG), UNKNOWN),
        (("reproduce", LONG), UNKNOWN),
        (("run", "lab.toml", "--out", LONG), TOO_LONG),
        (("reproduce", "lab.toml", "--report", LONG, "--quiet"), TOO_LONG),
        (("shell", LONG, "--on", "h1"), UNKNOWN),
    ],
)
def test_a_name_that_is_too_long_is_refused_in_a_line(
    arguments: tuple[str, ...], told: str, tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    write(tmp_path, SMALL)
    answer = cli(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert told in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("command", ["show results/lab/RUN", "show results/lab", "run results/lab.toml"])
def test_a_directory_that_may_not_be_read_is_refused_in_a_line(
    command: str, tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    (tmp_path / "results").mkdir()
    write(tmp_path / "results", SMALL)
    cli("run", "results/lab.toml", "--quiet")
    arguments = command.replace("RUN", next((tmp_path / "results/lab").iterdir()).name).split()
    cli(*arguments)  # loads the modules, which somebody else may not be able to
    (tmp_path / "results").chmod(0)
    user = os.geteuid()
    if user == 0:  # who may read everything
        os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        answer = cli(*arguments)
    finally:
        os.seteuid(user)
        (tmp_path / "results").chmod(0o700)
    assert (answer.status, answer.out) == (2, "")
    assert "Permission denied" in answer.err
    assert answer.err.count("\n") == 1


INTERRUPTING = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(10)"


@pytest.mark.parametrize(
    ("module", "command"),
    [("typer", "list"), ("rich", "--help"), ("polars", "show RUN")],
)
def test_ctrl_c_while_modules_are_imported_is_quiet(module: str, command: str, tmp_path: Path) -> None:
    if "RUN" in command:
        write(tmp_path, SMALL)
        called("bufferscope run lab.toml --quiet", tmp_path)
        command = command.replace("RUN", str(next((tmp_path / "results/lab").iterdir())))
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / f"{module}.py").write_text(INTERRUPTING)
    path = os.pathsep.join([str(shadow), os.environ.get("PYTHONPATH", "")])
    answer = called(f"bufferscope {command}", tmp_path, PYTHONPATH=path)
    assert (answer.status, answer.err) == (130, "")


def test_nearly_nothing_is_imported_before_ctrl_c_is_dealt_with() -> None:
    code = "import sys; import bufferscope.__main__; print([name for name in sys.modules if 'bufferscope' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = ["base", "base.lazy", "base.attach", "", "__main__"]
    assert done.stdout == f"{['.'.join(filter(None, ['bufferscope', name])) for name in expected]}\n"
