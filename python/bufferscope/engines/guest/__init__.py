"""A real Linux kernel in virtual time.

The stages: `kernels` (on this machine, or downloaded by `fetch`) -> `image` -> `state` (booted and saved once) ->
`run`.
"""

from dataclasses import replace
from functools import partial

from bufferscope.base.lazy import Function
from bufferscope.engines.engine import Engine

DEFAULT = "6.1"
"""The series of the kernel that is used if none is named and this machine has it."""

_run, _examine, _identity, _disciplines, _refusals = (
    Function(f"{__name__}.engine:{name}") for name in ("run", "examine", "identity", "disciplines", "refusals")
)


def _configured(own: Engine, kernel: str | None, capture: bool) -> Engine:
    return replace(
        own,
        run=partial(_run, kernel=kernel, capture=capture),
        examine=partial(_examine, kernel),
        identity=partial(_identity, kernel, capture=capture),
        kernel=kernel,
        capture=capture,
    )


ENGINE = Engine(
    "guest",
    "a real Linux kernel in a virtual machine: virtual time, repeatable",
    _run,
    label="Real kernel",
    examine=_examine,
    checks=Function(f"{__name__}.doctor:checks"),
    disciplines=_disciplines,
    refusals=_refusals,
    identity=_identity,
    runs_on="the guest's kernel",
    default_kernel=DEFAULT,
    shell=Function(f"{__name__}.shell:GuestShell"),
    configure=_configured,
)
