"""A terminal in which a program runs; a test types into it and reads from it."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_PATIENCE_S = 60
ROWS, COLUMNS = 33, 77


class Terminal:
    """Runs a program as the leader of a session with a terminal of its own; hangs up at the end."""

    def __init__(self, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        self._command, self._directory, self._environment = command, directory, environment
        self._seen = ""

    def __enter__(self) -> Self:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(self._directory)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # not as it is below nohup
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.execvpe(self._command[0], list(self._command), {**os.environ, **self._environment})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)
        until = time.monotonic() + _PATIENCE_S
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            assert time.monotonic() < until, "the program outlives its terminal"
            time.sleep(0.02)

    def send(self, text: str) -> None:
        """Type."""
        os.write(self.descriptor, text.encode())

    def expect(self, text: str) -> str:
        """Read until `text` appears; gives what came before it."""
        until = time.monotonic() + _PATIENCE_S
        while text not in self._seen:
            assert self._read(until - time.monotonic()), f"{text!r} expected, seen: {self._seen!r}"
        before, _, self._seen = self._seen.partition(text)
        return before

    def ask(self, command: str) -> list[str]:
        """Type a command to a shell with the prompt `$> `; gives the lines it prints."""
        self.send(f"{command}\n")
        self.expect(f"{command}\r\n")
        return self.expect("$> ").splitlines()

    def wait_for_silence(self, seconds: float = 0.5) -> None:
        """Read until nothing has arrived for this long."""
        while self._read(seconds):
            pass

    def resize(self, rows: int, columns: int) -> None:
        """Change the window's size."""
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self, seconds: float) -> bool:
        if not select.select([self.descriptor], [], [], max(0, seconds))[0]:
            return False
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:  # Linux' way to tell that the other side has closed
            return False
        self._seen += data.decode(errors="replace")
        return bool(data)
