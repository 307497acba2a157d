"""Comparing stored runs."""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from handmade import MS, PING, TCP, HandmadeRun, pfifo, probes, scenario
from laboratory import SMALL, SWEEP, Answer, write

import bufferscope as bs
from bufferscope.studies.comparison import Comparison, PointComparison

Cli = Callable[..., Answer]
LIMIT = "link.bottleneck.queue.limit"
TRAFFIC = {"bulk": TCP, "ping": PING}


def run(rtt_ms: float, limit: int = 100, seed: int = 1, **changes: Any) -> HandmadeRun:
    """A run whose probes all take this long."""
    queues = [
        {"t_ns": t * 10 * MS, "packets": limit, "bytes": limit * 1514, "sent_bytes": t * 9000} for t in range(201)
    ]
    defaults: dict[str, Any] = {
        "id": f"{limit}-{changes.get('engine', 'sim')}-s{seed}",
        "overrides": [] if limit == 100 else [f"{LIMIT}={limit}p"],
        "rows": {"probes": probes([rtt_ms] * 20), "queues": queues},
        "document": {"title": "Made by hand", "figures": ["rtt", "queue_length"]},
    }
    network = scenario(TRAFFIC, duration_s=2, queue=pfifo(limit))
    return HandmadeRun(network, seed=seed, **defaults | changes)


def stored(directory: Path, runs: Sequence[HandmadeRun]) -> Path:
    """The runs in a directory of results; their experiment's directory."""
    *_, last = [made.write(directory) for made in runs]
    return last.parent


def swept(rtts_ms: Sequence[float], limits: Sequence[int], **changes: Any) -> list[HandmadeRun]:
    """One run per swept limit."""
    more: dict[str, Any] = {"overrides": [], **changes}
    return [
        run(rtt, limit, point={LIMIT: f"{limit}p"}, position=place, **more)
        for place, (rtt, limit) in enumerate(zip(rtts_ms, limits, strict=True))
    ]


def difference(point: PointComparison, metric: str = "rtt.p50_ms") -> float:
    (found,) = point.differences(metric)
    return found.comparison.difference


def test_variants_of_one_experiment_are_held_against_the_file(tmp_path: Path) -> None:
    found = bs.compare(stored(tmp_path, [run(120), run(40, 20), run(70, 50)]))
    assert (found.arms, found.baseline) == (("100p", "20p", "50p"), "100p")
    (point,) = found.points
    assert {d.arm: d.comparison.difference for d in point.differences("rtt.p50_ms")} == {"20p": -80, "50p": -50}


def test_the_interval_is_welch_s(tmp_path: Path) -> None:
    rtts = {100: [118, 120, 122], 20: [40, 41, 45]}
    made = [run(rtt, limit, seed) for limit, own in rtts.items() for seed, rtt in enumerate(own)]
    (point,) = bs.compare(stored(tmp_path, made)).points
    (found,) = point.differences("rtt.p50_ms")
    # Variances 4 and 7 over 3 runs each: a standard error of sqrt(11 / 3), and (4 + 7)^2 / ((16 + 49) / 2) = 3.723
    # degrees of freedom, for which Student's t is 2.8598 at 97.5 % (R: qt(0.975, 121/32.5)).
    reach = 2.8598 * math.sqrt(11 / 3)
    assert found.comparison.difference == -78
    assert (found.low, found.high) == pytest.approx((-78 - reach, -78 + reach), rel=1e-3)


def test_points_with_the_same_swept_values_meet(tmp_path: Path) -> None:
    reno = swept([30, 60, 110], [20, 50, 100])
    cubic = swept([35, 70], [20, 50], overrides=["traffic.bulk.congestion=cubic"])
    for made in cubic:
        made.id += "-cubic"
        made.scenario["traffic"][0]["congestion"] = "cubic"
    found = bs.compare(stored(tmp_path, [*reno, *cubic]))
    assert found.arms == ("reno", "cubic")
    assert {point.title: difference(point) for point in found.points} == {"20p": 5, "50p": 10}
    assert [(point.title, [arm.label for arm in point.arms]) for point in found.unmatched] == [("100p", ["reno"])]
    assert found.table.columns[0] == LIMIT


