"""The scenarios of matrix.toml, as experiments."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bufferscope.experiment import Experiment, load

FILE = Path(__file__).parent / "matrix.toml"
DUMBBELL = Path(__file__).parent / "dumbbell.toml"


@dataclass(frozen=True)
class Entry:
    """An experiment of the matrix: one of the catalogue, or one scenario of the dumbbell."""

    experiment: Experiment
    name: str | None
    """The name of a scenario of the dumbbell; a catalogue's points are named by what is swept."""
    repetitions: int

    @property
    def scenarios(self) -> Iterator[str]:
        """The names of the experiment's points."""
        for point in self.experiment.points:
            yield self.name or " ".join([self.experiment.name, *point.values.values()])


@dataclass(frozen=True)
class Matrix:
    """The whole matrix."""

    entries: Sequence[Entry]

    @property
    def scenarios(self) -> list[str]:
        """Every scenario's name, in the order of the page's table."""
        return [scenario for entry in self.entries for scenario in entry.scenarios]


def read(path: Path = FILE) -> Matrix:
    """The matrix of this file."""
    written = tomllib.loads(path.read_text(encoding="utf-8"))
    queues, repetitions = written["queues"], written["repetitions"]
    scenarios = [(_name(*scenario), _overrides(queues, *scenario)) for scenario in written["scenarios"]]
    return Matrix(
        [
            *(Entry(load(DUMBBELL, overrides), name, repetitions) for name, overrides in scenarios),
            *(
                Entry(load(experiment, written.get("overrides", [])), None, number)
                for experiment, number in written["experiments"].items()
            ),
        ]
    )


def _name(queue: str, congestion: str, rate: str, rtt: str, flows: int, _duration: str) -> str:
    """The name of a scenario: `pfifo 20, cubic, 10 Mbit/s, 40 ms, 4 flows`."""
    words = [queue, congestion, f"{rate.removesuffix('mbit')} Mbit/s", f"{rtt.removesuffix('ms')} ms"]
    return ", ".join([*words, f"{flows} flow{'s' * (flows > 1)}"])


def _overrides(
    queues: Mapping[str, str], queue: str, congestion: str, rate: str, rtt: str, flows: int, duration: str
) -> list[str]:
    """The dumbbell's keys; the round-trip time is divided between two links, in both directions."""
    delay = f"{round(float(rtt.removesuffix('ms')) * 1000 / 4)}us"
    return [
        f"duration={duration}",
        f"link.access.delay={delay}",
        f"link.bottleneck.delay={delay}",
        f"link.bottleneck.rate={rate}",
        f"link.bottleneck.queue={queues[queue].replace('RATE', rate)}",
        f"traffic.bulk.congestion={congestion}",
        f"traffic.bulk.flows={flows}",
    ]
