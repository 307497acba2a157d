"""A home behind a slow link, simulated with other settings, and what is said of it."""

from typing import Any

from bufferscope.analysis.explanation import explain_run
from bufferscope.analysis.explanation.statement import StatementKind
from bufferscope.running.stepping import Simulation
from bufferscope.store.memory import MemoryRun

HOME = """\
title = "A home"
duration = "10s"
warmup = "2s"
[[link]]
name = "lan"
ends = ["h1", "r1"]
delay = "5ms"
rate = "100mbit"
[[link]]
name = "wan"
ends = ["r1", "h2"]
delay = "15ms"
rate = "10mbit"
queue = { qdisc = "pfifo", limit = "200p" }
[[traffic]]
name = "bulk"
kind = "tcp"
from = "h1"
to = "h2"
[[traffic]]
name = "ping"
kind = "ping"
from = "h1"
to = "h2"
interval = "97ms"
"""


def simulated(**overrides: object) -> MemoryRun:
    """The home with other settings; `__` stands for the dot of a key."""
    changes = {path.replace("__", "."): value for path, value in overrides.items()}
    return Simulation(HOME, changes).finish()


def told(run: Any, kind: StatementKind) -> str:
    return " ".join(each.sentence for each in explain_run(run).of(kind))
