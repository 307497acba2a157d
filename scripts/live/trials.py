"""Runs trials: builds a network, measures through it as users do, and compares the verdict with what is planted."""

import gzip
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bufferscope.engines.live.program import program
from labs import FRAME_BYTES, KINDS, Lab, Planted, Trial, names

LONGEST_S = 900
"""Seconds of real time that a trial may take."""
REPETITIONS = 2
"""A trial that other programs of this machine disturbed is repeated up to so many times."""
CLEAR = 1.3
"""A planted queue that is not this many times as long as a rise must be need not be named."""
SAMPLE_S = 0.5
"""Seconds between two samples of a planted queue's backlog."""
CUBIC = "ip -4 route show | while read -r route; do ip route replace $route congctl cubic; done"
"""Makes CUBIC the congestion control of a node, for programs that do not choose one. A namespace has its machine's
default, and it may not change it to one that the machine restricts."""
Backlog = Sequence[tuple[int, int]]
"""Samples of a backlog: nanoseconds of real time, and bytes."""


@dataclass(frozen=True)
class Judged:
    """What came out of a trial."""

    trial: Trial
    outcome: str
    named: str
    """The locations of the answers, as text."""
    probability: float
    """That of the least certain answer; 0 without one."""
    is_right: bool
    measured_ms: float | None = None
    """The added delay at the median."""
    true_ms: float | None = None
    """The planted queue's backlog divided by its rate, at the median, with half of the packet that is being sent."""
    measured_bytes: float | None = None
    """The effective buffer."""
    true_bytes: float | None = None
    """The planted queue's backlog at the median, since it has filled."""
    error: str = ""


def judged(trial: Trial, engine: str, keep: Path | None = None) -> Judged:
    """Run a trial and compare its verdict with what is planted. `keep` is a directory for what the test observed."""
    lab = KINDS[trial.kind].lab(trial)
    try:
        for _ in range(1 + REPETITIONS):
            end, backlogs = measured(trial, lab, engine)
            if not is_disturbed(end):
                break
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Judged(trial, "failed", "", 0.0, False, error=str(error))
    if keep is not None:
        with gzip.open(_kept(keep, trial, engine), "wt", encoding="utf-8") as file:
            json.dump({"end": end, "backlogs": backlogs}, file)
    return compared(trial, lab, end, backlogs)


def judged_again(trial: Trial, engine: str, keep: Path) -> Judged:
    """Judge what a trial observed, as `judged` kept it, by the present rules of crates/verdict."""
    with gzip.open(_kept(keep, trial, engine), "rt", encoding="utf-8") as file:
        observed = json.load(file)
    end = observed["end"]
    judge = ["cargo", "run", "--quiet", "--locked", "--package=bufferscope-verdict", "--example=judge"]
    verdict = subprocess.run(
        judge, input=json.dumps(end["observations"]), text=True, stdout=subprocess.PIPE, check=True
    )
    lab = KINDS[trial.kind].lab(trial)
    return compared(trial, lab, {**end, "verdict": json.loads(verdict.stdout)}, observed["backlogs"])


def _kept(keep: Path, trial: Trial, engine: str) -> Path:
    return keep / f"{engine}-{trial.seed}.json.gz"


def is_disturbed(end: Mapping[str, Any]) -> bool:
    """Whether the verdict itself says that a busy processor limited the load: in real time, other programs run, too."""
    return any(phase["outcome"]["limit"] == "cpu" for phase in end["verdict"]["phases"])


def compared(trial: Trial, lab: Lab, end: Mapping[str, Any], backlogs: Sequence[Backlog]) -> Judged:
    """The last event of a test, compared with what is planted."""
    found = next((each for each in end["verdict"]["phases"] if each["kind"] == lab.phase), None)
    if found is None:
        return Judged(trial, "failed", "", 0.0, False, error=f"no phase {lab.phase}: {end['reason']}")
    answers = [each["answer"] for each in found["where"]]
    outcome = found["outcome"]["kind"]
    limit = found["outcome"]["limit"]
    added_ns = found["numbers"]["added"]["p50_ns"]
    truths = [_truth(trial, lab, at, end, found, backlog) for at, backlog in enumerate(backlogs)]
    alone = truths[0] if len(truths) == 1 else None
    is_right = lab.is_right(found)
    if any(truth.is_short for truth in truths):
        # Such a queue need not be named, but nothing else may be.
        filled = [truth.planted for truth in truths if not truth.is_short]
        is_right = is_right or (names(*filled)(found) if filled else not found["where"])
    return Judged(
        trial,
        f"{outcome}: {limit}" if limit else outcome,
        ", ".join(f"{each['place']} {each['link']}" for answer in answers for each in answer["locations"]),
        min((answer["probability"] for answer in answers), default=0.0),
        is_right,
        None if added_ns is None else added_ns / 1e6,
        alone.delay_ms if alone else None,
        alone.buffer_bytes if alone else None,
        alone.filled_bytes if alone else None,
    )


