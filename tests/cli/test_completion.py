"""What the shell offers when the Tab key is pressed."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
import typer
import typer.main
from laboratory import SMALL, SWEEP, write

from bufferscope._core import QDISCS
from bufferscope.cli import completion
from bufferscope.cli.app import app
from bufferscope.engines import carrying
from bufferscope.model.experiment import catalogue, load
from bufferscope.model.keys import Keys
from bufferscope.model.overrides import as_texts

CPU_SECONDS = 1.0
"""In processor time, including the interpreter's start; on an idle machine, it takes a third of this."""


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Context:
    """The command line `bufferscope run lab.toml`, in a directory where the experiment is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(completion.INSTRUCTION, raising=False)
    write(tmp_path, SMALL + SWEEP)
    return made("run", "lab.toml")


def made(*words: str) -> typer.Context:
    command = typer.main.get_group(app).commands[words[0]]
    return cast("typer.Context", command.make_context(words[0], list(words[1:]), resilient_parsing=True))


def test_engines_by_name(context: typer.Context) -> None:
    assert completion.complete_engine(context, "") == [each.name for each in carrying()]
    assert completion.complete_engine(context, "si") == ["sim"]
    assert completion.complete_engine(context, "x") == []


def test_the_keys_of_the_experiment_by_its_own_names(context: typer.Context) -> None:
    paths = completion.complete_set(context, "")
    expected = ["duration=", "link.line.rate=", "link.line.queue.limit=", "link.line.reverse.delay=",
                "traffic.ping.size=",
                "traffic.bulk.congestion=", "host.h1.tcp.congestion=", "host.h2.tcp.rmem_max="]  # fmt: skip
    assert [path for path in expected if path not in paths] == []
    beginning = completion.complete_set(context, "traffic.ping.s")
    assert beginning == ["traffic.ping.start=", "traffic.ping.stop=", "traffic.ping.size="]
    assert not [path for path in paths if path.startswith(("sweep", "expect", "traffic.ping.congestion"))]


def test_a_path_that_is_the_only_one_comes_with_its_values(context: typer.Context) -> None:
    assert completion.complete_set(context, "traffic.ping.in") == [
        "traffic.ping.interval=100ms",
        "traffic.ping.interval=",
    ]
    found = completion.complete_set(context, "traffic.bulk.congestion=")
    assert found[0] == "traffic.bulk.congestion=reno", "what it is now"
    assert "traffic.bulk.congestion=prague" in found
    assert completion.complete_set(context, "traffic.bulk.ecn=") == ["traffic.bulk.ecn=false", "traffic.bulk.ecn=true"]
    qdiscs = completion.complete_set(context, "link.line.queue.qdisc=")
    assert qdiscs == [f"link.line.queue.qdisc={name}" for name in QDISCS]
    assert completion.complete_set(context, "traffic.bulk.to=") == ["traffic.bulk.to=h2", "traffic.bulk.to=h1"]
    assert completion.complete_set(context, "link.line.rate=1") == ["link.line.rate=10mbit"]


def test_what_is_recorded_and_how_often(context: typer.Context) -> None:
    paths = completion.complete_set(context, "sample")
    assert paths == ["sample=", "sample.queues=", "sample.flows="]
    assert completion.complete_set(context, "sample.flows=") == ["sample.flows=10ms"]
    assert completion.complete_set(context, "rec") == ["record="]


def test_a_table_is_quoted(context: typer.Context) -> None:
    offered = completion.complete_set(context, "link.line.queue=")
    assert """link.line.queue='{qdisc = "codel"}'""" in offered


def test_points_by_path_and_label(context: typer.Context) -> None:
    points = ["link.line.queue.limit=10p", "link.line.queue.limit=20p", "link.line.queue.limit=40p"]
    assert completion.complete_point(context, "") == points
    assert completion.complete_point(context, "link.line.queue.limit=4") == points[2:]


@pytest.mark.parametrize("name", catalogue())
def test_what_is_offered_for_the_catalogue_is_a_key_and_a_value_of_it(name: str) -> None:
    """Most values can be set as they are. Some need another key or a file as well, but no value has a wrong type."""
    text = (Path(__file__).parents[2] / "python/bufferscope/model/catalogue" / f"{name}.toml").read_text()
    keys = Keys(text)
    assert len(keys.paths()) > 50
    for path in keys.paths():
        if path.startswith("host.") and not path.startswith(f"host.{keys.nodes()[0]}."):
            continue  # all alike
        table = re.escape(path.rpartition(".")[0])  # what a point puts in its place may have other keys
        for value in keys.values(path)[:1]:
            wrong = refusal(name, as_texts({path: value})[0])
            words = "with|without|where|duration|together with|on a link of"
            by_another = rf".* ({words}) |.*No such file|.*at the point .*{table} ="
            assert not re.search(rf"^{re.escape(path)}: found (?!{by_another})", wrong), wrong


def refusal(name: str, override: str) -> str:
    try:
        load(name, [override])
    except ValueError as error:
        return str(error).removeprefix(f"{name}.toml: ")
    return ""


HOSTILE = {
    "no experiment": None,
    "no file": "missing.toml",
    "no TOML": "title = = 5",
    "no table": "link = 5\ntraffic = [1, 2]\nhost = {}\nsweep = 3\n",
    "tables of other things": "[[link]]\nname = 5\nends = 3\n[[link]]\nname = 'x'\nends = [{}, 5]\nqueue = 7\n",
    "binary data": "\x00\x01",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_whatever_the_file_is_nothing_is_raised(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = HOSTILE[what]
    if content and what != "no file":
        write(tmp_path, content)
    context = made("run") if content is None else made("run", "missing.toml" if what == "no file" else "lab.toml")
    for incomplete in ("", "link.", "link.x.queue=", "=", "\x1b", "é", "'"):
        assert isinstance(completion.complete_set(context, incomplete), list)
        assert completion.complete_point(context, incomplete) == []
        assert isinstance(completion.complete_experiment(context, incomplete), list)


def test_a_pipe_does_not_keep_the_shell_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lab.toml")
    assert completion.complete_set(made("run", str(tmp_path / "lab.toml")), "") == []


EVIL = """
[[traffic]]
name = "$(touch evil)"
kind = "tcp"
from = "`touch evil`"
[sweep]
"link.line.queue.limit" = ["$(touch evil)", "';touch evil;'", "10p"]
"""


@pytest.mark.parametrize("shell", ["zsh", "fish", "powershell"])
def test_no_shell_but_bash_is_offered_what_it_might_run(
    shell: str, context: typer.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, SMALL + EVIL)
    monkeypatch.setenv(completion.INSTRUCTION, f"complete_{shell}")
    assert completion.complete_point(context, "") == ["link.line.queue.limit=10p"]
    assert not [text for text in completion.complete_set(context, "") if "evil" in text]


def in_bash(words: Sequence[str], directory: Path) -> list[str]:
    """What bash would offer for the last of the words, split as bash splits them."""
    script = """
        eval "$(_BUFFERSCOPE_COMPLETE=source_bash bufferscope)"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        $(complete -p bufferscope | sed 's/.*-F \\([^ ]*\\).*/\\1/') bufferscope
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    program = directory / "bin" / "bufferscope"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m bufferscope "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_itself(tmp_path: Path) -> None:
    write(tmp_path, SMALL + SWEEP)
    run = ["bufferscope", "run", "lab.toml"]
    assert in_bash([*run, "--engine", "sim", "--engine", "g"], tmp_path) == ["guest"]
    assert in_bash([*run, "--set", "link.line.tx"], tmp_path) == ["link.line.txqueuelen=100p", "link.line.txqueuelen="]
    # bash treats the part before a `=` as a word of its own.
    assert in_bash([*run, "--set", "traffic.bulk.congestion", "=", "ve"], tmp_path) == ["vegas"]
    assert in_bash([*run, "--set", "traffic.bulk.ecn", "="], tmp_path) == ["false", "true"]
    assert in_bash([*run, "--set", "duration", "=", "1s", "--engine", "=", "g"], tmp_path) == ["guest"]
    assert in_bash([*run, "--set", "=", "traffic.bulk.ecn", "=", "t"], tmp_path) == ["true"]
    assert in_bash(["bufferscope", "commands", "lab.toml", "--point", "link.line.queue.limit", "=", "4"], tmp_path) == [
        "40p"
    ]


@pytest.mark.parametrize(("shell", "says"), [("zsh", '"link.line.overhead=14b"'), ("fish", "link.line.overhead=14b")])
def test_other_shells_ask_with_the_whole_line(shell: str, says: str, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    environment = {
        **os.environ,
        "_BUFFERSCOPE_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "bufferscope run lab.toml --set link.line.overhead=",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    before = os.times()
    done = subprocess.run([sys.executable, "-m", "bufferscope"], cwd=tmp_path, env=environment, capture_output=True)
    after = os.times()
    assert says in done.stdout.decode()
    assert done.stderr == b""
    assert after.children_user + after.children_system - before.children_user - before.children_system < CPU_SECONDS
