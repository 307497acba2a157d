"""Thin long series to the rows that a picture can show, without losing a peak."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl


def decimate(frame: pl.DataFrame, x: str, y: str, by: list[str], columns: int) -> pl.DataFrame:
    """Keep the rows with the lowest and highest `y` of each series (`by`) in each of `columns` equal steps of `x`.

    So the drawn line covers the same pixels, and no peak disappears. The first and the last row of a series stay, so
    that it does not seem to begin late or end early. Where `y` is null, one row of each column stays, so that a gap
    stays a gap. At most `3 * columns + 2` rows of each series are left, in the order of `frame`.
    """
    if frame.is_empty():
        return frame
    low, high = (float(edge) for edge in frame.select(pl.col(x).min(), pl.col(x).max().alias("high")).row(0))
    width = (high - low) / columns or 1.0
    # If the span is too small to be divided (its reciprocal is infinite), 0 / width is NaN: then there is one column.
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
