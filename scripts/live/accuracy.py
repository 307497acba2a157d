"""Measures how often `bufferscope-live measure` names the right queue, in guests whose path has a planted queue.

Writes docs/live-accuracy.md. Exits with 1 if less than 95 % of the planted queues are named, if a queue is named on a
clean path, or if a delay differs from the queue's true one by more than 10 %.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

PAGE = Path(__file__).parents[2] / "docs" / "live-accuracy.md"
REPORTED = range(700_001, 700_201)
"""The seeds of the page, which were not used while the verdict was written."""
LEAST_NAMED = 0.95
LARGEST_ERROR = 0.10
NODES = ("h1", "r1", "r2", "r3", "h2")
"""The client's machine, its router, two routers of providers, and the server."""
LONGEST_S = 900
"""Seconds of real time that a trial may take."""


@dataclass(frozen=True)
class Planted:
    """A queue on the path."""

    port: str
    """Its port, as in `r1>r2`."""
    direction: str
    """`up` or `down`."""
    place: str
    """What the verdict calls it."""
    link: int
    """The link, counted from the client."""


PLACES = (
    Planted("h1>r1", "up", "client_qdisc", 1),
    Planted("r1>r2", "up", "router_uplink", 2),
    Planted("r2>r3", "up", "hop", 3),
    Planted("r3>h2", "up", "last_hop", 4),
    Planted("r1>h1", "down", "router_downlink", 1),
    Planted("r2>r1", "down", "access_downlink", 2),
    Planted("r3>r2", "down", "hop", 3),
    Planted("h2>r3", "down", "server_qdisc", 4),
)
RING = Planted("h1>r1", "up", "client_driver", 1)
"""A queue in the ring of the client's card, without byte queue limits."""
OTHERS = {"ring": RING, "clean": PLACES[1], "managed": PLACES[1]}
"""Kinds of trials that are not called after a port, with where they have their bottleneck."""
KINDS = (*(place.port for place in PLACES), *OTHERS)


@dataclass(frozen=True)
class Trial:
    """A path with a planted queue, or with none."""

    seed: int
    kind: str
    """A port's name, `ring`, `clean`, or `managed` (fq_codel)."""
    rate_mbit: float
    rtt_ms: float
    buffer_ms: float
    flows: int

    @property
    def planted(self) -> Planted:
        """The port with the bottleneck."""
        return OTHERS.get(self.kind) or next(place for place in PLACES if place.port == self.kind)


@dataclass(frozen=True)
class Judged:
    """What came out of a trial."""

    trial: Trial
    outcome: str
    named: str
    """The locations of the answer, as text."""
    probability: float
    is_right: bool
    measured_ms: float | None
    """The added delay at the median."""
    true_ms: float | None
    """The queue's backlog divided by its rate, at the median."""
    error: str = ""


def drawn(seed: int) -> Trial:
    """The trial of a seed."""
    dice = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    rate = round(10 ** dice.uniform(0, 1.5), 1)
    return Trial(
        seed=seed,
        kind=kind,
        rate_mbit=rate,
        rtt_ms=round(10 ** dice.uniform(0.7, 2.08), 1),
        buffer_ms=round(10 ** dice.uniform(1.6, 2.9), 0),
        flows=dice.choice((2, 4, 8)),
    )


def experiment(trial: Trial) -> str:
    """The network of a trial, as an experiment file."""
    planted = trial.planted
    # The delay of the path lies on the links of the providers.
    shares = {1: 0.02, 2: 0.28, 3: 0.5, 4: 0.2}
    lines = [f'title = "A queue at {trial.kind}"', 'duration = "10s"', ""]
    for number, (near, far) in enumerate(pairwise(NODES), 1):
        lines += ["[[link]]", f'name = "l{number}"', f'ends = ["{near}", "{far}"]']
        lines += [f'delay = "{trial.rtt_ms / 2 * shares[number]:.3f}ms"']
        if number == planted.link:
            lines += _bottleneck(trial, "forward" if planted.direction == "up" else "reverse")
        lines.append("")
    lines += ["[[traffic]]", 'name = "ping"', 'kind = "ping"', 'from = "h1"', 'to = "h2"']
    return "\n".join(lines) + "\n"


