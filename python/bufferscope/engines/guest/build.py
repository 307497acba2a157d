"""Prepare guests, and list them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bufferscope.engines.guest import DEFAULT, cache, fetch, hardware, image, kernels, module_building, state
from bufferscope.engines.guest.extra_modules import EXTRA
from bufferscope.engines.guest.image import Image
from bufferscope.engines.guest.kernels import Kernel


@dataclass(frozen=True)
class AvailableKernel:
    """A kernel that can be used now, or after it is fetched."""

    release: str
    series: str
    state: Literal["ready", "available", "to be fetched"]
    """`ready`: its image is built; `available`: `guest build` needs no network."""
    origin: str


def kernel(wanted: str | None, note: Callable[[str], None]) -> Kernel:
    """The kernel of the series or release `wanted`; fetched if it is not on this machine."""
    name = wanted or DEFAULT
    found = kernels.matching(name, kernels.at_hand())
    if found is None:
        with cache.lock("fetch"):
            found = kernels.matching(name, kernels.at_hand())  # another process may have fetched it meanwhile
            if found is None:
                note(f"fetching Linux {name}")
                found = fetch.fetch(name)
    return found


def packages(given: Iterable[Path]) -> Kernel:
    """The kernel in the given packages, which are kept for later runs."""
    return kernels.adopt(given)


def add_module(chosen: Kernel, name: str, note: Callable[[str], None]) -> None:
    """Build a module that the kernel does not come with, named as in `extra_modules.EXTRA`."""
    module_building.build(EXTRA[name], chosen, note)


def build(chosen: Kernel, agent: Path, note: Callable[[str], None]) -> Image:
    """Build the image of a kernel and save its state, so that runs can start at once."""
    qemu = hardware.find_qemu()
    built = image.build(chosen, agent, note)
    state.saved_state(qemu, built, note)
    return built


def known() -> list[AvailableKernel]:
    """The kernels on this machine, then the newest of each series that apt offers."""
    ready = {each.release for each in image.for_runs()}
    found = {
        each.release: AvailableKernel(
            each.release, each.series, "ready" if each.release in ready else "available", each.origin
        )
        for each in reversed(kernels.at_hand())
    }
    for release in fetch.offered():
        found.setdefault(release, AvailableKernel(release, kernels.series_of(release), "to be fetched", "apt"))
    return sorted(found.values(), key=lambda each: kernels.version_key(each.release))
