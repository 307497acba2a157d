"""Read an agent's output, from this machine or a guest. `crates/records/src/frame.rs` defines its frames."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from bufferscope import _core
from bufferscope.base.errors import EngineError
from bufferscope.engines import agent
from bufferscope.engines.outcome import Outcome
from bufferscope.store.metadata import Summary

_T = TypeVar("_T")


class Receiver:
    """Takes an agent's output piece by piece and writes its tables to a directory."""

    def __init__(
        self, directory: Path, progress: Callable[[int, int], bool], packets: _core.PacketWriter | None = None
    ) -> None:
        """Create the tables in `directory`. `progress` is called with the run's progress; it returns False to stop.

        `packets` gets the packets that the agent captures.
        """
        self._tables = _core.TableWriter(directory)
        self._packets = packets
        self._progress = progress
        self._reader = _core.FrameReader()
        self._summary: dict[str, Any] | None = None

    def feed(self, data: bytes) -> bool:
        """Take the next piece; returns False to stop the run. Raises `EngineError` if the agent reports an error."""
        self._reader.feed(data)
        goes_on = True
        while (frame := self._next()) is not None:
            goes_on &= self._take(*frame)
        return goes_on

    def finish(self) -> Outcome:
        """Complete the tables after the last piece. Raises `EngineError` if the run is not complete."""
        if self._summary is None or not self._reader.is_between_frames():
            raise EngineError("the agent ended before its run was over, without giving a reason")
        summary = self._summary
        if self._packets is not None:
            self._packets.finish(_field(summary, "ended_ns", int))
        return Outcome(
            engine_version=_core.__version__,
            mss_bytes=_core.MSS_BYTES,
            sample_interval_ns=summary["sampling"]["achieved_ns"],
            warnings=summary.pop("warnings"),
            tables=json.loads(self._tables.finish()),
            summary=cast(Summary, summary),
        )

    def _next(self) -> tuple[str, bytes] | None:
        with _understood():
            return self._reader.next_frame()

    def _take(self, kind: str, payload: bytes) -> bool:
        if kind == "progress":
            document = _document(payload)
            return self._progress(_field(document, "now_ns", int), _field(document, "duration_ns", int))
        if kind == "batch" and payload:
            self._write(payload)
        elif kind == "packets" and self._packets is not None:
            _keep(payload, self._packets)
        elif kind == "summary":
            self._summary = _document(payload)
            _field(_field(self._summary, "sampling", dict), "achieved_ns", int)
            _field(self._summary, "warnings", list)
        elif kind == "error":
            raise EngineError(_field(_document(payload), "message", str))
        else:
            raise _malformed(f"a {kind} of {len(payload)} bytes")
        return True

    def _write(self, payload: bytes) -> None:
        with _understood():
            self._tables.write(payload[0], payload[1:])


def _keep(payload: bytes, packets: _core.PacketWriter) -> None:
    """Write captured packets. Raises `EngineError` if they are malformed."""
    try:
        packets.write(payload)
    except ValueError as error:
        raise _malformed(str(error)) from error


@contextmanager
def _understood() -> Iterator[None]:
    """Turn the core's errors about the frames into `EngineError`."""
    try:
        yield
    except _core.OtherBuildError as error:
        raise agent.another_build(str(error)) from error
    except (_core.TablesError, IndexError) as error:
        raise _malformed(str(error)) from error


def _document(payload: bytes) -> dict[str, Any]:
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise _malformed(str(error)) from error
    if not isinstance(document, dict):
        raise _malformed("a document that is not an object")
    return document


def _field(document: dict[str, Any], name: str, kind: type[_T]) -> _T:
    value = document.get(name)
    if not isinstance(value, kind):
        raise _malformed(f"a document in which {name} is {'missing' if name not in document else repr(value)[:80]}")
    return value


def _malformed(what: str) -> EngineError:
    return EngineError(f"the agent's output is malformed: {what}")
