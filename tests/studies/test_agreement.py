"""Comparing two engines: the statistics, the tolerances, and how they are shown to readers."""

import math
import random
from pathlib import Path

import pytest
from handmade import MS, MSS, PING, SECOND, TCP, HandmadeRun, Rows, probes, scenario
from reports import specs

import bufferscope as bs
from bufferscope.report.agreement import build
from bufferscope.results.result import Result
from bufferscope.stats.estimate import estimate
from bufferscope.stats.spread import reach
from bufferscope.studies import agreement
from bufferscope.studies.agreement.comparing import MetricComparison
from bufferscope.studies.agreement.derived import measured
from bufferscope.studies.agreement.fmt import view
from bufferscope.studies.agreement.tolerances import TOLERANCES, tolerance_of


def comparison(value: list[float], reference: list[float], metric: str = "rtt.p50_ms") -> MetricComparison:
    return MetricComparison(metric, estimate(value), estimate(reference), tolerance_of(metric))


def test_chance_reaches_as_far_as_welch_says() -> None:
    # Both have standard error 1 with one degree of freedom: variance 2, two degrees, t(0.975, 2) = 4.30265.
    assert reach(estimate([1, 3]), estimate([2, 4])) == pytest.approx(4.30265 * math.sqrt(2), rel=1e-5)
    # Only one of them scatters, and it alone counts: t(0.975, 1) = 12.7062.
    assert reach(estimate([5, 5, 5]), estimate([1, 3])) == pytest.approx(12.7062, rel=1e-5)
    # Variances of the means 1 and 1/3: freedom (4/3)^2 / (1/1 + (1/9)/2) = 32/19, t(0.975, 32/19) = 5.1765.
    assert reach(estimate([1, 3]), estimate([1, 2, 3])) == pytest.approx(5.1765 * math.sqrt(4 / 3), rel=1e-4)


def test_tiny_scatter_is_scatter() -> None:
    assert reach(estimate([1e-200, 3e-200]), estimate([2e-200, 4e-200])) >= 0
    assert reach(estimate([1, 1 + 1e-9]), estimate([1, 1])) > 0


def test_equal_engines_differ_by_chance_one_time_in_twenty() -> None:
    draws = random.Random(1)
    within = 0
    for _ in range(4000):
        first = estimate([draws.gauss(100, 1) for _ in range(3)])
        second = estimate([draws.gauss(100, 4) for _ in range(5)])
        within += abs(first.mean - second.mean) <= reach(first, second)
    # 0.95 with a standard error of 0.0034; Welch's degrees of freedom are an approximation good to about a per cent.
    assert 0.935 <= within / 4000 <= 0.965


def test_one_repetition_tells_nothing_of_chance() -> None:
    single = comparison([94], [89, 91])
    assert (single.within_spread, single.within_tolerance) == (None, True)
    assert single.difference == 4
    assert view(single).spread == "unknown"


def test_repetitions_that_do_not_scatter_must_be_equal() -> None:
    assert comparison([7, 7], [7, 7]).within_spread is True
    assert comparison([7, 7], [7.001, 7.001]).within_spread is False


@pytest.mark.parametrize(
    ("metric", "value", "reference", "met"),
    [
        ("rtt.p50_ms", 105, 100, True),
        ("rtt.p50_ms", 105.1, 100, False),
        ("rtt.p95_ms", 100, 105, True),  # whichever is the larger
        ("rtt.p95_ms", 100, 105.1, False),
        ("rtt.p50_ms", 1.4, 1.0, True),  # 40 % more, but less than half a millisecond
        ("rtt.p50_ms", 1.6, 1.0, False),
        ("goodput.total_mbit", 9.46, 9.55, True),
        ("goodput.total_mbit", 9.45, 9.55, False),
        ("goodput.total_mbit", 0.005, 0.012, True),
        ("retransmits.total", 114, 100, True),
        ("drops.total", 114, 100, True),
        ("drops.total", 116, 100, False),
        ("marks.total", 0, 5, True),
        ("marks.total", 0, 6, False),
        ("share.bulk_percent", 25, 30, True),
        ("share.bulk.largest_percent", 25, 30.1, False),
        ("rtt.p95_ms", math.inf, math.inf, None),  # hidden by lost probes on both: nothing to judge
        ("rtt.p95_ms", math.inf, 100, False),
    ],
)
def test_aims_have_a_share_and_a_floor(metric: str, value: float, reference: float, met: bool | None) -> None:
    assert comparison([value], [reference], metric).within_tolerance is met


