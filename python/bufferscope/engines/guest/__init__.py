"""A real Linux kernel in virtual time.

The stages: `kernels` (on this machine, or downloaded by `fetch`) -> `image` -> `state` (booted and saved once) ->
`run`.
"""

from dataclasses import replace
from functools import partial

from bufferscope.engines.engine import Engine
from bufferscope.engines.guest import doctor, engine, kernels, shell


def _configured(own: Engine, kernel: str | None, capture: bool) -> Engine:
    return replace(
        own,
        run=partial(engine.run, kernel=kernel, capture=capture),
        examine=partial(engine.examine, kernel),
        identity=partial(engine.identity, kernel, capture=capture),
        kernel=kernel,
        capture=capture,
    )


ENGINE = Engine(
    "guest",
    "a real Linux kernel in a virtual machine: virtual time, repeatable",
    engine.run,
    label="Real kernel",
    examine=engine.examine,
    checks=doctor.checks,
    disciplines=engine.disciplines,
    refusals=engine.refusals,
    identity=engine.identity,
    runs_on="the guest's kernel",
    default_kernel=kernels.DEFAULT,
    shell=shell.GuestShell(),
    configure=_configured,
)
