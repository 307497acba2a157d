"""Compares the responsiveness of `measure https://` with that of `cf-mach` on paths with planted queues.

`python3 scripts/live/responsiveness.py --mach PATH [--paths 1,2] [--out FILE]` needs the program `mach` of the package
cf-mach on crates.io (`cargo install cf-mach`), a C compiler, and root or user namespaces. Each path is built by
`bufferscope shell --engine host`: h1 - r1 - r2 - h2, with a drop-tail queue in each direction at the slowest link. On
h2 runs `bufferscope-live serve --compatible`. On h1 the programs run one after the other, `--repeat` times; the table
has the medians, also over the lines that `--out` has already. It also has what the queue predicts for new connections:
60 s divided by the path's round trip and the planted queue's delay, which is its backlog by `tc` divided by its rate,
at the median of the last four seconds.

cf-mach runs twice. As it is, its times contain waits in its own machine: each handshake of TLS begins with reading the
system's root certificates, each request on a new connection waits for a round trip (Nagle's algorithm), and requests on
the connections of an upload wait behind what the upload has written. So it also runs like for like: without root
certificates, and with the socket options of `short_buffers.c`. Frames of HTTP/2 hold up requests, too, up to 16 KiB on
each connection; `--like` is the same program, built with `CHUNK_SIZE = 1024` in its `upload_body.rs`.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bufferscope.engines.live.program import program
from labs import DOWNLINK, FRAME_BYTES, UPLINK, Planted
from trials import CUBIC, Backlog, backlog_in, node_of, sampler_of, samples_of, with_shell

PORT = 47300
LONGEST_S = 1200
"""Seconds of real time that one path may take."""
DIRECTIONS = ("download", "upload")
PLANTED: Mapping[str, Planted] = {"download": DOWNLINK, "upload": UPLINK}
WINDOW_NS = 4_000_000_000
"""The part of a phase that counts: its last intervals."""
MARK = "=== "
"""Before the name of the program whose output follows."""
PAUSE_S = 8
"""Servers tell the tests of two programs apart by a pause."""
OURS, THEIRS, LIKE = "bufferscope", "cf-mach", "cf-mach, like for like"


@dataclass(frozen=True)
class Line:
    """A path: its rates, its round trip without load, and the delay of its queues when they are full."""

    down_mbit: float
    up_mbit: float
    rtt_ms: float
    buffer_ms: float

    def rate_mbit(self, direction: str) -> float:
        """The rate of a direction."""
        return self.down_mbit if direction == "download" else self.up_mbit

    def experiment(self) -> str:
        """The experiment file."""
        queues = {
            way: f'{{ rate = "{rate}mbit", queue = {{ qdisc = "pfifo", limit = "{self._packets(rate)}p" }} }}'
            for way, rate in (("forward", self.up_mbit), ("reverse", self.down_mbit))
        }
        each_ms = self.rtt_ms / 2
        return f"""
title = "Responsiveness by two programs"
duration = "600s"

[[link]]
name = "lan"
ends = ["h1", "r1"]
delay = "{each_ms * 0.1:.3f}ms"

[[link]]
name = "access"
ends = ["r1", "r2"]
delay = "{each_ms * 0.4:.3f}ms"
forward = {queues["forward"]}
reverse = {queues["reverse"]}

[[link]]
name = "far"
ends = ["r2", "h2"]
delay = "{each_ms * 0.5:.3f}ms"

[[traffic]]
name = "ping"
kind = "ping"
from = "h1"
to = "h2"
"""

    def _packets(self, rate_mbit: float) -> int:
        return max(10, round(rate_mbit * 1e3 * self.buffer_ms / 8 / FRAME_BYTES))


LINES = (
    Line(20, 5, 20, 50),
    Line(20, 20, 20, 100),
    Line(50, 10, 15, 150),
    Line(10, 2, 40, 200),
    Line(50, 50, 10, 40),
    Line(30, 10, 60, 100),
    Line(100, 40, 12, 60),
    Line(8, 8, 30, 300),
    Line(25, 5, 25, 400),
    Line(40, 20, 80, 80),
)


@dataclass(frozen=True)
class Score:
    """One program's result in one direction."""

    rpm: float | None
    mbit: float | None
    parts: tuple[float, float] | None = None
    """On new connections, and on those of the load."""
    confidence: str = ""
    span_ns: tuple[int, int] | None = None
    """The window, in nanoseconds of real time."""
    predicted: float | None = None
    """On new connections, from the backlog of the planted queue."""


