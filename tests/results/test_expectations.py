"""Comparing a document's statements with measurements."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from handmade import PING, TCP, HandmadeRun, probes, scenario
from hypothesis import given
from hypothesis import strategies as st

import bufferscope as bs
from bufferscope.model.expectations import ExpectationEntry
from bufferscope.results.expectations import evaluate
from bufferscope.results.verdicts import Expectation, ExpectationResult, Verdict, judge


def run_with(directory: Path, rtts_ms: list[float | None], position: int = 0, seed: int = 1) -> bs.Run:
    """A run at `position` whose probes were answered after these times."""
    run = HandmadeRun(
        scenario({"bulk": TCP, "ping": PING}),
        rows={"probes": probes(rtts_ms)},
        id=f"{position}-{seed}",
        seed=seed,
        point={"queue": f"{position}"},
        position=position,
    )
    return bs.Run(run.write(directory))


def entry(band: list[float | None], **more: Any) -> ExpectationEntry:
    """An expectation as `run.json` holds it."""
    default: ExpectationEntry = {
        "metric": "rtt.mean_ms",
        "says": "so many",
        "band": band,
        "differs": None,
        "where": {},
        "relative_to": None,
        "comparisons": [{"point": 0, "relative_to": None}],
        "not_applicable": None,
    }
    return cast(ExpectationEntry, {**default, **more})


def only(entries: list[ExpectationEntry], runs: list[bs.Run]) -> ExpectationResult:
    (evaluated,) = evaluate(entries, runs)
    return evaluated


def test_the_mean_over_repetitions_counts(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, [rtt], seed=seed) for seed, rtt in enumerate([10.0, 20.0, 60.0])]
    evaluated = only([entry([29, 31])], runs)
    assert (evaluated.measured, evaluated.runs, evaluated.verdict) == (30.0, 3, Verdict.REPRODUCED)


def test_the_mean_is_told_with_its_confidence_interval(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, [rtt], seed=seed) for seed, rtt in enumerate([10.0, 20.0, 60.0])]
    # s = sqrt((400 + 100 + 900) / 2) = 26.4575, and t(0.975, 2) = 4.30265: 4.30265 * 26.4575 / sqrt(3).
    assert only([entry([29, 31])], runs).reach == pytest.approx(65.7241, rel=1e-5)
    alike = [run_with(tmp_path, [30.0], seed=seed) for seed in (7, 8)]
    assert only([entry([29, 31])], alike).reach == 0


def test_one_run_or_a_censored_one_has_no_interval(tmp_path: Path) -> None:
    assert only([entry([0, 20])], [run_with(tmp_path, [10.0])]).reach is None
    hidden = [run_with(tmp_path, [10.0], seed=2), run_with(tmp_path, [10.0, None, None], seed=3)]
    evaluated = only([entry([0, 1e9], metric="rtt.p95_ms")], hidden)
    assert (evaluated.measured, evaluated.reach) == (math.inf, None)


def repeated(directory: Path, rtts_ms: Mapping[int, Sequence[float]]) -> list[bs.Run]:
    """Runs of several points, with one probe in each repetition."""
    return [
        run_with(directory, [rtt], position, seed)
        for position, repetitions in rtts_ms.items()
        for seed, rtt in enumerate(repetitions)
    ]


RATIO = {"comparisons": [{"point": 0, "relative_to": 1}], "relative_to": {"queue": "1"}}


def test_the_interval_of_a_ratio_has_the_relative_intervals_of_both_points(tmp_path: Path) -> None:
    # With two repetitions at m - d and m + d, s = d sqrt(2), and half of the interval is t(0.975, 1) d = 12.7062 d:
    # 3 % of 400 and 4 % of 100, together 5 % of the ratio of 4.
    spread_ms = {0: 400 * 0.03 / 12.7062, 1: 100 * 0.04 / 12.7062}
    means_ms = {0: 400.0, 1: 100.0}
    rtts = {each: [means_ms[each] - spread_ms[each], means_ms[each] + spread_ms[each]] for each in means_ms}
    evaluated = only([entry([0, 5], **RATIO)], repeated(tmp_path, rtts))
    assert evaluated.measured == pytest.approx(4, rel=1e-6)
    assert evaluated.reach == pytest.approx(4 * 0.05, rel=1e-4)


@pytest.mark.parametrize("rtts", [{0: [30.0, 31.0], 1: [10.0]}, {0: [30.0], 1: [10.0, 11.0]}])
def test_a_ratio_to_a_single_run_has_no_interval(tmp_path: Path, rtts: dict[int, list[float]]) -> None:
    evaluated = only([entry([0, 5], **RATIO)], repeated(tmp_path, rtts))
    assert evaluated.measured is not None
    assert evaluated.reach is None


def test_a_ratio_compares_two_points(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, [30.0], position=0), run_with(tmp_path, [10.0], position=1)]
    comparison = {"comparisons": [{"point": 0, "relative_to": 1}], "relative_to": {"queue": "1"}}
    evaluated = only([entry([2.9, None], **comparison)], runs)
    assert (evaluated.measured, evaluated.verdict) == (3.0, Verdict.REPRODUCED)


def test_each_point_is_judged_by_itself(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, [10.0], position=0), run_with(tmp_path, [30.0], position=1)]
    comparisons = [{"point": index, "relative_to": None} for index in (0, 1)]
    verdicts = [(e.point, e.verdict) for e in evaluate([entry([0, 20], comparisons=comparisons)], runs)]
    assert verdicts == [({"queue": "0"}, Verdict.REPRODUCED), ({"queue": "1"}, Verdict.NOT_REPRODUCED)]


def test_a_known_difference_is_told_with_its_reason(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, [30.0])]
    evaluated = only([entry([0, 20], differs="another kernel")], runs)
    assert (evaluated.verdict, evaluated.reason) == (Verdict.NOT_SHOWN, "another kernel")
    reproduced = only([entry([0, 40], differs="another kernel")], runs)
    assert (reproduced.verdict, reproduced.reason) == (Verdict.REPRODUCED, None)


def shown_at(band: list[float | None], **place: int | None) -> ExpectationEntry:
    """A difference at point 0; point 1 shows its cause."""
    shown_by = {"point": 1, "relative_to": None, **place}
    comparison = {"point": 0, "relative_to": None if place.get("relative_to") is None else 2, "shown_by": shown_by}
    return entry(band, differs="another kernel", shown_by={"queue": "1"}, comparisons=[comparison])


def test_a_cause_is_shown_where_the_metric_lies_in_the_band_without_it(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, [30.0], position=0), run_with(tmp_path, [15.0], position=1)]
    shown = only([shown_at([10, 20])], runs)
    assert (shown.verdict, shown.measured, shown.shown_by) == (Verdict.EXPLAINED, 30.0, "1: 15 ms")
    assert shown.reason == "another kernel"
    for entries, why in [
        ([shown_at([0, 10])], "it lies outside there, too"),
        ([shown_at([10, 20], point=7)], "there is no such run"),
    ]:
        told = only(entries, runs)
        assert (told.verdict, told.shown_by) == (Verdict.NOT_SHOWN, None), why
    inside = only([shown_at([10, 40])], runs)
    assert (inside.verdict, inside.shown_by, inside.reason) == (Verdict.REPRODUCED, None, None)


def test_a_cause_is_shown_for_a_ratio_by_a_ratio(tmp_path: Path) -> None:
    rtts = {0: 30.0, 1: 40.0, 2: 10.0, 3: 20.0}
    runs = [run_with(tmp_path, [rtt], position=position) for position, rtt in rtts.items()]
    shown = only([{**shown_at([1.5, 2.5], relative_to=3), "relative_to": {"queue": "2"}}], runs)
    assert (shown.verdict, shown.measured, shown.shown_by) == (Verdict.EXPLAINED, 3.0, "1: 2")


def test_what_shows_a_cause_is_told_with_its_interval(tmp_path: Path) -> None:
    # t(0.975, 1) = 12.7062 times half a millisecond.
    runs = repeated(tmp_path, {0: [30.0], 1: [14.5, 15.5]})
    assert only([shown_at([10, 20])], runs).shown_by == "1: 15 ± 6.4 ms"


def test_a_run_of_an_older_version_shows_no_cause(tmp_path: Path) -> None:
    assert only([entry([0, 20], differs="another kernel")], [run_with(tmp_path, [30.0])]).shown_by is None


def test_a_percentile_among_lost_probes_exceeds_every_closed_band(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, [10.0, None, None])]
    closed = only([entry([0, 1e9], metric="rtt.p95_ms")], runs)
    assert (closed.measured, closed.verdict) == (math.inf, Verdict.NOT_REPRODUCED)
    assert only([entry([3, None], metric="rtt.p95_ms")], runs).verdict is Verdict.REPRODUCED


def test_what_cannot_be_judged_says_why(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, [10.0])]
    for unjudged, words in [
        (entry([0, 1], comparisons=[], not_applicable="--set duration=1s"), "--set duration=1s"),
        (entry([0, 1], comparisons=[{"point": 7, "relative_to": None}]), "no run"),
        (entry([0, 1], metric="rtt.mena_ms"), "rtt.mena_ms"),
        (entry([0, 1], metric="transfer.web.mean_s"), "transfer.web.mean_s"),
    ]:
        evaluated = only([unjudged], runs)
        assert (evaluated.verdict, evaluated.measured) == (Verdict.NOT_APPLICABLE, None)
        assert words in str(evaluated.reason)


def test_a_ratio_of_two_unknowns_is_not_reproduced(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, [None, None], position=0), run_with(tmp_path, [None, None], position=1)]
    comparison = {"comparisons": [{"point": 0, "relative_to": 1}], "relative_to": {"queue": "1"}}
    evaluated = only([entry([None, None], metric="rtt.p50_ms", **comparison)], runs)
    assert evaluated.verdict is Verdict.NOT_REPRODUCED


numbers = st.floats(allow_nan=False)


@given(numbers, numbers, numbers)
def test_a_band_includes_its_ends_and_nothing_beyond(low: float, high: float, measured: float) -> None:
    expectation = Expectation("rtt.mean_ms", "so many", (low, high), {}, None, None)
    inside = low <= measured <= high
    assert (judge(expectation, measured) is Verdict.REPRODUCED) == inside
    if low <= high:
        assert judge(expectation, low) is judge(expectation, high) is Verdict.REPRODUCED
