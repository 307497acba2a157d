"""Which two engines to compare by default: the simulator and a real kernel."""

from bufferscope.base.errors import EngineError, InputError
from bufferscope.engines import Engine, carrying, default, engines


def pair(names: str | None, kernel: str | None = None, *, here: bool = True) -> tuple[Engine, Engine]:
    """The two engines of a string such as `sim,guest`, both ready; by default, the simulator and a ready kernel.

    `kernel` selects the guest's kernel. If the engines will not run `here` but on other machines, they need not be
    ready, and the default is `sim,guest`.

    Raises `InputError` unless there are two engines, and `EngineError`, with the remedy, if one can't be used here.
    """
    if names is None and (kernel is not None or not here):
        names = "sim,guest"
    if names is None:
        return default(), _ready_kernel()
    if names.count(",") != 1:
        raise InputError(
            f"--engines: found {names!r}; allowed: two engines, as in sim,guest; the second is the reference"
        )
    judged, reference = engines(names, "--engines", kernel)
    for engine in (judged, reference) if here else ():
        engine.examine()
    return judged, reference


def _ready_kernel() -> Engine:
    reasons: list[str] = []
    for engine in carrying():
        if not engine.is_kernel:
            continue
        try:
            engine.examine()
        except EngineError as error:
            reasons.append(f"{engine.name}: {error}")
        else:
            return engine
    raise EngineError(f"no real kernel to compare the simulator with: {'; '.join(reasons)}")
