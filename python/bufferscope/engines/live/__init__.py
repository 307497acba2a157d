"""The path between this machine and a server, as `bufferscope measure` measures it."""

from bufferscope.engines.engine import Engine
from bufferscope.engines.live import doctor

ENGINE = Engine(
    "live",
    "the path between this machine and a server",
    label="Live measurement",
    checks=doctor.checks,
    read_by="bufferscope measure",
)
