"""The names in the tables of a live measurement."""

from bufferscope.store import live
from bufferscope.store.verdict import Direction, EndName, PhaseKind

CLIENT, SERVER = "client", "server"
ECHOES = live.ECHOES
"""The probe of the echoes, and the flow of their one-way changes."""
ANY = "any"
"""The direction of probes over TCP that do not use a connection of the load."""
RECEIVED = "received."
"""Before the name of a load's traffic: a flow that counts what its receiver has received."""
PORTS: dict[EndName, str] = {"client": f"{CLIENT}>{SERVER}", "server": f"{SERVER}>{CLIENT}"}
"""The port of each end."""
WAYS: dict[Direction, str] = {"up": "data", "down": "acknowledgements"}
"""The way of an echo in the table `one_way`."""


def load_name(kind: PhaseKind, direction: Direction) -> str:
    """The traffic entry of a phase's load in one direction.

    >>> load_name("download", "down"), load_name("both", "up")
    ('download', 'both.up')
    """
    alone = {("download", "down"), ("upload", "up")}
    return kind if (kind, direction) in alone else f"{kind}.{direction}"


def load_of(name: str) -> Direction:
    """The direction of a load's traffic entry: the inverse of `load_name`."""
    return "down" if name == "download" or name.endswith(".down") else "up"


def tcp_probe(kind: str, direction: Direction | None) -> str:
    """The probe of a measurement over TCP; the slash keeps it out of the metrics of round trips.

    >>> tcp_probe("self", "up"), tcp_probe("connect", None)
    ('self/up', 'connect/any')
    """
    return f"{kind}/{direction or ANY}"