def test_differences_are_told_relative_to_the_reference() -> None:
    assert comparison([90], [100]).relative == pytest.approx(-0.1)
    assert view(comparison([90], [100])).difference == "-10\N{NO-BREAK SPACE}ms (-10.0\N{NO-BREAK SPACE}%)"
    assert math.isnan(comparison([1], [0]).relative)
    assert view(comparison([1], [0])).difference == "+1\N{NO-BREAK SPACE}ms"
    assert view(comparison([math.inf], [0])).difference == "one censored"
    assert view(comparison([math.inf], [math.inf])).difference == "both censored"


def test_medians_stand_for_means_where_losses_hide_some_repetitions() -> None:
    found = comparison([15, 14, math.inf], [14.2, 14.4, 14.6], "rtt.p95_ms")
    assert found.centres == (15, 14.4)
    assert found.difference == pytest.approx(0.6)
    assert found.within_tolerance is True
    assert (view(found).value, view(found).spread) == ("median\N{NO-BREAK SPACE}15", "yes")
    # Half of the repetitions are hidden, and so is the median.
    assert comparison([15, math.inf], [14, 14], "rtt.p95_ms").within_tolerance is False


def test_ranks_tell_what_chance_may_do_to_medians() -> None:
    # Of eight repetitions, the four of one side are the largest in 1 of 70 orders, in 2 with either side.
    assert comparison([math.inf, 7, 6, 5], [4, 3, 2, 1]).within_spread is False
    assert comparison([math.inf, 7, 6, 3], [5, 4, 2, 1]).within_spread is True
    assert comparison([math.inf, 7, 6], [4, 3, 2]).within_spread is True, "one of 20 orders, and its mirror"
    assert comparison([math.inf], [4, 3, 2]).within_spread is None


def run(engine: str, rtt_ms: float, seed: int = 1, label: str = "50p", position: int = 0) -> HandmadeRun:
    """A run of 2 s in which every probe takes `rtt_ms`; only the simulator knows sojourn times."""
    times = range(201)
    rows = {
        "probes": probes([rtt_ms] * 20),
        "queues": [{"t_ns": t * 10 * MS, "packets": t % 50, "bytes": t % 50 * 1514} for t in times],
        "flows": [
            {"flow": "bulk/1", "t_ns": t * 10 * MS, "cwnd_bytes": 10 * MSS, "delivered_bytes": t * 10_000}
            for t in times
        ],
        "sojourns": [{"t_ns": SECOND, "sojourn_ns": MS, "packets": 3}] if engine == "sim" else [],
    }
    return HandmadeRun(
        scenario({"bulk": TCP, "ping": PING}, duration_s=2),
        rows,
        id=f"{label}-{engine}-s{seed}",
        seed=seed,
        point={"link.bottleneck.queue.limit": label},
        engine=engine,
        position=position,
    )


def stored(runs: list[HandmadeRun], results: Path) -> Result:
    return Result([bs.Run(made.write(results)) for made in runs])