@dataclass(frozen=True)
class _Truth:
    """What `tc` says about a planted queue in the loaded phase."""

    planted: Planted
    delay_ms: float | None
    is_short: bool
    """Whether it is not much longer than what counts as a rise."""
    buffer_bytes: float | None
    """The effective buffer by the verdict."""
    filled_bytes: float | None
    """The median backlog since it has filled, by the verdict's time."""


def _truth(
    trial: Trial, lab: Lab, at: int, end: Mapping[str, Any], phase: Mapping[str, Any], backlog: Backlog
) -> _Truth:
    planted = lab.observed[at]
    rate_mbit = lab.rates_mbit[at] if lab.rates_mbit else trial.rate_mbit
    numbers = next(each for each in phase["numbers"]["directions"] if each["direction"] == planted.direction)
    size = _backlog_in_phase(end, lab, backlog)
    # A packet that arrives waits for half of the one that is being sent, too.
    delay_ms = None if size is None else (size + FRAME_BYTES / 2) * 8 / rate_mbit / 1e3
    is_short = delay_ms is not None and delay_ms * 1e6 < CLEAR * numbers["threshold_ns"]
    if not numbers["buffer"]:
        return _Truth(planted, delay_ms, is_short, None, None)
    filled = _backlog_in_phase(end, lab, backlog, numbers["fill_ns"])
    return _Truth(planted, delay_ms, is_short, numbers["buffer"]["bytes"], filled)


def _backlog_in_phase(end: Mapping[str, Any], lab: Lab, backlog: Backlog, fill_ns: int = 0) -> float | None:
    """The median backlog of a planted queue in the loaded phase after `fill_ns`, in bytes."""
    span = next(each for each in end["observations"]["phases"] if each["kind"] == lab.phase)
    since = [(t_ns - end["realtime_ns"], size) for t_ns, size in backlog]
    inside = [size for t_ns, size in since if span["start_ns"] + fill_ns <= t_ns <= span["end_ns"]]
    return statistics.median(inside) if inside else None


def measured(
    trial: Trial, lab: Lab, engine: str, before: Callable[[str], str] = lambda _: ":"
) -> tuple[dict[str, Any], list[Backlog]]:
    """The last event of a test with the real time of its start, and the samples of each observed queue's backlog.

    `before` is a command that runs on the client before the test, given the file with the server's token.
    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "trial.toml"
        file.write_text(lab.experiment(f"A trial of {trial.kind}"), encoding="utf-8")
        # A guest has none of this machine's files but the programs.
        inside, live = ("/tmp", "bufferscope-live") if engine == "guest" else (directory, str(program()))
        token = f"{inside}/token"
        options = ("--phases", lab.phase, "--token-file", token, *(lab.options or ("--flows", str(trial.flows))))
        test = shlex.join([live, "measure", "h2", "--events", *options])
        setup = {"h2": "", **lab.setup}
        servers = {"h2": f"exec {shlex.join([live, 'serve', '--token-file', token, *lab.server_options])}"}
        background = [
            (node, f"set -e\n{commands}\n{servers.get(node, 'exec sleep 100000')}") for node, commands in setup.items()
        ]
        background += [(node_of(planted), sampler_of(planted, inside)) for planted in lab.observed]
        shown = "".join(f"; echo; echo BACKLOG; cat {samples_of(planted, inside)}" for planted in lab.observed)
        command = [
            *(sys.executable, "-m", "bufferscope", "shell", str(file), "--engine", engine, "--quiet"),
            *("--seed", str(trial.seed), "--on", "h1"),
            *(["--kernel", lab.kernel] if lab.kernel else []),
            *(word for pair in background for word in ("--with", with_shell(*pair))),
            *(["--with-traffic"] if lab.traffic else []),
            *("--", "sh", "-c", f"{before(token)} && {test}{shown}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    events, *samples = done.stdout.split("BACKLOG\n")
    parsed = [json.loads(line) for line in events.splitlines() if line.startswith("{")]
    if not parsed or parsed[-1]["event"] != "end" or " ended with status " in done.stderr:
        raise ValueError((done.stderr or done.stdout)[-500:] or "no output")
    started = next(each for each in parsed if each["event"] == "start")
    return {**parsed[-1], "realtime_ns": started["realtime_ns"]}, [backlog_in(text) for text in samples]


def with_shell(node: str, commands: str) -> str:
    return f"{node}={shlex.join(['sh', '-c', commands])}"


def node_of(planted: Planted) -> str:
    return planted.port.partition(">")[0]


def samples_of(planted: Planted, directory: str) -> str:
    return f"{directory}/backlog-{planted.port.replace('>', '-')}"


def sampler_of(planted: Planted, directory: str) -> str:
    """What writes the samples of a port's backlog."""
    device = f"to-{planted.port.partition('>')[2]}"
    sample = f"date +%s%N; tc -s qdisc show dev {device}; sleep {SAMPLE_S}"
    return f"while :; do {sample}; done > {samples_of(planted, directory)}"


def backlog_in(text: str) -> Backlog:
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
