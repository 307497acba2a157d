"""The native core: experiment files, records and the simulator. Everything structured crosses as JSON text."""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from os import PathLike
from typing import Literal, Self, final

MOST_TRACE_BYTES: int
"""The largest file of delivery opportunities."""

__version__: str
"""The version of bufferscope."""

TABLES: dict[str, list[str]]
"""The records' tables, each with its columns in order."""

OPTIONAL_TABLES: list[str]
"""The tables of which a run without rows has no file."""

WORDS: dict[str, dict[str, list[str]]]
"""For each table, its columns that hold only certain words, each with these words."""

QDISCS: dict[str, Discipline]
"""The queueing disciplines by name."""

DROP_REASONS: dict[str, bool]
"""Why disciplines drop or mark packets, as the records say it, and whether they mark for that reason."""

PROTOCOL: int
"""Version of the protocol between this package and an agent."""

MSS_BYTES: int
"""TCP payload of a full packet in the simulator."""

class ExperimentError(ValueError):
    """An experiment file or an override is impossible; the text has a line for each problem: where, what is allowed."""

class PlanError(ValueError):
    """Linux can't be set to what a scenario asks for; the text tells what, where, and what is possible."""

class SimulationError(RuntimeError):
    """The simulator could not complete a run."""

class TablesError(RuntimeError):
    """Tables could not be written, or the received data is not a table."""

class OtherBuildError(TablesError):
    """What came for a table is of another build of bufferscope."""

class CaptureError(ValueError):
    """A file is no capture of packets; the text tells which, what was found and what is allowed."""

class Interrupted(Exception):
    """The progress callback asked to stop."""

@final
class Discipline:
    """What is known of a queueing discipline, whatever its parameters."""

    @property
    def purpose(self) -> str:
        """What it is for, in a sentence."""

    @property
    def source(self) -> str:
        """Where its behaviour is defined: the kernel's files, then RFCs and papers."""

    @property
    def module(self) -> str:
        """The part of the kernel that contains it."""

    @property
    def is_loadable(self) -> bool:
        """Whether that part can be a module of its own; if not, every kernel with a packet scheduler has it."""

    @property
    def queues(self) -> Literal["shared", "per_flow", "coupled"]:
        """Whether flows share a queue or few bands, have one each, or there are two with coupled AQMs (L4S)."""

    @property
    def aqm(self) -> Literal["length", "delay"] | None:
        """What it measures to drop or mark before the queue is full, with its defaults; None if it does not."""

    @property
    def contains_others(self) -> bool:
        """Whether there can be other disciplines inside it, which then have the queue."""

    @property
    def holds_back(self) -> bool:
        """Whether it may hold packets back although the layer below is ready."""

    @property
    def has_kernel_defaults(self) -> bool:
        """Whether the kernel sets every parameter that `tc` leaves out to the default of experiment files."""

@final
class Point:
    """One choice of swept values with its scenario, or a member of the population there."""

    @property
    def values(self) -> dict[str, str]:
        """The choice, path to label; empty without a sweep."""

    @property
    def scenario(self) -> str:
        """The resolved scenario as JSON."""

    @property
    def notes(self) -> list[str]:
        """What the user should know of the values that this point has, a line each."""

    def member(self, number: int) -> Self:
        """The member of the population with this number, or the point itself if there is no population.

        Raises `ExperimentError` if the member's values are impossible together.
        """

    @property
    def drawn(self) -> str | None:
        """What was drawn for the member, as JSON: its group, and values by path; None for a point."""

@final
class Experiment:
    """A checked experiment file."""

    @property
    def document(self) -> str:
        """The file's own words as JSON: title, source, description, figures, notes, sweep."""

    @property
    def points(self) -> list[Point]:
        """Every combination of swept values, the first key varying slowest."""

    @property
    def notes(self) -> list[str]:
        """What the user should know before it runs, a line each; those of the points once."""

    @property
    def expectations(self) -> str:
        """The file's `[[expect]]` entries as JSON, each with the indices of the points that it compares.

        An infinite end of a band is null. `bufferscope.results.expectations` reads them.
        """

def load(content: bytes, file: str, overrides: list[str], read: Callable[[str], bytes]) -> Experiment:
    """Parse and check an experiment; raises `ExperimentError`. `file` is what messages call it.

    `read` returns the content of a file that the experiment names; the text of an exception says why it can't.
    """

def commands(point: Point, about: list[str]) -> str:
    """A shell script that builds the point's network by hand; it begins with the lines `about`. Raises `PlanError`."""

def queue_arguments(point: Point, port: str, defaults: Point | None = None) -> str:
    """The queueing discipline of the port of this name, as arguments of `tc qdisc add`.

    Parameters that the port has in the point `defaults` are left out.

    Raises `PlanError`, and `ValueError` if there is no such port.
    """

