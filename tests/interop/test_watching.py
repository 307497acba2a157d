"""A connection that is watched: from the events of the program to a stored run, and what is shown of it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import livestreams
import pytest
from laboratory import Answer
from livestreams import MS, SECOND

import bufferscope as bs
from bufferscope.base.errors import EngineError, InputError
from bufferscope.cli.watching import WatchLines, WatchState
from bufferscope.engines.live import events, program
from bufferscope.engines.live.program import Request
from bufferscope.interop.live import monitoring
from bufferscope.interop.live.judging import judge
from bufferscope.interop.live.measuring import read_events
from bufferscope.interop.live.monitoring import Samples

Cli = Callable[..., Answer]
MINUTES = 20
LATE = range(600, 780)
"""The seconds in which the download is 150 ms late."""
GAP = range(900, 960)
"""The seconds in which the server could not be reached."""
LOST_UP = (300, 301, 302)


def _samples(seconds: range) -> dict[str, Any]:
    """What is observed in some seconds."""
    echoes = []
    for second in seconds:
        later = 150 * MS if second in LATE else 0
        echo: dict[str, Any] = {"t_ns": second * SECOND, "rtt_ns": 12 * MS + later, "up_ns": 0, "down_ns": later}
        if second in LOST_UP:
            echo = {"t_ns": second * SECOND, "rtt_ns": None, "up_ns": None, "down_ns": None, "lost": "up"}
        echoes.append(echo)
    at = seconds[0] * SECOND
    hop = {"t_ns": at, "end": "client", "ttl": 1, "address": "192.168.1.1", "rtt_ns": MS, "kind": "exceeded"}
    queue = {"t_ns": at, "end": "client", "qdisc_bytes": 0, "qdisc_drops": 0}
    phase = {"kind": "idle", "start_ns": at, "end_ns": seconds[-1] * SECOND, "echoes": echoes}
    return {"event": "samples", "phase": {**phase, "ladder": [hop], "local": [queue]}}


def _episode(kind: str, seconds: range, **more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("direction", "added_p50_ns", "added_max_ns", "sent", "lost"))
    times = {"start_ns": seconds[0] * SECOND, "end_ns": seconds[-1] * SECOND}
    return {"event": "episode", "episode": {**nothing, "kind": kind, **times, "text": f"a {kind} in words", **more}}


def _state(second: int, **more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("late_since_ns", "lossy_since_ns", "gap_since_ns", "gap_reason", "left_s"))
    return {"event": "state", "t_ns": second * SECOND, "rtt_ms": 12.0, "base_ms": 11.5, **nothing, **more}


def _watched(*more: dict[str, Any]) -> list[dict[str, Any]]:
    """A connection that was watched for twenty minutes, with a delay, a loss and a gap."""
    parts = [_samples(range(first, first + 10)) for first in range(0, MINUTES * 60, 10) if first not in GAP]
    sentences = ["It was watched.", "It took 12 ms.", "Packets were late once.", "Some were lost.", "Test it."]
    numbers = ("gaps", "gaps_ns", "late", "late_ns", "lossy", "lost_up", "lost_down", "lost_unknown", "other_tests")
    stretches = [(0, GAP[0]), (GAP[-1], MINUTES * 60)]
    return [
        livestreams.start(continuous=True, phases=["idle"]),
        *parts,
        _state(700, late_since_ns=600 * SECOND),
        _episode("delay", LATE, direction="down", added_p50_ns=150 * MS, added_max_ns=151 * MS),
        _episode("loss", range(300, 303), direction="up", sent=3, lost=3),
        _episode("gap", GAP),
        *more,
        {
            **livestreams.end([]),
            "observations": {
                "phases": [
                    {"kind": "idle", "start_ns": first * SECOND, "end_ns": last * SECOND} for first, last in stretches
                ],
                "ends": livestreams.ENDS,
                "parameters": {"probe_interval_ns": SECOND},
            },
            "verdict": {**livestreams.verdict([]), "sentences": sentences},
            "monitor": {"base_ns": 12 * MS, "measured_ns": 1140 * SECOND, **dict.fromkeys(numbers, 1), "loads": 0},
        },
    ]


def _read(found: list[dict[str, Any]], out: Path) -> bs.Run:
    return read_events(livestreams.lines(found).splitlines(), out)


def test_the_samples_become_the_tables_of_a_run_like_any_other(tmp_path: Path) -> None:
    run = _read(_watched(), tmp_path)
    assert run.engine == "live"
    assert run.probes.height == MINUTES * 60 - len(GAP), "a gap has no echoes, and so no lost ones"
    assert run.probes["seq"].to_list() == list(range(run.probes.height))
    lost = run.probes.filter(run.probes["rtt_ns"].is_null())["sent_ns"].to_list()
    assert lost == [second * SECOND for second in LOST_UP]
    late = run.one_way.filter(way="acknowledgements").filter(
        run.one_way.filter(way="acknowledgements")["change_ns"] > MS
    )
    assert [late["t_ns"].min(), late["t_ns"].max()] == [LATE[0] * SECOND, LATE[-1] * SECOND]
    assert run.hops.height == run.queues.height == 114
    live = run.meta["summary"]["live"]
    assert [episode["kind"] for episode in live["episodes"]] == ["delay", "loss", "gap"]
    assert [phase.get("lost_up") for phase in live["phases"]] == ["300-302", None]
    assert run.scenario["duration_ns"] == MINUTES * 60 * SECOND
    assert not list(tmp_path.glob("**/.watching-*")), "its files are gone"


def test_no_queue_is_judged_without_load(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without load"):
        judge(_read(_watched(), tmp_path))


def test_show_export_and_compare_take_it(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    run = _read(_watched(), tmp_path / "results")
    answer = cli("show", str(run.path))
    assert answer.status == 0
    assert "Packets were late once." in answer.out
    begins = datetime.fromtimestamp(livestreams.REALTIME / 1e9 + LATE[0], UTC).astimezone()
    assert f"{begins:%H:%M:%S}" in answer.out
    assert json.loads(cli("show", str(run.path), "--json").out)["verdict"]["sentences"][0] == "It was watched."
    assert cli("export", str(run.path), "--out", "exported").status == 0
    assert cli("compare", f"a={run.path}", f"b={run.path}").status == 0
    assert cli("explain", str(run.path)).status == 0


def test_the_page_has_the_episodes_and_the_picture(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = livestreams.program(tmp_path / "program", _watched())
    monkeypatch.setenv(program.VARIABLE, str(path))
    answer = cli("measure", "example.org", "--token", "7Q2M", "--continuous", "--for", "20min", "--load-every", "6h")
    assert answer.status == 0, answer.err
    assert "3 min: a delay in words" in answer.err
    assert "Watching the connection to example.org" in answer.err
    called = (tmp_path / "program" / "called").read_text().splitlines()
    assert called[:3] == ["measure", "example.org", "--events"]
    assert {"--continuous", "--for", "1200.000s", "--load-every", "21600.000s"} <= set(called)
    page = (tmp_path / "report" / "example.org" / "index.html").read_text()
    assert "What happened (local time)" in page
    assert "a delay in words" in page


def test_a_test_with_load_is_a_run_of_its_own(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = livestreams.start(realtime_ns=livestreams.REALTIME + 600 * SECOND)
    loaded = {"event": "loaded", "start": start, "end": livestreams.end()}
    path = livestreams.program(tmp_path / "program", _watched(*livestreams.phase("upload"), loaded))
    monkeypatch.setenv(program.VARIABLE, str(path))
    answer = cli("measure", "example.org", "--token", "7Q2M", "--continuous", "--no-report")
    assert answer.status == 0, answer.err
    runs = [bs.Run(found) for found in (tmp_path / "results" / "example.org").glob("run-*")]
    assert sorted("monitor" in run.meta["summary"]["live"] for run in runs) == [False, True]
    test = next(run for run in runs if "monitor" not in run.meta["summary"]["live"])
    assert test.meta["summary"]["live"]["verdict"]["grade"] == "C"
    assert livestreams.verdict()["sentences"][0] in answer.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--continuous", "--idle"), "exclude"),
        (("--for", "12h"), "need --continuous"),
        (("--continuous", "--for", "12"), "as in 12h"),
        (("--continuous", "--for", "9d"), "10s to 6d"),
        (("--continuous", "--load-every", "10s"), "5min to 6d"),
    ],
)
def test_wrong_durations_are_refused(cli: Cli, options: tuple[str, ...], says: str) -> None:
    answer = cli("measure", "example.org", "--token", "7Q2M", *options)
    assert answer.status == 2
    assert says in answer.err


def test_the_line_says_what_is_wrong_now(capsys: pytest.CaptureFixture[str]) -> None:
    noon = datetime(2027, 1, 15, 12, tzinfo=UTC)
    state = WatchState("example.org", lambda: noon)
    assert state.now() == "Connecting to example.org"
    state.take(_state(60))  # type: ignore[arg-type]
    assert state.now() == "Round trip 12.0 ms (undisturbed 11.5 ms)"
    state.take(_state(60, late_since_ns=30 * SECOND))  # type: ignore[arg-type]
    assert state.now() == "Round trip 12.0 ms (undisturbed 11.5 ms), late since 11:59:30"
    state.take(_state(60, gap_since_ns=50 * SECOND, gap_reason="no answer"))  # type: ignore[arg-type]
    assert state.now() == "Not measured since 11:59:50: no answer"
    lines = WatchLines(state, lambda: 0.0)
    lines.take(_episode("path", range(20, 21)))  # type: ignore[arg-type]
    lines.take(_episode("delay", range(-24 * 3600, 20)))  # type: ignore[arg-type]
    path, delay = capsys.readouterr().err.splitlines()
    assert path == "11:59:20: a path in words"
    assert delay == "2027-01-14 11:59:00 to 11:59:19, 24 h 0 min: a delay in words"


def test_memory_and_the_number_of_episodes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "ROWS", 100)
    monkeypatch.setattr(monitoring, "MOST_EPISODES", 2)
    samples = Samples(tmp_path)
    for first in range(0, 3600, 10):
        samples.take(_samples(range(first, first + 10))["phase"])
        samples.tell(_episode("path", range(first, first + 1))["episode"])
        assert max(len(rows) for rows in samples._rows.values()) <= 100
    assert (len(samples.episodes), samples.left_out) == (2, 358)
    samples.close()
    run = _read(_watched(), tmp_path)
    assert run.probes["sent_ns"].is_sorted()
    assert any("1 more episodes are not listed" in warning for warning in run.warnings)


def test_malformed_samples_and_episodes_are_refused() -> None:
    bad = _samples(range(2))
    bad["phase"]["ladder"][0]["address"] = "<script>"
    late = _episode("storm", range(2))
    for event in (bad, late, {"event": "state", "t_ns": "now"}):
        with pytest.raises(EngineError, match="malformed"):
            events.read(json.dumps(event).encode())


def test_a_request_to_watch_has_limits() -> None:
    request = Request("example.org", "token", continuous=True, lasts_s=90.5)
    assert request.arguments() == ["measure", "example.org", "--events", "--for", "90.500s", "--continuous"]
