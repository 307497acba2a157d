"""A home behind a slow link, simulated with other settings, and what is said of it."""

from typing import Any

from dumbbell import dumbbell, pfifo

from bufferscope.analysis.explanation import explain_run
from bufferscope.analysis.explanation.statement import StatementKind
from bufferscope.running.stepping import Simulation
from bufferscope.store.memory import MemoryRun

HOME = dumbbell(
    "A home",
    "10s",
    warmup="2s",
    access={"name": "lan", "delay": "5ms", "rate": "100mbit"},
    bottleneck={"name": "wan", "delay": "15ms", "queue": pfifo(200)},
    bulk={"flows": None, "congestion": None},
    ping={"interval": "97ms"},
)


def simulated(**overrides: object) -> MemoryRun:
    """The home with other settings; `__` stands for the dot of a key."""
    changes = {path.replace("__", "."): value for path, value in overrides.items()}
    return Simulation(HOME, changes).finish()


def told(run: Any, kind: StatementKind) -> str:
    return " ".join(each.sentence for each in explain_run(run).of(kind))
