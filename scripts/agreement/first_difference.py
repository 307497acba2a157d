"""Find where two logs of TCP's state part: for example, of one connection on the simulator and on a kernel.

    python scripts/agreement/first_difference.py SIM.sqlog KERNEL.sqlog

The logs are qlog files of `bufferscope export --format qlog`. Their changes of the congestion state, of slow start and
of the congestion control's phase are compared in order. The first difference is a change that only one log has, one
that came much earlier or later, or windows that are far apart. Changes that agree are printed as well, with both times,
to show how far the two runs were alike. The exit status is 1 if there is a difference.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

COMPARED = (
    "recovery:congestion_state_updated",
    "tcp:slow_start_ended",
    "tcp:slow_start_began",
    "tcp:congestion_control_phase_updated",
)
"""The events whose order is compared. Others depend on details of which the samples of a kernel show nothing."""


@dataclass(frozen=True)
class Change:
    """A change of the state."""

    at_ms: float
    what: str
    """Its name without the category, and the states."""
    windows: dict[str, int]
    """Window and threshold after it, in bytes; no threshold while it is unlimited."""

    def __str__(self) -> str:
        """A cell of the table."""
        windows = "/".join(f"{value:,}" for value in self.windows.values())
        return f"{self.at_ms:11.3f} ms  {self.what}  {windows}"


@dataclass(frozen=True)
class Tolerance:
    """Below this, two changes are alike."""

    ms: float
    """Difference of their times, after the one of the changes before them."""
    share: float
    """Difference of their windows, as a share of the larger one."""


def read(file: Path) -> Iterator[Change]:
    """The changes of a log. Raises `ValueError` if it is no log."""
    header, *events = (json.loads(record) for record in file.read_text().split("\x1e")[1:])
    if header.get("qlog_format") != "JSON-SEQ":
        raise ValueError(f"{file}: no qlog file of JSON text sequences")
    for event in events:
        if event["name"] in COMPARED:
            data = event["data"]
            states = f"{data.get('old', '')} -> {data['new']}" if "new" in data else ""
            kind = event["name"].partition(":")[2].removesuffix("_updated")
            windows = {key: data[key] for key in ("congestion_window", "ssthresh") if key in data}
            yield Change(event["time"], f"{kind} {states}".rstrip(), windows)


def difference(one: Change | None, other: Change | None, shift_ms: float, tolerance: Tolerance) -> str:
    """What differs between two changes, of which the second came `shift_ms` later so far; empty if nothing does."""
    if one is None or other is None:
        return "only one log has it"
    if one.what != other.what:
        return "another change"
    if abs(other.at_ms - one.at_ms - shift_ms) > tolerance.ms:
        return f"{other.at_ms - one.at_ms - shift_ms:+.1f} ms"
    if one.windows.keys() != other.windows.keys():
        return "only one has a threshold"
    for name, value in one.windows.items():
        if abs(value - other.windows[name]) > tolerance.share * max(value, other.windows[name]):
            return f"{name}: {value:,} and {other.windows[name]:,}"
    return ""


def compare(one: Sequence[Change], other: Sequence[Change], tolerance: Tolerance) -> Iterator[tuple[str, str]]:
    """The lines of a table up to the first difference, each with what differs."""
    shift_ms = 0.0
    for left, right in zip_longest(one, other):
        found = difference(left, right, shift_ms, tolerance)
        yield f"{left or ''!s:75}  {right or ''!s}".rstrip(), found
        if found or left is None or right is None:
            return
        # Each step is compared on its own, so that one delay is not found again at every later step.
        shift_ms = right.at_ms - left.at_ms


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare two files; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs=2, type=Path, metavar="FILE.sqlog")
    parser.add_argument("--ms", type=float, default=20.0, help="times that differ by less are alike (default: 20)")
    parser.add_argument("--share", type=float, default=0.1, help="windows that differ by less are alike (default: 0.1)")
    chosen = parser.parse_args(arguments)
    one, other = (list(read(file)) for file in chosen.files)
    print(f"{chosen.files[0]!s:75}  {chosen.files[1]}")
    for line, found in compare(one, other, Tolerance(chosen.ms, chosen.share)):
        print(line)
        if found:
            print(f"The first difference: {found}.")
            return 1
    print(f"No difference in {len(one)} changes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
