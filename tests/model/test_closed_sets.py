"""The closed sets of names are those that the native core and the registry of engines have."""

from typing import get_args

from bufferscope import _core
from bufferscope.engines import EngineName, carrying
from bufferscope.model.figure_names import NAMES, needed
from bufferscope.model.table_names import FRAME_NAMES, TABLE_NAMES


def test_the_tables_are_those_of_the_core() -> None:
    assert list(TABLE_NAMES) == list(_core.TABLES)
    assert (*TABLE_NAMES, "metrics") == FRAME_NAMES


def test_the_engines_are_those_that_carry_packets() -> None:
    assert list(get_args(EngineName)) == [each.name for each in carrying()]


def test_every_figure_says_which_tables_it_needs() -> None:
    assert all(needed(name) for name in NAMES)
    assert set(TABLE_NAMES) >= {table for name in NAMES for table in needed(name)}
