"""The engine live: the events of the program, how it ends, and what `doctor` says."""

import copy
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import livestreams
import pytest
from laboratory import running

from bufferscope.base.errors import EngineError, InputError
from bufferscope.engines.doctor.system import System
from bufferscope.engines.live import events, measurement, program
from bufferscope.engines.live.doctor import checks
from bufferscope.engines.live.measurement import Measurement
from bufferscope.engines.live.program import Request

REQUEST = Request("example.org", "7Q2M")


def taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the events that a program prints."""
    monkeypatch.setenv(program.VARIABLE, str(path))
    with Measurement(REQUEST) as found:
        return [event["event"] for event, _ in found.events()]


def test_a_measurement_is_its_events_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = taken(livestreams.program(tmp_path, livestreams.complete()), monkeypatch)
    assert names == ["start", *["phase", "progress"] * 5, "end"]


def test_the_token_is_in_the_environment_and_never_an_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(program.VARIABLE, str(livestreams.program(tmp_path, livestreams.complete())))
    request = Request("[2001:db8::1]:47300", "7Q2M", ("idle", "upload"), False, 8, "cubic", "wlan0", 20)
    with Measurement(request) as found:
        list(found.events())
    *arguments, token = (tmp_path / "called").read_text().split("\n")
    assert token == "7Q2M"
    assert arguments == [
        *("measure", "[2001:db8::1]:47300", "--events", "--phases", "idle,upload", "--flows", "8"),
        *("--congestion", "cubic", "--interface", "wlan0", "--at-most", "20"),
    ]
    assert Request("h", "t", idle=True).arguments() == ["measure", "h", "--events", "--idle"]
    chosen = Request("h", "t", kernel_send_buffer=True, flood=True).arguments()
    assert chosen == ["measure", "h", "--events", "--kernel-send-buffer", "--flood"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"host": "-o"}, "HOST"),
        ({"host": "two words"}, "HOST"),
        ({"token": ""}, "bufferscope serve"),
        ({"token": "a\nb"}, "--token"),
        ({"phases": ("idle", "sideways")}, "sideways"),
        ({"phases": ("idle", "upload"), "idle": True}, "exclude"),
        ({"flows": 0}, "1 to 64"),
        ({"at_most_s": 121}, "10 to 120"),
    ],
)
def test_impossible_requests_are_refused_before_anything_starts(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Request(**{"host": "example.org", "token": "7Q2M", **wrong})


def test_a_token_is_the_first_line_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("7Q2M\nwhat else the server keeps\n")
    assert program.token_in(file) == "7Q2M"
    for content in ("", "\ntwo\n", "x" * 2000):
        file.write_text(content)
        with pytest.raises(InputError, match="no token in its first line"):
            program.token_in(file)
    with pytest.raises(InputError, match="No such file"):
        program.token_in(tmp_path / "missing")


def changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A complete stream whose last event is changed."""
    last = livestreams.end(["idle", "upload"])
    change(last)
    return livestreams.lines([livestreams.start()]) + json.dumps(last).encode() + b"\n"


