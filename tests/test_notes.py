"""A rate in bytes per second has the meaning that tc gives it, and the user is told."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import SMALL, Answer, write

import bufferscope as bs
from bufferscope.experiment import load

Cli = Callable[..., Answer]

NOTE = 'link.line.rate: "1mbps" is 8 Mbit/s: in tc\'s units bps is bytes per second; write "1mbit" for 1 Mbit/s'
IN_BYTES = SMALL.replace('"10mbit"', '"1mbps"')


def test_an_experiment_has_the_notes_of_all_points_and_each_point_its_own(tmp_path: Path) -> None:
    swept = load(write(tmp_path, SMALL + '[sweep]\n"link.line.rate" = ["8mbit", "1mbps"]\n'))
    assert swept.notes == (NOTE,)
    assert [point.notes for point in swept.points] == [(), (NOTE,)]
    assert load(write(tmp_path, SMALL), {"link.line.rate": "1mbps"}).notes == (NOTE,)


def test_a_run_tells_it_before_and_keeps_it(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, IN_BYTES)
    answer = cli("run", "lab.toml")
    assert answer.err.splitlines()[0] == f"bufferscope: note: lab: {NOTE}"
    assert NOTE in " ".join(answer.out.split())
    (run,) = bs.load(tmp_path / "results" / "lab").runs
    assert run.warnings == json.loads((run.path / "run.json").read_text())["warnings"] == [NOTE]
    assert run.scenario["links"][0]["forward"]["rate"] == [{"from_ns": 0, "bits_per_second": 8_000_000}]


def test_a_changed_rate_is_noted_too(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    assert NOTE in cli("run", "lab.toml", "--set", "link.line.rate=1mbps").err
    document = json.loads(cli("run", "lab.toml", "--set", "link.line.rate=1mbps", "--json").out)
    assert document["runs"][0]["warnings"] == [NOTE]


@pytest.mark.parametrize("command", ["show", "commands"])
def test_other_commands_tell_it_on_standard_error(cli: Cli, tmp_path: Path, command: str) -> None:
    write(tmp_path, IN_BYTES)
    answer = cli(command, "lab.toml")
    assert (answer.status, answer.err) == (0, f"bufferscope: note: lab: {NOTE}\n")


def test_a_rate_in_bits_needs_no_note(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    assert "note" not in cli("run", "lab.toml").err
    assert cli("show", "lab.toml").err == ""
