"""The events of a live test, as the page of `bufferscope serve` saves and `bufferscope-live measure` prints them.

They have a verdict and what it rests on, so the run is that of a live measurement, not one of a foreign program.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from bufferscope.base.errors import EngineError
from bufferscope.engines.live.events import LONGEST_LINE
from bufferscope.interop.importing.unusable import Unusable
from bufferscope.interop.live.measuring import read_events
from bufferscope.store.run import Run


def recognises(text: str) -> bool:
    """Whether a content begins with the event `start` of a live test."""
    line = text.partition("\n")[0]
    if not line.startswith("{") or len(line) > LONGEST_LINE:
        return False
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("event") == "start"


def store(text: str, out: Path, name: str | None) -> Run:
    """Store the test as a run under `out`. Raises `Unusable`."""
    try:
        return read_events(_lines(text), out, name)
    except EngineError as error:
        raise Unusable(str(error)) from None


def _lines(text: str) -> Iterator[bytes]:
    return (line.encode() for line in text.split("\n") if line.strip())
