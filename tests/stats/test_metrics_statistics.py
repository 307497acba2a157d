"""Percentiles with lost samples and weights, and what repetitions say about a mean."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from bufferscope.stats import rank_sum
from bufferscope.stats.estimate import estimate, jain_index, percentile, weighted_percentile_of
from bufferscope.stats.spread import reach
from bufferscope.stats.student import quantile

values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60)


@given(values, st.floats(0, 100))
def test_percentile_interpolates_as_numpy_does(sample: list[float], percent: float) -> None:
    expected = np.percentile(sample, percent)
    assert percentile(np.array(sample), percent) == pytest.approx(expected, rel=1e-9, abs=1e-3)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 20)), min_size=1, max_size=30), st.floats(0, 100))
def test_a_weight_stands_for_that_many_copies(rows: list[tuple[int, int]], percent: float) -> None:
    groups = [(group, value, weight) for group in range(2) for value, weight in sorted(rows)]
    frame = pl.DataFrame(groups, schema=["group", "value", "weight"], orient="row")
    found = frame.group_by("group").agg(weighted_percentile_of("value", "weight", percent).alias("percentile"))
    copies = np.repeat(*np.array(rows).T).astype(float)
    assert (found["percentile"] / 100).to_list() == pytest.approx([percentile(copies, percent)] * 2)


def test_an_empty_sample_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="empty sample"):
        percentile(np.array([]), 50)


@given(st.lists(st.floats(0, 1e6), max_size=40), st.integers(1, 10), st.floats(0, 100))
def test_a_percentile_is_censored_exactly_when_a_lost_sample_has_a_part_in_it(
    answered: list[float], lost: int, percent: float
) -> None:
    sample = np.array([*answered, *[math.inf] * lost])
    rank = (len(sample) - 1) * percent / 100
    assert math.isinf(percentile(sample, percent)) == (math.ceil(rank) >= len(answered))


@given(values, st.floats(0, 100), st.floats(0, 100))
def test_percentiles_never_fall(sample: list[float], a: float, b: float) -> None:
    low, high = sorted((a, b))
    array = np.array(sample)
    assert percentile(array, low) <= percentile(array, high) + 1e-6


def test_a_percentile_just_below_the_lost_ones_is_a_number() -> None:
    # 5 samples: rank of p75 is 3, an answered sample; p76 lies between it and the lost one.
    sample = np.array([1.0, 2.0, 3.0, 4.0, math.inf])
    assert percentile(sample, 75) == 4.0
    assert percentile(sample, 76) == math.inf


def test_percent_outside_0_to_100_is_refused() -> None:
    with pytest.raises(ValueError, match=r"percentile 101 is outside 0\.\.100"):
        percentile(np.array([1.0]), 101)


def test_jain_index_of_one_greedy_flow_among_four_is_a_quarter() -> None:
    assert jain_index([8, 0, 0, 0]) == 0.25
    assert jain_index([3, 3, 3]) == 1
    assert math.isnan(jain_index([0, 0]))


def test_interval_of_three_repetitions() -> None:
    # 10, 12, 14: mean 12, standard deviation 2, sem 2/sqrt(3) = 1.1547; t(0.975, 2 degrees of freedom) = 4.30265.
    result = estimate([10.0, 12.0, 14.0])
    assert (result.mean, result.n) == (12.0, 3)
    assert result.sem == pytest.approx(1.154701, rel=1e-6)
    assert result.high - 12.0 == pytest.approx(4.30265 * 1.154701, rel=1e-5)
    assert 12.0 - result.low == pytest.approx(result.high - 12.0)


def test_one_repetition_has_a_mean_but_no_interval() -> None:
    result = estimate([10.0])
    assert result.mean == 10.0
    assert math.isnan(result.sem)
    assert math.isnan(result.low)
    assert math.isnan(result.high)


def test_a_censored_repetition_censors_the_mean() -> None:
    result = estimate([10.0, math.inf])
    assert result.censored
    assert result.n == 2
    assert math.isnan(result.sem)


@given(st.floats(1, 1000), st.floats(0.01, 0.999))
def test_the_quantile_of_students_t_is_that_of_scipy(freedom: float, confidence: float) -> None:
    assert quantile(freedom, confidence) == pytest.approx(special.stdtrit(freedom, (1 + confidence) / 2), rel=1e-9)


def test_the_quantile_of_students_t_is_that_of_published_tables() -> None:
    # Student's own case of one degree of freedom is Cauchy's distribution: tan(0.475 pi). The others: NIST/SEMATECH
    # e-Handbook of Statistical Methods, 1.3.6.7.2.
    assert quantile(1, 0.95) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-12)
    assert [round(quantile(freedom, 0.95), 3) for freedom in (2, 5, 30, 100)] == [4.303, 2.571, 2.042, 1.984]


samples = st.lists(st.integers(0, 1000).map(float), min_size=2, max_size=20)


@pytest.mark.filterwarnings("ignore:Precision loss")  # SciPy's, where the values of one sample are equal
@given(samples, samples)
def test_welchs_interval_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    own = reach(estimate(first), estimate(second))
    if len({*first}) == len({*second}) == 1:  # of which SciPy warns
        assert own == 0
        return
    found = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert own == pytest.approx((found.high - found.low) / 2, rel=1e-9)


few = st.lists(st.integers(0, 30).map(float) | st.just(math.inf), min_size=2, max_size=12)


@given(few, few)
def test_mann_and_whitneys_test_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    # Of equal values only, SciPy divides by zero.
    expected = stats.mannwhitneyu(first, second).pvalue if len({*first, *second}) > 1 else 1
    assert rank_sum.p_value(first, second) == pytest.approx(expected, rel=1e-9)


def test_mann_and_whitneys_test_of_samples_that_do_not_overlap() -> None:
    # Of the 20 orders of 3 + 3 values, one has all values of one sample first, and one those of the other.
    assert rank_sum.p_value([1, 2, 3], [4, 5, 6]) == pytest.approx(2 / 20)
    assert rank_sum.p_value([1, 2, 3, 4], [5, 6, 7, math.inf]) == pytest.approx(2 / 70)
