"""Read the agent's output, from this machine or from a guest: frames of length, kind and payload.

`crates/agent/src/frame.rs` writes them.
"""

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from bufferscope import _core
from bufferscope.engines import agent
from bufferscope.engines.outcome import Outcome
from bufferscope.errors import EngineError
from bufferscope.store.metadata import Summary

_T = TypeVar("_T")

_HEADER = struct.Struct("<IB")
_PROGRESS, _BATCH, _SUMMARY, _ERROR = 1, 2, 3, 4
_LONGEST_BYTES = 1 << 28
"""The largest length of a frame: a batch has only a few thousand rows, so data that claims more is not a frame."""


class Receiver:
    """Takes an agent's output piece by piece and writes its tables to a directory."""

    def __init__(self, directory: Path, progress: Callable[[int, int], bool]) -> None:
        """Create the tables in `directory`. `progress` is called with the run's progress; it returns False to stop."""
        self._tables = _core.TableWriter(directory)
        self._progress = progress
        self._buffer = bytearray()
        self._summary: dict[str, Any] | None = None

    def feed(self, data: bytes) -> bool:
        """Take the next piece; returns False to stop the run. Raises `EngineError` if the agent reports an error."""
        self._buffer += data
        goes_on = True
        for kind, payload in self._frames():
            goes_on &= self._take(kind, payload)
        return goes_on

    def finish(self) -> Outcome:
        """Complete the tables after the last piece. Raises `EngineError` if the run is not complete."""
        if self._summary is None or self._buffer:
            raise EngineError("the agent ended before its run was over, without giving a reason")
        summary = self._summary
        return Outcome(
            engine_version=_core.__version__,
            mss_bytes=_core.MSS_BYTES,
            sample_interval_ns=summary["sampling"]["achieved_ns"],
            warnings=summary.pop("warnings"),
            tables=json.loads(self._tables.finish()),
            summary=cast(Summary, summary),
        )

    def _frames(self) -> Iterator[tuple[int, bytes]]:
        while len(self._buffer) >= _HEADER.size:
            length, kind = _HEADER.unpack_from(self._buffer)
            if length > _LONGEST_BYTES:
                raise _malformed(f"a frame of {length} bytes")
            end = _HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_HEADER.size : end])
            del self._buffer[:end]
            yield kind, payload

    def _take(self, kind: int, payload: bytes) -> bool:
        if kind == _PROGRESS:
            document = _document(payload)
            return self._progress(_field(document, "now_ns", int), _field(document, "duration_ns", int))
        if kind == _BATCH and payload:
            self._write(payload)
        elif kind == _SUMMARY:
            self._summary = _document(payload)
            _field(_field(self._summary, "sampling", dict), "achieved_ns", int)
            _field(self._summary, "warnings", list)
        elif kind == _ERROR:
            raise EngineError(_field(_document(payload), "message", str))
        else:
            raise _malformed(f"a frame of kind {kind} with {len(payload)} bytes")
        return True

    def _write(self, payload: bytes) -> None:
        try:
            self._tables.write(payload[0], payload[1:])
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
