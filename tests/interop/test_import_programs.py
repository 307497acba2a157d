"""What iperf3, irtt and ping of this machine print is imported as it is. They talk to this machine's own address."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bufferscope.interop.importing.conversion import import_file
from bufferscope.store.run import Run

HOST = "127.0.0.1"
PATIENCE_S = 60


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _needs(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")


@contextmanager
def _serving(*command: str) -> Iterator[None]:
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        server.kill()
        server.wait()


def _until_it_answers(client: Callable[[], subprocess.CompletedProcess[str]]) -> str:
    """What the client prints, once its server has begun."""
    for _ in range(PATIENCE_S):
        done = client()
        if done.returncode == 0 and '"error"' not in done.stdout:  # with --json, iperf3 always returns 0
            return done.stdout
        time.sleep(0.5)
    raise AssertionError(done.stdout + done.stderr)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def _imported(directory: Path, text: str) -> Run:
    (directory / "printed").write_text(text)
    return import_file(directory / "printed", directory / "results")


@pytest.mark.parametrize(
    ("options", "entries", "kind"),
    [
        (["-P", "2"], {"iperf3.up": 2}, "tcp"),
        (["-R"], {"iperf3.down": 1}, "tcp"),
        (["--bidir"], {"iperf3.up": 1, "iperf3.down": 1}, "tcp"),
        (["-u", "-b", "2M"], {"iperf3.up": 1}, "udp"),
    ],
    ids=["two uploads", "a download", "both ways", "datagrams"],
)
def test_iperf3s_streams_are_flows(tmp_path: Path, options: list[str], entries: dict[str, int], kind: str) -> None:
    _needs("iperf3")
    port = str(_free_port(socket.SOCK_STREAM))
    with _serving("iperf3", "-s", "-p", port):
        text = _until_it_answers(
            lambda: _run("iperf3", "-c", HOST, "-p", port, "-t", "1", "-i", "0.2", "--json", *options)
        )
    run = _imported(tmp_path, text)
    assert {entry["name"]: entry["flows"] for entry in run.scenario["traffic"]} == entries  # type: ignore[typeddict-item]
    assert {entry["kind"] for entry in run.scenario["traffic"]} == {kind}
    sent = json.loads(text)["end"]["sum_sent" if "-R" not in options else "sum_received"]["bytes"]
    counted = run.flows.filter(run.flows["flow"].str.starts_with(next(iter(entries))))
    total = counted.group_by("flow").max()["delivered_bytes"].sum()
    assert total == pytest.approx(sent, rel=0.02)
    assert ("retransmits.total" in run.metrics) == (kind == "tcp" and "iperf3.up" in entries)


def test_irtts_statistics_are_those_of_the_run(tmp_path: Path) -> None:
    _needs("irtt")
    port = str(_free_port(socket.SOCK_DGRAM))
    file = tmp_path / "irtt.json"
    with _serving("irtt", "server", "-b", f"{HOST}:{port}"):
        _until_it_answers(lambda: _run("irtt", "client", "-d", "1s", "-i", "50ms", "-o", str(file), f"{HOST}:{port}"))
    run = import_file(file, tmp_path / "results")
    told = json.loads(file.read_text())["stats"]
    assert run.metrics["rtt.mean_ms"] == pytest.approx(told["rtt"]["mean"] / 1e6, abs=2e-6)
    assert run.metrics["rtt.sent"] == told["packets_sent"]
    assert run.metrics["rtt.lost"] == told["packets_sent"] - told["packets_received"]


@pytest.mark.parametrize("options", [["-D"], []], ids=["stamped", "plain"])
def test_pings_last_line_agrees_with_the_run(tmp_path: Path, options: list[str]) -> None:
    _needs("ping")
    done = _run("ping", *options, "-i", "0.2", "-c", "5", HOST)
    if done.returncode == 2:
        pytest.skip(f"ping may not send here: {done.stderr.strip()}")
    run = _imported(tmp_path, done.stdout)
    smallest, mean, largest = (float(part) for part in done.stdout.rpartition("= ")[2].split("/")[:3])
    assert run.metrics["rtt.sent"] == 5
    assert run.metrics["rtt.lost"] == 0
    assert run.metrics["rtt.mean_ms"] == pytest.approx(mean, abs=0.002)
    assert run.metrics["rtt.max_ms"] == largest
    assert run.probes["rtt_ns"].min() == round(smallest * 1e6)
    assert bool(run.warnings) == (not options)
