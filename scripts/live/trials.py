"""Runs trials: builds a network, measures through it as users do, and compares the verdict with what is planted."""

import gzip
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bufferscope.engines.live.program import program
from labs import FRAME_BYTES, KINDS, Lab, Planted, Trial

LONGEST_S = 900
"""Seconds of real time that a trial may take."""
REPETITIONS = 2
"""A trial that other programs of this machine disturbed is repeated up to so many times."""
SAMPLE_S = 0.5
"""Seconds between two samples of a planted queue's backlog."""
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
        end, backlogs = _measured(trial, lab, engine)
        for _ in range(REPETITIONS):
            if not _is_disturbed(end):
                break
            end, backlogs = _measured(trial, lab, engine)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Judged(trial, "failed", "", 0.0, False, error=str(error))
    if keep is not None:
        with gzip.open(keep / f"{engine}-{trial.seed}.json.gz", "wt", encoding="utf-8") as file:
            json.dump({"end": end, "backlogs": backlogs}, file)
    return compared(trial, lab, end, backlogs)


def _is_disturbed(end: Mapping[str, Any]) -> bool:
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
    true_bytes = true_filled_bytes = buffer_bytes = None
    if len(lab.observed) == 1:
        (planted,) = lab.observed
        numbers = next(each for each in found["numbers"]["directions"] if each["direction"] == planted.direction)
        true_bytes = _backlog_in_phase(end, lab, backlogs[0])
        if numbers["buffer"]:
            # The effective buffer is that of the time after the queue has filled.
            buffer_bytes = numbers["buffer"]["bytes"]
            true_filled_bytes = _backlog_in_phase(end, lab, backlogs[0], numbers["fill_ns"])
    true_ms = None if true_bytes is None else (true_bytes + FRAME_BYTES / 2) * 8 / trial.rate_mbit / 1e3
    # TCP small queues may keep the sender's own discipline nearly empty: then there is nothing to name.
    is_short = true_ms is not None and true_ms * 1e6 < found["numbers"]["threshold_ns"] and not found["where"]
    return Judged(
        trial,
        f"{outcome}: {limit}" if limit else outcome,
        ", ".join(f"{each['place']} {each['link']}" for answer in answers for each in answer["locations"]),
        min((answer["probability"] for answer in answers), default=0.0),
        is_short or lab.is_right(found),
        None if added_ns is None else added_ns / 1e6,
        true_ms,
        buffer_bytes,
        true_filled_bytes,
    )


def _backlog_in_phase(end: Mapping[str, Any], lab: Lab, backlog: Backlog, fill_ns: int = 0) -> float | None:
    """The median backlog of the planted queue in the loaded phase after `fill_ns`, in bytes."""
    span = next(each for each in end["observations"]["phases"] if each["kind"] == lab.phase)
    since = [(t_ns - end["realtime_ns"], size) for t_ns, size in backlog]
    inside = [size for t_ns, size in since if span["start_ns"] + fill_ns <= t_ns <= span["end_ns"]]
    if not inside:
        return None
    return statistics.median(inside)


def _measured(trial: Trial, lab: Lab, engine: str) -> tuple[dict[str, Any], list[Backlog]]:
    """The last event of a test with the real time of its start, and the samples of each observed queue's backlog."""
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
        background += [(_node(planted), _sampler(planted, inside)) for planted in lab.observed]
        shown = "".join(f"; echo; echo BACKLOG; cat {_samples(planted, inside)}" for planted in lab.observed)
        command = [
            *(sys.executable, "-m", "bufferscope", "shell", str(file), "--engine", engine, "--quiet"),
            *("--seed", str(trial.seed), "--on", "h1"),
            *(["--kernel", lab.kernel] if lab.kernel else []),
            *(word for pair in background for word in ("--with", _with(*pair))),
            *(["--with-traffic"] if lab.traffic else []),
            *("--", "sh", "-c", f"{test}{shown}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    events, *samples = done.stdout.split("BACKLOG\n")
    parsed = [json.loads(line) for line in events.splitlines() if line.startswith("{")]
    if not parsed or parsed[-1]["event"] != "end" or " ended with status " in done.stderr:
        raise ValueError((done.stderr or done.stdout)[-500:] or "no output")
    started = next(each for each in parsed if each["event"] == "start")
    return {**parsed[-1], "realtime_ns": started["realtime_ns"]}, [_backlog(text) for text in samples]


def _with(node: str, commands: str) -> str:
    return f"{node}={shlex.join(['sh', '-c', commands])}"


def _node(planted: Planted) -> str:
    return planted.port.partition(">")[0]


def _samples(planted: Planted, directory: str) -> str:
    return f"{directory}/backlog-{planted.port.replace('>', '-')}"


def _sampler(planted: Planted, directory: str) -> str:
    """What writes the samples of a port's backlog."""
    device = f"to-{planted.port.partition('>')[2]}"
    sample = f"date +%s%N; tc -s qdisc show dev {device}; sleep {SAMPLE_S}"
    return f"while :; do {sample}; done > {_samples(planted, directory)}"


def _backlog(text: str) -> Backlog:
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
