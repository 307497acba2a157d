"""The path between this machine and a server, as `bufferscope measure` measures it."""

from bufferscope.base.lazy import Function
from bufferscope.engines.engine import Engine

ENGINE = Engine(
    "live",
    "the path between this machine and a server",
    label="Live measurement",
    checks=Function(f"{__name__}.doctor:checks"),
    read_by="bufferscope measure",
)
