"""The page of `bufferscope serve` in Chromium, over a path of this machine's kernel with a queue that we planted.

The upload has a long queue. The server sends slower than the line, so the download has none. Right after the page, the
program measures the same path.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pagetest
import pytest
from laboratory import first_undisturbed
from shells import call, home, skip_without_network

import bufferscope as bs
from bufferscope.engines.live.program import program
from bufferscope.interop.importing.conversion import import_all
from bufferscope.interop.live.judging import judge

pytestmark = pytest.mark.browser

HOME = home(up=("12mbit", "90p"), down=("100mbit", "500p"), delay="5ms")
FULL_MS = 90 * 1514 * 8 / 12e3
"""The delay of the planted queue when it is full."""
CONGESTION = "ip -4 route show | while read -r route; do ip route replace $route congctl cubic; done"
"""What Chromium's uploads use on most machines. Routes have it, because a namespace may not choose any as its own."""
PATIENCE_S = 400
ATTEMPTS = 2
SERVER_MBIT = 20
MS = 1e6


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with what the page and the program have measured.

    A browser needs time of this machine's processors: the tests are skipped where it never gets enough.
    """
    skip_without_network()

    def attempt() -> tuple[Path, list[str]]:
        directory = tmp_path_factory.mktemp("page")
        _measure(directory)
        return directory, pagetest.disturbances(directory / "page.jsonl", directory / "program.jsonl")

    return first_undisturbed(attempt, ATTEMPTS)


def _measure(directory: Path) -> None:
    """The page's test, then the program's, in a directory."""
    (directory / "lab.toml").write_text(HOME, encoding="utf-8")
    token = directory / "token"
    browse = f"{sys.executable} {pagetest.__file__} server {token} {directory} download,upload"
    measure = f"{program()} measure server --token-file {token} --phases upload --events > {directory}/program.jsonl"
    done = call(
        directory,
        "--quiet",
        "--with",
        f"server={program()} serve --token-file {token} --rate {SERVER_MBIT}",
        command=("sh", "-c", f"{CONGESTION}; {browse} && {measure}"),
        on="laptop",
        patience_s=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr


def shown(directory: Path) -> Mapping[str, Any]:
    """What the page showed."""
    return cast(Mapping[str, Any], json.loads((directory / "shown.json").read_text(encoding="utf-8")))


def end(file: Path) -> Mapping[str, Any]:
    """The last event of a file of events, which has the observations and the verdict."""
    return cast(Mapping[str, Any], json.loads(file.read_text(encoding="utf-8").splitlines()[-1]))


def phases(file: Path) -> Mapping[str, Any]:
    """The phases of the verdict in a file of events, by their kinds."""
    return {phase["kind"]: phase for phase in end(file)["verdict"]["phases"]}


def test_the_page_measures_the_delay_that_the_program_measures(measured: Path) -> None:
    page, own = phases(measured / "page.jsonl")["upload"], phases(measured / "program.jsonl")["upload"]
    assert page["outcome"]["kind"] == own["outcome"]["kind"] == "queue"
    # Not the 95th percentile: it is not known if the full queue drops more than 5 % of the program's probes. On an idle
    # machine the medians are within 15 %; on a busy one, a browser fills the queue less.
    found, expected = (each["numbers"]["added"]["p50_ns"] for each in (page, own))
    assert found == pytest.approx(expected, rel=0.3), (found / MS, expected / MS)
    assert 0.4 * FULL_MS < page["numbers"]["added"]["p50_ns"] / MS < 1.2 * FULL_MS
    (where,) = page["where"]
    assert where["direction"] == "up"
    (place,) = where["answer"]["locations"]
    assert (place["place"], place["link"]) == ("router_uplink", 2), "the server's ladder reaches the laptop's router"


def test_the_servers_ladder_begins_within_the_first_phase(measured: Path) -> None:
    idle = end(measured / "page.jsonl")["observations"]["phases"][0]
    first = min(idle["ladder"], key=lambda row: row["t_ns"])
    assert first["ttl"] == 1, "a probe before the phase would be lost, and may be the only one"


def test_the_page_finds_no_queue_where_there_is_none(measured: Path) -> None:
    phase = phases(measured / "page.jsonl")["download"]
    assert phase["outcome"]["kind"] not in ("queue", "other_traffic")
    assert phase["where"] == []
    assert phase["numbers"]["added"]["p50_ns"] < 3 * MS
    (down,) = (each for each in phase["numbers"]["directions"] if each["direction"] == "down")
    assert down["goodput"]["mean_bps"] == pytest.approx(SERVER_MBIT * 1e6, rel=0.15)


def test_the_page_shows_the_sentences_and_works_without_a_mouse_on_a_small_screen(measured: Path) -> None:
    found = shown(measured)
    verdict = end(measured / "page.jsonl")["verdict"]
    assert found["errors"] == []
    assert found["sentences"] == verdict["sentences"]
    assert found["grade"] == verdict["grade"]
    assert found["unlabelled"] == []
    assert found["focused"] == "result-title"
    assert found["running"]["status"] == "Now measuring: download."
    assert [row[0] for row in found["rows"]] == ["idle", "download", "upload"]
    assert len(found["means"]) == 4
    assert set(found["wide"].values()) | {found["running"]["wide"]} == {0}, "it never scrolls sideways"
    assert all(len(sentences) == 5 for sentences in found["languages"].values())
    assert (measured / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_saved_file_is_imported_as_a_measurement(measured: Path, tmp_path: Path) -> None:
    (run,) = import_all(measured / "page.jsonl", tmp_path)
    assert isinstance(run, bs.Run)
    assert run.experiment == "server"
    assert run.meta["summary"]["live"]["complete"]
    assert run.probes.height > 500
    again = judge(run)
    assert [phase["outcome"]["kind"] for phase in again["phases"]] == [
        phase["outcome"]["kind"] for phase in run.meta["summary"]["live"]["verdict"]["phases"]
    ]
