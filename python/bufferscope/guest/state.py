"""The saved state of a booted guest, made once for an image and restored for every run.

The guest stops itself at the instruction at which it is ready, so all states of one image are the same one: a run gives
the same records from a state saved on another day or another machine.
"""

import re
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from . import cache, machine
from .errors import GuestError
from .image import Image
from .machine import Qemu
from .process import Process

_BOOT_TIMEOUT_S = 300
_MOST_BOOTS = 12
_SAVE_TIMEOUT_S = 120
_POLL_S = 0.02

_CLOCK = re.compile(rb"\x0ctimer/icount\x00\x00\x00\x01(.{16})", re.DOTALL)
"""The migration stream's subsection of virtual time: its name, version 1, then the clock's offset in nanoseconds and
the number of instructions executed."""


def saved_state(qemu: Qemu, image: Image, note: Callable[[str], None] = lambda _: None) -> Path:
    """The file to restore from; boots the image if there is none yet. `note` hears that this takes a moment."""
    key = machine.fingerprint(qemu, image)
    path = cache.directory("states") / key
    with cache.lock(f"state-{key}"):
        if not path.exists():
            note(f"starting Linux {image.release} once; later runs go on from here")
            _save(qemu, image, path)
    return path


def _save(qemu: Qemu, image: Image, path: Path) -> None:
    with tempfile.NamedTemporaryFile(prefix=".partial-", dir=path.parent) as partial:
        partial.write(with_fresh_instruction_count(_exact_state(qemu, image)))
        partial.flush()
        path.hardlink_to(partial.name)


def _exact_state(qemu: Qemu, image: Image) -> bytes:
    """The state of a boot in which time never jumped, if there is one among a few.

    Before the machine has come to its stop, QEMU may or may not let time jump to the next timer. A guest that does not
    sleep while it boots gives the one state without a jump every other time. If it does sleep, its states differ by
    nanoseconds; the one with the shortest jumps is as good as any.
    """
    best: bytes | None = None
    for _ in range(_MOST_BOOTS):
        state = _boot(qemu, image)
        if best is None or jumped_ns(state) < jumped_ns(best):
            best = state
        if jumped_ns(best) == 0:
            break
    assert best is not None
    return best


def _boot(qemu: Qemu, image: Image) -> bytes:
    with (
        tempfile.TemporaryFile() as state,
        Process(b"", lambda channels: machine.boot(qemu, image, channels)) as process,
        process.explained(),
    ):
        process.qmp.wait_for("STOP", timeout_s=_BOOT_TIMEOUT_S)
        process.send_descriptor("state", state.fileno())
        process.qmp.execute("migrate", {"uri": "fd:state"})
        _await_saved(process)
        state.seek(0)
        return state.read()


def _await_saved(process: Process) -> None:
    until = time.monotonic() + _SAVE_TIMEOUT_S
    while (status := process.qmp.execute("query-migrate").get("status")) != "completed":
        if status == "failed" or time.monotonic() > until:
            raise GuestError(f"QEMU could not save the guest's state ({status}): {process.explanation()}")
        time.sleep(_POLL_S)


def with_fresh_instruction_count(stream: bytes) -> bytes:
    """The state with its instruction count set to zero and its clock's offset set forward by as much.

    Time stays what it was. QEMU's recorder counts instructions from its own start, and holds the difference to the
    count of the state in 32 bits, which booting fills.
    """
    clock = _clock(stream)
    offset_ns, instructions = struct.unpack(">qq", clock[1])
    return stream[: clock.start(1)] + struct.pack(">qq", offset_ns + instructions, 0) + stream[clock.end(1) :]


def jumped_ns(stream: bytes) -> int:
    """How far time jumped in all while a guest that was booted, and not restored, had nothing to do."""
    offset_ns: int = struct.unpack(">qq", _clock(stream)[1])[0]
    return offset_ns


def _clock(stream: bytes) -> re.Match[bytes]:
    found = list(_CLOCK.finditer(stream))
    if len(found) != 1:
        raise GuestError(
            f"this QEMU saves virtual time in another form than the known one ({len(found)} clocks found): "
            "use QEMU 7.2 or later, or set BUFFERSCOPE_QEMU"
        )
    return found[0]