def _of_upload(last: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = last["observations"]["phases"][1]
    return found


MALFORMED: dict[str, tuple[bytes, str]] = {
    "garbage": (b"\x00\xff\xfe garbage\n", "malformed"),
    "no object": (b"[1, 2]\n", "expected an event"),
    "no event": (b'{"phase": "idle"}\n', "expected an event"),
    "an unknown event": (b'{"event": "party"}\n', "expected an event"),
    "a number that JSON lacks": (b'{"event": "queued", "position": NaN}\n', "NaN"),
    "nested deeply": (b'{"event": "queued", "position": ' + b"[" * 5000 + b"\n", "malformed"),
    "a huge integer": (b'{"event": "queued", "position": ' + b"9" * 400 + b"}\n", "in the event queued"),
    "a negative position": (b'{"event": "queued", "position": -1}\n', "position"),
    "a missing field": (b'{"event": "phase", "phase": "idle"}\n', "missing"),
    "a control character": (b'{"event": "warning", "text": "\\u001b[31m"}\n', "text"),
    "a long line": (b'{"event": "warning", "text": "' + b"x" * 70_000 + b'"}\n', "65536 bytes"),
    "an endless line": (b"x" * 200_000, "65536 bytes"),
    "an address that is none": (
        changed(lambda last: _of_upload(last)["ladder"][0].update(address="; rm -rf /")),
        "an address of IPv4 or IPv6",
    ),
    "a phase that ends before it begins": (changed(lambda last: _of_upload(last).update(end_ns=0)), "end_ns"),
    "times a year apart": (
        changed(lambda last: _of_upload(last)["echoes"][0].update(t_ns=10**18)),
        "a time near that of the phase",
    ),
    "a delay that changes by a year": (
        changed(lambda last: _of_upload(last)["echoes"][0].update(up_ns=-(2**62))),
        "changes of at most a week",
    ),
    "a negative round trip": (changed(lambda last: _of_upload(last)["echoes"][0].update(rtt_ns=-1)), "rtt_ns"),
    "a kind that does not exist": (changed(lambda last: _of_upload(last).update(kind="party")), "kind"),
    "no verdict": (changed(lambda last: last.pop("verdict")), "verdict: missing"),
    "a verdict without sentences": (changed(lambda last: last["verdict"].pop("sentences")), "sentences: missing"),
    "a grade that does not exist": (changed(lambda last: last["verdict"].update(grade="Z")), "grade"),
    "a probability that is text": (
        changed(lambda last: last["verdict"]["phases"][0]["where"][0]["answer"].update(probability="high")),
        "probability",
    ),
    "events after the end": (livestreams.lines([*livestreams.complete(), livestreams.start()]), "follows"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_output_is_a_clear_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, says = MALFORMED[name]
    with pytest.raises(EngineError) as raised:
        taken(livestreams.program(tmp_path, output), monkeypatch)
    told = str(raised.value)
    assert says in told
    assert "malformed" in told
    assert told.isprintable()
    assert len(told) < 800


def test_what_the_program_says_last_is_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = livestreams.complete()[:3]
    path = livestreams.program(tmp_path, begun, error="noise\nbufferscope-live: wrong token\x1b[31m\n", status=1)
    with pytest.raises(EngineError, match=r"^wrong token\\x1b\[31m$"):
        taken(path, monkeypatch)
    path = livestreams.program(tmp_path, [], error="bufferscope-live: no such host\n", status=2)
    with pytest.raises(InputError, match=r"^no such host$"):
        taken(path, monkeypatch)
    usage = "error: invalid value 'x' for '--flows'\n\nFor more information, try '--help'.\n"
    path = livestreams.program(tmp_path, [], error=usage, status=2)
    with pytest.raises(InputError, match=r"^invalid value 'x' for '--flows'$"):
        taken(path, monkeypatch)
    path = livestreams.program(tmp_path, begun, status=0)
    with pytest.raises(EngineError, match="without a result"):
        taken(path, monkeypatch)


def test_a_killed_program_is_named_with_its_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = livestreams.program(tmp_path, livestreams.complete()[:3], then="os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(EngineError, match="SIGKILL"):
        taken(path, monkeypatch)


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "SILENT_S", 0.5)
    begin = time.monotonic()
    with pytest.raises(EngineError, match="has said nothing"):
        taken(livestreams.program(tmp_path, [livestreams.start()], then="time.sleep(60)"), monkeypatch)
    assert time.monotonic() - begin < 20


def test_waiting_for_other_tests_is_no_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "SILENT_S", 0.3)
    queued = [{"event": "queued", "position": 2}]
    rest = repr(livestreams.lines(livestreams.complete()))
    then = f"time.sleep(1.5); sys.stdout.buffer.write({rest}); sys.stdout.flush()"
    names = taken(livestreams.program(tmp_path, queued, then=then), monkeypatch)
    assert names[:2] == ["queued", "start"]


def test_no_program_is_an_error_that_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(program.VARIABLE, str(tmp_path / "missing"))
    with pytest.raises(EngineError, match="make live"):
        Measurement(REQUEST)


def test_a_request_to_stop_gives_what_was_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = [livestreams.interrupted()]
    path = livestreams.program(tmp_path, livestreams.complete()[:3], then="time.sleep(60)", stopped=stopped)
    monkeypatch.setenv(program.VARIABLE, str(path))
    with Measurement(REQUEST) as found:
        threading.Timer(1.0, found.stop).start()
        *_, (last, _) = found.events()
    assert last["event"] == "end"
    assert (last["complete"], last["reason"]) == (False, "interrupted")


def test_no_process_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = livestreams.program(tmp_path, livestreams.complete()[:1], then="time.sleep(60)")
    monkeypatch.setenv(program.VARIABLE, str(path))
    with Measurement(REQUEST) as found:
        next(found.events())
        process = found._process
    assert process.poll() is not None


def test_the_checks_accept_the_least_that_may_be_there() -> None:
    last = livestreams.end(["idle"])
    phase = {key: last["observations"]["phases"][0][key] for key in ("kind", "start_ns", "end_ns")}
    last["observations"] = {"phases": [phase], "ends": {"client": {}, "server": {}}}
    last.pop("accuracy")
    assert events.read(json.dumps(copy.deepcopy(last)).encode())["event"] == "end"


def test_serve_passes_arguments_output_and_signals_through(tmp_path: Path) -> None:
    path = tmp_path / "bufferscope-live"
    text = f"""#!{sys.executable}
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("closing", flush=True), sys.exit(7)))
print(sys.argv[1:], flush=True)
time.sleep(60)
"""
    path.write_text(text)
    path.chmod(0o755)
    environment = os.environ | {program.VARIABLE: str(path)}
    command = [sys.executable, "-m", "bufferscope", "serve", "--listen", "127.0.0.1:0", "--once"]
    with running(command, env=environment) as process:
        assert process.stdout
        assert process.stdout.readline() == "['serve', '--listen', '127.0.0.1:0', '--once']\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "closing\n"
    assert process.returncode == 7


def test_doctor_says_what_a_measurement_can_see_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(program.VARIABLE, str(tmp_path / "missing"))
    found = {check.what: check.state for check in checks(System())}
    assert found["bufferscope-live"] == "missing"
    assert found["receive timestamps"] == found["transmit timestamps"] == found["answers of hops"] == "ready"
    assert found["pings"] in ("ready", "limited")
