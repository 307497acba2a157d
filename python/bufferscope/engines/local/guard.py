"""A process that undoes a change unless it is confirmed: `python -m bufferscope.engines.local.guard FILE DESCRIPTOR`.

It has a session of its own, so it survives the loss of the terminal, and it needs no network. It reads from a pipe
whose other end the process that makes the change holds: if that process ends in any way, even by `kill -9`, the pipe
closes, and the change is undone. It is also undone when time runs out, which counts while the machine sleeps, and when
the guard is asked to end.
"""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from bufferscope.base.errors import EngineError, InputError

MEASURING_S = 900.0
"""The longest time of a measurement after a change."""
CONFIRMING_S = 60.0
"""The time to confirm that the change is to be kept."""
READY, ASKED, KEPT = b"r", b"a", b"k"
"""What is written to the pipes: by the guard, that it is ready; to it, that the user is asked, and that it is kept."""
_STARTING_S = 20.0
_STEP_S = 1.0


class Guard:
    """A guard, as the process that makes a change sees it."""

    def __init__(self, file: Path) -> None:
        """Start it, and wait until it is ready. Raises `EngineError`."""
        ours, self._pipe = os.pipe()
        ready, theirs = os.pipe()
        words = [sys.executable, "-m", __name__, str(file), str(ours), str(theirs)]
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(ours, theirs),
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            os.close(self._pipe)
            raise EngineError(f"cannot start the process that undoes the change: {error.strerror}") from None
        finally:
            os.close(ours)
            os.close(theirs)
        readable, _, _ = select.select([ready], [], [], _STARTING_S)
        is_ready = bool(readable) and os.read(ready, 1) == READY
        os.close(ready)
        if not is_ready:
            os.close(self._pipe)
            raise EngineError("the process that undoes the change did not start; nothing was changed")

    def ask(self) -> None:
        """From now on, there is a minute to confirm."""
        self._say(ASKED)

    def keep(self) -> None:
        """The change is confirmed: the guard ends."""
        self._say(KEPT)
        self.close()

    def close(self) -> None:
        """Let it undo the change, if that is neither confirmed nor undone yet, and wait for its end."""
        os.close(self._pipe)
        self.process.wait()

    def _say(self, word: bytes) -> None:
        try:
            os.write(self._pipe, word)
        except BrokenPipeError:
            raise EngineError("the change was undone meanwhile") from None


def main(file: Path, pipe: int, ready: int) -> int:
    """Watch over a change; the exit status is 1 if it could not be undone."""
    from bufferscope.engines.local.changing import undo

    stop = [False]

    def end(_number: int, _frame: FrameType | None) -> None:
        stop[0] = True

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    os.write(ready, READY)
    os.close(ready)
    if _is_confirmed(pipe, stop):
        return 0
    from bufferscope.engines.local import saved

    try:
        state = saved.read(file)
        if state is not None and state["status"] != "kept":
            undo(file, force=True)
    except (EngineError, InputError, OSError) as error:
        file.with_suffix(".failed").write_text(f"{error}\n", encoding="utf-8")
        return 1
    return 0


def _is_confirmed(pipe: int, stop: list[bool]) -> bool:
    """Wait until the change is confirmed (True), or is to be undone."""
    deadline = _now() + MEASURING_S
    while not stop[0] and (left := deadline - _now()) > 0:
        readable, _, _ = select.select([pipe], [], [], min(left, _STEP_S))
        if not readable:
            continue
        word = os.read(pipe, 1)
        if word == KEPT:
            return True
        if word != ASKED:
            return False
        deadline = _now() + CONFIRMING_S
    return False


def _now() -> float:
    """Seconds that also count while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