def test_a_single_sweep_s_points_are_held_against_its_first(tmp_path: Path) -> None:
    found = bs.compare(stored(tmp_path, swept([30, 60], [20, 50])))
    assert found.arms == ("20p", "50p")
    assert difference(found.points[0]) == 30


def test_names_are_the_user_s_where_given(tmp_path: Path) -> None:
    before, after = stored(tmp_path / "old", [run(120)]), stored(tmp_path / "new", [run(40, 20)])
    for found in (
        bs.compare({"before": before, "after": after}),
        bs.compare(before, after, labels=["before", "after"]),
        bs.compare(after, before, labels=["after", "before"], baseline="before"),
    ):
        assert (found.baseline, difference(found.points[0])) == ("before", -80)
    with pytest.raises(bs.InputError, match="did you mean before"):
        bs.compare({"before": before, "after": after}, baseline="befor")
    with pytest.raises(bs.InputError, match="1 labels for 2"):
        bs.compare(before, after, labels=["before"])


def test_the_same_scenario_and_seed_from_two_places_is_told_by_place(tmp_path: Path) -> None:
    before, after = (stored(tmp_path / place, [run(rtt)]) for place, rtt in (("old", 120), ("new", 90)))
    found = bs.compare(before, after)
    assert found.arms == ("old", "new")
    assert difference(found.points[0]) == -30


def test_seeds_are_repetitions_and_not_sides(tmp_path: Path) -> None:
    directory = stored(tmp_path, [run(100 + seed, seed=seed) for seed in (1, 2, 3)])
    with pytest.raises(bs.InputError, match="differ at most in the seed"):
        bs.compare(directory)
    found = bs.compare(*(directory / f"100-sim-s{seed}" for seed in (1, 2, 3)), stored(tmp_path / "b", [run(50, 20)]))
    assert found.arms == ("100p", "20p")
    assert found.points[0].differences("rtt.p50_ms")[0].comparison.reference.n == 3


def test_a_run_given_twice_counts_once(tmp_path: Path) -> None:
    directory = stored(tmp_path, [run(120), run(40, 20)])
    found = bs.compare(directory, directory / "100-sim-s1", bs.load(directory))
    assert [len(arm.runs) for arm in found.points[0].arms] == [1, 1]


def test_experiments_and_engines_are_sides_too(tmp_path: Path) -> None:
    stored(tmp_path, [run(120), run(110, engine="guest", summary={"kernel": "6.1"})])
    stored(tmp_path, [run(40, experiment="another")])
    assert bs.compare(tmp_path).arms == ("another, sim", "handmade, sim", "handmade, guest")
    assert bs.compare(tmp_path / "handmade").arms == ("sim", "guest")


def test_what_is_hidden_or_missing_is_null_in_the_table(tmp_path: Path) -> None:
    lossy = run(40, 20, rows={"probes": probes([40.0, None, None])})
    table = bs.compare(stored(tmp_path, [run(120), lossy])).table
    row = table.row(by_predicate=(pl.col("metric") == "rtt.p95_ms"), named=True)
    assert row["value"] is None
    assert row["baseline_value"] == 120
    assert row["difference"] is None
    assert row["beyond_chance"] is None, "one repetition tells nothing of chance"
    assert (row["side"], row["baseline"], row["unit"], row["n"]) == ("20p", "100p", "ms", 1)


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    made = [run(rtt + seed, limit, seed) for rtt, limit in ((120, 100), (40, 20)) for seed in (1, 2)]
    return bs.compare(stored(tmp_path / "results", made))


def test_all_sides_are_in_the_same_charts(comparison: Comparison) -> None:
    assert list(comparison.figures) == ["rtt", "queue_length"]
    chart = json.dumps(comparison.figures["rtt"].to_dict())
    assert '"100p"' in chart
    assert '"20p"' in chart
    with pytest.raises(KeyError, match="did you mean rtt_cdf"):
        _ = comparison.figures["rtt_cfd"]