def _bottleneck(trial: Trial, direction: str) -> list[str]:
    packets = max(3, round(trial.rate_mbit * 1e3 * trial.buffer_ms / 8 / 1514))
    queue = f'{{ qdisc = "pfifo", limit = "{packets}p" }}'
    ring = ""
    if trial.kind == "ring":
        slots = next(size for size in (64, 128, 256) if size >= min(packets, 256))
        ring = f', ring = {{ size = "{slots}p", bql = false }}'
        queue = '{ qdisc = "pfifo", limit = "10p" }'
    if trial.kind == "managed":
        queue = '{ qdisc = "fq_codel" }'
    if trial.kind == "clean":
        # Room for two packets: the load is cut off before it adds a delay.
        queue = '{ qdisc = "pfifo", limit = "2p" }'
    return [f'{direction} = {{ rate = "{trial.rate_mbit}mbit", queue = {queue}{ring} }}']


def judge(trial: Trial, engine: str) -> Judged:
    """Run a trial and compare the verdict with what was planted."""
    planted = trial.planted
    phase = "upload" if planted.direction == "up" else "download"
    try:
        end, backlog = _measured(trial, planted, phase, engine)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Judged(trial, "failed", "", 0.0, False, None, None, str(error))
    found = next((each for each in end["verdict"]["phases"] if each["kind"] == phase), None)
    if found is None:
        return Judged(trial, "failed", "", 0.0, False, None, None, f"no phase {phase}: {end['reason']}")
    outcome = found["outcome"]["kind"]
    answer = next((each["answer"] for each in found["where"] if each["direction"] == planted.direction), None)
    locations = answer["locations"] if answer else []
    probability = answer["probability"] if answer else 0.0
    named = ", ".join(f"{each['place']} {each['link']}" for each in locations)
    if trial.kind in ("clean", "managed"):
        is_right = outcome != "queue" if trial.kind == "clean" else outcome == "managed"
    else:
        is_right = outcome == "queue" and [each["link"] for each in locations] == [planted.link]
        is_right = is_right and all(_is(planted, each["place"]) for each in locations)
    added_ns = found["numbers"]["added"]["p50_ns"]
    measured_ms = None if added_ns is None else added_ns / 1e6
    return Judged(trial, outcome, named, probability, is_right, measured_ms, _true_ms(trial, end, backlog, phase))


def _is(planted: Planted, place: str) -> bool:
    return place == planted.place or planted.place == "hop"


def _true_ms(trial: Trial, end: Mapping[str, Any], backlog: Sequence[tuple[int, int]], phase: str) -> float | None:
    """The median delay of the planted queue in the loaded phase: its backlog divided by its rate."""
    span = next(each for each in end["observations"]["phases"] if each["kind"] == phase)
    if trial.kind == "ring":
        return None  # tc does not see it
    since = [(t_ns - end["realtime_ns"], size) for t_ns, size in backlog]
    inside = [size for t_ns, size in since if span["start_ns"] <= t_ns <= span["end_ns"]]
    return statistics.median(inside) * 8 / trial.rate_mbit / 1e3 if inside else None


