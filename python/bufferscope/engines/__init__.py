"""The engines, from which records come. Each is a package with an `Engine`, which is named once: here."""

from collections.abc import Sequence

from bufferscope.base.errors import InputError
from bufferscope.engines import capture, guest, host, imported, live, sim
from bufferscope.engines.engine import BatchRunner, Engine, EngineName, Progress

__all__ = [
    "REGISTRY",
    "BatchRunner",
    "Engine",
    "EngineName",
    "Progress",
    "carrying",
    "default",
    "engine_of",
    "engines",
    "named",
    "one_engine",
    "rank",
]

REGISTRY: dict[str, Engine] = {
    each.name: each for each in (sim.ENGINE, guest.ENGINE, host.ENGINE, live.ENGINE, capture.ENGINE, imported.ENGINE)
}
"""Every engine by its name: the default one first, and real kernels in the order in which they are preferred."""


def carrying() -> tuple[Engine, ...]:
    """The engines that carry packets, in their order."""
    return tuple(each for each in REGISTRY.values() if not each.observes)


def default() -> Engine:
    """The engine that is used if none is named."""
    return carrying()[0]


def engine_of(name: str) -> Engine:
    """The engine of a stored run. One that this version does not know counts as an observer."""
    return REGISTRY.get(name) or Engine(name, "", read_by="bufferscope import")


def rank(name: str) -> int:
    """Where an engine's runs come among those of one point: in the order of the engines, unknown ones last."""
    names = [each.name for each in carrying()]
    return names.index(name) if name in names else len(names)


def engines(names: str | Sequence[str], kernel: str | None = None, *, capture: bool = False) -> tuple[Engine, ...]:
    """The engine or engines of these names, with a kernel where one can be chosen.

    With `capture`, those that can capture packets do. Raises `InputError` for an unknown name, for a name given twice,
    for a kernel if none of the engines offers a choice, and for a capture if none of them can.
    """
    chosen = [named(name) for name in ([names] if isinstance(names, str) else names)]
    listed = ", ".join(each.name for each in chosen)
    if len({each.name for each in chosen}) < len(chosen):
        raise InputError(f"--engine: found {listed}; allowed: each engine once")
    if kernel is not None and all(each.default_kernel is None for each in chosen):
        raise InputError(f"--kernel {kernel}: only the guest's kernel can be chosen, but --engine is {listed}")
    if capture and not any(each.captures for each in chosen):
        raise InputError(
            f"--capture: --engine is {listed}, whose packets need no capture: "
            "`bufferscope export RUN --format pcapng` simulates the run again and writes them"
        )
    if kernel is None and not capture:
        return tuple(chosen)
    return tuple(each.configured(kernel=kernel if each.default_kernel else None, capture=capture) for each in chosen)


def one_engine(name: str, kernel: str | None = None) -> Engine:
    """The engine of this name; raises `InputError` as `engines` does."""
    (found,) = engines(name, kernel)
    return found


def named(name: str, option: str = "--engine") -> Engine:
    """The engine of this name, which `option` gave; raises `InputError` for another name."""
    known = REGISTRY.get(name)
    if known and not known.observes:
        return known
    there = ", ".join(f"{each.name} ({each.about})" for each in carrying())
    if known:
        raise InputError(f"{option} {name}: its runs are made by `{known.read_by}`; allowed here: {there}")
    raise InputError(f"{option}: found {name!r}; allowed: {there}")
