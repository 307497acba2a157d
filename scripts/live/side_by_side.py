"""Compares what several tests call the delay under load, on the same paths and in the same seconds.

`python3 scripts/live/side_by_side.py [--paths 1,2]` needs root or user namespaces, and irtt, iperf (version 2) and
ping. Each path is one of `responsiveness.py`: h1 - r1 - r2 - h2, with a drop-tail queue at the slowest link. While
`bufferscope-live measure` loads it with a download, the other programs measure round trips beside it for some seconds.
The table has their numbers, and those that the definitions of other tests give for our own echoes in these seconds.
"""

import argparse
import json
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bufferscope.engines.live.program import program
from responsiveness import LINES, Line
from trials import with_shell

AFTER_S, LONG_S = 14, 6
"""The other programs start so many seconds after the test, of which the first ten are idle, and run for so long."""
LONGEST_S = 300
SECOND_NS = 1_000_000_000
CLOUDFLARE_NS, CLOUDFLARE_LAST = 400_000_000, 20
"""Its engine asks every 400 ms under load, and takes the median of the last 20 answers."""
CRUSADER_NS = 400_000_000
"""Its summary is the maximum of a moving average of this length."""
FLENT_NS = 200_000_000
"""Its ping sends one packet in this time."""

Echoes = Sequence[tuple[int, float]]
"""Time of an echo in nanoseconds, and its round trip in milliseconds."""

HEADS = (
    *("path", "idle", "irtt, median", "ping, mean", "iperf 2, mean", "our echoes: median", "95th percentile"),
    *(
        "by Flent: mean at 5/s",
        "by Cloudflare: median at 2.5/s",
        "by Crusader: highest mean of 400 ms",
        "grade (p95 added)",
    ),
)


def main() -> int:
    """Run the paths, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--paths", default="1,3,6,7,8,9", metavar="NUMBERS", help="as in 1,2 (default: %(default)s)")
    options = parser.parse_args()
    print(f"| {' | '.join(HEADS)} |")
    print(f"|{'---|' * len(HEADS)}")
    for number in map(int, options.paths.split(",")):
        line = LINES[number - 1]
        shown = f"{number}: {line.down_mbit:g} Mbit/s, {line.rtt_ms:g} ms + {line.buffer_ms:g} ms"
        print(f"| {' | '.join([shown, *_row(line)])} |", flush=True)
    return 0


def _row(line: Line) -> list[str]:
    """The cells of a path, in milliseconds of round trip."""
    with tempfile.TemporaryDirectory() as directory:
        end = _measured(line, directory)
        irtt = json.loads(Path(directory, "irtt.json").read_text(encoding="utf-8"))["stats"]["rtt"]["median"] / 1e6
        ping = statistics.mean(map(float, re.findall(r"time=([0-9.]+) ms", Path(directory, "ping.txt").read_text())))
        bounced = Path(directory, "iperf.txt").read_text(encoding="utf-8")
    # The last line is about the whole time: number of requests = average/minimum/maximum/deviation.
    iperf = float(re.findall(r"\b\d+=([0-9.]+)/[0-9.]+/[0-9.]+/[0-9.]+ ms", bounced)[-1])
    phases = {phase["kind"]: phase for phase in end["observations"]["phases"]}
    window = AFTER_S * SECOND_NS, (AFTER_S + LONG_S) * SECOND_NS
    echoes = [
        (echo["t_ns"], echo["rtt_ns"] / 1e6)
        for echo in phases["download"]["echoes"]
        if echo["rtt_ns"] is not None and window[0] <= echo["t_ns"] < window[1]
    ]
    trips = [trip for _, trip in echoes]
    numbers = [
        end["verdict"]["idle"]["rtt"]["p50_ns"] / 1e6,
        *(irtt, ping, iperf, statistics.median(trips), statistics.quantiles(trips, n=20)[-1]),
        statistics.mean(_thinned(echoes, FLENT_NS)),
        statistics.median(_thinned(echoes, CLOUDFLARE_NS)[-CLOUDFLARE_LAST:]),
        _highest_mean(echoes, CRUSADER_NS),
    ]
    return [*(f"{number:.0f}" for number in numbers), str(end["verdict"]["grade"])]


def _measured(line: Line, directory: str) -> dict[str, Any]:
    """The last event of our test; the other programs' output is in the directory."""
    file = Path(directory) / "path.toml"
    file.write_text(line.experiment(), encoding="utf-8")
    live, token = str(program()), f"{directory}/token"
    ours = [live, "measure", "h2", "--events", "--phases", "idle,download", "--token-file", token]
    servers = ([live, "serve", "--token-file", token], ["irtt", "server"], ["iperf", "--server"])
    clients = (
        f"irtt client -i 20ms -d {LONG_S}s -o {directory}/irtt.json h2",
        f"ping -i 0.2 -w {LONG_S} h2 > {directory}/ping.txt",
        f"iperf --client h2 --bounceback --bounceback-period 0.1 --time {LONG_S} -e > {directory}/iperf.txt",
    )
    beside = "".join(f"(sleep {AFTER_S}; {words}) >{directory}/other.log 2>&1 & " for words in clients)
    command = [
        *(sys.executable, "-m", "bufferscope", "shell", str(file), "--engine", "host", "--quiet", "--on", "h1"),
        *(word for words in servers for word in ("--with", with_shell("h2", f"exec {shlex.join(words)}"))),
        *("--", "sh", "-c", f"sleep 2; {beside}{shlex.join(ours)}; wait"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    events = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
    if not events or events[-1]["event"] != "end":
        raise ValueError((done.stderr or done.stdout)[-500:] or "no output")
    found: dict[str, Any] = events[-1]
    return found


def _thinned(echoes: Echoes, period_ns: int) -> list[float]:
    """The first echo of each period."""
    firsts: dict[int, float] = {}
    for t_ns, trip in echoes:
        firsts.setdefault(t_ns // period_ns, trip)
    return list(firsts.values())


def _highest_mean(echoes: Echoes, length_ns: int) -> float:
    """The maximum of a moving average."""
    return max(
        statistics.mean(trip for t_ns, trip in echoes if begin <= t_ns < begin + length_ns)
        for begin, _ in echoes
        if begin + length_ns <= echoes[-1][0]
    )


if __name__ == "__main__":
    sys.exit(main())