def _measured(trial: Trial, planted: Planted, phase: str, engine: str) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """The last event of a test with the real time of its start, and the samples of the planted queue's backlog."""
    node, peer = planted.port.split(">")
    sample = f"while :; do date +%s%N; tc -s qdisc show dev to-{peer}; sleep 0.2; done > /tmp/backlog"
    test = (
        f"bufferscope-live measure h2 --events --token-file /tmp/token --phases {phase} --flows {trial.flows}; "
        "echo; echo BACKLOG; cat /tmp/backlog"
    )
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "trial.toml"
        file.write_text(experiment(trial), encoding="utf-8")
        command = [
            *(sys.executable, "-m", "bufferscope", "shell", str(file), "--engine", engine, "--quiet"),
            *("--seed", str(trial.seed), "--on", "h1"),
            *("--with", "h2=bufferscope-live serve --token-file /tmp/token"),
            *("--with", f'{node}=sh -c "{sample}"'),
            *("--", "sh", "-c", test),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    events, _, samples = done.stdout.partition("BACKLOG")
    parsed = [json.loads(line) for line in events.splitlines() if line.startswith("{")]
    if not parsed or parsed[-1]["event"] != "end":
        raise ValueError((done.stderr or done.stdout)[-500:] or "no output")
    started = next(each for each in parsed if each["event"] == "start")
    return {**parsed[-1], "realtime_ns": started["realtime_ns"]}, _backlog(samples)


def _backlog(text: str) -> list[tuple[int, int]]:
    """Times and bytes of the samples: the largest backlog of the port's disciplines, as classes count theirs again."""
    found: list[tuple[int, int]] = []
    t_ns, most = 0, 0
    for line in [*text.splitlines(), "0"]:
        words = line.split()
        if len(words) == 1 and words[0].isdigit():
            if t_ns:
                found.append((t_ns, most))
            t_ns, most = int(words[0]), 0
        elif words[:1] == ["backlog"]:
            most = max(most, _bytes(words[1]))
    return found


def _bytes(text: str) -> int:
    """A size as tc writes it, such as `12Kb`."""
    number = text.removesuffix("b")
    for letter, factor in (("K", 1024), ("M", 1024 * 1024)):
        if number.endswith(letter):
            return int(float(number[:-1]) * factor)
    return int(number)


def page(judged: Sequence[Judged], engine: str) -> str:
    """The page about the trials."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, autoescape=False
    )
    kinds = [(kind, [each for each in judged if each.trial.kind == kind]) for kind in KINDS]
    return templates.get_template("accuracy.md.jinja").render(
        judged=judged,
        kinds=[(kind, rows) for kind, rows in kinds if rows],
        engine=engine,
        errors=_errors(judged),
        planned=len(REPORTED),
    )


def _errors(judged: Sequence[Judged]) -> list[float]:
    """Relative errors of the added delay, where a queue was planted and its true delay is known."""
    pairs = [(each.measured_ms, each.true_ms) for each in judged if each.trial.kind not in ("clean", "managed")]
    return [abs(measured / true - 1) for measured, true in pairs if measured and true]


def main(arguments: Sequence[str]) -> int:
    """Run the trials and write the page."""
    parser = argparse.ArgumentParser(prog="make live-accuracy", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="guests at the same time")
    parser.add_argument("--seeds", type=int, default=len(REPORTED), help="run only so many of the trials")
    parser.add_argument(
        "--first", type=int, default=REPORTED[0], help="the first seed, for trials other than the page's"
    )
    parser.add_argument("--engine", choices=("guest", "host"), default="guest", help="whose kernel")
    parser.add_argument("--page", type=Path, default=PAGE, help=f"what is written (default: docs/{PAGE.name})")
    parser.add_argument("--rows", type=Path, help="also write each trial as a line of JSON")
    options = parser.parse_args(arguments)
    trials = [drawn(seed) for seed in range(options.first, options.first + options.seeds)]
    judged: list[Judged] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for each in pool.map(lambda trial: judge(trial, options.engine), trials):
            judged.append(each)
            mark = "right" if each.is_right else "WRONG"
            print(
                f"{len(judged)}/{len(trials)} {each.trial.kind}: {each.outcome} {each.named}: {mark} {each.error}",
                file=sys.stderr,
            )
            if options.rows:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(each)) + "\n")
    options.page.write_text(page(judged, options.engine), encoding="utf-8")
    print(f"Written: {options.page}", file=sys.stderr)
    return 0 if passes(judged) else 1


def passes(judged: Sequence[Judged]) -> bool:
    """Whether the aims are met."""
    clean = [each for each in judged if each.trial.kind == "clean"]
    named = sum(each.is_right for each in judged) / len(judged)
    errors = _errors(judged)
    return (
        named >= LEAST_NAMED
        and all(each.is_right for each in clean)
        and (not errors or statistics.median(errors) <= LARGEST_ERROR)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
