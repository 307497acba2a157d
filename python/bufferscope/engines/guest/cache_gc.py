"""The built guests in the cache: how much space they take, and which are no longer needed.

An image is made for one kernel, one agent and this machine's `ip` and `tc`; a saved state for one image and one
emulator. So each new agent, kernel package or QEMU leaves the images and states of its predecessor unused. If a needed
one is removed by mistake, the next run rebuilds it.
"""

import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bufferscope.engines.guest import cache, hardware, image, kernels
from bufferscope.engines.guest.errors import GuestError

MOST_BYTES = 4 << 30
"""The space for images and states, about thirty guests; the least recently used ones beyond it are removed."""
REST_S = 3600.0
"""An entry used within this time may still be in use."""

Kind = Literal["image", "state", "rest"]


@dataclass(frozen=True)
class CacheEntry:
    """One image, one state, or the remains of an interrupted build."""

    kind: Kind
    path: Path
    release: str | None
    """The kernel's release, if known: a state without its image does not tell."""
    size_bytes: int
    used_s: float
    """When it was last used, in seconds since 1970."""


def kept() -> list[CacheEntry]:
    """Everything that was built, most recently used first; without kernel packages, which were fetched or given."""
    images = {built.directory: built.release for built in image.built()}
    of_state = _states(images)
    found = []
    for path in [*cache.directory("images").iterdir(), *cache.directory("states").iterdir()]:
        if path.name.startswith("."):
            found.append(_look("rest", path, None))
        elif path in images:
            found.append(_look("image", path, images[path]))
        elif path.parent.name == "states":
            found.append(_look("state", path, of_state.get(_machine(path))))
    return sorted((each for each in found if each is not None), key=lambda each: -each.used_s)


def needed(agent: Path) -> set[Path]:
    """The images and states that runs of this installation would use with any kernel on this machine."""
    identities = image.identities(kernels.at_hand(), agent)
    images = {built.directory: built.release for built in image.built() if built.id in identities}
    machines = _states(images)
    return {*images, *(path for path in cache.directory("states").iterdir() if _machine(path) in machines)}


def prune(agent: Path) -> list[CacheEntry]:
    """Remove what no run of this installation needs; returns what was removed."""
    keep = needed(agent)
    return _remove(each for each in kept() if each.path not in keep and (each.kind != "rest" or _rests(each)))


def prune_beyond(most_bytes: int = MOST_BYTES) -> list[CacheEntry]:
    """Remove the least recently used entries until the others fit; keep those that were used within the last hour."""
    total = 0
    superfluous = []
    for each in kept():
        total += each.size_bytes
        if _rests(each) and (total > most_bytes or each.kind == "rest"):
            superfluous.append(each)
    return _remove(superfluous)


def _states(images: dict[Path, str]) -> dict[str, str]:
    """The release of each guest that this machine's QEMU can run; keys are the prefixes of their states' names."""
    try:
        qemu = hardware.find_qemu()
    except GuestError:
        return {}
    return {hardware.fingerprint(qemu, image.load(path)): release for path, release in images.items()}


def _machine(state: Path) -> str:
    """The part of a state's name that states of the same machine with other network cards share."""
    return state.name.partition("-")[0]


def _look(kind: Kind, path: Path, release: str | None) -> CacheEntry | None:
    try:
        files = [path, *path.rglob("*")] if path.is_dir() else [path]
        size_bytes = sum(file.stat().st_blocks * 512 for file in files)
        return CacheEntry(kind, path, release, size_bytes, path.stat().st_mtime)
    except FileNotFoundError:  # another process has removed it meanwhile
        return None


def _rests(each: CacheEntry) -> bool:
    return time.time() - each.used_s > REST_S


def _remove(superfluous: Iterable[CacheEntry]) -> list[CacheEntry]:
    return [each for each in superfluous if _removed(each.path)]


def _removed(path: Path) -> bool:
    """Move an entry out of sight in one step, then delete it; returns whether it was there."""
    hidden = Path(tempfile.mkdtemp(prefix=".partial-", dir=path.parent))
    try:
        path.rename(hidden / path.name)
    except FileNotFoundError:
        return False
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return True
