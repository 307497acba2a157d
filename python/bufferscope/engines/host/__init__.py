"""The kernel of this machine, in network namespaces."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from bufferscope._core import QDISCS
from bufferscope.base.lazy import Function
from bufferscope.engines.engine import Engine, Has

_run, _capabilities, _refusals = (Function(f"{__name__}.engine:{name}") for name in ("run", "capabilities", "refusals"))


def _disciplines(_kernel: str | None) -> Mapping[str, Has]:
    return {kind: has for kind, has in _capabilities()["qdiscs"].items() if kind in QDISCS}


def _configured(own: Engine, _kernel: str | None, capture: bool) -> Engine:
    return replace(own, run=partial(_run, capture=capture), capture=capture)


ENGINE = Engine(
    "host",
    "this machine's kernel, in network namespaces: real time",
    _run,
    label="This machine's kernel",
    examine=_capabilities,
    checks=Function(f"{__name__}.doctor:checks"),
    disciplines=_disciplines,
    refusals=_refusals,
    real_time=True,
    runs_on="this machine's kernel",
    shell=Function(f"{__name__}.shell:HostShell"),
    configure=_configured,
)
