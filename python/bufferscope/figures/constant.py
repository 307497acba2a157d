"""Channels with a constant value, such as a place at the edge of the plot.

They are objects of Altair's classes for them. For `alt.value(0)`, Altair would find the class by looking at all of its
600, for each channel again; the same goes for strings in place of `alt.Text` and `alt.Detail`.
"""

from __future__ import annotations

from typing import Any, Literal

from bufferscope.base.libraries import altair as alt

Channel = Literal["X", "X2", "Y", "Y2", "Opacity", "Tooltip"]


def constant(channel: Channel, value: object, **options: object) -> Any:
    """The channel with this value; `options` such as `condition` are those of its class."""
    made: Any = getattr(alt, f"{channel}Value")
    return made(value, **options)