def path(nodes: int, links: Sequence[Sequence[int]], sender: int, receiver: int) -> list[int] | None:
    """The ports that a packet crosses from one node to another, as the engines route it; None if there is no path.

    Nodes are numbered from 0 to `nodes` - 1. Link n has the port 2n, from its first end to its second, and the port
    2n + 1 in the other direction.
    """

def playback(arrivals_ns: Sequence[int], segment_ns: int, startup_ns: int, resume_ns: int) -> list[int]:
    """When each segment of a video is played, in order, if they arrive at these times.

    Those at the end that have to wait for further ones are missing.
    """

def judge(observations: str) -> str:
    """The verdict about what a live measurement observed, both as JSON. Raises `ValueError` for other JSON."""

def check_on_linux(point: Point) -> None:
    """Raise `PlanError` if no released Linux kernel can run the point."""

def cards(point: Point) -> list[tuple[tuple[str, int | None], tuple[str, int | None]]]:
    """The pairs of network cards that a virtual machine needs for the point's network.

    Each card: its hardware address, and the nanoseconds it takes to send a packet, None for no time. Raises `PlanError`
    for a ring that no card can have.
    """

def schema() -> str:
    """The JSON Schema of experiment files."""

def scenario_schema() -> str:
    """The JSON Schema of scenarios, as `Point.scenario` has them."""

def footprint(point: Point) -> str:
    """What a simulation of a point will take, estimated, as JSON.

    `memory_bytes` while it runs; `largest`, the traffic that takes more than half of that, if one does; `rows` of the
    sampled tables; and `reading_bytes` to compute with them. Raises `SimulationError` for ends that no path joins.
    """

def capture(
    scenario: str,
    seed: int,
    file: str | PathLike[str],
    interfaces: Sequence[tuple[int, str, str, str]],
    snaplen: int,
    comment: str,
    progress: Callable[[int, int], bool] | None = None,
) -> tuple[str, list[int]]:
    """Simulate a scenario, given as JSON, and write its packets into a pcapng file.

    Each interface: the index of a port, a place there (qdisc, ring, wire, arrived or dropped), name and description.
    Returns a summary as JSON, and the number of packets of each interface. Raises `ValueError` for a scenario that is
    none, `SimulationError`, `OSError` if the file can't be written, and `Interrupted` if `progress` returned False.
    """

def select_packets(
    source: str | PathLike[str],
    file: str | PathLike[str],
    interfaces: Sequence[tuple[str, str]],
    snaplen: int,
    comment: str,
    end_ns: int,
    progress: Callable[[int], bool] | None = None,
) -> list[int]:
    """Copy the packets of some interfaces of a capture into a pcapng file; returns how many there were of each.

    Each interface: its name in the capture, and its description in the new file. `progress` gets the number of bytes
    read so far. Raises `CaptureError` if the source is no capture, `OSError` for files that can't be read or written,
    and `Interrupted` if `progress` returned False.
    """

def log_states(
    scenario: str,
    seed: int,
    directory: str | PathLike[str],
    title: str,
    description: str,
    flows: Sequence[str] = ...,
    progress: Callable[[int, int], bool] | None = None,
) -> tuple[str, list[str], list[str]]:
    """Simulate a scenario, given as JSON, and write the changes of TCP's state into a qlog file for each connection.

    `flows` names the connections; without it, all of them. Returns a summary as JSON, the first names of connections of
    the run, and those of `flows` that no connection had. Raises `ValueError` for a scenario that is none,
    `SimulationError`, `OSError` if a file can't be written, and `Interrupted` if `progress` returned False.
    """

def log_samples(
    file: str | PathLike[str],
    samples: Sequence[
        tuple[int, tuple[int, int | None, int], tuple[int | None, int | None, int | None], str, tuple[int, int, int]]
    ],
    interval_ns: int,
    title: str,
    description: str,
    flow: str,
    host: str,
    of_client: bool,
) -> None:
    """Write the changes of TCP's state that samples of a connection show into a qlog file.

    Each sample: its time; window, threshold and payload in flight; smoothed and smallest round-trip time, pacing rate;
    the state; and for how long the sender has been busy, limited by the receiver's window, and by the send buffer.
    Raises `ValueError` for an unknown state, and `OSError` if the file can't be written.
    """

def simulate(
    point: Point,
    seed: int,
    directory: str | PathLike[str],
    progress: Callable[[int, int], bool] | None = None,
) -> str:
    """Simulate a point, write its tables into `directory` and return a summary as JSON.

    `progress(now_ns, duration_ns)` is called about every 10 ms; when it returns False the run stops with `Interrupted`.
    Other Python threads go on meanwhile. Raises `SimulationError`.
    """

