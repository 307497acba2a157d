"""Outside witnesses: iperf3 and irtt measure on the emulated path what the agent reports.

Agent and witness measure one after the other, in runs of their own. They measure quantities that the wire alone
determines: the goodput of a flow whose queue never runs empty, and the round-trip time of an idle path. Real time on a
shared machine is noisy. So a pair of runs is judged only if the data of both runs show that the network, and not the
machine, was the limit. Otherwise the pair is repeated. A pair that can be judged and disagrees fails at once.

The machine can only lengthen a round-trip time. So the fastest twentieths of the probes are compared, which are
affected least. iperf3 counts what its server has read by the time that its timers fire. If the machine wakes the server
late, its intervals of a second differ, although the wire was never idle. irtt takes its times at both ends in processes
that must be woken first; the agent takes its times when the kernel has the packet. irtt's own share is measured on the
host's own address and subtracted.
"""

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dumbbell import dumbbell, pfifo
from laboratory import first_undisturbed, program, write
from shells import call, python, skip_without_network

import bufferscope as bs

ATTEMPTS = 5
GOODPUT_TOLERANCE = 0.02
RTT_TOLERANCE_MS = 0.2

PATH = {"access": {"delay": "5ms"}, "bottleneck": {"delay": "5ms", "queue": pfifo(50)}}
"""A path that others measure, too."""
# 50 packets of queue hold three times what the path does: Reno halves its window and never lets the queue run empty.
BULK = dumbbell("A flow", "8s", warmup="2s", **PATH, bulk={"name": "own", "congestion": "reno"}, ping=None)
PROBES = dumbbell(
    "Probes", "4s", warmup="0s", **PATH, bulk=None, ping={"name": "own", "interval": "20ms", "size": "100b"}
)
RATE_BPS = 10e6
LEAST_SHARE = 0.99
"""A wire that sent less while its queue stood was held up by the machine."""
LEAST_PROBES = 150
"""Of the 200 that a prober sends in 4 s if the machine wakes it in time."""
WIDEST_MS = 0.3
"""Half of the probes of an idle path lie within this unless the machine had no time for them."""

WATCH = """
import json, socket, subprocess, time
socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket.bind(("", 9))  # tells that this is ready
while True:
    told = json.loads(subprocess.check_output(["tc", "-s", "-j", "qdisc", "show", "dev", "to-h2"]))
    print(time.monotonic(), next(each["bytes"] for each in told if each["kind"] == "pfifo"), flush=True)
    time.sleep(0.2)
"""
"""Bytes that the bottleneck has sent."""


@dataclass(frozen=True)
class Measured:
    """A value, and whether the network caused it."""

    value: float
    undisturbed: bool


@pytest.fixture(autouse=True)
def _witnesses() -> None:
    skip_without_network()
    program("iperf3")
    program("irtt")


def own_goodput(directory: Path) -> Measured:
    (run,) = bs.run(write(directory, BULK), engine="host", out=directory / "out").runs
    return Measured(run.metrics["goodput.own_mbit"], run.metrics["utilization.r1>h2"] >= LEAST_SHARE)


def iperf3_goodput(directory: Path) -> Measured:
    write(directory, BULK)
    watch = f"r1={shlex.join(python(WATCH))} > wire"
    options = ("--congestion", "reno", "--omit", "2", "--time", "6", "--json", "--get-server-output")
    command = ("iperf3", "--client", "h2", *options)
    done = call(directory, "--quiet", "--with", "h2=iperf3 --server --json", "--with", watch, command=command)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    intervals = [interval["sum"] for interval in told["server_output_json"]["intervals"]]
    whole = [part["bits_per_second"] for part in intervals if not part["omitted"] and part["seconds"] > 0.5]
    in_time = len(whole) == 6 and max(whole) - min(whole) <= GOODPUT_TOLERANCE * float(np.median(whole))
    samples = [tuple(map(float, line.split())) for line in (directory / "wire").read_text().splitlines()]
    busy = [(at_s, sent) for at_s, sent in samples if samples[0][0] + 3 <= at_s <= samples[0][0] + 7]
    (from_s, before), (to_s, after) = busy[0], busy[-1]
    share = (after - before) * 8 / (to_s - from_s) / RATE_BPS
    return Measured(told["end"]["sum_received"]["bits_per_second"] / 1e6, share >= LEAST_SHARE and in_time)


def own_rtt(directory: Path) -> Measured:
    (run,) = bs.run(write(directory, PROBES), engine="host", out=directory / "out").runs
    return rtt([rtt_ns / 1e6 for rtt_ns in run.probes["rtt_ns"].drop_nulls()])


def irtt_rtt(directory: Path) -> Measured:
    write(directory, PROBES)
    client = "irtt client -Q -i 20ms -d 4s -l 100 -o - "
    command = ("sh", "-c", f"{client} h2 > path.json && {client} h1 > itself.json")
    done = call(directory, "--quiet", "--with", "h2=irtt server", "--with", "h1=irtt server", command=command)
    assert done.returncode == 0, done.stdout + done.stderr
    path, itself = (irtt_delays(directory / name) for name in ("path.json", "itself.json"))
    return Measured(path.value - itself.value, path.undisturbed and itself.undisturbed)


def irtt_delays(file: Path) -> Measured:
    delays = [trip["delay"] for trip in json.loads(file.read_text())["round_trips"]]
    return rtt([delay["rtt"] / 1e6 for delay in delays if "rtt" in delay])


def rtt(values_ms: Sequence[float]) -> Measured:
    assert values_ms, "a path without a queue loses nothing"
    fast, low, high = map(float, np.percentile(values_ms, [5, 25, 75]))
    return Measured(fast, len(values_ms) >= LEAST_PROBES and high - low <= WIDEST_MS)


def side_by_side(
    directory: Path, own: Callable[[Path], Measured], witness: Callable[[Path], Measured], lack: str
) -> tuple[float, float]:
    """What the agent and the witness measured; skips the test if the machine always disturbed one of them (`lack`)."""

    def attempt() -> tuple[tuple[float, float], list[str]]:
        told, seen = own(directory), witness(directory)
        print(f"the agent {told}, the witness {seen}", file=sys.stderr)
        return (told.value, seen.value), [] if told.undisturbed and seen.undisturbed else [lack]

    return first_undisturbed(attempt, ATTEMPTS)


def test_iperf3_sees_the_goodput_that_the_agent_tells(tmp_path: Path) -> None:
    lack = "this machine did not have the time to carry 10 Mbit/s"
    told, seen = side_by_side(tmp_path, own_goodput, iperf3_goodput, lack)
    assert seen == pytest.approx(told, rel=GOODPUT_TOLERANCE)


def test_irtt_sees_the_round_trip_time_that_the_agent_tells(tmp_path: Path) -> None:
    lack = "this machine did not have the time to answer probes at once"
    told, seen = side_by_side(tmp_path, own_rtt, irtt_rtt, lack)
    assert seen == pytest.approx(told, abs=RTT_TOLERANCE_MS)
