"""A real Linux kernel in a virtual machine: virtual time, and the same records for the same seed, kernel and agent."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from bufferscope import _core
from bufferscope.base.errors import EngineError
from bufferscope.engines import agent
from bufferscope.engines.frames import Receiver
from bufferscope.engines.guest import cards, hardware, image, kernels, state
from bufferscope.engines.guest import run as guest_run
from bufferscope.engines.guest.cards import Pair
from bufferscope.engines.guest.image import Image
from bufferscope.engines.outcome import Outcome
from bufferscope.engines.recording import recorder
from bufferscope.model.experiment import Point
from bufferscope.store.metadata import GuestFacts

OPTIONS: dict[str, object] = {
    # The guest has one processor, so writing records during the run would compete with the traffic.
    "deliver_at_end": True,
    "progress_interval_ns": 1_000_000_000,
    "own_machine": True,
    # Every run starts from the saved random state, and the kernel is seeded, so runs differ only by their seed.
    "seed_kernel": True,
    "delay": "netem",
}
"""The agent's settings in a guest."""


def run(
    point: Point,
    seed: int,
    directory: Path,
    progress: Callable[[int, int], bool],
    *,
    kernel: str | None = None,
    capture: bool = False,
) -> Outcome:
    """Run a point on a kernel series (`6.12`) or release. With `capture`, the packets are stored, too.

    Raises `EngineError`, or `_core.Interrupted` after `progress` returned False.
    """
    receiver = Receiver(directory, progress, recorder(directory, point.scenario) if capture else None)
    request = agent.request(point, seed, _options(capture))
    qemu = hardware.find_qemu()
    built = _image(kernel, agent.program())
    if not built.kernel.exists():  # it was removed meanwhile to free space
        _image.cache_clear()
        built = _image(kernel, agent.program())
    pairs = cards_of(point)
    saved = state.saved_state(qemu, built, pairs=pairs)
    done = guest_run.run(qemu, built, saved, request, receiver.feed, pairs=pairs)
    if done is None:
        raise _core.Interrupted
    outcome = receiver.finish()
    facts: GuestFacts = {
        "release": built.release,
        "image": built.id,
        "qemu": qemu.version,
        "cpu_s": round(done.cpu_s, 3),
    }
    return dataclasses.replace(outcome, summary={**outcome.summary, "guest": facts}, cpu_s=done.cpu_s)


@cache
def _image(kernel: str | None, program: Path) -> Image:
    return image.build(kernels.choose(kernel), program)


def cards_of(point: Point) -> list[Pair]:
    """The network cards that a point needs. Raises `EngineError` for a ring that no card can provide."""
    try:
        return _core.cards(point.core)
    except _core.PlanError as error:
        raise EngineError(str(error)) from None


def examine(kernel: str | None = None) -> None:
    """Raise `EngineError`, with the remedy, if the emulator, a kernel or the agent is missing."""
    hardware.find_qemu()
    kernels.choose(kernel)
    agent.program()


def disciplines(kernel: str | None = None) -> dict[str, bool | None]:
    """Whether a kernel has each discipline; None, not known, before its image is built. Raises `EngineError`."""
    hardware.find_qemu()
    agent.program()
    release = kernels.choose(kernel).release
    built = [each for each in image.for_runs() if each.release == release]
    if not built:
        return dict.fromkeys(_core.QDISCS, None)
    return {name: kind.module not in built[-1].missing for name, kind in _core.QDISCS.items()}


def refusals(points: Sequence[Point]) -> list[str | None]:
    """For each of these points, why Linux can't run it, as far as we know without a kernel; None if it can."""
    return [_refusal(point) for point in points]


def _refusal(point: Point) -> str | None:
    try:
        _core.check_on_linux(point.core)
    except _core.PlanError as error:
        return str(error)
    return None


def _options(capture: bool) -> dict[str, object]:
    return {**OPTIONS, "capture": True} if capture else OPTIONS


def identity(kernel: str | None = None, *, capture: bool = False) -> str:
    """A digest of the image (kernel, agent and tools), of QEMU, and of the agent's settings."""
    qemu = hardware.find_qemu()
    options = [json.dumps(_options(capture)), *cards.arguments([(("", None), ("", 1))])]
    depends_on = [hardware.fingerprint(qemu, _image(kernel, agent.program())), *options]
    return sha256("\n".join(depends_on).encode()).hexdigest()[:16]
