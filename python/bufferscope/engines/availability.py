"""Which queueing disciplines each engine has on this machine."""

from collections.abc import Mapping, Sequence
from functools import cache

from bufferscope._core import QDISCS
from bufferscope.base.errors import EngineError
from bufferscope.engines import REGISTRY, Engine, carrying
from bufferscope.engines.engine import Has


def having() -> dict[str, dict[str, Has]]:
    """For each discipline, the engines that can run here, and whether each of them has it."""
    known = {each.name: on_engine(each.name) for each in carrying()}
    usable = {name: has for name, has in known.items() if not isinstance(has, str)}
    return {kind: {name: has.get(kind, False) for name, has in usable.items()} for kind in QDISCS}


def unusable() -> dict[str, str]:
    """The engines that cannot run here, each with the reason."""
    known = {each.name: on_engine(each.name) for each in carrying()}
    return {name: reason for name, reason in known.items() if isinstance(reason, str)}


def lacking(engine: Engine, kinds: Sequence[str]) -> dict[str, str]:
    """Of these disciplines, those that an engine does not have here, each with the reason."""
    has = on_engine(engine.name, engine.kernel)
    if isinstance(has, str):
        return {}  # the run will say why the engine cannot be used
    reason = f"{engine.runs_on or engine.name} does not have it"
    return {kind: reason for kind in kinds if has.get(kind, False) is False}


@cache
def on_engine(name: str, kernel: str | None = None) -> Mapping[str, Has] | str:
    """Whether an engine has each of the disciplines; or why it cannot run here."""
    try:
        return REGISTRY[name].disciplines(kernel)
    except EngineError as error:
        return str(error)
