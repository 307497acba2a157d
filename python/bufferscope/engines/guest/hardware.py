"""The virtual machine: its devices and its time.

The machine's time is the number of instructions that it has executed, one nanosecond each. When it is idle, time jumps
to its next timer. Neither depends on the host's clock, so the same start gives the same run.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from bufferscope.base.programs import packages
from bufferscope.engines.guest import cards
from bufferscope.engines.guest.cards import Pair
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.image import Image

PROGRAM = "qemu-system-x86_64"
REQUEST_NAME = "opt/bufferscope/request"
"""The name under which the guest finds its request (`/sys/firmware/qemu_fw_cfg/by_name/...`)."""
REQUEST_BYTES = 1 << 20
"""The size of a request. It is part of the saved state, so every request is padded to it."""
PORT_NAME = "bufferscope.frames"
"""The virtio port on which the guest writes its frames."""
OUTPUT_NAME = "bufferscope.output"
"""The ports on which a user's program writes if it has no terminal."""
ERRORS_NAME = "bufferscope.errors"
_STATE_FORMAT = 2
"""Must be changed whenever the same machine would be saved in a different form."""
_MEMORY_MIB = 512
"""Enough for the kernel, the agent and the records of an hour of samples; untouched pages cost nothing."""

_KERNEL_ARGUMENTS = (
    "console=ttyS0",
    "quiet",
    "panic=-1",  # restart at once; with `-no-reboot`, QEMU ends instead
    "nokaslr",
    "random.trust_cpu=off",
    "tsc=reliable",  # the machine has only one clock; a watchdog for it would only cost instructions
    "mitigations=off",  # nothing here is secret, and each mitigation costs virtual time
    # Without cx16: QEMU 7.2 may leave wrong flags after `cmpxchg16b`, which the kernel's allocator uses. If an
    # interrupt follows, its return fails (a double fault). Programs still see cx16, which is part of x86-64-v2.
    "clearcpuid=141",
    "audit=0",
    # Features that a machine for a single run does not need; together they cost a fifth of a run's time.
    "init_on_alloc=0",  # nothing here is secret
    "psi=0",
    "lsm=",  # no security modules
    "nowatchdog",
    "cgroup_disable=memory",
)


@dataclass(frozen=True)
class Qemu:
    """The emulator on this machine."""

    path: Path
    version: str
    """First line of `qemu-system-x86_64 --version`."""

    @property
    def number(self) -> tuple[int, ...]:
        """`(7, 2, 22)`; empty if the version has no number."""
        found = re.search(r"version (\d+(?:\.\d+)*)", self.version)
        return tuple(int(part) for part in found[1].split(".")) if found else ()


@dataclass(frozen=True)
class Streams:
    """Open file descriptors for a user's program."""

    output: int
    errors: int
    """These two receive the program's standard output and standard error if it has no terminal."""
    terminal: int | None
    """One end of a socket pair for the program's terminal."""

    def all(self) -> list[int]:
        """Every descriptor to pass on."""
        return [self.output, self.errors, *([] if self.terminal is None else [self.terminal])]


@dataclass(frozen=True)
class Channels:
    """Open file descriptors that QEMU inherits; none of the files needs a name."""

    request: int
    """Holds the padded request."""
    frames: int
    """Receives the guest's frames."""
    console: int
    """Receives the guest's console."""
    control: int | None = None
    """One end of a socket pair for QMP. QMP's thread would wake whenever the guest becomes idle, so runs have none."""
    state: int | None = None
    """A saved state to start from."""
    streams: Streams | None = None
    """The descriptors for a user's program, for a furnished image."""

    def all(self) -> list[int]:
        """Every descriptor to pass on."""
        optional = [descriptor for descriptor in (self.control, self.state) if descriptor is not None]
        return [self.request, self.frames, self.console, *optional, *(self.streams.all() if self.streams else ())]


def find_qemu() -> Qemu:
    """The emulator: `$BUFFERSCOPE_QEMU`, or `qemu-system-x86_64` in PATH."""
    named = os.environ.get("BUFFERSCOPE_QEMU", PROGRAM)
    path = shutil.which(named)
    if path is None:
        (package,) = packages([PROGRAM])
        raise GuestError(f"{named} not found, and the guest engine needs it: apt-get install {package}")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GuestError(f"{path} --version: {done.stderr.strip()}")
    version = done.stdout.partition("\n")[0].strip()
    if not version:
        raise GuestError(f"{path} --version: found nothing; expected QEMU's version")
    return Qemu(Path(path), version)


