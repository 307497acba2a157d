"""The keys of a scenario that distinguish directions: the two ports of a link, and the two ends of its traffic."""

from typing import Literal, get_args

Side = Literal["forward", "reverse"]
"""A direction of a link: the key of its port in `scenario.Link`, which a type checker compares with this."""
SIDES: tuple[Side, ...] = get_args(Side)

ENDS: tuple[Literal["from", "to"], ...] = ("from", "to")
"""The keys of `scenario.Traffic` with the indices of its nodes."""