def test_engines_are_compared_point_by_point_the_second_is_the_reference(tmp_path: Path) -> None:
    runs = [
        run(engine, rtt_ms + seed, seed, label, position)
        for position, label in enumerate(["50p", "100p"])
        for engine, rtt_ms in (("sim", 40 + 40 * position), ("guest", 40))
        for seed in (1, 2, 3)
    ]
    found = agreement.compare(stored(runs, tmp_path))
    assert found.engines == ("sim", "guest")
    first, second = found.points
    assert [first.values, second.values] == [{"link.bottleneck.queue.limit": label} for label in ("50p", "100p")]
    medians = [point.comparisons[0] for point in found.points]
    assert [c.metric for c in medians] == ["rtt.p50_ms"] * 2
    assert [(c.value.mean, c.reference.mean) for c in medians] == [(42, 42), (82, 42)]
    assert [(c.within_spread, c.within_tolerance) for c in medians] == [(True, True), (False, False)]
    # A single flow has no share to compare.
    assert [c.metric for c in first.judged] == [each.metric for each in TOLERANCES if each.metric != "share.*"]
    assert (found.count(True), found.count(False)) == (10, 2)
    assert any(name.startswith("sojourn.") for name in first.unshared["sim"])
    assert first.unshared["guest"] == ()


def test_losses_are_counted_over_all_ports_and_goodput_is_shared_out() -> None:
    ends = {"a/1": 6_000, "a/2": 2_000, "b/1": 2_000}
    rows: dict[str, Rows] = {
        "flows": [{"flow": flow, "t_ns": 2 * SECOND, "delivered_bytes": end} for flow, end in ends.items()],
        "drops": [
            {"t_ns": SECOND, "port": port, "reason": reason}
            for port, reason in (("r1>h2", "tail"), ("h2>r1", "tail"), ("r1>h2", "codel_mark"))
        ],
        "queues": [{"t_ns": t * SECOND, "port": port} for t in range(3) for port in ("r1>h2", "h2>r1")],
    }
    traffic = {"a": TCP | {"flows": 3}, "b": TCP}
    found = next(measured([HandmadeRun(scenario(traffic, duration_s=2), rows)]))
    assert (found["drops.total"], found["marks.total"]) == (2, 1)
    # The third flow of `a` got nothing.
    assert {name: value for name, value in found.items() if name.startswith("share.")} == {
        "share.a_percent": 80,
        "share.a.largest_percent": 60,
        "share.a.smallest_percent": 0,
        "share.b_percent": 20,
    }


def test_what_is_not_two_engines_is_refused(tmp_path: Path) -> None:
    alone = stored([run("sim", 40)], tmp_path)
    with pytest.raises(bs.StoreError, match="found engines sim; allowed: runs of two engines"):
        agreement.compare(alone)
    halves = stored([run("sim", 40, position=0, label="1p"), run("guest", 40, position=1, label="2p")], tmp_path / "b")
    with pytest.raises(bs.StoreError, match="1p-sim-s1 has no run on guest"):
        agreement.compare(halves)
    changed = run("guest", 40)
    changed.scenario["duration_ns"] *= 2
    with pytest.raises(bs.StoreError, match="differ in duration"):
        agreement.compare(stored([run("sim", 40), changed], tmp_path / "c"))


def test_the_page_shows_both_engines_in_the_same_charts(tmp_path: Path) -> None:
    runs = [run(engine, rtt, seed) for engine, rtt in (("sim", 60.0), ("guest", 50.0)) for seed in (1, 2)]
    page = build(stored(runs, tmp_path / "results"), tmp_path / "page", stills=True)
    text = page.read_text(encoding="utf-8")
    for words in ("sim against guest", "+10\N{NO-BREAK SPACE}ms", "exceeded", "Only sim measures sojourn"):
        assert words in text, words
    assert "bufferscope agree handmade --seed 1 --repeat 2 --reference guest" in text
    by_engine = [spec for spec in specs(text) if '"domain":["sim","guest"]' in spec]
    assert len(by_engine) >= 3, "RTT, queue and window are coloured by engine"
    pictures = {path.name for path in (tmp_path / "page" / "figures").iterdir()}
    assert {f"handmade-1-50p-{figure}.svg" for figure in ("rtt", "queue_length", "cwnd")} <= pictures
    assert "http://" not in text.split("<script>")[0].replace("http://www.w3.org", "")