def test_the_page_tells_differences_and_draws_both(comparison: Comparison, tmp_path: Path) -> None:
    page = comparison.report(tmp_path / "page", stills=True)
    html = page.read_text()
    assert "<h1>100p against 20p</h1>" in html
    assert re.search(r'<td class="number">-80\N{NO-BREAK SPACE}ms ±.*\(-65.8\N{NO-BREAK SPACE}%\)</td>', html)
    assert html.count('class="spec"') == 3, "rtt, queue length, and the distribution beside them"
    assert {file.name for file in (page.parent / "figures").glob("*.svg")} == {
        f"comparison-1-{name}.svg" for name in ("rtt", "queue_length", "rtt_cdf")
    }
    assert "--set link.bottleneck.queue.limit=20p" in html


def test_a_notebook_shows_the_table(comparison: Comparison) -> None:
    html = comparison._repr_html_()
    assert "<td>rtt.p50_ms</td><td>20p</td>" in html
    assert "Difference to 100p" in html


def test_a_side_s_name_cannot_become_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    found = bs.compare({evil: stored(tmp_path / "a", [run(120)]), "b": stored(tmp_path / "b", [run(40, 20)])})
    assert evil not in found._repr_html_()
    assert evil not in found.report(tmp_path / "page").read_text()


def test_the_command_compares_what_was_run(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + SWEEP)
    assert cli("run", "lab.toml", "--quiet").status == 0
    assert cli("run", "lab.toml", "--quiet", "--set", "traffic.bulk.congestion=cubic").status == 0
    answer = cli("compare", "results")
    assert answer.status == 0
    assert "Difference to reno" in answer.out
    assert "Wrote" not in answer.err
    assert answer.out.splitlines()[-1] == f"The page: {tmp_path}/comparison/index.html"
    document = json.loads(cli("compare", "results/lab", "--json", "--baseline", "cubic").out)
    assert (document["sides"], document["baseline"]) == (["reno", "cubic"], "cubic")
    assert [point["point"] for point in document["points"]] == [
        {"link.line.queue.limit": f"{n}p"} for n in (10, 20, 40)
    ]
    assert {found["side"] for point in document["points"] for found in point["differences"]} == {"reno"}
    assert len(document["runs"]) == 6
    assert "report" not in document


def test_patterns_and_names_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    stored(tmp_path / "results", [run(120), run(40, 20)])
    answer = cli("compare", "large=results/handmade/100-*", "small=results/handmade/20-*", "--no-report")
    assert answer.status == 0
    assert "Difference to large" in answer.out
    assert not (tmp_path / "comparison").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere: no such run"),
        (["results/handmade/7*"], "no file or directory matches"),
        (["results/handmade/100-sim-s1"], "nothing to compare"),
        (["results", "--label", "a", "--label", "b"], "found 2 labels for 1 things"),
        (["results", "--report", "x", "--no-report"], "exclude one another"),
    ],
)
def test_what_cannot_be_compared_is_refused(cli: Cli, tmp_path: Path, arguments: list[str], words: str) -> None:
    stored(tmp_path / "results", [run(120), run(40, 20)])
    answer = cli("compare", *arguments)
    assert answer.status == 2
    assert words in answer.err


def test_a_pattern_is_compared_with_the_first_point_of_the_file(tmp_path: Path) -> None:
    """The directories `100-...` and `50-...` match in the order of the alphabet, 100p first."""
    experiment_dir = stored(tmp_path, swept([30, 60, 110], [20, 50, 100]))
    assert bs.compare(f"{experiment_dir}/[15]*").baseline == "50p"
    assert bs.compare(experiment_dir / "100-sim-s1", experiment_dir / "50-sim-s1").baseline == "100p", (
        "the first that is named"
    )


def test_variants_come_in_the_order_in_which_they_were_first_run(tmp_path: Path) -> None:
    """By the alphabet, 100p is before 5p and the guest before the simulator."""
    experiment_dir = stored(tmp_path, [run(30, 5), run(110, 1000), run(32, 5, seed=2), run(31, 5, engine="guest")])
    for directory, minute in (("5-sim-s1", 1), ("5-sim-s2", 9), ("5-guest-s1", 8), ("1000-sim-s1", 2)):
        path = experiment_dir / directory / "run.json"
        path.write_text(path.read_text().replace("2026-01-01T00:00", f"2026-01-01T00:0{minute}"))
    assert bs.compare(experiment_dir).arms == ("limit=5p, sim", "limit=5p, guest", "limit=1000p, sim")
