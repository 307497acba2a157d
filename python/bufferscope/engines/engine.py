"""What an engine is: everything that the rest of the package may ask of one.

Each engine is a package here, with an object of this class that is named in `bufferscope.engines.REGISTRY`. Nothing
else knows an engine by its name. As every command loads all of these objects, those of the kernels import their own
modules only when one of their functions is called (`lazy.Function`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from bufferscope._core import QDISCS
from bufferscope.base.errors import EngineError
from bufferscope.engines.outcome import Outcome
from bufferscope.model.experiment import Point

if TYPE_CHECKING:
    from bufferscope.engines.doctor.findings import EngineCheck
    from bufferscope.engines.doctor.system import System
    from bufferscope.engines.shell import Shell

EngineName = Literal["sim", "guest", "host"]
"""The name of an engine that carries packets; `bufferscope.engines.REGISTRY` has these and those that only observe."""

Progress = Callable[[int, int], bool]
"""Called with the run's time and its duration in nanoseconds; False asks the engine to stop."""

Carry = Callable[[Point, int, Path, Progress], Outcome]
"""Runs a point with a seed, and writes the tables to a directory."""

Has = bool | None
"""Whether an engine has a queueing discipline; None if that is not known before a guest is built."""


class BatchRunner(Protocol):
    """Runs points one after the other, and writes their tables into shared files in one directory."""

    def run(self, point: Point, seed: int, progress: Progress) -> Outcome:
        """Run a point with a seed. After an error, the tables are incomplete and must not be used."""

    def finish(self) -> None:
        """Complete the tables."""


def _carries_nothing(_point: Point, _seed: int, _directory: Path, _progress: Progress) -> Outcome:
    raise EngineError("this engine only observes")


@dataclass(frozen=True)
class Engine:
    """One way to come by the records of a scenario: carrying its packets, or observing those of others."""

    name: str
    about: str
    """What it is, in a few words."""
    run: Carry = _carries_nothing
    label: str = ""
    """The heading of its measurements; empty: its name."""
    read_by: str = ""
    """The command that stores its runs, if it only observes what others carried."""
    names_ends: bool = True
    """Whether the nodes at the ends of its runs are known to be the ends of the path, even without names."""

    examine: Callable[[], object] = lambda: None
    """Raises `EngineError`, with the remedy, if this machine lacks what every run needs."""
    checks: "Callable[[System], Iterable[EngineCheck]]" = lambda _system: ()
    """What `doctor` reports about it."""
    disciplines: Callable[[str | None], Mapping[str, Has]] = lambda _kernel: dict.fromkeys(QDISCS, True)
    """Whether it has each queueing discipline, with the given kernel; raises `EngineError` if it cannot run here."""
    refusals: Callable[[Sequence[Point]], list[str | None]] = lambda points: [None] * len(points)
    """For each of these points, why the engine cannot run it on this machine; None if it can."""
    memory_bytes: Callable[[Point], int] = lambda point: 0
    """An estimate of the memory that a run of this point takes; 0 without an estimate."""
    identity: Callable[[], str | None] = lambda: None
    """A digest of everything that a run's records depend on besides scenario and seed: with the same identity, a run
    gives the same records. None if the engine's runs are never the same."""
    real_time: bool = False
    """Whether its runs follow the machine's clock; then other load on the machine disturbs them."""
    batch_runner: Callable[[Path], BatchRunner] | None = None
    """Starts a partition in a directory; None if each run needs a directory of its own."""

    sees_every_drop: bool = False
    """Whether the table `drops` has each lost packet with its flow."""
    replays: bool = False
    """Whether a run can be made again to see its packets, so that they need not be captured."""
    runs_on: str = ""
    """Whose kernel it runs on, as in `the guest's kernel`; empty if it is not a kernel."""
    default_kernel: str | None = None
    """The series of the kernel that it runs on unless the user chooses another; None if none can be chosen."""
    shell: "Callable[[], Shell] | None" = None
    """Returns what runs the user's own programs in its networks; None if it cannot."""
    configure: "Callable[[Engine, str | None, bool], Engine] | None" = None
    """The same engine with a kernel, and with captures of the packets; None if it has no such settings."""
    kernel: str | None = None
    """The kernel that the user chose; None for the default, or if there is no choice."""
    capture: bool = False
    """Whether it captures the packets while it runs."""

    @property
    def observes(self) -> bool:
        """Whether it only observes: then no scenario can be run, and much of a run's scenario is not known."""
        return bool(self.read_by)

    @property
    def is_kernel(self) -> bool:
        """Whether it runs a real kernel."""
        return bool(self.runs_on)

    @property
    def captures(self) -> bool:
        """Whether it can capture the packets of a run."""
        return self.is_kernel and self.configure is not None

    @property
    def heading(self) -> str:
        """What to call its measurements."""
        return self.label or self.name

    def configured(self, *, kernel: str | None = None, capture: bool = False) -> "Engine":
        """The same engine with a kernel series (`6.12`) or release, and with captures of the packets."""
        return self.configure(self, kernel, capture) if self.configure else self
