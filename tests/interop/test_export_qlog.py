"""The changes of TCP's state in stored runs as qlog files."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from handmade import MS, PING, TCP, HandmadeRun, scenario
from laboratory import IDLE, ROUTED, SMALL, Answer, write

import bufferscope as bs
from bufferscope.base.errors import InputError
from bufferscope.interop.states.exporting import export_states
from bufferscope.store.finding import find_anywhere
from bufferscope.store.run import Run
from first_difference import Change, Tolerance, compare, main, read

Cli = Callable[..., Answer]
Event = dict[str, Any]

STATES = "recovery:congestion_state_updated"
TWO = ["traffic.bulk.flows=2", "duration=4s"]


def simulated(tmp_path: Path, text: str = SMALL, changes: Sequence[str] = ()) -> Run:
    """A stored run of an experiment."""
    bs.run(write(tmp_path, text), changes, out=tmp_path / "results")
    (run,) = find_anywhere(tmp_path / "results")
    return run


def of_kernel(tmp_path: Path, samples: Sequence[dict[str, object]]) -> Run:
    """A stored run of a kernel with these samples of a connection."""
    common = {"flow": "bulk/1", "inflight_bytes": 0, "srtt_ns": 50 * MS, "min_rtt_ns": 40 * MS, "delivered_bytes": 0}
    rows = [{**common, "t_ns": 10 * MS * number, **sample} for number, sample in enumerate(samples)]
    made = HandmadeRun(scenario({"bulk": TCP, "ping": PING}), {"flows": rows}, id="guest-s1", engine="guest")
    made.write(tmp_path / "results")
    (run,) = find_anywhere(tmp_path / "results")
    return run


def records(file: Path) -> tuple[dict[str, Any], list[Event]]:
    """The header of a file and its events (RFC 7464)."""
    begin, header, *events = file.read_text().split("\x1e")
    assert begin == ""
    return json.loads(header), [json.loads(event) for event in events]


def named(file: Path, name: str) -> list[Event]:
    """The events of this name."""
    return [event for event in records(file)[1] if event["name"] == name]


def test_each_connection_has_a_file(tmp_path: Path) -> None:
    run = simulated(tmp_path, changes=TWO)
    files = export_states([run], tmp_path / "export")
    assert files == [tmp_path / "export" / run.id / f"bulk-{number}.sqlog" for number in (1, 2)]
    header, events = records(files[0])
    assert (header["qlog_version"], header["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert header["trace"]["vantage_point"] == {"name": "h1", "type": "client"}
    assert header["trace"]["common_fields"]["group_id"] == "bulk/1"
    assert events[0]["name"] == "recovery:parameters_set"
    assert events[0]["data"]["congestion_control"] == "reno"


def test_the_log_and_the_samples_of_a_run_show_the_same_states(tmp_path: Path) -> None:
    # A sample shows the state before everything else that happens at its time.
    run = simulated(tmp_path, ROUTED, TWO)
    file, _ = export_states([run], tmp_path / "export")
    changes = [(round(event["time"] * MS), event["data"]["new"]) for event in named(file, STATES)]
    sampled = [row for row in run.flows.iter_rows(named=True) if row["flow"] == "bulk/1"]
    states = {row["t_ns"]: row["state"] for row in sampled}
    for t_ns, state in states.items():
        expected = next((new for at_ns, new in reversed(changes) if at_ns < t_ns), "open")
        assert state == expected, t_ns
    assert len(set(states.values())) > 1


def test_retransmissions_follow_losses(tmp_path: Path) -> None:
    run = simulated(tmp_path, ROUTED, ["duration=4s"])
    (file,) = export_states([run], tmp_path / "export")
    last = run.flows.sort("t_ns").row(-1, named=True)

    def during(name: str) -> list[dict[str, Any]]:
        return [event["data"] for event in named(file, name) if event["time"] * MS < last["t_ns"]]

    lost = sum(data["packets"] for data in during("recovery:packet_lost"))
    # What was marked lost was retransmitted, or is still to be. A probe that repeats a segment counts, too.
    probes = sum(not data["new_data"] for data in during("tcp:tail_loss_probe_sent"))
    assert lost + probes == last["retransmits"] + last["lost"] > 0


def test_the_same_run_gives_the_same_files(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    first, second = (export_states([run], tmp_path / name)[0].read_bytes() for name in ("first", "second"))
    assert first == second


def test_a_simulated_run_can_be_logged_from_its_samples(tmp_path: Path) -> None:
    run = simulated(tmp_path, ROUTED, ["duration=4s", "sample=1ms"])
    (seen,) = export_states([run], tmp_path / "seen")
    (sampled,) = export_states([run], tmp_path / "sampled", sampled=True)
    header, _ = records(sampled)
    assert header["trace"]["common_fields"]["sample_interval"] > 0
    exact = [(event["time"], event["data"]["new"]) for event in named(seen, STATES)]
    late = [(event["time"], event["data"]["new"]) for event in named(sampled, STATES)]
    # Of the changes, those that last for a sample, each up to a sample later.
    assert 0 < len(late) <= len(exact)
    for at_ms, state in late:
        assert any(0 < at_ms - happened_ms <= 1 and state == new for happened_ms, new in exact), at_ms


def test_both_ways_show_the_same_end(tmp_path: Path) -> None:
    page = """
