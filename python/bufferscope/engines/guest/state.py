"""The saved state of a booted guest, made once for an image and restored for every run.

The guest stops itself at the instruction at which it is ready, so all states of one image are the same. A run gives the
same records from a state that was saved on another day or another machine.
"""

import math
import re
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bufferscope.engines.guest import cache, cache_gc, hardware, processor
from bufferscope.engines.guest.cards import Pair
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.hardware import Channels, Qemu
from bufferscope.engines.guest.image import Image
from bufferscope.engines.guest.process import Process
from bufferscope.engines.guest.qmp import Qmp

Command = Callable[[Channels], list[str]]

_CONTROL_TIMEOUT_S = 60
_BOOT_TIMEOUT_S = 300
_MOST_BOOTS = 12
_SAVE_TIMEOUT_S = 120
_POLL_S = 0.02

_CLOCK = re.compile(rb"\x0ctimer/icount\x00\x00\x00\x01(.{16})", re.DOTALL)
"""The subsection of the migration stream that holds virtual time: its name, version 1, then the clock's offset in
nanoseconds and the number of instructions executed."""
_RUN_STATE = re.compile(rb"\x0bglobalstate\x00\x00\x00\x00\x00\x00\x00\x01(.{4}(?=[a-z-]{1,99}\x00).{100})", re.DOTALL)
"""The section that says whether the machine was running: name, instance 0, version 1, a length, 100 bytes of text."""
_RUNNING = struct.pack(">I100s", len("running") + 1, b"running")


def saved_state(
    qemu: Qemu, image: Image, note: Callable[[str], None] = lambda _: None, *, pairs: Sequence[Pair] = ()
) -> Path:
    """The saved state of a machine with these pairs of network cards, as a file; boots the image if it does not exist.

    `note` is called if this takes a moment.
    """
    key = hardware.fingerprint(qemu, image, pairs)
    path = cache.directory("states") / key
    with cache.lock(f"state-{key}"):
        if not path.exists():
            note(f"starting Linux {image.release} once; later runs go on from here")
            _save(lambda channels: hardware.boot(qemu, image, channels, pairs), path, furnished=image.furnished)
            cache_gc.prune_beyond()
    cache.used(path)
    return path


def _save(command: Command, path: Path, *, furnished: bool) -> None:
    with tempfile.NamedTemporaryFile(prefix=".partial-", dir=path.parent) as partial:
        partial.write(going_on(with_fresh_instruction_count(_exact_state(command, furnished))))
        partial.flush()
        path.hardlink_to(partial.name)


def _exact_state(command: Command, furnished: bool) -> bytes:
    """Boot until two boots have stopped at the same virtual time; returns the state of the second one.

    When the machine stops, QEMU may or may not let time jump to the next timer before it notices the stop. That jump
    always has the same length, so two boots soon agree. If a guest sleeps while it boots, its boots may never agree:
    their states differ by nanoseconds. Any of them will do, and the one with the shortest jumps is returned.
    """
    seen: set[tuple[int, int]] = set()
    best, best_ns = b"", math.inf
    for _ in range(_MOST_BOOTS):
        state = _boot(command, furnished)
        stopped = stopped_at(state)
        if stopped in seen:
            return state
        seen.add(stopped)
        if stopped[0] < best_ns:
            best, best_ns = state, stopped[0]
    return best


def _boot(command: Command, furnished: bool) -> bytes:
    ours, theirs = socket.socketpair()
    with (
        tempfile.TemporaryFile() as state,
        ours,
        theirs,
        processor.taken() as number,  # with its threads taking turns there, QEMU nearly always stops in the same way
        Process(b"", command, control=theirs, furnished=furnished, prepare=lambda: processor.settle(number)) as process,
        process.explained(),
    ):
        theirs.close()  # so that the connection ends when QEMU does
        qmp = Qmp(ours)
        qmp.negotiate(_CONTROL_TIMEOUT_S)
        qmp.wait_for("STOP", timeout_s=_BOOT_TIMEOUT_S)
        qmp.execute("getfd", {"fdname": "state"}, descriptor=state.fileno())
        qmp.execute("migrate", {"uri": "fd:state"})
        _await_saved(process, qmp)
        state.seek(0)
        return state.read()


def _await_saved(process: Process, qmp: Qmp) -> None:
    until = time.monotonic() + _SAVE_TIMEOUT_S
    while (status := qmp.execute("query-migrate").get("status")) != "completed":
        if status == "failed" or time.monotonic() > until:
            raise GuestError(f"QEMU could not save the guest's state ({status}): {process.explanation()}")
        time.sleep(_POLL_S)


def with_fresh_instruction_count(stream: bytes) -> bytes:
    """The state with its instruction count moved to the clock's offset: the count becomes zero, the time stays.

    QEMU's recorder counts instructions from its own start. It stores the difference from the state's count in 32 bits,
    and the instructions of a boot would overflow that.
    """
    clock = _clock(stream)
    offset_ns, instructions = stopped_at(stream)
    return stream[: clock.start(1)] + struct.pack(">qq", offset_ns + instructions, 0) + stream[clock.end(1) :]


def going_on(stream: bytes) -> bytes:
    """The state changed to that of a running machine, so that the machine continues by itself once it is restored.

    So a run needs no control connection. QEMU's thread for it would wake whenever the guest becomes idle.
    """
    found = _the_one(_RUN_STATE, stream, "what the machine was doing")
    return stream[: found.start(1)] + _RUNNING + stream[found.end(1) :]


def stopped_at(stream: bytes) -> tuple[int, int]:
    """When a booted (not restored) guest stopped: the nanoseconds of time jumps, and the instructions executed."""
    offset_ns, instructions = struct.unpack(">qq", _clock(stream)[1])
    return offset_ns, instructions


def _clock(stream: bytes) -> re.Match[bytes]:
    return _the_one(_CLOCK, stream, "virtual time")


def _the_one(pattern: re.Pattern[bytes], stream: bytes, what: str) -> re.Match[bytes]:
    found = list(pattern.finditer(stream))
    if len(found) != 1:
        raise GuestError(
            f"this QEMU saves {what} in an unknown form (found {len(found)} times): "
            "use QEMU 7.2 or later, or set BUFFERSCOPE_QEMU"
        )
    return found[0]