Scores = Mapping[str, Score]
"""By direction."""


Found = Sequence[tuple[str, Scores]]
"""The scores of each test on a path, with the name of its program."""


def main() -> int:
    """Run the paths, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mach", type=Path, help="the program `mach` of cf-mach; without it, only ours runs")
    parser.add_argument("--like", type=Path, help="that program with shorter frames (default: the program of --mach)")
    parser.add_argument("--only", choices=(OURS, THEIRS, LIKE), help="run only this one")
    parser.add_argument("--server", type=Path, help="another bufferscope-live to serve with")
    parser.add_argument("--paths", default="", metavar="NUMBERS", help="as in 1,2 (default: all)")
    parser.add_argument("--repeat", type=int, default=1, help="tests of each program (default: 1); 0: only print")
    parser.add_argument("--out", type=Path, help="append a line of JSON for each path to this file")
    options = parser.parse_args()
    numbers = [int(word) for word in options.paths.split(",") if word] or range(1, len(LINES) + 1)
    columns = ["path", "direction", "RPM", "on new connections", "predicted", "on the load's"]
    columns += [THEIRS, "difference", LIKE, "difference"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for number in numbers:
        line = LINES[number - 1]
        found: list[tuple[str, Scores]] = []
        try:
            if options.repeat:
                programs = Programs(
                    options.mach, options.like or options.mach, options.server or program(), options.only
                )
                found = _measured(line, programs, options.repeat)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            print(f"path {number}: {error}", file=sys.stderr)
        if options.out and found:
            with options.out.open("a", encoding="utf-8") as file:
                plain = [(name, {way: vars(score) for way, score in scores.items()}) for name, scores in found]
                file.write(json.dumps({"path": number, "line": vars(line), "found": plain}) + "\n")
        for row in _rows(number, line, _kept(options.out, number) if options.out else found):
            print(row, flush=True)
    return 0


def _kept(out: Path, number: int) -> Found:
    """What a file has of a path."""
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    return [
        (name, {way: Score(**score) for way, score in scores.items()})
        for each in lines
        if each["path"] == number
        for name, scores in each["found"]
    ]


@dataclass(frozen=True)
class Programs:
    """What runs, apart from our own client."""

    mach: Path | None
    like: Path | None
    server: Path
    only: str | None = None
    """One of the three names of the tests."""


def _measured(line: Line, programs: Programs, repeat: int) -> list[tuple[str, Scores]]:
    """The scores of each test, with the name of its program."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "path.toml"
        file.write_text(line.experiment(), encoding="utf-8")
        serving = [
            str(programs.server),
            "serve",
            "--compatible",
            "--allow",
            "0.0.0.0/0",
            "--token-file",
            f"{directory}/token",
        ]
        url = f"https://h2:{PORT}"
        ours = [str(program()), "measure", url, "--insecure", "--events"]
        asking = ["rpm", "-c", f"{url}/.well-known/nq", "--insecure", "--disable-aim-scores"]
        tests = [(OURS, ours)]
        if programs.mach:
            tests.append((THEIRS, [str(programs.mach), *asking]))
            # It verifies no certificate here, but reads the root certificates all the same.
            settings = [f"LD_PRELOAD={_short_buffers(directory)}", "SSL_CERT_FILE=/dev/null"]
            tests.append((LIKE, ["env", *settings, str(programs.like), *asking]))
        chosen = [test for test in tests if programs.only in (None, test[0])] * repeat
        each = (f"echo {shlex.quote(MARK + name)}; {shlex.join(words)}; echo" for name, words in chosen)
        script = f"; sleep {PAUSE_S}; ".join(each)
        background = [("h2", f"exec {shlex.join(serving)}")]
        background += [(node_of(port), sampler_of(port, directory)) for port in PLANTED.values()]
        command = [
            *(sys.executable, "-m", "bufferscope", "shell", str(file), "--engine", "host", "--quiet", "--on", "h1"),
            *(word for pair in background for word in ("--with", with_shell(*pair))),
            *("--", "sh", "-c", f"{CUBIC}; sleep 2; {script}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        backlogs = {way: _read(samples_of(port, directory)) for way, port in PLANTED.items()}
    found: list[tuple[str, Scores]] = [
        (name, {way: _with_prediction(score, line, way, backlogs[way]) for way, score in scores.items()})
        for name, scores in _scores(done.stdout)
    ]
    if not found:
        raise ValueError((done.stderr or done.stdout)[-500:] or "no output")
    if done.stderr:
        print(done.stderr[-2000:], file=sys.stderr)
    return found


def _short_buffers(directory: str) -> str:
    """The library that gives a program's sockets short buffers."""
    library, source = f"{directory}/short_buffers.so", Path(__file__).with_name("short_buffers.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, str(source), "-ldl"], check=True)
    return library


def _read(file: str) -> Backlog:
    return backlog_in(Path(file).read_text(encoding="utf-8"))


def _with_prediction(score: Score, line: Line, direction: str, backlog: Backlog) -> Score:
    """The score with what the queue predicts for new connections in its window."""
    begin, end = score.span_ns or (0, 0)
    sizes = [size for t_ns, size in backlog if begin <= t_ns <= end]
    if not sizes:
        return score
    # A packet that arrives waits for half of the one that is being sent, too.
    delay_ms = (statistics.median(sizes) + FRAME_BYTES / 2) * 8 / line.rate_mbit(direction) / 1e3
    return replace(score, predicted=60_000 / (line.rtt_ms + delay_ms))


def _scores(output: str) -> Iterator[tuple[str, Scores]]:
    for part in output.split(MARK)[1:]:
        name, _, text = part.partition("\n")
        begin = text.find("{")
        if begin < 0:
            print(f"{name}: no result: {text[-300:]}", file=sys.stderr)
        elif name == OURS:
            yield name, _ours([json.loads(line) for line in text.splitlines() if line.startswith("{")])
        else:
            yield name, _theirs(json.JSONDecoder().raw_decode(text[begin:])[0])


def _ours(events: Sequence[Mapping[str, Any]]) -> Scores:
    start = next(event for event in events if event["event"] == "start")
    end = next(event for event in events if event["event"] == "end")
    ends_ns = {each["kind"]: start["realtime_ns"] + each["end_ns"] for each in end["observations"]["phases"]}
    found = {}
    for phase in end["verdict"]["phases"]:
        rpm, kind = phase["rpm"], phase["kind"]
        way = "down" if kind == "download" else "up"
        numbers = next(each for each in phase["numbers"]["directions"] if each["direction"] == way)
        mbit = numbers["goodput"]["mean_bps"] / 1e6 if numbers["goodput"] else None
        parts = (rpm["foreign"], rpm["own"]) if rpm["rpm"] else None
        span_ns = (ends_ns[kind] - WINDOW_NS, ends_ns[kind])
        found[kind] = Score(rpm["rpm"], mbit, parts, rpm["confidence"] or str(rpm["reason"]), span_ns)
    return found


def _theirs(document: Mapping[str, Any]) -> Scores:
    return {way: Score(document[way]["rpm"], document[way]["throughput"] / 1e6) for way in DIRECTIONS}


def _rows(number: int, line: Line, found: Found) -> Iterator[str]:
    for direction in DIRECTIONS:
        shown = f"{number}: {line.rate_mbit(direction):g} Mbit/s, {line.rtt_ms:g} ms + {line.buffer_ms:g} ms"
        of = {
            program: [scores[direction] for name, scores in found if name == program and direction in scores]
            for program in (OURS, THEIRS, LIKE)
        }
        own, ours = of[OURS], _middle(score.rpm for score in of[OURS])
        cells = [
            f"{_number(ours)} ({', '.join(dict.fromkeys(score.confidence for score in own)) or 'no result'})",
            _number(_middle(score.parts[0] for score in own if score.parts)),
            _number(_middle(score.predicted for score in own)),
            _number(_middle(score.parts[1] for score in own if score.parts)),
        ]
        for other in (THEIRS, LIKE):
            theirs = _middle(score.rpm for score in of[other])
            cells += [_number(theirs), f"{100 * (ours / theirs - 1):+.0f} %" if ours and theirs else "-"]
        yield f"| {' | '.join([shown, direction, *cells])} |"


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


if __name__ == "__main__":
    sys.exit(main())
