"""The kernel of this machine, in network namespaces."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from bufferscope._core import QDISCS
from bufferscope.engines.engine import Engine, Has
from bufferscope.engines.host import doctor, engine, shell


def _disciplines(_kernel: str | None) -> Mapping[str, Has]:
    return {kind: has for kind, has in engine.capabilities()["qdiscs"].items() if kind in QDISCS}


def _configured(own: Engine, _kernel: str | None, capture: bool) -> Engine:
    return replace(own, run=partial(engine.run, capture=capture), capture=capture)


ENGINE = Engine(
    "host",
    "this machine's kernel, in network namespaces: real time",
    engine.run,
    label="This machine's kernel",
    examine=engine.capabilities,
    checks=doctor.checks,
    disciplines=_disciplines,
    refusals=engine.refusals,
    real_time=True,
    runs_on="this machine's kernel",
    shell=shell.HostShell(),
    configure=_configured,
)
