"""Which queueing disciplines each engine has on this machine."""

from collections.abc import Mapping, Sequence
from functools import cache

from bufferscope._core import QDISCS
from bufferscope.base.errors import EngineError
from bufferscope.engines import ENGINES, Engine, agent
from bufferscope.engines.guest import GuestError, hardware, image, kernels
from bufferscope.engines.host import engine as host

Has = bool | None
"""Whether an engine has a discipline; None if that is not known before a guest is built."""


def having() -> dict[str, dict[str, Has]]:
    """For each discipline, the engines that can run here, and whether each of them has it."""
    known = {name: on_engine(name) for name in ENGINES}
    usable = {name: has for name, has in known.items() if not isinstance(has, str)}
    return {kind: {name: has.get(kind, False) for name, has in usable.items()} for kind in QDISCS}


def unusable() -> dict[str, str]:
    """The engines that cannot run here, each with the reason."""
    known = {name: on_engine(name) for name in ENGINES}
    return {name: reason for name, reason in known.items() if isinstance(reason, str)}


def lacking(engine: Engine, kinds: Sequence[str]) -> dict[str, str]:
    """Of these disciplines, those that an engine does not have here, each with the reason."""
    has = on_engine(engine.name, engine.kernel)
    if isinstance(has, str):
        return {}  # the run will say why the engine cannot be used
    where = "this machine's kernel" if engine.name == "host" else "the guest's kernel"
    return {kind: f"{where} does not have it" for kind in kinds if has.get(kind, False) is False}


@cache
def on_engine(name: str, kernel: str | None = None) -> Mapping[str, Has] | str:
    """Whether an engine has each of the disciplines; or why it cannot run here."""
    try:
        return _CHECKS[name](kernel)
    except (EngineError, GuestError) as error:
        return str(error)


def _sim(_: str | None) -> dict[str, Has]:
    return dict.fromkeys(QDISCS, True)


def _guest(kernel: str | None) -> dict[str, Has]:
    """What the built image of the kernel lacks is known; without an image, nothing is."""
    hardware.find_qemu()
    agent.program()
    release = kernels.choose(kernel).release
    built = [each for each in image.for_runs() if each.release == release]
    if not built:
        return dict.fromkeys(QDISCS, None)
    return {kind: module not in built[-1].missing for kind, (module, _) in QDISCS.items()}


def _host(_: str | None) -> dict[str, Has]:
    return {kind: has for kind, has in host.capabilities()["qdiscs"].items() if kind in QDISCS}


_CHECKS = {"sim": _sim, "guest": _guest, "host": _host}
