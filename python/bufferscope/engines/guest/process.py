"""A QEMU process that cannot outlive the process that started it."""

import ctypes
import os
import select
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Self

from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.hardware import REQUEST_BYTES, Channels, Streams

_PR_SET_PDEATHSIG = 1
_CONSOLE_TAIL_BYTES = 1500
_OOPS = b" [#1]"
"""Part of the line with which a kernel reports its first oops (`Oops: 0000 [#1] PREEMPT SMP`)."""
_POLL_S = 0.05
_READ_BYTES = 1 << 20

# Loaded before any fork: the child may not load libraries.
_libc = ctypes.CDLL(None, use_errno=True)


class Tail:
    """Reads what is appended to a file, piece by piece."""

    def __init__(self, file: IO[bytes]) -> None:
        """Start at the beginning of the file."""
        self._file = file
        self._offset = 0

    def __iter__(self) -> Iterator[bytes]:
        """What was appended since the last call."""
        while data := os.pread(self._file.fileno(), _READ_BYTES, self._offset):
            self._offset += len(data)
            yield data


class Process:
    """A started QEMU. If it still runs at the end of its `with` block, it is killed. Its files have no names."""

    def __init__(
        self,
        request: bytes,
        command: Callable[[Channels], list[str]],
        *,
        state: IO[bytes] | None = None,
        control: socket.socket | None = None,
        furnished: bool = False,
        terminal: socket.socket | None = None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """Start `command`, either from a saved `state` or with `control`, QEMU's end of a connection for QMP.

        The machine of a furnished image has output channels for a user's program. `terminal` is QEMU's end of a
        connection for that program's terminal, if it has one.

        `prepare` is called in the new process before it becomes QEMU.
        """
        if len(request) >= REQUEST_BYTES:
            raise GuestError(
                f"this scenario takes {len(request)} bytes, and the guest reads at most {REQUEST_BYTES - 1}: "
                "shorten its rate schedule, or use another engine"
            )
        self.cpu_s = 0.0
        """QEMU's CPU time, known once it has ended."""
        with ExitStack() as stack:
            request_file = stack.enter_context(tempfile.TemporaryFile())
            request_file.write(request.ljust(REQUEST_BYTES, b"\0"))
            request_file.flush()
            self.frames = stack.enter_context(tempfile.TemporaryFile())
            self._console = stack.enter_context(tempfile.TemporaryFile())
            self.output = stack.enter_context(tempfile.TemporaryFile())
            self.errors = stack.enter_context(tempfile.TemporaryFile())
            end = None if terminal is None else terminal.fileno()
            streams = Streams(self.output.fileno(), self.errors.fileno(), end) if furnished else None
            channels = Channels(
                request_file.fileno(),
                self.frames.fileno(),
                self._console.fileno(),
                None if control is None else control.fileno(),
                None if state is None else state.fileno(),
                streams,
            )
            self._process = _spawn(command(channels), channels.all(), prepare)
            stack.callback(self._kill)
            self._ended = os.pidfd_open(self._process.pid)
            stack.callback(os.close, self._ended)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wait(self, timeout_s: float) -> bool:
        """Wait at most this long for QEMU to end; returns whether it has ended."""
        select.select([self._ended], [], [], timeout_s)
        return self._reap(os.WNOHANG)

    def turns(self) -> Iterator[None]:
        """Yields when it is time to read QEMU's output: often while QEMU runs, and once after it has ended.

        Raises `GuestError` if the guest's kernel reports an oops. It would kill the agent, and idle for ever.
        """
        console, said = Tail(self._console), b""
        while not self.wait(_POLL_S):
            for written in console:
                said = said[-len(_OOPS) :] + written
                if _OOPS in said:
                    raise GuestError(f"the guest's kernel failed; another seed may succeed\n{self.console()}")
            yield
        yield

    def fileno(self) -> int:
        """A descriptor that `select` reports as readable once QEMU has ended."""
        return self._ended

    @property
    def status(self) -> int | None:
        """QEMU's exit status once it has ended."""
        return self._process.returncode

    def console(self) -> str:
        """The last output of the guest's kernel and first process."""
        size = os.fstat(self._console.fileno()).st_size
        text = os.pread(self._console.fileno(), _CONSOLE_TAIL_BYTES, max(0, size - _CONSOLE_TAIL_BYTES))
        return text.decode(errors="replace").strip()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn a lost connection or an endless wait into an error that includes the output of QEMU and the guest."""
        try:
            yield
        except (ConnectionError, TimeoutError) as error:
            raise GuestError(self.explanation()) from error

    def explanation(self) -> str:
        """What is known about why QEMU ended or hangs."""
        self.wait(1)
        said = b"" if self._process.stderr is None or self.status is None else self._process.stderr.read()
        ended = "still runs" if self.status is None else f"ended with status {self.status}"
        return "\n".join(
            part for part in (f"QEMU {ended}", said.decode(errors="replace").strip(), self.console()) if part
        )

    def _reap(self, options: int) -> bool:
        if self._process.returncode is None:
            pid, status, usage = os.wait4(self._process.pid, options)
            if pid == 0:
                return False
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_s = usage.ru_utime + usage.ru_stime
        return True

    def _kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._reap(0)
        if self._process.stderr is not None:
            self._process.stderr.close()


def _spawn(command: list[str], descriptors: list[int], prepare: Callable[[], None]) -> "subprocess.Popen[bytes]":
    parent = os.getpid()

    def begin() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # our parent died before the call
            os._exit(1)
        prepare()

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=descriptors,
        start_new_session=True,  # Ctrl-C at the terminal is for the process that started QEMU
        preexec_fn=begin,
    )