def read_captures(
    files: Sequence[str | PathLike[str]],
    directory: str | PathLike[str],
    hosts: Sequence[IPv4Address | IPv6Address] = ...,
    ports: Sequence[int] = ...,
    progress: Callable[[int], bool] | None = None,
) -> str:
    """Read captures of packets, write their tables into `directory` and return a summary as JSON.

    `-` is standard input. If `hosts` or `ports` are given, only packets from or to any of them are used.
    `progress(read_bytes)` is called now and then; when it returns False, reading stops with `Interrupted`. Other Python
    threads go on meanwhile. Raises `CaptureError`, `TablesError`, `OSError`, and `ValueError` for too many files.
    """

@final
class PartitionWriter:
    """Simulates runs and writes their tables into shared files, one per table, in a directory.

    The first column of each table, `run`, is the number of the run, from 0, in the order of the calls.
    """

    def __new__(cls, directory: str | PathLike[str]) -> Self:
        """Create the files in an existing directory; raises `TablesError`."""

    def simulate(self, point: Point, seed: int, progress: Callable[[int, int], bool] | None = None) -> str:
        """Simulate the next run. Returns its summary as JSON, as `simulate` does, and raises the same errors.

        After an error the files are incomplete, and later calls raise `ValueError`.
        """

    def finish(self) -> None:
        """Complete the files; raises `TablesError`."""

@final
class Simulation:
    """A simulation of a point that is advanced in steps, with its tables in memory.

    Only one thread can use it at a time; any other gets `SimulationError`. Once the simulation is finished, everything
    but its tables raises `ValueError`.
    """

    def __new__(cls, point: Point, seed: int) -> Self:
        """Begin at time 0. Raises `SimulationError`."""

    @property
    def now_ns(self) -> int:
        """The current time."""

    @property
    def scenario(self) -> str:
        """The scenario as it is carried out, as JSON; a rate that was changed is a schedule."""

    def advance(self, until_ns: int, progress: Callable[[int, int], bool] | None = None) -> None:
        """Handle all events before `until_ns`, and set the clock to that time; `progress` as for `simulate`.

        Raises `ValueError` for a time in the past or after the duration, and `SimulationError` if the run fails. If
        `progress` returns False or raises an exception, this call and all later ones raise `Interrupted`.
        """

    def state(self) -> str:
        """The present state of all ports and flows, as JSON."""

    def change(self, overrides: list[str]) -> None:
        """Change keys (`PATH=VALUE`) from now on.

        Raises `ExperimentError` for impossible values, and `ValueError` for keys that can't change during a run.
        """

    def footprint(self, overrides: list[str]) -> str:
        """The memory and rows that the simulation would need with these overrides, as `footprint` returns them."""

    def table(self, table: int) -> bytes:
        """The rows so far of the table with this index in `TABLES`, as an Arrow IPC stream."""

    def finish(self, progress: Callable[[int, int], bool] | None = None) -> str:
        """Run to the end; returns the summary, as `simulate` does."""

    def write(self, directory: str | PathLike[str]) -> None:
        """Write the tables of the finished simulation into `directory`, as `simulate` does.

        Raises `ValueError` if it is not finished, and `TablesError` if the tables can't be written.
        """

@final
class FrameReader:
    """Reassembles an agent's frames from the pieces in which they arrive."""

    def __new__(cls) -> Self: ...
    def feed(self, piece: bytes) -> None:
        """Add the next piece."""

    def next_frame(self) -> tuple[str, bytes] | None:
        """Take the next complete frame, if any: its kind (progress, batch, packets, summary or error) and its payload.

        Raises `OtherBuildError` for frames of another version of the protocol, and `TablesError` for anything that is
        not a frame.
        """

    def is_between_frames(self) -> bool:
        """Whether the last piece ended at the end of a frame."""

@final
class PacketWriter:
    """Writes the packets that a kernel captured into a pcapng file."""

    def __new__(
        cls, file: str | PathLike[str], interfaces: Sequence[tuple[str, str]], snaplen: int, comment: str
    ) -> Self:
        """Create the file with these interfaces, each with name and description. Raises `OSError`."""

    def write(self, payload: bytes) -> None:
        """Append the packets of a frame, whose places are numbers of interfaces.

        Other Python threads go on meanwhile. Raises `ValueError` for a malformed frame, and `OSError`.
        """

    def finish(self, end_ns: int) -> list[int]:
        """Complete the file of a run that ended then; the number of packets of each interface. Raises `OSError`."""

@final
class TableWriter:
    """Takes over the tables of an engine that runs in another process, and writes them into a directory as Parquet."""

    def __new__(cls, directory: str | PathLike[str]) -> Self:
        """Create the files. Raises `TablesError`."""

    def write(self, table: int, stream: bytes) -> None:
        """Append a batch, given as an Arrow IPC stream, to the table of that place in `TABLES`; raises `TablesError`,
        and `OtherBuildError` where its columns are not the table's.

        Other Python threads go on meanwhile.
        """

    def finish(self) -> str:
        """Complete the files; the rows of each table as JSON. Raises `TablesError`."""
