"""The embedded simulator."""

from bufferscope.base.lazy import Function
from bufferscope.engines.engine import Engine
from bufferscope.engines.sim import engine

ENGINE = Engine(
    "sim",
    "the embedded simulator: virtual time, repeatable, needs nothing",
    engine.run,
    label="Simulator",
    checks=Function(f"{__name__}.doctor:checks"),
    refusals=engine.refusals,
    memory_bytes=engine.memory_bytes,
    identity=engine.identity,
    batch_runner=engine.SimBatchRunner,
    sees_every_drop=True,
    replays=True,
)
