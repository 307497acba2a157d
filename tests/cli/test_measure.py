"""`bufferscope measure`: what it shows, what it prints, its exit status, and Ctrl-C."""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import livestreams
import pytest
from laboratory import Answer, start
from terminal import Terminal

from bufferscope.cli.measuring import MeasurementLines, MeasurementState, line, sparkline
from bufferscope.engines.live import program

Cli = Callable[..., Answer]
MEASURE = ("measure", "example.org", "--token", "7Q2M")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts a program with these events where `measure` finds it."""
    monkeypatch.delenv(program.TOKEN, raising=False)

    def install(events: list[dict[str, Any]] | bytes, **more: Any) -> Path:
        path = livestreams.program(tmp_path / "program", events, **more)
        monkeypatch.setenv(program.VARIABLE, str(path))
        return path

    return install


def test_a_measurement_ends_in_five_sentences_a_picture_and_a_page(
    cli: Cli, installed: Callable[..., Path], tmp_path: Path
) -> None:
    installed(livestreams.complete())
    answer = cli(*MEASURE)
    assert answer.status == 0
    shown = answer.out.splitlines()
    assert shown[:5] == livestreams.verdict()["sentences"]
    assert "Upload, at most 30 s" in answer.err
    picture = Path(next(text for text in shown if text.startswith("The picture: ")).removeprefix("The picture: "))
    page = Path(next(text for text in shown if text.startswith("The page: ")).removeprefix("The page: "))
    assert picture.is_file()
    assert page == tmp_path / "report" / "example.org" / "index.html"
    assert livestreams.verdict()["sentences"][0] in page.read_text()
    (run,) = (tmp_path / "results" / "example.org").iterdir()
    assert f"results/example.org/{run.name}" in answer.out


def test_show_prints_the_sentences_the_numbers_of_each_phase_and_the_hops(
    cli: Cli, installed: Callable[..., Path]
) -> None:
    installed(livestreams.complete())
    cli(*MEASURE, "--quiet")
    (run,) = Path("results/example.org").iterdir()
    shown = cli("show", str(run)).out
    assert livestreams.verdict()["sentences"][2] in shown
    for text in ("a queue grows", "Hops, upload", "203.0.113.1", "97 %", "does not report: the size of the ring"):
        assert text in shown, text
    assert "live.upload.added.p95_ms" in shown
    assert "goodput.total_mbit" not in shown, "phases have different loads"
    assert json.loads(cli("show", str(run), "--json").out)["verdict"]["grade"] == "C"


def test_explain_says_what_the_delay_of_each_phase_means(cli: Cli, installed: Callable[..., Path]) -> None:
    installed(livestreams.complete())
    cli(*MEASURE, "--quiet")
    answer = cli("explain", "results/example.org", "--json")
    (found,) = json.loads(answer.out)["explanations"]
    assert found["cause"] == "queue"
    told = {statement["kind"]: statement for statement in found["statements"]}
    assert {"verdict", "where", "call", "game", "page", "video", "advice", "unknown"} <= told.keys()
    assert "cure" not in told
    sentences = [statement["sentence"] for statement in found["statements"]]
    assert any(text.startswith("Upload: a fast game would notice") for text in sentences)
    assert any(text.startswith("Download: a fast game would not notice") for text in sentences)
    assert "router's uplink" in told["verdict"]["sentence"]


def test_compare_holds_two_measurements_against_each_other(cli: Cli, installed: Callable[..., Path]) -> None:
    installed(livestreams.complete())
    cli(*MEASURE, "--quiet", "--out", "before")
    later = livestreams.complete()
    later[0]["realtime_ns"] += 60 * livestreams.SECOND
    later[-1]["verdict"]["phases"][1]["numbers"]["added"]["p95_ns"] = 5_000_000
    installed(later)
    cli(*MEASURE, "--quiet", "--out", "after")
    answer = cli("compare", "before=before/example.org", "after=after/example.org", "--json")
    (point,) = json.loads(answer.out)["points"]
    assert point["metrics"]["before"]["live.upload.added.p95_ms"]["mean"] == 80.2
    assert point["metrics"]["after"]["live.upload.added.p95_ms"]["mean"] == 5


def test_json_is_one_document_with_the_verdict(cli: Cli, installed: Callable[..., Path], tmp_path: Path) -> None:
    installed(livestreams.complete())
    answer = cli(*MEASURE, "--json")
    assert (answer.status, answer.err) == (0, "")
    document = json.loads(answer.out)
    assert document["verdict"]["grade"] == "C"
    assert document["complete"] is True
    assert document["runs"][0]["engine"] == "live"
    assert not (tmp_path / "report").exists()


def test_quiet_prints_nothing_and_stores_the_run(cli: Cli, installed: Callable[..., Path], tmp_path: Path) -> None:
    installed(livestreams.complete())
    answer = cli(*MEASURE, "--quiet", "--out", "elsewhere")
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert (tmp_path / "elsewhere" / "example.org").is_dir()


def test_a_token_may_come_from_the_environment_or_a_file(
    cli: Cli, installed: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = installed(livestreams.complete()).parent
    assert cli("measure", "example.org").status == 2
    assert "bufferscope serve" in cli("measure", "example.org").err
    (tmp_path / "token").write_text("from-a-file\n")
    for arguments, expected in ((["--token-file", "token"], "from-a-file"), ([], "from-the-environment")):
        monkeypatch.setenv(program.TOKEN, "from-the-environment")
        assert cli("measure", "example.org", "--quiet", *arguments).status == 0
        assert (place / "called").read_text().endswith(expected)
    assert "exclude" in cli(*MEASURE, "--token-file", "token").err


def test_wrong_usage_is_told_before_anything_runs(cli: Cli, installed: Callable[..., Path]) -> None:
    place = installed(livestreams.complete()).parent
    for arguments, says in (
        (("--phases", "sideways"), "idle, download, upload, both"),
        (("--idle", "--phases", "upload"), "exclude"),
        (("--flows", "0"), "1 to 64"),
        (("--report", "x", "--no-report"), "exclude"),
    ):
        answer = cli(*MEASURE, *arguments)
        assert answer.status == 2, arguments
        assert says in answer.err
    assert not (place / "called").exists()


def test_a_failed_measurement_keeps_what_was_observed_and_exits_with_1(
    cli: Cli, installed: Callable[..., Path], tmp_path: Path
) -> None:
    last = livestreams.end(["idle", "download"], complete=False, reason="the server stopped answering")
    installed([livestreams.start(), last], status=1)
    answer = cli(*MEASURE, "--no-report")
    assert answer.status == 1
    assert "not complete: the server stopped answering" in answer.err
    assert list((tmp_path / "results" / "example.org").iterdir())


def test_without_a_result_nothing_is_stored(cli: Cli, installed: Callable[..., Path], tmp_path: Path) -> None:
    installed([livestreams.start()], error="bufferscope-live: the server refused the token\n", status=1)
    answer = cli(*MEASURE)
    assert (answer.status, answer.out) == (1, "")
    assert "bufferscope: the server refused the token" in answer.err
    assert not list((tmp_path / "results").glob("*/*"))


def test_ctrl_c_gives_the_partial_result(installed: Callable[..., Path], tmp_path: Path) -> None:
    events = [livestreams.start(), *livestreams.phase("idle"), *livestreams.phase("download")]
    installed(events, then="time.sleep(60)", stopped=[livestreams.interrupted()])
    with start([*MEASURE, "--no-report"], tmp_path) as process:
        assert process.stderr
        assert any("Download" in text for text in process.stderr)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert livestreams.verdict()["sentences"][0] in out
    assert "not complete: interrupted" in err
    assert list((tmp_path / "results" / "example.org").iterdir())


def test_a_terminal_shows_the_test_as_it_runs(installed: Callable[..., Path], tmp_path: Path) -> None:
    events = [livestreams.start(), *livestreams.phase("idle"), *livestreams.phase("upload")]
    last = repr(livestreams.lines([livestreams.end()]))
    path = installed(events, then=f"time.sleep(2); sys.stdout.buffer.write({last}); sys.stdout.flush()")
    command = [sys.executable, "-m", "bufferscope", *MEASURE, "--no-report"]
    with Terminal(command, tmp_path, {program.VARIABLE: str(path), "TERM": "xterm"}) as terminal:
        terminal.expect("Measuring the connection to example.org")
        terminal.expect("up 10.0 Mbit/s")
        terminal.expect("10.1 ms")
        terminal.expect(livestreams.verdict()["sentences"][4])
        terminal.expect("Next: ")


def test_a_line_is_due_at_each_phase_and_every_two_seconds() -> None:
    told = MeasurementState("example.org")
    assert line(told) == "Measuring the connection to example.org"
    for event, expected in (
        ({"event": "queued", "position": 2}, "Waiting: 2 other tests run first"),
        (livestreams.start(), "Measuring the connection to example.org"),
        (livestreams.phase("upload")[0], "Upload, at most 30 s"),
        (livestreams.phase("upload")[1], "Upload, at most 29 s left, up 10.0 Mbit/s, round trip 10.1 ms"),
    ):
        told.take(event)  # type: ignore[arg-type]
        assert line(told) == expected


def test_lines_are_neither_more_nor_fewer(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    lines = MeasurementLines(MeasurementState("example.org"), lambda: now[0])
    lines.take(livestreams.phase("idle")[0])  # type: ignore[arg-type]
    for tick in range(50):  # ten seconds
        now[0] = tick / 5
        lines.take(livestreams.phase("idle")[1])  # type: ignore[arg-type]
    assert len(capsys.readouterr().err.splitlines()) == 1 + 4
    lines.take({"event": "warning", "text": "the processor is busy"})
    assert capsys.readouterr().err == "Warning: the processor is busy\n"


def test_a_curve_has_a_bar_for_each_value() -> None:
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([1, 4, None, 8, -3]) == "▂▅ █▁"
