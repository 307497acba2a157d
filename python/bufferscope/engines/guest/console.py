"""Run a user's program in a guest until it ends: at a terminal, or with its output copied from files."""

import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from bufferscope.engines.guest import hardware
from bufferscope.engines.guest.cards import Pair
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.hardware import Qemu
from bufferscope.engines.guest.image import Image
from bufferscope.engines.guest.process import Process, Tail
from bufferscope.engines.guest.virtual import restored
from bufferscope.engines.shell import Ending

HANG_UP = b"\x1d"
"""Ctrl-]: ends the machine; all other keys go to the program."""

_READ_BYTES = 1 << 16


def run(qemu: Qemu, image: Image, state: Path, request: bytes, *, pairs: Sequence[Pair] = ()) -> Ending:
    """Run the requested program without a terminal and in virtual time, so that every run gives the same result."""
    with restored(qemu, image, state, request, pairs) as process:
        _copy(process)
        return _ending(process)


def attend(qemu: Qemu, image: Image, state: Path, request: bytes, *, pairs: Sequence[Pair] = ()) -> Ending:
    """Run the requested program with this process' terminal as its own."""
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        state.open("rb") as saved,
        Process(
            request,
            lambda channels: hardware.attend(qemu, image, channels, pairs),
            state=saved,
            furnished=image.furnished,
            terminal=theirs,
        ) as process,
    ):
        theirs.close()  # so that the connection ends when QEMU does
        with _raw(sys.stdin.fileno()):
            hung_up = _relay(process, ours)
        return Ending(128 + signal.SIGHUP) if hung_up else _ending(process)


def terminal_size() -> tuple[int, int]:
    """Rows and columns of this process' terminal."""
    answer = fcntl.ioctl(sys.stdin.fileno(), termios.TIOCGWINSZ, bytes(8))
    rows, columns = struct.unpack("HHHH", answer)[:2]
    return rows, columns


def _copy(process: Process) -> None:
    """Copy the program's output until its machine has ended."""
    ways = [(Tail(process.output), sys.stdout.buffer), (Tail(process.errors), sys.stderr.buffer)]
    for _ in process.turns():
        for written, target in ways:
            for data in written:
                target.write(data)
                target.flush()


def _relay(process: Process, terminal: socket.socket) -> bool:
    """Pass on input and output until the machine ends; returns whether the user hung up."""
    keyboard, screen = sys.stdin.fileno(), sys.stdout.fileno()
    watched: list[Any] = [terminal, keyboard, process]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if terminal in ready:
            shown = _received(terminal)
            _write(screen, shown)
            if not shown:
                watched.remove(terminal)
        elif process in ready:
            return False
        if keyboard in ready:
            typed = os.read(keyboard, _READ_BYTES)
            if not typed or HANG_UP in typed:
                return True
            if terminal in watched:
                terminal.sendall(typed)


def _received(terminal: socket.socket) -> bytes:
    try:
        return terminal.recv(_READ_BYTES)
    except ConnectionError:
        return b""


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Put the terminal into raw mode; restore it when the block ends, even if a signal ends it."""
    before = termios.tcgetattr(terminal)
    handlers = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        tty.setraw(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _ending(process: Process) -> Ending:
    """How the program ended, from the guest's report, which `crates/agent/src/shell/exit_report.rs` writes."""
    size = os.fstat(process.frames.fileno()).st_size
    text = os.pread(process.frames.fileno(), size, 0)
    try:
        match json.loads(text):
            case {"exited": int(status)} if 0 <= status <= 255:
                return Ending(status)
            case {"killed": int(number)} if 0 < number < 128:
                return Ending(128 + number)
            case {"failed": {"message": str(message), "status": int(status)}} if 0 < status <= 255:
                return Ending(status, message)
    except ValueError:
        pass
    raise GuestError(f"the guest did not report how the program ended: {process.explanation()}")
