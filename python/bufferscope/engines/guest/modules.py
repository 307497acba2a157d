"""Kernel modules: which are wanted, what they depend on, and the order in which to load them.

A kernel package has no `modules.dep` (depmod writes it when the package is installed), so dependencies are read where
depmod reads them: from each module's `.modinfo` section.
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bufferscope._core import QDISCS
from bufferscope.engines.guest.compression import decompressed, without_suffix
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.files import Files

REQUIRED = (
    *("virtio_pci", "virtio_console", "qemu_fw_cfg"),
    *("veth", "sch_netem", "sch_hfsc", "sch_htb", "inet_diag", "tcp_diag"),
)
"""Modules that every guest must have: for the channels of request and records, and for the network."""

WANTED = (
    *(kind.module for kind in QDISCS.values() if kind.is_loadable and kind.module not in REQUIRED),
    *(f"sch_{name}" for name in ("drr", "ets", "qfq", "sfb", "ingress")),
    *("cls_u32", "cls_fw", "cls_flower", "cls_matchall", "act_mirred", "ifb", "dummy", "tun", "bridge"),
    *(f"tcp_{name}" for name in ("cubic", "bbr", "vegas", "westwood", "illinois", "htcp", "hybla", "bic", "yeah")),
    *(f"tcp_{name}" for name in ("veno", "scalable", "highspeed", "lp", "nv", "cdg", "dctcp")),
    *("udp_diag", "raw_diag", "virtio_net"),
)
"""Loaded, too, if the kernel has them; an experiment that needs a missing one is refused by name."""


_DEEPEST = 100
"""The longest chain of modules in which each needs the next; in kernels, chains have about ten modules."""


@dataclass(frozen=True)
class Module:
    """One module in the guest: its name and its uncompressed object file."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Selection:
    """The modules of an image, each after those it needs."""

    modules: tuple[Module, ...]
    builtin: tuple[str, ...]
    """Modules of `WANTED` that are compiled into the kernel."""
    missing: tuple[str, ...]
    """Modules of `WANTED` that this kernel does not have."""


def select(files: Files, release: str, extra: Mapping[str, bytes] | None = None) -> Selection:
    """The modules of kernel `release` that a guest loads; raises `GuestError` if required ones are missing.

    `extra` are modules for this kernel that it does not come with, by name.
    """
    tree = _Tree(files, release, extra or {})
    order: dict[str, Module] = {}
    missing = [name for name in (*REQUIRED, *WANTED) if not tree.has(name)]
    if fatal := [name for name in missing if name in REQUIRED]:
        raise GuestError(f"kernel {release} has no {', '.join(fatal)}: choose another with --kernel or --deb")
    for name in (*REQUIRED, *WANTED):
        if name in tree.paths or name in tree.extra:
            tree.visit(name, order)
    builtin = tuple(name for name in (*REQUIRED, *WANTED) if name in tree.builtin)
    return Selection(tuple(order.values()), builtin, tuple(missing))


class _Tree:
    def __init__(self, files: Files, release: str, extra: Mapping[str, bytes]) -> None:
        self._files = files
        self.extra = extra
        top = f"lib/modules/{release}/"
        names = [name for name in files.names() if name.startswith(top)]
        # Modules in `updates` and `weak-updates` replace those in `kernel`; a package has only `kernel`.
        self.paths = {_module_name(name): name for name in names if without_suffix(name).endswith(".ko")}
        listed = f"{top}modules.builtin"
        text = files.read(listed).decode(errors="replace") if listed in names else ""
        self.builtin = {_module_name(line) for line in text.split()}
        self._under_way: set[str] = set()
        if not self.paths:
            raise GuestError(f"no modules of kernel {release}: {top} is missing")

    def has(self, name: str) -> bool:
        return name in self.paths or name in self.builtin or name in self.extra

    def visit(self, name: str, order: dict[str, Module]) -> None:
        """Append `name` to `order` after everything it depends on."""
        if name in order or name in self.builtin:
            return
        path = self.paths.get(name)
        if path is None and name in self.extra:
            path = f"{name}.ko"
        if path is None:
            raise GuestError(f"a wanted module depends on {name}, which this kernel does not have")
        if name in self._under_way:
            raise GuestError(f"{path} depends on itself through other modules")
        if len(self._under_way) == _DEEPEST:
            raise GuestError(f"{path} is needed by a chain of more than {_DEEPEST} modules")
        self._under_way.add(name)
        content = self.extra[name] if name not in self.paths else decompressed(path, self._files.read(path))
        for needed in dependencies(content, path):
            self.visit(needed, order)
        self._under_way.remove(name)
        order[name] = Module(name, content)


def dependencies(content: bytes, path: str) -> list[str]:
    """Names of the modules that the object file `content` needs, including soft dependencies (`softdep=pre:`)."""
    needed: list[str] = []
    for entry in _modinfo(content, path):
        key, _, value = entry.partition("=")
        if key == "depends":
            needed += value.split(",")
        elif key == "softdep":
            needed += _soft_dependencies(value)
    return [_module_name(name) for name in needed if name]


def comes_with(files: Files, release: str, name: str) -> bool:
    """Whether kernel `release` has this module without an extra one."""
    return _Tree(files, release, {}).has(name)


def version_magic(content: bytes, path: str) -> str:
    """The kernel for which a module is compiled, and how; the kernel refuses a module with another one."""
    entries = (entry.partition("=") for entry in _modinfo(content, path))
    return next((value for key, _, value in entries if key == "vermagic"), "")


def usual_magic(files: Files, release: str) -> str:
    """The version magic of the modules that kernel `release` comes with."""
    tree = _Tree(files, release, {})
    path = tree.paths[min(tree.paths)]
    return version_magic(decompressed(path, files.read(path)), path)


def _soft_dependencies(value: str) -> Iterable[str]:
    before = False
    for word in value.split():
        if word.endswith(":"):
            before = word == "pre:"
        elif before:
            yield word


def _modinfo(content: bytes, path: str) -> list[str]:
    """The NUL-separated `key=value` strings of the ELF section `.modinfo`."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file = ELFFile(io.BytesIO(content))
        section = file.get_section_by_name(".modinfo")
    except (ELFError, OverflowError) as error:
        raise GuestError(f"{path} is not a kernel module: {error}") from error
    if section is None:
        return []
    start = section["sh_offset"]
    # Not `section.data()`, which trusts the size in the header, even in a damaged one.
    entries = content[start : start + section["sh_size"]].split(b"\0")
    return [entry.decode(errors="replace") for entry in entries if entry]


def _module_name(path: str) -> str:
    stem = without_suffix(path.rsplit("/", 1)[-1]).removesuffix(".ko")
    return stem.replace("-", "_")
