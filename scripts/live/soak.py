"""Runs tests in a loop against one server on this machine, and prints what the server uses.

`python3 scripts/live/soak.py [SECONDS] [--program PATH]` prints a line of columns after each test: seconds, tests,
failed tests, and resident memory (KiB), threads and descriptors of the server. Between whole tests, other clients
misbehave: they send garbage or are killed in the middle. Fails if a test failed, if the server has ended, if it has
more threads or descriptors at the end than after its first test, or if its memory has grown in the second half.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

# Of each direction: short, so that many tests fit into an hour.
AT_MOST_S = 10
# Threads and connections of the last test end within this time.
SETTLE_S = 5
# The loads of the tests, in turn.
PHASES = [["--idle"], ["--phases", "download"], ["--phases", "upload"], ["--phases", "both"]]
# Memory may grow by this much from the first half of the tests to the second: what each test kept would be more.
MOST_GROWTH_KIB = 256


def main() -> int:
    """Run the soak that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("seconds", nargs="?", type=int, default=3600)
    parser.add_argument("--program", type=Path, default=Path("target/debug/bufferscope-live"))
    options = parser.parse_args()
    # What a user of a public server may do in an hour is no limit here.
    limits = ["--tests-per-hour", "100000", "--all-tests-per-hour", "100000", "--bytes-per-hour", "1000000"]
    command = [options.program, "serve", "--listen", "127.0.0.1:0", *limits]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            return soak(server, options.program, options.seconds)
        finally:
            server.terminate()


def soak(server: "subprocess.Popen[str]", program: Path, seconds: int) -> int:
    """Run tests until the time is over, then compare what the server used earlier and later."""
    assert server.stdout is not None
    words = next(line for line in server.stdout if "--token" in line).split()
    address, token = words[words.index("measure") + 1], words[words.index("--token") + 1]
    measure = [str(program), "measure", address, "--token", token, "--at-most", str(AT_MOST_S), "--events"]
    begun, tests, failed = time.monotonic(), 0, 0
    used: list[tuple[int, int, int]] = []
    print("seconds tests failed rss_kib threads descriptors", flush=True)
    while server.poll() is None:
        phases = PHASES[tests % len(PHASES)]
        done = subprocess.run([*measure, *phases], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        tests, failed = tests + 1, failed + (done.returncode != 0)
        misbehave(address, measure)
        time.sleep(SETTLE_S)
        used.append(uses(server.pid))
        print(int(time.monotonic() - begun), tests, failed, *used[-1], flush=True)
        if time.monotonic() - begun >= seconds:
            break
    if server.poll() is not None or not used:
        print("the server has ended", file=sys.stderr)
        return 1
    grown_kib = growth_kib([memory for memory, _, _ in used])
    threads, descriptors = (now - then for then, now in zip(used[0][1:], used[-1][1:], strict=True))
    print(f"grown by {grown_kib} KiB, {threads} threads, {descriptors} descriptors; {failed} of {tests} tests failed")
    return int(grown_kib > MOST_GROWTH_KIB or threads > 0 or descriptors > 0 or failed > 0)


def growth_kib(memory: list[int]) -> int:
    """Return how much more the server used at most in the second half of the tests than in the first.

    The first test of each kind takes memory that later ones use again.
    """
    later = memory[len(PHASES) :]
    half = len(later) // 2
    return max(later[half:]) - max(later[:half]) if half else 0


def misbehave(address: str, measure: list[str]) -> None:
    """Be clients that no server wants."""
    host, port = address.rsplit(":", 1)
    for sent in [b"GET / HTTP/1.1\r\n\r\n", b"\x16" * 4096, os.urandom(4096), b"\x16\x03\x01"]:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=5) as peer:
            peer.sendall(sent)
    with subprocess.Popen(measure, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        time.sleep(1)
        client.send_signal(signal.SIGKILL)


def uses(pid: int) -> tuple[int, int, int]:
    """Return resident memory in KiB, threads and descriptors of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]), int(status["Threads"]), len(list(Path(f"/proc/{pid}/fd").iterdir()))


if __name__ == "__main__":
    sys.exit(main())
