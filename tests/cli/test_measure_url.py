"""`bufferscope measure URL`: servers that are not bufferscope's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import livestreams
import pytest
from laboratory import Answer

from bufferscope.engines.live import program
from bufferscope.interop.live.rebuilding import observations
from bufferscope.store.run import Run

Cli = Callable[..., Answer]
URL = "https://example.org:4043"
USED = {"mad": 4, "id_ns": 10**9, "tmp": 0.95, "sdt": 0.05, "inp": 1, "inc": 1, "mnp": 16, "mps": 100, "ptc": 0.05}


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a program with a test of responsiveness where `measure` finds it. The file gets its arguments."""
    monkeypatch.setenv(program.TOKEN, "not-for-strangers")
    path = livestreams.program(tmp_path / "program", _events())
    monkeypatch.setenv(program.VARIABLE, str(path))
    return path.parent / "called"


def _events() -> list[dict[str, Any]]:
    """A test without echoes, whose upload failed."""
    kinds = ["idle", "download", "upload", "cool_down"]
    end = livestreams.end(kinds)
    observed = end["observations"]
    observed["parameters"] = {"protocol": "responsiveness", "responsiveness": USED, "congestion": "cubic"}
    for phase in observed["phases"]:
        phase["echoes"] = []
        tls = [each | {"kind": "tls"} for each in phase["tcp_probes"] if each["kind"] == "connect"]
        phase["tcp_probes"] += tls
    observed["phases"][2]["load_failure"] = "the server answered 413 Payload Too Large"
    of_upload = end["verdict"]["phases"][1]
    of_upload["rpm"] |= {"rpm": None, "foreign": None, "own": None, "confidence": None, "reason": "it failed: 413"}
    return [livestreams.start(host=URL, parameters=observed["parameters"]), end]


def test_a_url_needs_no_token_and_the_program_gets_none(cli: Cli, called: Path) -> None:
    answer = cli("measure", URL, "--quiet", "--insecure", "--draft", "09", "--phases", "download,upload")
    assert answer.status == 0, answer.err
    arguments = called.read_text().splitlines()
    assert arguments[:3] == ["measure", URL, "--events"]
    assert arguments[-1] == "no token"
    assert "--insecure" in arguments
    assert arguments[arguments.index("--draft") + 1] == "09"


def test_the_result_has_the_parts_of_the_score_and_why_there_is_none(cli: Cli, called: Path, tmp_path: Path) -> None:
    shown = " ".join(cli("measure", URL).out.split())
    assert "download: 5 800 RPM, medium confidence: 650 on new connections, 630 on those of the load." in shown
    assert "upload: no RPM: it failed: 413." in shown
    assert "ID 1 s" in shown
    assert "MNP 16, MPS 100/s, PTC 5 %" in shown
    page = (tmp_path / "report" / "example.org" / "index.html").read_text()
    assert "650 on new connections" in page
    assert (tmp_path / "report" / "example.org" / "figures" / "example.org-live.svg").is_file()


def test_a_stored_run_has_what_was_observed(cli: Cli, called: Path, tmp_path: Path) -> None:
    assert cli("measure", URL, "--quiet").status == 0
    (path,) = (tmp_path / "results" / "example.org").iterdir()
    run = Run(path)
    found = observations(run)
    assert found["parameters"]["protocol"] == "responsiveness"
    assert found["phases"][2]["load_failure"] == "the server answered 413 Payload Too Large"
    kinds = {each["kind"] for phase in found["phases"] for each in phase["tcp_probes"]}
    assert kinds == {"connect", "tls", "exchange", "self"}
    explained = json.loads(cli("explain", str(path), "--json").out)["explanations"][0]
    assert any(statement["kind"] == "game" for statement in explained["statements"]), "from handshakes"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ftp://example.org",), "https, ndt7, wss, ws"),
        ((URL, "--continuous"), "only a server of bufferscope"),
        ((URL, "--flood"), "only with a server of bufferscope"),
        ((URL, "--insecure", "--fingerprint", "00"), "exclude one another"),
        ((URL, "--draft", "07"), "allowed: 09"),
        (("example.org", "--token", "7Q2M", "--insecure"), "need the URL"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(
    cli: Cli, called: Path, arguments: tuple[str, ...], says: str
) -> None:
    answer = cli("measure", *arguments)
    assert answer.status == 2
    assert says in answer.err
    assert not called.exists()
