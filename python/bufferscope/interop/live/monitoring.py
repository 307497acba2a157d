"""The samples of a connection that is watched, on their way to a stored run: memory does not grow with time.

They arrive in parts, each with the samples of some seconds. Rows are collected and written to files that are put
together at the end.
"""

import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bufferscope.base.errors import EngineError
from bufferscope.engines.live.events import EndEvent
from bufferscope.engines.live.observations import Echo, ObservedPhase
from bufferscope.interop.live import records
from bufferscope.interop.live.names import ECHOES, WAYS
from bufferscope.store import tables
from bufferscope.store.live import PhaseSummary
from bufferscope.store.verdict import Direction, Episode

if TYPE_CHECKING:
    import polars as pl

ROWS = 20_000
"""The rows of a table that are collected before they are written."""
MOST_EPISODES = 10_000
"""The most episodes that a run has."""
DIRECTIONS: tuple[Direction, ...] = ("up", "down")


class Samples:
    """What has been observed so far. Its files are in a directory of its own under `directory` until it is closed."""

    def __init__(self, directory: Path) -> None:
        """Begin. Raises `EngineError` if the directory can't be made."""
        try:
            self._files = tempfile.TemporaryDirectory(prefix=".watching-", dir=directory, ignore_cleanup_errors=True)
        except OSError as error:
            raise EngineError(f"cannot write {directory}: {error.strerror}") from None
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._parts: dict[str, int] = {}
        self._echoes = 0
        self._lost_up: list[tuple[int, int]] = []
        self.episodes: list[Episode] = []
        self.left_out = 0
        """The episodes beyond the most that a run has."""

    def take(self, phase: ObservedPhase) -> None:
        """Take a part."""
        observations = records.alone(phase)
        echoes = sorted(phase.get("echoes", ()), key=lambda echo: echo["t_ns"])
        self._lost_up += [
            (echo["t_ns"], self._echoes + seq) for seq, echo in enumerate(echoes) if echo.get("lost") == "up"
        ]
        self._add("probes", self._probes(echoes))
        self._add("one_way", _later(echoes))
        self._add("queues", records.queues(observations))
        self._add("hops", records.hops(observations))
        self._add("stages", records.stages(observations))

    def tell(self, episode: Episode) -> None:
        """Take an episode."""
        if len(self.episodes) < MOST_EPISODES:
            self.episodes.append(episode)
        else:
            self.left_out += 1

    def _probes(self, echoes: list[Echo]) -> Iterator[dict[str, Any]]:
        for echo in echoes:
            yield {"probe": ECHOES, "seq": self._echoes, "sent_ns": echo["t_ns"], "rtt_ns": echo.get("rtt_ns")}
            self._echoes += 1

    def _add(self, table: str, rows: Iterator[dict[str, Any]]) -> None:
        kept = self._rows.setdefault(table, [])
        kept.extend(rows)
        if len(kept) >= ROWS:
            self._write(table)

    def _write(self, table: str) -> None:
        """Write the rows of a table that are collected."""
        if not (rows := self._rows.pop(table, [])):
            return
        part = self._parts[table] = self._parts.get(table, 0) + 1
        try:
            _frame(table, rows).write_parquet(self._part(table, part))
        except OSError as error:
            raise EngineError(f"cannot write {self._files.name}: {error.strerror or error}") from None

    def _part(self, table: str, part: int) -> Path:
        return Path(self._files.name) / f"{table}-{part}.parquet"

    def whole(self) -> Path:
        """The directory with a file for each table that has rows, in the order of time."""
        import polars as pl

        directory = Path(self._files.name) / "whole"
        directory.mkdir(exist_ok=True)
        for table in list(self._rows):
            self._write(table)
        for table, parts in self._parts.items():
            time = "sent_ns" if table == "probes" else "t_ns"
            found = pl.scan_parquet([self._part(table, part) for part in range(1, parts + 1)])
            found.sort(time, maintain_order=True).collect().write_parquet(tables.file_of(directory, table))
        return directory

    def phases(self, end: EndEvent) -> list[PhaseSummary]:
        """The stretches between the gaps, with the echoes that did not reach the server."""
        stretches = sorted(end["observations"]["phases"], key=lambda each: each["start_ns"])
        begins = [stretch["start_ns"] for stretch in stretches]
        lost: dict[int, list[int]] = {}
        for t_ns, seq in self._lost_up:
            lost.setdefault(max(0, bisect_right(begins, t_ns) - 1), []).append(seq)
        return [
            {
                "kind": stretch["kind"],
                "start_ns": stretch["start_ns"],
                "end_ns": stretch["end_ns"],
                "levelled": None,
                **({"lost_up": records.ranges(sorted(lost[at]))} if at in lost else {}),  # type: ignore[typeddict-item]
            }
            for at, stretch in enumerate(stretches)
        ]

    def close(self) -> None:
        """Remove the files."""
        self._files.cleanup()


def duration_ns(end: EndEvent) -> int:
    """The time from the beginning to the last observation."""
    return max((phase["end_ns"] for phase in end["observations"]["phases"]), default=0)


def _later(echoes: list[Echo]) -> Iterator[dict[str, Any]]:
    """How much later each echo was in each direction than undisturbed ones."""
    for direction in DIRECTIONS:
        for echo in echoes:
            value = echo.get(f"{direction}_ns")
            if value is not None:
                yield {"t_ns": echo["t_ns"], "flow": ECHOES, "way": WAYS[direction], "change_ns": value}


def _frame(table: str, rows: list[dict[str, Any]]) -> "pl.DataFrame":
    """A frame with all columns of a table."""
    import polars as pl

    columns: Mapping[str, Any] = tables.columns(table)
    return pl.DataFrame([[row.get(name) for name in columns] for row in rows], schema=dict(columns), orient="row")
