"""A running measurement: the program, its events, and how it ends."""

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Self

from bufferscope.base.errors import EngineError, InputError, printable
from bufferscope.base.waiting import PATIENCE_S
from bufferscope.engines.live import events
from bufferscope.engines.live.events import Event
from bufferscope.engines.live.program import NAME, Request, program

SILENT_S = 60.0
"""The longest time without an event while a phase lasts."""
STOPPING_S = 20.0
"""The longest time from the request to stop to the last event."""
LEAVING_S = 3.0
"""The longest time from the last event to the end of the program."""
PIECE = 1 << 16
KEPT = 4096
"""The bytes of standard error that are kept, the last ones."""
WRONG_USAGE = 2
ERROR = "error: "
"""Before what is wrong with the arguments, which is followed by a hint."""


class Measurement:
    """A measurement by the program; a context manager that leaves no process behind."""

    def __init__(self, request: Request) -> None:
        """Start it. Raises `EngineError` if there is no program, or if it can't be started."""
        try:
            self._process = subprocess.Popen(
                [program(), *request.arguments()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=request.environment(),
                process_group=0,  # so that Ctrl-C reaches this process alone, which then tells the program
            )
        except OSError as error:
            raise EngineError(f"cannot start {program()}: {error.strerror}") from None
        self._said = b""
        self._queued = False
        self._stopping_since: float | None = None

    def __enter__(self) -> Self:
        """The measurement itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the program if it still runs."""
        for end in (self._process.terminate, self._process.kill):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE_S)
            if self._process.poll() is None:
                end()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    @property
    def was_stopped(self) -> bool:
        """Whether it was asked to stop before its end."""
        return self._stopping_since is not None

    def stop(self) -> None:
        """Ask for an early end; the last event then has what was observed so far."""
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)

    def events(self) -> Iterator[tuple[Event, bytes]]:
        """Each event with its line, up to `end`.

        Raises `EngineError` if the output is malformed, or if the program ends or hangs without `end`; `InputError` if
        it refuses what was asked for.
        """
        ended = False
        for line in self._lines():
            if ended:
                raise events.malformed("something follows the event end")
            event = events.read(line)
            self._queued = event["event"] == "queued"
            ended = event["event"] == "end"
            yield event, line
        if not ended:
            raise self._failure()

    def _lines(self) -> Iterator[bytes]:
        """The lines of standard output, complete or not, until it is closed."""
        pending = bytearray()
        begin = 0
        for piece in self._pieces():
            pending += piece
            while (end := pending.find(b"\n", begin)) >= 0:
                line = bytes(pending[:end])
                del pending[: end + 1]
                begin = 0
                _check_length(line)
                yield line
            begin = len(pending)
            _check_length(pending)
        if pending:
            yield bytes(pending)

    def _pieces(self) -> Iterator[bytes]:
        """What the program writes to standard output; what it writes to standard error is kept."""
        last = time.monotonic()
        with selectors.DefaultSelector() as selector:
            for stream in (self._process.stdout, self._process.stderr):
                assert stream
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(PATIENCE_S):
                    piece = os.read(key.fd, PIECE)
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self._process.stderr:
                        self._said = (self._said + piece)[-KEPT:]
                    else:
                        last = time.monotonic()
                        yield piece
                self._check_time(last)
                if self._process.poll() is not None and not selector.select(0):
                    return  # a process that it started may keep the streams open

    def _check_time(self, last: float) -> None:
        now = time.monotonic()
        if self._stopping_since is not None:
            if now - self._stopping_since > STOPPING_S:
                raise EngineError(f"{NAME} did not end within {STOPPING_S:.0f} s of the request to stop")
        elif now - last > SILENT_S and not self._queued:
            raise EngineError(f"{NAME} has said nothing for {SILENT_S:.0f} s")

    def _failure(self) -> Exception:
        """Why there is no result, from the end of the program."""
        try:
            status = self._process.wait(LEAVING_S)
        except subprocess.TimeoutExpired:
            return EngineError(f"{NAME} closed its output without a result")
        reason = _reason(self._said.decode(errors="replace"))
        if status == WRONG_USAGE and reason:
            return InputError(reason)
        if status < 0:
            return EngineError(f"{NAME} was ended by {_signal_name(-status)} before it had a result")
        return EngineError(reason or f"{NAME} ended with status {status} and without a result")


def _reason(said: str) -> str:
    """What a program says last, or what it says is wrong with its arguments."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    wrong = [line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)]
    return printable((wrong or lines or [""])[-1]).removeprefix(f"{NAME}: ")


@contextmanager
def interruptible(measurement: Measurement) -> Iterator[None]:
    """Within the block, Ctrl-C asks for an early end, and a second Ctrl-C raises `KeyboardInterrupt`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        if measurement.was_stopped:
            raise KeyboardInterrupt
        measurement.stop()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check_length(line: bytes | bytearray) -> None:
    most = events.LONGEST_END if any(name in line[:40] for name in (b'"end"', b'"loaded"')) else events.LONGEST_LINE
    if len(line) > most:
        raise events.malformed(f"a line of more than {most} bytes")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
