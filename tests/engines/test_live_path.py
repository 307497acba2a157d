"""`bufferscope measure` and `bufferscope-live serve` over paths of this machine's kernel, with a queue that we planted.

The measurement ends when the delay has levelled off, so it takes half a minute, most of it asleep. Delays are from the
kernel's time stamps, and what must hold of them also holds on a busy machine: the load fills the queue all the same.
"""

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from shells import call, home, skip_without_network

import bufferscope as bs
from bufferscope.engines.live.program import program

HOME = home(up=("8mbit", "60p"), down=("24mbit", "200p"))
FULL_MS = {"upload": 60 * 1514 * 8 / 8e3, "download": 200 * 1514 * 8 / 24e3}
"""The delay of each of the two queues when it is full."""
PATIENCE_S = 400
WITNESS_AT_S, WITNESS_S = 19, 4
"""When the other programs begin, and how long they measure: in the middle of the download. The shell waits for them for
5 s, and the idle phase lasts 10 s."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Any]]:
    """A test of both directions, as a user runs it: the directory, and the document that it printed."""
    skip_without_network()
    directory = tmp_path_factory.mktemp("live")
    (directory / "lab.toml").write_text(HOME, encoding="utf-8")
    done = call(
        directory,
        "--quiet",
        "--with",
        f"server={program()} serve --token-file {directory}/token",
        *(word for name in WITNESSES if shutil.which(name) for word in _witness(name, directory)),
        command=(
            *(sys.executable, "-m", "bufferscope", "measure", "server", "--token-file", f"{directory}/token"),
            *("--phases", "download,upload", "--out", str(directory / "results"), "--no-report", "--json"),
        ),
        on="laptop",
        patience_s=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return directory, cast(Mapping[str, Any], json.loads(done.stdout))


WITNESSES = {
    "irtt": ("irtt server", "irtt client -i 20ms -d {seconds}s -o {directory}/irtt.json server"),
    "iperf": (
        "iperf --server",
        "iperf --client server --bounceback --bounceback-period 0.1 --time {seconds} -e > {directory}/iperf.txt",
    ),
}
"""The commands of other programs' servers and clients, which measure round trips at the same time."""


def _witness(name: str, directory: Path) -> tuple[str, ...]:
    server, client = WITNESSES[name]
    later = f"sh -c 'sleep {WITNESS_AT_S}; exec {client.format(seconds=WITNESS_S, directory=directory)}'"
    return "--with", f"server={server}", "--with", f"laptop={later}"


@pytest.mark.parametrize(
    ("phase", "direction", "place"), [("upload", "up", "router_uplink"), ("download", "down", "access_downlink")]
)
def test_the_planted_queues_are_named(
    measured: tuple[Path, Mapping[str, Any]], phase: str, direction: str, place: str
) -> None:
    verdict = measured[1]["verdict"]
    found = next(each for each in verdict["phases"] if each["kind"] == phase)
    assert found["outcome"]["kind"] == "queue"
    answer = next(each["answer"] for each in found["where"] if each["direction"] == direction)
    assert [each["place"] for each in answer["locations"]] == [place]
    assert answer["probability"] > 0.9


def test_the_added_delay_is_at_most_that_of_the_full_queue(measured: tuple[Path, Mapping[str, Any]]) -> None:
    metrics = measured[1]["runs"][0]["metrics"]
    for phase, full_ms in FULL_MS.items():
        # Lost echoes count as longer than all others; a full queue may drop more than 5 % of them.
        p95_ms = metrics[f"live.{phase}.added.p95_ms"]
        added_ms = metrics[f"live.{phase}.added.max_ms"] if p95_ms is None else p95_ms
        # A busy machine delays single probes only, and the queue is nearly full for a twentieth of the time.
        assert 0.7 * full_ms < added_ms < 1.3 * full_ms, phase


def test_irtt_sees_the_same_delay(measured: tuple[Path, Mapping[str, Any]]) -> None:
    if not shutil.which("irtt"):
        pytest.skip("irtt is not installed here")
    directory, document = measured
    witnessed = json.loads((directory / "irtt.json").read_text(encoding="utf-8"))["stats"]["rtt"]["median"]
    assert document["runs"][0]["metrics"]["live.download.rtt.p50_ms"] == pytest.approx(witnessed / 1e6, rel=0.15)


def test_bounceback_of_iperf_sees_the_same_delay(measured: tuple[Path, Mapping[str, Any]]) -> None:
    if not shutil.which("iperf"):
        pytest.skip("iperf 2 is not installed here")
    directory, document = measured
    # The last line is about the whole time: number of requests = average/minimum/maximum/deviation.
    found = re.findall(r"\b\d+=([0-9.]+)/[0-9.]+/[0-9.]+/[0-9.]+ ms", (directory / "iperf.txt").read_text())
    assert document["runs"][0]["metrics"]["live.download.rtt.p50_ms"] == pytest.approx(float(found[-1]), rel=0.15)


def test_the_stored_run_shows_the_hops_and_is_judged_the_same_again(measured: tuple[Path, Mapping[str, Any]]) -> None:
    from bufferscope.interop.live.judging import judge

    directory, document = measured
    run = bs.load(directory / "results" / "server")[0]
    assert run.engine == "live"
    hops = {(row["ladder"], row["ttl"]) for row in run.hops.iter_rows(named=True) if row["rtt_ns"] is not None}
    assert {("client", 1), ("client", 2), ("server", 1), ("server", 2)} <= hops
    assert set(run.stages["stage"]) >= {"qdisc", "send_buffer"}
    assert judge(run)["sentences"] == document["verdict"]["sentences"]
