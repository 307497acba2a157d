"""Measures how fast the load of a live test is between two network namespaces of this machine.

`sudo python3 scripts/live/rate.py [--program PATH] [--flows N] [--at-least MBIT/S]` connects two namespaces by a veth
pair, and prints for each direction: the goodput, the processor time of both programs per gigabyte, and what the verdict
says limited the test. If iperf3 is installed, its numbers with as many connections follow. Fails if a direction is
slower than `--at-least`, or if the verdict does not name a processor as the limit.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What two processors must carry with one connection.
AT_LEAST_MBIT = 5000
PHASE_S = 10
SERVER = "10.231.77.1"
CLIENT = "10.231.77.2"
DIRECTIONS = {"download": "down", "upload": "up"}


@dataclass(frozen=True)
class Rate:
    """What one program reached in one direction."""

    program: str
    phase: str
    mbit: float
    """Goodput in Mbit/s."""
    client_s: float
    """Processor time of the client in seconds per gigabyte."""
    server_s: float
    """Processor time of the server in seconds per gigabyte."""
    limit: str
    """What limited the test, as the verdict says; empty: it does not say."""
    is_processor: bool = False
    """Whether the verdict says that it was a processor."""


def main() -> int:
    """Measure both directions with each program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--program", type=Path, default=Path("target/x86_64-unknown-linux-gnu/live/bufferscope-live"))
    parser.add_argument("--flows", type=int, default=1, help="connections (default: 1)")
    parser.add_argument(
        "--at-least", type=int, default=AT_LEAST_MBIT, metavar="MBIT/S", help=f"default: {AT_LEAST_MBIT}"
    )
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("network namespaces need root")
    with namespaces() as (near, far):
        ours = [live(options.program.resolve(), near, far, phase, options.flows) for phase in DIRECTIONS]
        others = [iperf(near, far, phase, options.flows) for phase in DIRECTIONS] if shutil.which("iperf3") else []
    print(f"{'program':<18}{'direction':<10}{'Mbit/s':>8}{'client s/GB':>13}{'server s/GB':>13}  limit")
    for rate in [*ours, *others]:
        times = f"{rate.client_s:>13.2f}{rate.server_s:>13.2f}"
        print(f"{rate.program:<18}{rate.phase:<10}{rate.mbit:>8.0f}{times}  {rate.limit}")
    slow = [rate.phase for rate in ours if rate.mbit < options.at_least]
    if slow:
        print(f"slower than {options.at_least} Mbit/s: {', '.join(slow)}", file=sys.stderr)
    unexplained = [rate.phase for rate in ours if not rate.is_processor]
    if unexplained:
        print(f"the verdict does not name the processors: {', '.join(unexplained)}", file=sys.stderr)
    return int(bool(slow or unexplained))


@contextlib.contextmanager
def namespaces() -> Iterator[tuple[str, str]]:
    """Connect the client's and the server's namespace by a veth pair."""
    near, far = (f"bufferscope-{end}-{os.getpid()}" for end in ("near", "far"))
    try:
        for name in (near, far):
            run("ip", "netns", "add", name)
            run("ip", "-netns", name, "link", "set", "lo", "up")
        run("ip", "-netns", near, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", far)
        for name, address in ((near, CLIENT), (far, SERVER)):
            run("ip", "-netns", name, "address", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-netns", name, "link", "set", "eth0", "up")
        yield near, far
    finally:
        for name in (near, far):
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)


def run(*command: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, check=True)


def live(program: Path, near: str, far: str, phase: str, flows: int) -> Rate:
    """Measure with the two ends of a live test."""
    inside = ["ip", "netns", "exec"]
    serve = [*inside, far, str(program), "serve", "--listen", f"{SERVER}:0", "--once"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        words = next(line for line in server.stdout if "--token" in line).split()
        address, token = words[words.index("measure") + 1], words[words.index("--token") + 1]
        arguments = ["--phases", phase, "--flows", str(flows), "--at-most", str(PHASE_S), "--events"]
        measure = [*inside, near, str(program), "measure", address, "--token", token, *arguments]
        with tempfile.TemporaryFile() as output, subprocess.Popen(measure, stdout=output) as client:
            # A program's use of the processor is known when it has ended.
            used = os.wait4(client.pid, 0)[2]
            client.returncode = 0
            output.seek(0)
            end = json.loads(output.read().splitlines()[-1])
        of_server = os.wait4(server.pid, 0)[2]
        server.returncode = 0
    if not end.get("complete"):
        raise SystemExit(f"the test ended early: {end.get('reason')}")
    found = next(found for found in end["verdict"]["phases"] if found["kind"] == phase)
    numbers = next(one for one in found["numbers"]["directions"] if one["direction"] == DIRECTIONS[phase])
    gigabytes = load_bytes(end["observations"], phase) / 1e9
    seconds = [(one.ru_utime + one.ru_stime) / gigabytes for one in (used, of_server)]
    mbit = numbers["goodput"]["mean_bps"] / 1e6
    outcome = found["outcome"]
    said = str(outcome.get("text") or outcome["kind"])
    return Rate("bufferscope-live", phase, mbit, seconds[0], seconds[1], said, outcome.get("limit") == "cpu")


def load_bytes(observations: dict[str, Any], phase: str) -> int:
    """Return the bytes of load that arrived in a phase."""
    found = next(found for found in observations["phases"] if found["kind"] == phase)
    bytes_ = [row["bytes"] for row in found["goodput"] if row["direction"] == DIRECTIONS[phase]]
    return int(max(bytes_) - min(bytes_))


def iperf(near: str, far: str, phase: str, flows: int) -> Rate:
    """Measure with iperf3."""
    inside = ["ip", "netns", "exec"]
    with subprocess.Popen([*inside, far, "iperf3", "--server", "--one-off"], stdout=subprocess.DEVNULL) as server:
        time.sleep(0.5)
        reverse = ["--reverse"] if phase == "download" else []
        arguments = ["--client", SERVER, "--time", str(PHASE_S), "--parallel", str(flows), "--json", *reverse]
        done = subprocess.run([*inside, near, "iperf3", *arguments], capture_output=True, text=True, check=True)
        server.wait(timeout=10)
    end = json.loads(done.stdout)["end"]
    received, used = end["sum_received"], end["cpu_utilization_percent"]
    gigabytes = received["bytes"] / 1e9
    seconds = [used[end_] / 100 * received["seconds"] / gigabytes for end_ in ("host_total", "remote_total")]
    return Rate("iperf3", phase, received["bits_per_second"] / 1e6, seconds[0], seconds[1], "")


if __name__ == "__main__":
    sys.exit(main())
