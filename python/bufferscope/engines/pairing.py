"""Which two engines to compare: by default, the simulator and a real kernel."""

from bufferscope.base.errors import EngineError, InputError
from bufferscope.engines import Engine, carrying, engines, named


def pair(
    judged: str, reference: str | None = None, kernel: str | None = None, *, here: bool = True
) -> tuple[Engine, Engine]:
    """The engine to judge and its reference, both ready; the default reference is a ready kernel.

    `kernel` selects the guest's kernel. If the engines will not run `here` but on other machines, they need not be
    ready, and the default reference is the guest.

    Raises `InputError` unless there are two engines, and `EngineError`, with the remedy, if one can't be used here.
    """
    judged = named(judged).name
    if reference is None:
        kernels = [each for each in carrying() if each.is_kernel and each.name != judged]
        reference = (kernels[0] if kernel is not None or not here else _first_ready(kernels)).name
    elif named(reference, "--reference").name == judged:
        raise InputError(f"--reference: found {reference!r}; allowed: another engine than --engine {judged}")
    first, second = engines([judged, reference], kernel)
    for engine in (first, second) if here else ():
        engine.examine()
    return first, second


def _first_ready(kernels: list[Engine]) -> Engine:
    reasons: list[str] = []
    for engine in kernels:
        try:
            engine.examine()
        except EngineError as error:
            reasons.append(f"{engine.name}: {error}")
        else:
            return engine
    raise EngineError(f"no real kernel to compare with: {'; '.join(reasons)}")
