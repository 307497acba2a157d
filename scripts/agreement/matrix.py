"""The scenarios of matrix.toml, devices.toml and dualpi2.toml, as experiments."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from bufferscope.engines.guest.extra_modules import EXTRA, ExtraModule
from bufferscope.model.experiment import Experiment, Point, load

FILE = Path(__file__).parent / "matrix.toml"
DEVICES = Path(__file__).parent / "devices.toml"
DUALPI2 = Path(__file__).parent / "dualpi2.toml"
"""A matrix without a page of the documentation: few have its guest."""
FILES = (FILE, DEVICES)
"""The matrices that have a page of the documentation."""
DUMBBELL = Path(__file__).parent / "dumbbell.toml"


@dataclass(frozen=True)
class Entry:
    """An experiment of the matrix: one of the catalogue, or one scenario of the dumbbell."""

    experiment: Experiment
    name: str | None
    """The name of a scenario of the dumbbell; a catalogue's points are named by what is swept."""
    labels: Sequence[str] | None = None
    """The labels of the points that are compared; `None`: all."""
    kernel: str | None = None
    """The guest's kernel series; `None`: its default."""

    def has(self, point: Point) -> bool:
        """Whether a point of the experiment is compared."""
        return self.labels is None or all(label in self.labels for label in point.values.values())

    def changed(self, settings: Sequence[str]) -> "Entry":
        """The same entry with further settings, as in `link.access.delay=10020us`."""
        return replace(self, experiment=self.experiment.with_overrides(settings))

    @property
    def scenarios(self) -> Iterator[str]:
        """The names of the points that are compared."""
        for point in filter(self.has, self.experiment.points):
            yield self.name or " ".join([self.experiment.name, *point.values.values()])


@dataclass(frozen=True)
class Matrix:
    """A whole matrix."""

    title: str
    """The title of its page."""
    page: str
    """The name of its page."""
    causes: Path
    """The file with its known differences."""
    origin: str
    """Where its scenarios come from, in the words of the page."""
    entries: Sequence[Entry]
    repetitions: int
    most: int
    """The maximum of repetitions for a scenario that scatters."""
    module: ExtraModule | None = None
    """What must have been built for the guest's kernel."""
    kernel: str | None = None
    """The guest's kernel series for all entries without one of their own; `None`: its default."""
    is_random: bool = False
    """Whether its scenarios are drawn (drawing.py): its page also has their files, and causes that it needs not."""

    @property
    def scenarios(self) -> list[str]:
        """Every scenario's name, in the order of the page's table."""
        return [scenario for entry in self.entries for scenario in entry.scenarios]


def read(path: Path = FILE) -> Matrix:
    """The matrix of this file."""
    written = tomllib.loads(path.read_text(encoding="utf-8"))
    scenarios = [Scenario(*scenario) for scenario in written["scenarios"]]
    queues, loads = written["queues"], written.get("loads", {})
    overrides, points = written.get("overrides", []), written.get("points", {})
    kernel: str | None = written.get("kernel")
    module = EXTRA[written["module"]] if "module" in written else None
    entries = [
        *(
            Entry(
                scenario.experiment(queues, loads),
                scenario.name,
                kernel=loads.get(scenario.load, {}).get("kernel", kernel),
            )
            for scenario in scenarios
        ),
        *(Entry(load(name, overrides), None, points.get(name), kernel) for name in written.get("experiments", [])),
    ]
    return Matrix(
        title=written["title"],
        page=written["page"],
        causes=path.with_name(written["causes"]),
        origin=_origin(path, module, kernel),
        entries=entries,
        repetitions=written["repetitions"],
        most=written["most"],
        module=module,
        kernel=kernel,
    )


def _origin(path: Path, module: ExtraModule | None, kernel: str | None) -> str:
    where = f"The scenarios are in `scripts/agreement/{path.name}`."
    if module is None:
        return where
    return f"{where} The guest needs `{module.module}`, which `{build_command(module, kernel)}` compiles."


def build_command(module: ExtraModule, kernel: str | None) -> str:
    """The command that builds a module for the guest's kernel."""
    return f"bufferscope guest build --kernel {kernel} --module {module.name}"


class Load(TypedDict, total=False):
    """What there is besides the long flows."""

    add: str
    """Further text of the file."""
    set: list[str]
    """Overrides."""
    kernel: str
    """The guest's kernel series."""


@dataclass(frozen=True)
class Scenario:
    """Long TCP flows over a bottleneck."""

    queue: str
    congestion: str
    rate: str
    rtt: str
    flows: int
    duration: str
    load: str = ""
    """What there is besides."""

    @property
    def name(self) -> str:
        """`pfifo 20, cubic, 10 Mbit/s, 40 ms, 4 flows, a call`."""
        rate, rtt = f"{self.rate.removesuffix('mbit')} Mbit/s", f"{self.rtt.removesuffix('ms')} ms"
        flows = f"{self.flows} flow{'s' * (self.flows > 1)}"
        return ", ".join([self.queue, self.congestion, rate, rtt, flows, *([self.load] if self.load else [])])

    def experiment(self, queues: Mapping[str, str], loads: Mapping[str, Load]) -> Experiment:
        """The dumbbell with this scenario's values, and with what its load adds to the file and sets in it."""
        load = loads[self.load] if self.load else {}
        name = "-".join([DUMBBELL.stem, *self.load.split()])
        content = DUMBBELL.read_bytes() + load.get("add", "").replace("RATE", self.rate).encode()
        return Experiment(name, content, DUMBBELL.name, [*self._overrides(queues), *load.get("set", [])])

    def _overrides(self, queues: Mapping[str, str]) -> list[str]:
        """The dumbbell's keys; the round-trip time is divided between two links, in both directions."""
        delay = f"{round(float(self.rtt.removesuffix('ms')) * 1000 / 4)}us"
        return [
            f"duration={self.duration}",
            f"link.access.delay={delay}",
            f"link.bottleneck.delay={delay}",
            f"link.bottleneck.rate={self.rate}",
            f"link.bottleneck.queue={queues[self.queue].replace('RATE', self.rate)}",
            f"traffic.bulk.congestion={self.congestion}",
            f"traffic.bulk.flows={self.flows}",
        ]
