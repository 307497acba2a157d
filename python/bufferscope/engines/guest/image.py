"""A guest's image: a kernel and an initial RAM file system with the agent as its first process.

Images are cached under a hash of everything that goes into them, so the same image is never built twice.
"""

import json
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from bufferscope.engines.guest import cache, extra_modules
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.initramfs import Initramfs
from bufferscope.engines.guest.kernels import Kernel
from bufferscope.engines.guest.modules import Selection, select
from bufferscope.engines.guest.programs import add_programs, shared_libraries

FORMAT = 1
"""Must be changed whenever the same inputs would give a different image."""

_MOUNT_POINTS = ("/dev", "/proc", "/run", "/sys", "/tmp")
"""Directories that the agent needs when it starts (`crates/agent/src/init`)."""
_MODULES = "/lib/guest-modules"


@dataclass(frozen=True)
class Image:
    """A built image."""

    id: str
    """Hash of its content."""
    directory: Path
    release: str
    """As `uname -r` prints it in the guest."""
    missing: tuple[str, ...]
    """Wanted kernel modules that this kernel lacks, e.g. `sch_dualpi2`."""
    furnished: bool = False
    """Whether it is for a user's programs: it contains their tools, and the machine has a terminal."""

    @property
    def kernel(self) -> Path:
        """The bootable kernel."""
        return self.directory / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """The initial RAM file system."""
        return self.directory / "initrd"


def build(
    kernel: Kernel,
    agent: Path,
    note: Callable[[str], None] = lambda _: None,
    *,
    furnish: Callable[[Initramfs], None] | None = None,
) -> Image:
    """The image of `kernel` with `agent` as its first process; `note` is called before slow steps.

    `furnish` adds what a user's programs need.
    """
    root = _programs(agent)
    if furnish:
        furnish(root)
    directory = cache.root() / "images" / _identity(kernel, root)
    with cache.lock(f"image-{directory.name}"):
        if not directory.exists():
            note(f"building a guest with Linux {kernel.release}")
            _write(directory, kernel, root, furnished=furnish is not None)
    cache.used(directory)
    return load(directory)


def identities(among: Iterable[Kernel], agent: Path) -> set[str]:
    """The ids of the images that `build` would give for these kernels, without a user's programs."""
    root = _programs(agent)
    return {_identity(kernel, root) for kernel in among}


def load(directory: Path) -> Image:
    """A built image."""
    facts = json.loads((directory / "image.json").read_text())
    return Image(directory.name, directory, facts["release"], tuple(facts["missing"]), facts.get("furnished", False))


def built() -> list[Image]:
    """All images in the cache."""
    return [load(path.parent) for path in sorted(cache.directory("images").glob("[!.]*/image.json"))]


def for_runs() -> list[Image]:
    """The cached images that experiments run in; the others contain programs for a console."""
    return [each for each in built() if not each.furnished]


def _programs(agent: Path) -> Initramfs:
    """The files that every guest has, whatever its kernel."""
    if platform.machine() != "x86_64":
        raise GuestError(
            f"the guest borrows this machine's ip and tc, which must be x86-64 programs; this is {platform.machine()}"
        )
    root = Initramfs()
    for path in _MOUNT_POINTS:
        root.directory(path)
    _add_agent(root, agent)
    add_programs(root)
    return root


def _identity(kernel: Kernel, root: Initramfs) -> str:
    identity = kernel.identity()
    extra = "".join(f"{sha256(module).hexdigest()}\n" for module in extra_modules.built(identity).values())
    return sha256(f"{FORMAT}\n{identity}\n{extra}".encode() + root.archive()).hexdigest()[:16]


def _add_agent(root: Initramfs, agent: Path) -> None:
    root.file("/init", agent.read_bytes(), executable=True)
    for library in shared_libraries(str(agent)):
        root.file(library, Path(library).read_bytes(), executable=True)


def _write(directory: Path, kernel: Kernel, root: Initramfs, *, furnished: bool) -> None:
    selection = select(kernel.files, kernel.release, extra_modules.of(kernel))
    _add_modules(root, selection)
    with cache.new_directory(directory) as partial:
        (partial / "vmlinuz").write_bytes(kernel.image())
        (partial / "initrd").write_bytes(root.archive())
        facts = {
            "format": FORMAT,
            "release": kernel.release,
            "origin": kernel.origin,
            "modules": [module.name for module in selection.modules],
            "builtin": selection.builtin,
            "missing": selection.missing,
            "furnished": furnished,
        }
        (partial / "image.json").write_text(json.dumps(facts, indent=2) + "\n")


def _add_modules(root: Initramfs, selection: Selection) -> None:
    for module in selection.modules:
        root.file(f"{_MODULES}/{module.name}.ko", module.content)
    names = "".join(f"{module.name}\n" for module in selection.modules)
    root.file(f"{_MODULES}/order", names.encode())
