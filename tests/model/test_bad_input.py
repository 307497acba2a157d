"""Every mistake gives a clear line on standard error and exit status 2, and leaves no files behind."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import SMALL, SWEEP, Answer, write

CPU_SECONDS = 1.0
"""In processor time, so that no test fails on a busy machine."""


def changed(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


BAD_FILES = {
    "an unknown key": (changed('delay = "10ms"', 'dealy = "10ms"'), ["link.line", "dealy", "delay"]),
    "an unknown table": (SMALL + "[[router]]\nname = 'r'\n", ["router"]),
    "a wrong unit": (changed('"10mbit"', '"10 apples"'), ["link.line.rate", "10 apples", "mbit"]),
    "a rate where a time belongs": (changed('delay = "10ms"', 'delay = "10mbit"'), ["link.line.delay", "10mbit"]),
    "a zero rate": (changed('"10mbit"', '"0mbit"'), ["link.line.rate", "0mbit"]),
    "a negative delay": (changed('"10ms"', '"-10ms"'), ["link.line.delay", "-10ms"]),
    "a limit of 10^18 packets": (changed('"20p"', '"1000000000000000000p"'), ["link.line.queue.limit", "10000000"]),
    "10^9 flows": (changed('kind = "tcp"', 'kind = "tcp"\nflows = 1000000000'), ["traffic.bulk.flows", "1000000000"]),
    "a year": (changed('duration = "2s"', 'duration = "31536000s"'), ["duration", "31536000s"]),
    "no duration": (changed('duration = "2s"\n', ""), ["duration"]),
    "two links of one name": (SMALL + '[[link]]\nname = "line"\nends = ["h2", "h3"]\n', ["line"]),
    "two traffics of one name": (changed('name = "ping"', 'name = "bulk"'), ["bulk"]),
    "a link to itself": (changed('["h1", "h2"]', '["h1", "h1"]'), ["link.line", "h1"]),
    "a host that is nowhere": (changed('to = "h2"\ncong', 'to = "h9"\ncong'), ["traffic.bulk.to", "h9", "h1"]),
    "an unreachable host": (
        changed('to = "h2"\ncong', 'to = "h4"\ncong') + '[[link]]\nname = "island"\nends = ["h3", "h4"]\n',
        ["traffic.bulk", "h4"],
    ),
    "an interval that iputils cannot count": (
        changed('kind = "ping"', 'kind = "ping"\ninterval = "1500us"\ntiming = "iputils"'),
        ["traffic.ping.interval", "1500us", "whole milliseconds"],
    ),
    "an unknown timing": (changed('kind = "ping"', 'kind = "ping"\ntiming = "iput"'), ["timing", "iput", "iputils"]),
    "an unknown qdisc": (changed('"pfifo"', '"pfif"'), ["link.line.queue", "pfif", "pfifo"]),
    "an unknown figure": (changed('["rtt"]', '["rtt", "rt"]'), ["figures", "rt", "rtt"]),
    "a metric misspelt": (
        SMALL + '[[expect]]\nmetric = "rtt.maen_ms"\nsays = "about 20 ms"\nband = [15, 25]\n',
        ["expect[1].metric", "rtt.maen_ms", "rtt.mean_ms"],
    ),
    "a metric of a port that is nowhere": (
        SMALL + '[[expect]]\nmetric = "queue.h1>h9.max_packets"\nsays = "20"\nband = [15, 25]\n',
        ["expect[1].metric", "queue.h1>h9.max_packets", "queue.h1>h2.max_packets"],
    ),
    "a sweep of 10^9 points": (
        SMALL + "[sweep]\n" + "".join(f'"traffic.ping.{key}" = {list(range(1, 1001))}\n' for key in ("size", "start"))
        + f'"traffic.bulk.flows" = {list(range(1, 1001))}\n',
        ["sweep", "1000000000"],
    ),
    "a sweep over nothing": (SMALL + '[sweep]\n"link.nowhere.rate" = ["1mbit"]\n', ["link.nowhere", "line"]),
    "no TOML": ("title = = 5", ["line 1", "TOML"]),
    "an empty file": ("", ["empty"]),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_file_with_a_mistake(what: str, cli: Callable[..., Answer], tmp_path: Path) -> None:
    text, words = BAD_FILES[what]
    write(tmp_path, text)
    refused(cli, ["run", "lab.toml"], ["lab.toml", *words], tmp_path)


def test_every_mistake_of_a_file_is_told_in_a_line_of_its_own(cli: Callable[..., Answer], tmp_path: Path) -> None:
    text = SMALL.replace('delay = "10ms"', 'dealy = "10ms"').replace('"10mbit"', '"10 Mb/s"').replace('to = "h2"\n', "")
    write(tmp_path, text)
    answer = refused(
        cli, ["run", "lab.toml"], ["dealy", 'did you mean "10mbit"?', "to: missing; required: a name"], tmp_path
    )
    lines = answer.err.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("bufferscope: lab.toml: ") for line in lines)


def test_no_file_can_forge_a_line_or_command_the_terminal(cli: Callable[..., Answer], tmp_path: Path) -> None:
    name = "a\nbufferscope: all is well\x1b[2J\u202e.toml"
    write(tmp_path, '"x\\nbufferscope: fine\\u001b[2J" = 1\n' + SMALL.replace('"tcp"', '"t\\u202ecp"'), name)
    answer = refused(cli, ["run", name], ["unknown key", "\\u{1b}[2J", "\\u{202e}"], tmp_path)
    assert all(line.startswith("bufferscope: a\\n") and line.isprintable() for line in answer.err.splitlines())


def test_a_thousand_mistakes_are_fifty_lines_and_a_count(cli: Callable[..., Answer], tmp_path: Path) -> None:
    write(tmp_path, "".join(f"key{number} = 1\n" for number in range(1000)) + SMALL)
    answer = refused(cli, ["run", "lab.toml"], ["key0", "and 950 more problems"], tmp_path)
    assert answer.err.count("\n") == 51


BINARIES = {"a picture": b"\x89PNG\r\n\x1a\n\0\0\0", "NUL bytes": b"title\0", "too much": b"#" * ((1 << 20) + 1)}


@pytest.mark.parametrize("what", BINARIES)
def test_a_file_that_is_no_experiment_at_all(what: str, cli: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_bytes(BINARIES[what])
    refused(cli, ["run", "lab.toml"], ["lab.toml"], tmp_path)


BAD_ARGUMENTS = {
    "no such experiment": (
        ["run", "ucas-reproduc"],
        ["ucas-reproduc", "did you mean ucas-reproduce?", "ucas-mitigate"],
    ),
    "nothing like any experiment": (["run", "zzz"], ["zzz", "ucas-reproduce"]),
    "no such file": (["run", "missing.toml"], ["missing.toml", "No such file"]),
    "a directory": (["run", "./"], ["directory"]),
    "a name that no file can have": (["run", "a\0b.toml"], ["null byte"]),
    "no such engine": (["run", "lab.toml", "--engine", "ns3"], ["--engine", "ns3", "sim"]),
    "an engine that observes": (["run", "lab.toml", "--engine", "live"], ["live", "bufferscope measure", "sim"]),
    "an engine twice": (["run", "lab.toml", *("--engine", "sim") * 2], ["--engine", "sim, sim", "once"]),
    "an engine of several that is unknown": (
        ["reproduce", "--engine", "sim", "--engine", "ns3"],
        ["--engine", "ns3", "guest"],
    ),
    "a kernel for the simulator": (["run", "lab.toml", "--kernel", "6.12"], ["--kernel 6.12", "guest", "sim"]),
    "a kernel for the host": (["agree", "lab.toml", "--reference", "host", "--kernel", "6.12"], ["--kernel", "host"]),
    "two engines in one option": (["run", "lab.toml", "--engine", "sim,guest"], ["--engine", "'sim,guest'", "sim ("]),
    "an agreement with itself": (
        ["agree", "lab.toml", "--engine", "guest", "--reference", "guest"],
        ["--reference", "'guest'", "another engine", "--engine guest"],
    ),
    "an agreement with an unknown engine": (
        ["agree", "lab.toml", "--reference", "ns3"],
        ["--reference", "'ns3'", "guest"],
    ),
    "a name longer than any file's": (["run", "n" * 300], ["no experiment is called 'nnn", "ucas-reproduce"]),
    "a path longer than any file's": (["run", f"./{'n' * 300}.toml"], ["nnn", "too long"]),
    "a path longer than any path": (["run", "d/" * 4000 + "x.toml"], ["too long"]),
    "a name longer than any to be shown": (["show", "n" * 300], ["no experiment is called 'nnn"]),
    "a name that is not UTF-8": (["run", "lab\udcff"], ["lab\\udcff"]),
    "a path that is not UTF-8": (["run", "no/lab\udcff.toml"], ["no/lab\\udcff.toml", "not UTF-8"]),
    "an override that is not UTF-8": (["run", "lab.toml", "--set", "title=\udcff"], ["title=\\udcff", "not UTF-8"]),
    "results in a directory that is not UTF-8": (
        ["run", "lab.toml", "--out", "x\udcff"],
        ["x\\udcff", "not UTF-8"],
    ),
    "an override of half a table": (["run", "lab.toml", "--set", "link.line.queue={"], ["link.line.queue", '"{"']),
    "an override nested without end": (
        ["run", "lab.toml", "--set", f"link.line.rate={'[' * 60_000}"],
        ["link.line.rate", "[[["],
    ),
    "an override of nothing at all": (["run", "lab.toml", "--set", ""], ["--set", "PATH=VALUE"]),
    "an override with an empty value": (["run", "lab.toml", "--set", "link.line.rate="], ["link.line.rate", '""']),
    "two bad overrides": (
        ["run", "lab.toml", "--set", "duration", "--set", "lonk.line.rate=1mbit"],
        ["PATH=VALUE", "lonk", "did you mean link?"],
    ),
    "a device": (["run", "/dev/zero"], ["/dev/zero", "a device"]),
    "a file without end": (["run", "/proc/self/pagemap"], ["/proc/self/pagemap"]),
    "a point without a value": (["commands", "swept.toml", "--point", "10p"], ["--point", "10p", "limit=10p or 20p"]),
    "a point of a key that is not swept": (
        ["commands", "swept.toml", "--point", "link.line.rate=10p"],
        ["link.line.rate, which is not swept", "link.line.queue.limit=10p or"],
    ),
    "a point with an unknown value": (
        ["shell", "swept.toml", "--on", "h1", "--point", "link.line.queue.limit=11p"],
        ["--point link.line.queue.limit", "11p", "10p or 20p or 40p"],
    ),
    "a point of a key twice": (
        ["commands", "swept.toml", *("--point", "link.line.queue.limit=10p", "--point", "link.line.queue.limit=20p")],
        ["link.line.queue.limit=20p", "each key once"],
    ),
    "a point where nothing is swept": (
        ["commands", "lab.toml", "--point", "link.line.rate=1mbit"],
        ["has no sweep", "--set"],
    ),
    "a shell on a host that is nowhere": (["shell", "lab.toml", "--on", "h9"], ["--on", "h9", "h1, h2"]),
    "a shell of a number too large": (["shell", "9" * 5000, "--on", "h1"], ["999"]),
    "an override without a value": (["run", "lab.toml", "--set", "duration"], ["duration", "PATH=VALUE"]),
    "an override of nothing": (["run", "lab.toml", "--set", "link.lime.rate=1mbit"], ["link.lime", "line"]),
    "an impossible override": (["run", "lab.toml", "--set", "duration=0s"], ["duration", "0s"]),
    "a negative seed": (["run", "lab.toml", "--seed", "-1"], ["--seed", "-1"]),
    "a seed beyond 64 bits": (["run", "lab.toml", "--seed", str(2**64)], ["--seed", str(2**64)]),
    "no repetition": (["run", "lab.toml", "--repeat", "0"], ["--repeat", "0"]),
    "10^9 repetitions": (["run", "lab.toml", "--repeat", "1000000000"], ["--repeat", "100000"]),
    "no job": (["run", "lab.toml", "--jobs", "0"], ["--jobs", "0"]),
    "a word for a number": (["run", "lab.toml", "--seed", "one"], ["--seed", "integer"]),
    "an unknown option": (["run", "lab.toml", "--sed", "1"], ["--sed", "--seed"]),
    "an unknown command": (["rum"], ["rum"]),
    "a missing argument": (["run"], ["EXPERIMENT"]),
    "results in a file": (["run", "lab.toml", "--out", "lab.toml"], ["lab.toml"]),
    "an unknown experiment among others": (["reproduce", "ucas-reproduce", "nope"], ["nope"]),
    "a run that is none": (["show", "."], ["no run here"]),
}


@pytest.mark.parametrize("what", BAD_ARGUMENTS)
def test_arguments_with_a_mistake(what: str, cli: Callable[..., Answer], tmp_path: Path) -> None:
    arguments, words = BAD_ARGUMENTS[what]
    write(tmp_path, SMALL)
    write(tmp_path, SMALL + SWEEP, "swept.toml")
    refused(cli, arguments, words, tmp_path)


@pytest.mark.parametrize("command", ["run", "show", "commands"])
def test_a_pipe_is_not_waited_for(command: str, cli: Callable[..., Answer], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lab.toml")
    refused(cli, [command, "lab.toml"], ["lab.toml", "a pipe"], tmp_path)


def refused(cli: Callable[..., Answer], arguments: list[str], words: list[str], directory: Path) -> Answer:
    before = sorted(directory.rglob("*"))
    started = time.process_time()
    answer = cli(*arguments)
    spent = time.process_time() - started
    assert answer.status == 2, answer
    assert answer.out == ""
    assert all(line.startswith("bufferscope: ") for line in answer.err.splitlines())
    assert all(line.isprintable() and len(line) < 1000 for line in answer.err.splitlines())
    assert "Traceback" not in answer.err
    for word in words:
        assert word in answer.err
    assert sorted(directory.rglob("*")) == before, "nothing is written"
    assert spent < CPU_SECONDS
    return answer
