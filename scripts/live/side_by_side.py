"""Runs other people's tests beside `measure` on paths with planted queues, and writes docs/relation-to-other-tests.md.

`python3 scripts/live/side_by_side.py --rows FILE [--mach PATH] [--speedtest FILE] [--netperf DIRECTORY]` needs root or
user namespaces, and the programs that are to run: irtt, iperf 2, ping and flent in the `PATH`, `mach` of cf-mach
(crates.io), `dist/speedtest.js` of @cloudflare/speedtest (npm) with Chromium, and the directory of netperf and
netserver, built with `--enable-demo`. What is missing is left out. The path is that of `responsiveness.py`: h1 - r1 -
r2 - h2, with a drop-tail queue in each direction at the slowest link. All servers run on h2, and the programs on h1,
one after the other; `ping`, irtt and the bounceback of iperf 2 run together, under the load of the latter.

Tests that need servers of their own are computed from the echoes of `measure` by their definition, and shown as such.
"""

import argparse
import functools
import http.server
import json
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from playwright.sync_api import sync_playwright

from bufferscope.engines.live.program import program
from page_accuracy import ARGUMENTS, CHROMIUM
from responsiveness import Line
from trials import CUBIC, with_shell

PAGE = Path(__file__).parents[2] / "docs" / "relation-to-other-tests.md"
PORT = 47300
LONGEST_S = 1500
"""Seconds of real time that a path may take."""
LOAD_S = 20
"""Seconds of a load of Flent and of iperf 2."""
STREAMS = 4
"""Connections of the load of iperf 2."""
PAUSE_S = 8
"""Servers tell the tests of two programs apart by a pause."""
LINES = (Line(20, 20, 20, 100), Line(50, 10, 15, 150), Line(8, 8, 30, 300))
PHASES = ("idle", "download", "upload", "both")
MEASUREMENTS = """
[{type: "latency", numPackets: 1}, {type: "download", bytes: 1e5, count: 1, bypassMinDuration: true},
 {type: "latency", numPackets: 20}, {type: "download", bytes: 1e5, count: 9}, {type: "download", bytes: 1e6, count: 8},
 {type: "upload", bytes: 1e5, count: 8}, {type: "upload", bytes: 1e6, count: 6},
 {type: "download", bytes: 1e7, count: 6}, {type: "upload", bytes: 1e7, count: 4},
 {type: "download", bytes: 2.5e7, count: 4}, {type: "upload", bytes: 2.5e7, count: 4},
 {type: "download", bytes: 1e8, count: 3}, {type: "upload", bytes: 5e7, count: 3},
 {type: "download", bytes: 2.5e8, count: 2}]
"""
"""Those that @cloudflare/speedtest has by default, without the loss of packets, which needs a TURN server."""
SPEEDTEST_PAGE = f"""<!doctype html><script type="module">
import SpeedTest from "./speedtest.js";
const base = location.hash.slice(1);
const test = new SpeedTest({{autoStart: false, downloadApiUrl: base + "/__down", uploadApiUrl: base + "/__up",
  logAimApiUrl: null, logMeasurementApiUrl: null, measurements: {MEASUREMENTS}}});
test.onFinish = results => {{ window.found = results.getSummary(); }};
test.onError = error => {{ window.failure = String(error); }};
test.play();
</script>"""
GRADES = ((5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D"))
"""What Waveform, LibreQoS and DSLReports have in common: added delay below so many milliseconds, and the grade."""
WORST_GRADE = "F"
CRUSADER_WINDOW_NS = 400_000_000
FLENT_PERIOD_NS = 200_000_000
CLOUDFLARE_PERIOD_NS, CLOUDFLARE_COUNT = 400_000_000, 20

Cells = Mapping[str, str]
"""What a test shows, by phase."""


@dataclass(frozen=True)
class Test:
    """A test, and what its number is."""

    name: str
    statistic: str


OURS = Test(
    "`measure`", "95th percentile of the added round trip, UDP echoes every 20 ms; lost ones count as the longest"
)
MEDIAN = Test("`measure`", "median of the round trip, from the same echoes")
HTTPS = Test("`measure https://`", "RPM by the draft: 60 s by the trimmed mean, new connections and the load's")
MACH = Test("cf-mach", "RPM by the same formula")
MACH_MS = Test("cf-mach", "median of the requests on the load's connections; idle: of TCP handshakes")
CLOUDFLARE = Test("Cloudflare's engine", "median of the last 20 requests, every 400 ms, beside one connection of load")
FLENT = Test("Flent (`tcp_download`, `tcp_upload`, `rrul`)", "mean of `ping`, every 200 ms, over the whole test")
FLENT_P99 = Test("Flent", "99th percentile of the same")
IRTT = Test("irtt", "mean of UDP echoes, every 20 ms, under the load of iperf 2")
PING = Test("`ping`", "mean of ICMP echoes, every 200 ms, at the same time")
BOUNCE = Test("iperf 2 `--bounceback`", "mean of a request and its answer of 100 bytes over TCP, at the same time")
AS_WAVEFORM = Test("as Waveform and LibreQoS", "grade of the increase of the median, in the worse direction")
AS_DSLREPORTS = Test("as DSLReports", "grade of the increase of the median, mean of both directions")
AS_CRUSADER = Test("as Crusader", "largest mean over 400 ms")
AS_FLENT = Test("as Flent", "mean of an echo every 200 ms")
AS_CLOUDFLARE = Test("as Cloudflare", "median of the last 20 echoes, one every 400 ms")
COMPUTED = (AS_WAVEFORM, AS_DSLREPORTS, AS_CRUSADER, AS_FLENT, AS_CLOUDFLARE)
TESTS = (OURS, MEDIAN, HTTPS, MACH, MACH_MS, CLOUDFLARE, FLENT, FLENT_P99, IRTT, PING, BOUNCE)


@dataclass(frozen=True)
class Others:
    """Where the programs of others are, as far as they are there."""

    mach: Path | None
    speedtest: Path | None
    netperf: Path | None


def script(directory: Path, others: Others) -> Iterator[str]:
    """The commands on h1, each of which writes files into the directory."""
    live, url = str(program()), f"https://h2:{PORT}"
    yield shlex.join([live, "measure", "h2", "--token-file", f"{directory}/token", "--events"]) + f" > {directory}/own"
    yield shlex.join([live, "measure", url, "--insecure", "--events"]) + f" > {directory}/https; sleep {PAUSE_S}"
    if others.mach:
        words = [str(others.mach), "rpm", "-c", f"{url}/.well-known/nq", "--insecure", "--disable-aim-scores"]
        yield f"{shlex.join(words)} > {directory}/mach; sleep {PAUSE_S}"
    if others.speedtest:
        words = [sys.executable, __file__, "--browse", str(directory), str(others.speedtest)]
        yield f"{shlex.join(words)}; sleep {PAUSE_S}"
    if others.netperf and shutil.which("flent"):
        for test in ("tcp_download", "tcp_upload", "rrul"):
            yield (
                f"PATH={others.netperf}:$PATH flent {test} -H h2 -l {LOAD_S} -D {directory} -f summary"
                f" > {directory}/{test} 2>> {directory}/errors"
            )
    if all(map(shutil.which, ("iperf", "irtt", "ping"))):
        bounce = "iperf -c h2 --bounceback=1 --bounceback-period 0.1"
        yield f"{bounce} -t 5 > {directory}/bounce-idle 2>&1"
        yield f"irtt client -q -i 20ms -d 5s -o {directory}/irtt-idle.json h2 > /dev/null"
        yield f"ping -i 0.2 -c 25 h2 > {directory}/ping-idle"
        for phase, way in (("download", "down"), ("upload", "up"), ("both", "bidir")):
            seconds = LOAD_S // 2
            witness = (
                f"sleep {LOAD_S - seconds - 2}"
                f"; irtt client -q -i 20ms -d {seconds}s -o {directory}/irtt-{phase}.json h2 > /dev/null"
                f" & ping -i 0.2 -c {5 * seconds} h2 > {directory}/ping-{phase} & wait"
            )
            yield (
                f"({witness}) & {bounce} -t {LOAD_S} --bounceback-congest={way},{STREAMS}"
                f" > {directory}/bounce-{phase} 2>&1; wait"
            )


def browse(directory: Path, speedtest: Path) -> None:
    """Run Cloudflare's engine in Chromium, and write what it reports."""
    secret = (directory / "token").read_text(encoding="utf-8").split("-")[0].strip()
    with tempfile.TemporaryDirectory() as site:
        shutil.copy(speedtest, Path(site) / "speedtest.js")
        (Path(site) / "index.html").write_text(SPEEDTEST_PAGE, encoding="utf-8")
        handler = functools.partial(_Quiet, directory=site)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/#http://h2:{PORT}/{secret}")
            page.wait_for_function("window.found || window.failure", timeout=180_000)
            found = page.evaluate("window.found")
            if not found:
                raise SystemExit(f"Cloudflare's engine: {page.evaluate('window.failure')}")
            (directory / "cloudflare").write_text(json.dumps(found), encoding="utf-8")
            browser.close()
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


def measured(line: Line, others: Others) -> list[tuple[str, Cells]]:
    """What the tests show on a path, by the names of [`TESTS`][] and [`COMPUTED`][]."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        file = directory / "path.toml"
        file.write_text(line.experiment(), encoding="utf-8")
        token = f"{directory}/token"
        serving = [str(program()), "serve", "--compatible", "--allow", "0.0.0.0/0", "--token-file", token]
        servers = [shlex.join(serving), "irtt server > /dev/null", "iperf -s > /dev/null"]
        if others.netperf:
            servers.append(f"{others.netperf}/netserver -D > /dev/null")
        command = [
            *(sys.executable, "-m", "bufferscope", "shell", str(file), "--engine", "host", "--quiet", "--on", "h1"),
            *("--with", with_shell("h2", f"{CUBIC}; {' & '.join(servers)} & wait")),
            *("--", "sh", "-c", f"{CUBIC}; sleep 2; {'; '.join(script(directory, others))}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        if done.stderr:
            print(done.stderr[-2000:], file=sys.stderr)
        return [(_key(test), cells) for test, cells in _found(directory)]


def _key(test: Test) -> str:
    return f"{test.name}: {test.statistic}"


def _found(directory: Path) -> Iterator[tuple[Test, Cells]]:
    """What the files of a directory say; a program that has failed is named on standard error."""
    readers: tuple[Callable[[Path], Iterator[tuple[Test, Cells]]], ...] = (
        *(_own, _https, _mach, _cloudflare, _flent, _irtt, _ping, _bounce),
    )
    for reader in readers:
        try:
            yield from reader(directory)
        except (OSError, ValueError, LookupError) as error:
            print(f"{reader.__name__}: {error!r}", file=sys.stderr)


def _end(file: Path) -> dict[str, Any]:
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    end: dict[str, Any] = json.loads(lines[-1])
    return end


def _own(directory: Path) -> Iterator[tuple[Test, Cells]]:
    end = _end(directory / "own")
    verdicts = {each["kind"]: each for each in end["verdict"]["phases"]}
    added = {kind: _tail(each["numbers"]["added"]) for kind, each in verdicts.items()}
    yield OURS, {"idle": "", **{kind: f"{text} ({verdicts[kind]['grade']})" for kind, text in added.items()}}
    echoes = {
        phase["kind"]: [(each["t_ns"], each["rtt_ns"]) for each in phase["echoes"] if each["rtt_ns"]]
        for phase in end["observations"]["phases"]
        if phase["kind"] in PHASES
    }
    medians = {kind: statistics.median(rtt for _, rtt in each) for kind, each in echoes.items()}
    yield MEDIAN, {kind: _ms(value) for kind, value in medians.items()}
    rises = [(medians[kind] - medians["idle"]) / 1e6 for kind in ("download", "upload")]
    for test, rise in ((AS_WAVEFORM, max(rises)), (AS_DSLREPORTS, statistics.mean(rises))):
        yield test, {"both": f"{_grade(rise)} ({rise:.0f} ms)"}
    yield AS_CRUSADER, {kind: _ms(_largest_mean(each, CRUSADER_WINDOW_NS)) for kind, each in echoes.items()}
    slow = {kind: _every(each, FLENT_PERIOD_NS) for kind, each in echoes.items()}
    yield AS_FLENT, {kind: _ms(statistics.mean(each)) for kind, each in slow.items()}
    last = {kind: _every(each, CLOUDFLARE_PERIOD_NS)[-CLOUDFLARE_COUNT:] for kind, each in echoes.items()}
    yield AS_CLOUDFLARE, {kind: _ms(statistics.median(each)) for kind, each in last.items()}


Echoes = Sequence[tuple[int, int]]
"""When they were sent, and their round trips, in nanoseconds."""


def _every(echoes: Echoes, period_ns: int) -> list[int]:
    """The round trips of one echo in each period."""
    first = {t_ns // period_ns: rtt_ns for t_ns, rtt_ns in reversed(echoes)}
    return [first[period] for period in sorted(first)]


def _largest_mean(echoes: Echoes, window_ns: int) -> float:
    """The largest mean of the round trips in a window."""
    begin, total, largest = 0, 0, 0.0
    for at, (t_ns, rtt_ns) in enumerate(echoes):
        total += rtt_ns
        while echoes[begin][0] <= t_ns - window_ns:
            total -= echoes[begin][1]
            begin += 1
        largest = max(largest, total / (at + 1 - begin))
    return largest


def _grade(added_ms: float) -> str:
    return next((grade for limit_ms, grade in GRADES if added_ms < limit_ms), WORST_GRADE)


def _ms(ns: float | None) -> str:
    return "" if ns is None else f"{ns / 1e6:.0f} ms"


def _tail(added: Mapping[str, Any]) -> str:
    """The 95th percentile; unknown if more echoes were lost."""
    return "lost" if added["p95_ns"] is None else _ms(added["p95_ns"])


def _https(directory: Path) -> Iterator[tuple[Test, Cells]]:
    phases = {each["kind"]: each["rpm"] for each in _end(directory / "https")["verdict"]["phases"]}
    yield (
        HTTPS,
        {
            kind: f"{rpm['rpm']:.0f} RPM ({rpm['foreign']:.0f}, {rpm['own']:.0f})"
            for kind, rpm in phases.items()
            if rpm["rpm"]
        },
    )


def _mach(directory: Path) -> Iterator[tuple[Test, Cells]]:
    found = json.loads((directory / "mach").read_text(encoding="utf-8"))
    ways = ("download", "upload")
    yield MACH, {way: f"{found[way]['rpm']} RPM" for way in ways}
    loaded = {way: f"{found[way]['loaded_latency_ms']:.0f} ms" for way in ways}
    yield MACH_MS, {"idle": f"{found['unloaded_latency_ms']:.0f} ms", **loaded}


def _cloudflare(directory: Path) -> Iterator[tuple[Test, Cells]]:
    found = json.loads((directory / "cloudflare").read_text(encoding="utf-8"))
    keys = {"idle": "latency", "download": "downLoadedLatency", "upload": "upLoadedLatency"}
    yield CLOUDFLARE, {phase: f"{found[key]:.0f} ms" for phase, key in keys.items() if found.get(key)}


def _flent(directory: Path) -> Iterator[tuple[Test, Cells]]:
    means, tails = {}, {}
    for phase, test in (("download", "tcp_download"), ("upload", "tcp_upload"), ("both", "rrul")):
        text = (directory / test).read_text(encoding="utf-8")
        row = re.search(r"Ping \(ms\) ICMP\S*\s*:?\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", text)
        if row is None:
            raise ValueError(f"{test}: {text[-500:]} {(directory / 'errors').read_text(encoding='utf-8')[-500:]}")
        means[phase], tails[phase] = (f"{float(row.group(part)):.0f} ms" for part in (1, 3))
    yield FLENT, means
    yield FLENT_P99, tails


def _irtt(directory: Path) -> Iterator[tuple[Test, Cells]]:
    cells = {}
    for phase in PHASES:
        found = json.loads((directory / f"irtt-{phase}.json").read_text(encoding="utf-8"))
        cells[phase] = _ms(found["stats"]["rtt"]["mean"])
    yield IRTT, cells


def _ping(directory: Path) -> Iterator[tuple[Test, Cells]]:
    texts = {phase: (directory / f"ping-{phase}").read_text(encoding="utf-8") for phase in PHASES}
    found = {phase: re.search(r"= [\d.]+/([\d.]+)/", text) for phase, text in texts.items()}
    yield PING, {phase: f"{float(each.group(1)):.0f} ms" for phase, each in found.items() if each}


def _bounce(directory: Path) -> Iterator[tuple[Test, Cells]]:
    cells = {}
    for phase in PHASES:
        text = (directory / f"bounce-{phase}").read_text(encoding="utf-8")
        # The last line of this kind is about the whole test.
        means = re.findall(r"\d+=([\d.]+)/[\d.]+/[\d.]+/[\d.]+ ms", text)
        if not means:
            raise ValueError(text[-500:])
        cells[phase] = f"{float(means[-1]):.0f} ms"
    yield BOUNCE, cells


def written(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    paths = []
    for at, line in enumerate(LINES):
        runs = [dict(row["found"]) for row in rows if row["path"] == at]
        if runs:
            tables = [[(test, _middle(runs, test)) for test in tests] for tests in (TESTS, COMPUTED)]
            paths.append((line, len(runs), [[row for row in table if row[1]] for table in tables]))
    return templates.get_template("side_by_side.md.jinja").render(paths=paths, phases=PHASES)


def _middle(runs: Sequence[Mapping[str, Cells]], test: Test) -> Cells:
    """Of each phase, what the run shows whose number is the median of all runs."""
    cells = {}
    for phase in PHASES:
        shown = [run[_key(test)][phase] for run in runs if run.get(_key(test), {}).get(phase)]
        shown.sort(key=_first_number)
        if shown:
            cells[phase] = shown[(len(shown) - 1) // 2]
    return cells


def _first_number(text: str) -> float:
    found = re.search(r"-?\d[\d.]*", text)
    return float(found.group()) if found else float("inf")


def main(arguments: Sequence[str]) -> int:
    """Run the tests, and write the page."""
    parser = argparse.ArgumentParser(prog="side_by_side.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mach", type=Path, help="the program `mach` of cf-mach")
    parser.add_argument("--speedtest", type=Path, help="`dist/speedtest.js` of @cloudflare/speedtest")
    parser.add_argument("--netperf", type=Path, help="the directory of netperf and netserver, which Flent needs")
    parser.add_argument(
        "--paths", default="", metavar="NUMBERS", help="as in 1,2 (default: all); 0: only write the page"
    )
    parser.add_argument("--rows", type=Path, required=True, help="a file with a line of JSON for each path and run")
    parser.add_argument("--page", type=Path, default=PAGE, help=f"what is written (default: docs/{PAGE.name})")
    parser.add_argument("--browse", nargs=2, metavar=("DIRECTORY", "SPEEDTEST"), help=argparse.SUPPRESS)
    if arguments[:1] == ["--browse"]:
        browse(Path(arguments[1]), Path(arguments[2]))
        return 0
    options = parser.parse_args(arguments)
    numbers = [int(word) for word in options.paths.split(",") if word] or range(1, len(LINES) + 1)
    for number in numbers:
        if number:
            found = measured(LINES[number - 1], Others(options.mach, options.speedtest, options.netperf))
            with options.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"path": number - 1, "found": found}) + "\n")
            print(f"path {number}: {json.dumps(found, indent=1)}", file=sys.stderr)
    rows = [json.loads(line) for line in options.rows.read_text(encoding="utf-8").splitlines()]
    options.page.write_text(written(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