[[traffic]]
name = "page"
kind = "web"
from = "h2"
to = "h1"
interval = "1s"
bytes = "30kb"
"""
    run = simulated(tmp_path, SMALL + page)

    def vantage_points(sampled: bool) -> dict[str, object]:
        files = export_states([run], tmp_path / str(sampled), sampled=sampled)
        return {file.name: records(file)[0]["trace"]["vantage_point"] for file in files}

    seen = vantage_points(sampled=False)
    assert seen["bulk-1.sqlog"] == {"name": "h1", "type": "client"}
    assert seen["page-1.sqlog"] == {"name": "h2", "type": "server"}
    sampled = vantage_points(sampled=True)
    assert sampled.items() <= seen.items()
    assert "page-1.sqlog" in sampled


def test_a_kernels_log_is_derived_from_samples(tmp_path: Path) -> None:
    run = of_kernel(
        tmp_path,
        [
            {"cwnd_bytes": 14_480, "ssthresh_bytes": None, "state": "open"},
            {"cwnd_bytes": 14_480, "ssthresh_bytes": 10_136, "state": "recovery"},
            {"cwnd_bytes": 10_136, "ssthresh_bytes": 10_136, "state": "open"},
        ],
    )
    (file,) = export_states([run], tmp_path / "export")
    header, events = records(file)
    assert header["trace"]["common_fields"]["sample_interval"] == 10
    assert "every 10 ms" in header["description"]
    assert Counter(event["name"] for event in events)[STATES] == 2
    first, second = named(file, STATES)
    assert first["time"] == 10
    assert first["data"] == {
        "old": "open",
        "new": "recovery",
        "old_congestion_window": 14_480,
        "congestion_window": 14_480,
        "ssthresh": 10_136,
    }
    assert (second["time"], second["data"]["congestion_window"]) == (20, 10_136)


def test_existing_files_are_replaced_only_by_force(tmp_path: Path) -> None:
    run = simulated(tmp_path, changes=TWO)
    (tmp_path / "export" / run.id).mkdir(parents=True)
    other = tmp_path / "export" / run.id / "notes.txt"
    other.write_text("mine")
    export_states([run], tmp_path / "export")
    with pytest.raises(InputError, match="already has"):
        export_states([run], tmp_path / "export")
    files = export_states([run], tmp_path / "export", flows=["bulk/2"], force=True)
    # What is left are the files of this export, and what is not ours.
    assert [file.name for file in files] == ["bulk-2.sqlog"]
    assert other.read_text() == "mine"
    assert {path.name for path in other.parent.iterdir()} == {"bulk-2.sqlog", "notes.txt"}
    assert [path.name for path in (tmp_path / "export").iterdir()] == [run.id]


def test_a_run_of_another_build_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    cast(dict[str, Any], run.meta["summary"])["events"] += 1
    with pytest.raises(InputError, match="came out differently"):
        export_states([run], tmp_path / "export")
    assert list((tmp_path / "export").iterdir()) == []


def test_a_run_without_connections_has_nothing_to_log(tmp_path: Path) -> None:
    run = simulated(tmp_path, IDLE)
    for sampled in (False, True):
        with pytest.raises(InputError, match="no connection over TCP"):
            export_states([run], tmp_path / "export", sampled=sampled)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--flow", "bulk/9"], "--flow: found 'bulk/9'; did you mean bulk/1"),
        (["--sampled", "--flow", "blk/1"], "--flow: found 'blk/1'; did you mean bulk/1"),
        (["--port", "h1>h2"], "--port: only for --format pcapng"),
        (["--table", "flows"], "--table: found flows; allowed with --format qlog: none"),
    ],
)
def test_wrong_options_are_refused(cli: Cli, tmp_path: Path, arguments: list[str], message: str) -> None:
    simulated(tmp_path)
    answer = cli("export", "results", "--format", "qlog", *arguments)
    assert answer.status == 2
    assert message in " ".join(answer.err.split())
    assert not list(tmp_path.glob("export/*"))


def test_flows_are_only_for_states(cli: Cli, tmp_path: Path) -> None:
    simulated(tmp_path)
    for option in (["--flow", "bulk/1"], ["--sampled"]):
        answer = cli("export", "results", *option)
        assert answer.status == 2
        assert "only for --format qlog" in answer.err


def test_a_directory_that_cannot_be_written_is_named(cli: Cli, tmp_path: Path) -> None:
    simulated(tmp_path)
    (tmp_path / "file").write_text("")
    answer = cli("export", "results", "--format", "qlog", "--out", "file/inside")
    assert answer.status == 2
    assert "cannot write here" in answer.err


def test_the_command_lists_its_files(cli: Cli, tmp_path: Path) -> None:
    run = simulated(tmp_path, changes=TWO)
    answer = cli("export", "results", "--format", "qlog", "--json", "--flow", "bulk/2")
    assert answer.status == 0
    assert json.loads(answer.out)["files"] == [f"export/{run.id}/bulk-2.sqlog"]


def test_every_event_is_explained() -> None:
    root = Path(__file__).parents[2]
    source = (root / "crates" / "qlog" / "src" / "events.rs").read_text().partition("#[cfg(test)]")[0]
    page = (root / "docs" / "tcp-states.md").read_text()
    names = [word for word in source.split('"') if word.startswith(("connectivity:", "recovery:", "tcp:"))]
    assert len(names) > 10
    for name in names:
        assert f"| `{name}` |" in page, name


def change(at_ms: float, what: str = "slow_start_ended", cwnd: int = 14_480) -> Change:
    """A change to this window."""
    return Change(at_ms, what, {"congestion_window": cwnd})


def first(one: Sequence[Change], other: Sequence[Change]) -> str:
    """The first difference of two logs; empty if there is none."""
    return [found for _, found in compare(one, other, Tolerance(20, 0.1))][-1]


def test_the_first_difference_is_the_first_that_exceeds_the_tolerance() -> None:
    assert first([change(1), change(100)], [change(2), change(110)]) == ""
    assert first([change(1), change(100)], [change(2), change(130)]) == "+29.0 ms"
    # A delay counts once: the changes after it are as far from it as in the other log.
    assert first([change(1), change(15), change(29)], [change(20), change(34), change(48)]) == ""
    assert first([change(1)], [change(1, cwnd=20_000)]) == "congestion_window: 14,480 and 20,000"
    assert first([change(1)], [change(1, "slow_start_began")]) == "another change"
    assert first([change(1)], []) == "only one log has it"


def test_two_logs_of_one_run_do_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = simulated(tmp_path, ROUTED, ["duration=4s"])
    (file,) = export_states([run], tmp_path / "export")
    assert main([str(file), str(file)]) == 0
    assert f"No difference in {len(list(read(file)))} changes." in capsys.readouterr().out


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.sqlog"
    file.write_text('\x1e{"qlog_format": "JSON"}\n')
    with pytest.raises(ValueError, match="no qlog file"):
        list(read(file))
