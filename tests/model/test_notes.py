"""What the user is told before a run: rates in bytes per second, and tables that are needed and not recorded."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import SMALL, Answer, write

import bufferscope as bs
from bufferscope.model.experiment import load

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


NEEDS_MORE = """
record = ["flows", "queues"]
expect = [
  { metric = "utilization.h1>h2", says = "full", band = [0.9, 1] },
  { metric = "goodput.total_mbit", says = "almost 10", band = [9, 10] },
]
"""


def test_figures_and_expectations_on_unrecorded_tables_are_told_before_the_run(cli: Cli, tmp_path: Path) -> None:
    lab = write(tmp_path, NEEDS_MORE + SMALL)
    why = 'not recorded: record = ["flows", "queues"]'
    notes = (
        f"figures[1]: rtt will be missing: probes are {why}",
        f"expect[1]: utilization.h1>h2 will not be measured: capacity is {why}",
    )
    assert load(lab).notes == notes
    assert cli("show", "lab.toml").err == "".join(f"bufferscope: note: lab: {note}\n" for note in notes)
    # An override makes the expectations inapplicable.
    assert load(lab, {"record": ["probes"]}).notes == ()
    assert load(lab, {"record": ["queues"]}).notes == (notes[0].replace('"flows", ', ""),)
