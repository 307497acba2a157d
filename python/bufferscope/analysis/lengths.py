"""Why `explain`, `choose` and `size` name different lengths for the queue of one line, and the call of `size`."""

RULE = (
    "explain gives the BDP, which keeps the link full for flows that halve their windows; choose tries a few multiples "
    "of it with the file's own traffic; size searches for the shortest queue that keeps 98 % of the goodput of long "
    "flows. So the three may give different lengths for one line"
)
"""For the notes of all three commands."""
_RATES = ((1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit"))
_TIMES = ((1_000_000, "ms"), (1_000, "us"), (1, "ns"))


def size_command(rate_bps: int, rtt_ns: int, flows: int, congestion: str) -> str:
    """The call of `bufferscope size` for a line.

    >>> size_command(2_500_000, 30_000_000, 1, "cubic")
    'bufferscope size --rate 2500kbit --rtt 30ms'
    """
    more = f" --flows {flows}" if flows > 1 else ""
    more += f" --congestion {congestion}" if congestion != "cubic" else ""
    return f"bufferscope size --rate {_whole(rate_bps, _RATES)} --rtt {_whole(rtt_ns, _TIMES)}{more}"


def _whole(value: int, units: tuple[tuple[int, str], ...]) -> str:
    """A number in the largest unit in which it is whole."""
    scale, unit = next((scale, unit) for scale, unit in units if value % scale == 0)
    return f"{value // scale}{unit}"
