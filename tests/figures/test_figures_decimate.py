"""Thinning never loses a peak, an end or a gap, and is bounded."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from bufferscope.figures.decimate import decimate

COLUMNS = 7
rows = st.lists(
    st.tuples(st.floats(0, 1e3), st.none() | st.floats(-1e6, 1e6), st.sampled_from("ab")), min_size=1, max_size=300
)


def _frame(series: list[tuple[float, float | None, str]]) -> pl.DataFrame:
    schema = {"x": pl.Float64, "y": pl.Float64, "s": pl.String}
    return pl.DataFrame(sorted(series, key=lambda row: row[0]), schema=schema, orient="row")


@given(rows)
def test_the_extremes_the_ends_and_the_gaps_of_every_series_survive(
    series: list[tuple[float, float | None, str]],
) -> None:
    frame = _frame(series)
    kept = decimate(frame, "x", "y", ["s"], COLUMNS)
    for (name,), before in frame.group_by("s"):
        after = kept.filter(s=name)
        assert after["y"].min() == before["y"].min()
        assert after["y"].max() == before["y"].max()
        assert (after.row(0), after.row(-1)) == (before.row(0), before.row(-1))
        assert (after["y"].null_count() > 0) == (before["y"].null_count() > 0)


@given(rows)
def test_what_is_left_is_bounded_and_in_order(series: list[tuple[float, float | None, str]]) -> None:
    kept = decimate(_frame(series), "x", "y", ["s"], COLUMNS)
    assert kept["x"].is_sorted()
    assert kept.height <= kept["s"].n_unique() * (3 * COLUMNS + 2)


def test_each_column_keeps_its_own_peak() -> None:
    # 1,000 samples of 0 with a spike of n at 100 n: each of the 10 columns holds one, none may go.
    frame = pl.DataFrame({"x": range(1000), "y": [n // 100 if n % 100 == 50 else 0 for n in range(1000)]})
    kept = decimate(frame, "x", "y", [], 10)
    assert kept.filter(pl.col("y") > 0)["y"].to_list() == list(range(1, 10))
    assert kept.height < 40


def test_a_short_series_is_left_alone() -> None:
    frame = pl.DataFrame({"x": [0, 1, 2], "y": [5, 3, 4]})
    assert decimate(frame, "x", "y", [], 720).equals(frame)


def test_samples_at_one_instant_keep_the_highest_and_the_lowest() -> None:
    frame = pl.DataFrame({"x": [1, 1, 1, 1, 1], "y": [2, 9, 3, 1, 2]})
    assert set(decimate(frame, "x", "y", [], 10)["y"]) == {1, 9, 2}


def test_a_span_too_small_to_be_divided_is_one_column() -> None:
    frame = pl.DataFrame({"x": [0.0, 1.1125369292536007e-308], "y": [1, 2]})
    assert decimate(frame, "x", "y", [], 7).equals(frame)
