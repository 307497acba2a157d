"""The ends of what was captured as nodes of a network.

An address is not the name of a node: IPv6 has colons, which names have not, and both ends may have the same address (a
connection over the loopback interface, a ping to oneself, a router that turns packets around).
"""

import re
from collections.abc import Iterable

Pair = tuple[str, str]
"""The addresses of a sender and of its receiver."""


def node_names(pairs: Iterable[Pair]) -> dict[Pair, Pair]:
    """The names of the two nodes of each pair of addresses; those of one pair differ.

    >>> node_names([("192.0.2.1", "2001:db8::9")])
    {('192.0.2.1', '2001:db8::9'): ('192.0.2.1', '2001-db8--9')}
    >>> node_names([("::1", "::1")])
    {('::1', '::1'): ('0--1', '0--1-2')}
    """
    names: dict[tuple[str, bool], str] = {}

    def named(address: str, *, again: bool = False) -> str:
        if (address, again) not in names:
            wanted = f"{named(address)}-2" if again else _spelled(address)
            names[address, again] = _unused(wanted, set(names.values()))
        return names[address, again]

    return {(one, other): (named(one), named(other, again=one == other)) for one, other in pairs}


def _spelled(address: str) -> str:
    """An address in the characters of names, which begin with a letter or a digit."""
    whole = f"0{address}" if address.startswith(":") else address
    return re.sub(r"[^A-Za-z0-9._]", "-", whole)


def _unused(wanted: str, used: set[str]) -> str:
    name, number = wanted, 2
    while name in used:
        name, number = f"{wanted}-{number}", number + 1
    return name