def boot(qemu: Qemu, image: Image, channels: Channels, pairs: Sequence[Pair] = ()) -> list[str]:
    """The command line that boots the image."""
    return [str(qemu.path), *_time("shift=0,sleep=off"), *_devices(image, pairs), *_connections(channels)]


def restore(qemu: Qemu, image: Image, channels: Channels, pairs: Sequence[Pair] = ()) -> list[str]:
    """The command line that continues from a saved state.

    `rr=record` makes idle time exact. QEMU's main loop makes time jump when the processor is halted. Without the
    recorder, it may do so while the processor is still entering the halt and some instructions are not yet counted. The
    recording itself is not needed.
    """
    return _resume(qemu, image, channels, pairs, "shift=0,sleep=off,rr=record,rrfile=/dev/null")


def attend(qemu: Qemu, image: Image, channels: Channels, pairs: Sequence[Pair] = ()) -> list[str]:
    """The command line that continues from a saved state for a user at the machine's terminal.

    While the machine is idle, its time passes in real time, so that it waits for input.
    """
    return _resume(qemu, image, channels, pairs, "shift=0,sleep=on")


def fingerprint(qemu: Qemu, image: Image, pairs: Sequence[Pair] = ()) -> str:
    """A hash of everything that a saved state depends on. The part after the hyphen is for the network cards."""
    parts = [
        qemu.version,
        image.id,
        *_time("shift=0,sleep=off"),
        *_devices(image, ()),
        str(REQUEST_BYTES),
        str(_STATE_FORMAT),
    ]
    alone = _hash(parts)
    return f"{alone}-{_hash(_devices(image, cards.untimed(pairs)))}" if pairs else alone


def _resume(qemu: Qemu, image: Image, channels: Channels, pairs: Sequence[Pair], icount: str) -> list[str]:
    devices = [*_devices(image, pairs), *cards.NO_ANNOUNCEMENT]
    connections = [*_connections(channels), "-incoming", f"fd:{channels.state}"]
    return [str(qemu.path), *_time(icount), *devices, *connections]


def _hash(parts: Iterable[str]) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:16]


def _time(icount: str) -> list[str]:
    return [
        *("-accel", "tcg,thread=single", "-icount", icount),
        # x86-64-v2, enough for distributions' binaries; no newer state to save and restore, and no random numbers.
        *("-cpu", "Nehalem", "-smp", "1", "-seed", "1"),
        *("-rtc", "base=2020-01-01,clock=vm"),
    ]


def _devices(image: Image, pairs: Sequence[Pair]) -> list[str]:
    return [
        *("-machine", "pc,usb=off,vmport=off,graphics=off,hpet=off", "-m", str(_MEMORY_MIB)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        # The guest stops itself at an exact instruction by writing to this device.
        *("-device", "pvpanic", "-action", "panic=pause"),
        # Without ioeventfd a write takes effect at once, not later in another thread.
        *("-device", f"virtio-serial-pci,ioeventfd=off,max_ports={5 if image.furnished else 2}"),
        *cards.arguments(pairs),
        *("-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", " ".join(_KERNEL_ARGUMENTS)),
    ]


def _connections(channels: Channels) -> Iterable[str]:
    return [
        *("-chardev", f"file,id=frames,path={_inherited(channels.frames)}"),
        *("-device", f"virtserialport,chardev=frames,name={PORT_NAME}"),
        *_streams(channels.streams),
        *("-chardev", f"file,id=console,path={_inherited(channels.console)}", "-serial", "chardev:console"),
        *_control(channels.control),
        *("-fw_cfg", f"name={REQUEST_NAME},file={_inherited(channels.request)}"),
    ]


def _control(descriptor: int | None) -> Iterable[str]:
    if descriptor is None:
        return []
    return ["-chardev", f"socket,id=control,fd={descriptor}", "-mon", "chardev=control,mode=control"]


def _streams(streams: Streams | None) -> list[str]:
    if streams is None:
        return []
    terminal = "null,id=terminal" if streams.terminal is None else f"socket,id=terminal,fd={streams.terminal}"
    return [
        *("-chardev", terminal, "-device", "virtconsole,chardev=terminal"),
        *("-chardev", f"file,id=output,path={_inherited(streams.output)}"),
        *("-device", f"virtserialport,chardev=output,name={OUTPUT_NAME}"),
        *("-chardev", f"file,id=errors,path={_inherited(streams.errors)}"),
        *("-device", f"virtserialport,chardev=errors,name={ERRORS_NAME}"),
    ]


def _inherited(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"
