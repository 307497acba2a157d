"""Thinning of long series to what a picture can show, without losing a peak."""

import polars as pl


def decimate(frame: pl.DataFrame, x: str, y: str, by: list[str], columns: int) -> pl.DataFrame:
    """Keeps of each series (`by`), in each of `columns` equal steps of `x`, the lowest and the highest row of `y`.

    So the drawn line touches the same pixels, and no peak disappears. A series' first and last row stay, so that it
    does not seem to begin late or end early, and one row of each column whose `y` is null, so that a gap stays a gap.
    At most `3 * columns + 2` rows a series are left, in the order of `frame`.
    """
    if frame.is_empty():
        return frame
    low, high = (float(edge) for edge in frame.select(pl.col(x).min(), pl.col(x).max().alias("high")).row(0))
    width = (high - low) / columns or 1.0
    # Of a span too small to be divided (its reciprocal is infinite), 0 / width is not a number: all is one column.
    column = ((pl.col(x) - low) / width).fill_nan(0.0).floor().clip(0, columns - 1).cast(pl.Int32)
    cell = [*by, "_column"]
    row = pl.int_range(pl.len())
    kept = [
        (row == pl.col(y).arg_min()).over(cell),
        (row == pl.col(y).arg_max()).over(cell),
        (pl.col(y).is_null() & (pl.col(y).is_null().cum_sum() == 1)).over(cell),
        ((row == 0) | (row == pl.len() - 1)).over(by) if by else (row == 0) | (row == pl.len() - 1),
    ]
    return frame.with_columns(_column=column).filter(pl.any_horizontal(kept)).drop("_column")
