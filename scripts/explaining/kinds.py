"""All kinds of scenarios that are planted: one for each cause, and those that combine several things."""

import random

import combining
import planting
from planting import Draw, Planted

PLANTERS = {**planting.PLANTERS, **combining.PLANTERS}
KINDS = tuple(PLANTERS)


def planted(kind: str, dice: random.Random) -> Planted:
    """A scenario of this kind."""
    return PLANTERS[kind](Draw(dice))
