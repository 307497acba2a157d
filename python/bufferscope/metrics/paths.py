"""Round trips of whole paths, from what a capture shows of the two halves of each path.

The vantage point of a capture divides a path into a half to the receiver and a half to the sender. At an end of the
path one of them takes no time, and shows delayed acknowledgements and applications rather than the path: the other one
is used alone. Between the ends, each round trip of one half is added to the nearest of the other. Of a half, the
acknowledged segments are used, or the echoes of timestamps where those are more than twice as many: near the receiver,
hardly anything but echoes shows the half to the sender. The core makes the same choice for `srtt_ns` and `min_rtt_ns`
(`crates/capture/src/analysis/halves.rs`).
"""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl

SHORT = 0.1
"""A half that takes less than this share of the other's time is that of an end."""
INSTANT_NS = 300_000
"""A half that takes less is an end's own time, on the fastest networks, too."""
MORE_ECHOES = 2
"""Echoes of timestamps are used where they are more than this many times the acknowledged segments."""
FEWEST_ROUND_TRIPS = 8
"""With fewer of them, as of a handshake and a close, a median says nothing: one may be a delayed acknowledgement."""
RECEIVER, SENDER, BOTH = "receiver", "sender", "both"
"""The half that a path's round trips are from: the capture was made at the sender, at the receiver, or between them."""
ECHO = "timestamp"
COLUMNS = ("t_ns", "flow", "half", "method", "rtt_ns")
"""The columns of `round_trips` that are needed."""


def path_round_trips(rows: pl.LazyFrame, *keys: str) -> pl.LazyFrame:
    """The round trips of each path: the columns `keys`, and `flow, t_ns, rtt_ns, half, method`.

    `rows` are rows of the table `round_trips`. `half` is `receiver`, `sender` or `both`; `method` is that of the half,
    or of the half with the most round trips. Sorted by time.
    """
    by = [*keys, "flow"]
    halves = used_halves(rows, *keys)
    single = halves.filter(pl.col("used") != BOTH)
    both = halves.filter(pl.col("used") == BOTH).sort("t_ns")
    main = both.filter(pl.col("half") == pl.col("main"))
    other = both.filter(pl.col("half") != pl.col("main")).select(*by, "t_ns", other_ns="rtt_ns")
    sums = main.join_asof(other, on="t_ns", by=by, strategy="nearest", check_sortedness=False)
    sums = sums.with_columns(rtt_ns=pl.col("rtt_ns") + pl.col("other_ns"), half=pl.lit(BOTH))
    columns = [*by, "t_ns", "rtt_ns", "half", "method"]
    return pl.concat([single.select(columns), sums.select(columns)]).sort("t_ns", maintain_order=True)


def used_halves(rows: pl.LazyFrame, *keys: str) -> pl.LazyFrame:
    """The rows of the table `round_trips` that show the path of their flow, as `path_round_trips` uses them.

    `used` is the half that is used, or `both`; `main` is the half with the most round trips.
    """
    by = [*keys, "flow"]
    chosen = _best_method(rows.with_columns(pl.col("half", "method").cast(pl.String)), by)
    joined = chosen.join(_choice(chosen, by), on=by, maintain_order="left")
    return joined.filter((pl.col("used") == BOTH) | (pl.col("used") == pl.col("half")))


def _best_method(rows: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
    """The rows of the method that shows the most of each half."""
    is_echo = pl.col("method") == ECHO
    echoes, segments = is_echo.sum().over(*by, "half"), (~is_echo).sum().over(*by, "half")
    return rows.filter(is_echo == (echoes > MORE_ECHOES * segments))


def _choice(rows: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
    """Which half of each flow's path is `used`, and which one is the `main` one, with the most round trips."""
    of = {half: pl.col("rtt_ns").filter(pl.col("half") == half) for half in (RECEIVER, SENDER)}
    halves = rows.group_by(by).agg(
        receiver_ns=of[RECEIVER].median(),
        sender_ns=of[SENDER].median(),
        receiver_count=of[RECEIVER].count(),
        sender_count=of[SENDER].count(),
    )
    to_receiver, to_sender = pl.col("receiver_ns"), pl.col("sender_ns")
    used = (
        pl.when(to_sender.is_null() | _is_short(to_sender, to_receiver))
        .then(pl.lit(RECEIVER))
        .when(to_receiver.is_null() | _is_short(to_receiver, to_sender))
        .then(pl.lit(SENDER))
        .otherwise(pl.lit(BOTH))
    )
    is_receiver = pl.col("receiver_count") >= pl.col("sender_count")
    main = pl.when(is_receiver).then(pl.lit(RECEIVER)).otherwise(pl.lit(SENDER))
    return halves.select(*by, used=used, main=main)


def _is_short(half: pl.Expr, other: pl.Expr) -> pl.Expr:
    return ((half <= other) & ((half < INSTANT_NS) | (half < SHORT * other))).fill_null(value=False)
