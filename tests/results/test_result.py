"""A result of several runs: its data frames, its metrics, and its display in a notebook."""

import builtins
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from reports import KEY, LABELS, run, stored

import bufferscope as bs
from bufferscope.metrics import UnknownMetricError
from bufferscope.model.table_names import FrameName


@pytest.fixture
def result(tmp_path: Path) -> bs.Result:
    return stored([run(label, seed) for label in LABELS for seed in (1, 2)], tmp_path / "results")


@pytest.mark.parametrize("table", [*bs.TABLES, "metrics"])
def test_every_frame_has_columns_for_what_varies(result: bs.Result, table: FrameName) -> None:
    frame = result.table(table)
    assert frame.columns[:4] == ["run", "engine", "seed", KEY]
    own = {made.id: (made.engine, made.seed, made.point[KEY]) for made in result.runs}
    told = {row[0]: row[1:] for row in frame.select("run", "engine", "seed", KEY).unique().iter_rows()}
    assert told.items() <= own.items()
    assert frame.is_empty() or len(told) == 4


def test_runs_of_one_name_from_two_places_keep_their_own_settings(tmp_path: Path) -> None:
    """Directories are named by a digest; those of a copied or an older store may have the same name."""
    one, other = run("50p"), run("100p")
    other.id = one.id
    runs = [bs.Run(made.write(tmp_path / place)) for made, place in ((one, "a"), (other, "b"))]
    frame = bs.Result(runs).probes
    assert frame[KEY].to_list() == ["50p"] * 5 + ["100p"] * 5


def test_one_metric_of_every_run(result: bs.Result) -> None:
    found = result.metric("rtt.p30_ms")
    assert found.columns == ["run", "engine", "seed", KEY, "value", "censored"]
    # Five probes, one lost: 30 % lies a fifth of the way from the second to the third order statistic.
    assert found["value"].to_list() == pytest.approx([34, 34, 34, 34])


def test_a_wrong_name_is_answered_with_the_nearest(result: bs.Result) -> None:
    metrics = result.runs[0].metrics
    for error in (KeyError, UnknownMetricError):
        with pytest.raises(error, match=r"^rtt\.p95: this run has no metric of this name; did you mean rtt\.p95_ms"):
            _ = metrics["rtt.p95"]
    assert metrics.get("rtt.p95") is None
    assert "rtt.p95" not in metrics
    with pytest.raises(UnknownMetricError, match=r"rtt\.mean_ms"):
        result.metric("rtt.mean")
    with pytest.raises(bs.InputError, match="did you mean probes"):
        result.table("probe")  # type: ignore[arg-type]
    with pytest.raises(bs.InputError, match="did you mean queue_length"):
        _ = result.figures["queue_lenght"]


def test_a_notebook_shows_a_row_a_point(result: bs.Result) -> None:
    html = result._repr_html_()
    assert html.count("<tr>") == 1 + len(LABELS)
    assert "<td>50p</td>" in html
    assert "<th>RTT p50 (ms)</th>" in html
    assert "queue_length" in html, "the charts that can be asked for"
    alone = result.runs[0]._repr_html_()
    assert f"{KEY} = 50p" in alone
    assert "<td>rtt.p99_ms</td><td>censored</td>" in alone


def test_a_notebook_shows_no_markup_of_a_title(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    made = run("50p", document={"title": evil, "figures": []})
    assert evil not in stored([made], tmp_path)._repr_html_()


def test_pandas_frames_keep_whole_numbers(result: bs.Result) -> None:
    frame = result.to_pandas("probes")
    assert list(frame.columns[:4]) == ["run", "engine", "seed", KEY]
    assert frame["rtt_ns"].isna().sum() == 4
    assert str(frame["rtt_ns"].dtype) == "Int64"
    assert len(result.to_pandas()) == result.metrics.height


def test_without_pandas_the_command_that_installs_it_is_told(
    result: bs.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pandas":
            raise ImportError(name="pandas")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(bs.InputError, match="pip install pandas pyarrow"):
        result.to_pandas("probes")


def test_runs_are_iterated_counted_and_sliced(result: bs.Result) -> None:
    assert len(result) == 4
    assert list(result) == list(result.runs)
    assert result[0] is result.runs[0]
    assert [each.seed for each in result[1:3]] == [2, 1]
    assert isinstance(result[:1], bs.Result)
    with pytest.raises(IndexError):
        result[4]
    with pytest.raises(bs.StoreError, match="no run"):
        result[4:]


def test_runs_are_filtered_by_columns_and_by_a_condition(result: bs.Result) -> None:
    assert {each.point[KEY] for each in result.filter(**{KEY: LABELS[1]})} == {LABELS[1]}
    assert [each.seed for each in result.filter(seed=2, engine="sim")] == [2, 2]
    assert len(result.filter(lambda each: each.metrics["rtt.lost"] >= 0, seed=1)) == 2
    with pytest.raises(bs.InputError, match="none of the 4 runs fulfils seed=9"):
        result.filter(seed=9)
    with pytest.raises(bs.InputError, match="none of the 4 runs fulfils the condition"):
        result.filter(lambda _: False)
    with pytest.raises(bs.InputError, match="no column is called 'sed'; did you mean seed"):
        result.filter(sed=1)


def test_groups_have_equal_values(result: bs.Result) -> None:
    assert {values: len(group) for values, group in result.group_by(KEY).items()} == {(each,): 2 for each in LABELS}
    assert list(result.group_by("seed", KEY)) == [
        ("1", LABELS[0]),
        ("2", LABELS[0]),
        ("1", LABELS[1]),
        ("2", LABELS[1]),
    ]
    assert [len(group) for group in result.group_by().values()] == [4]


def test_a_summary_has_intervals_over_the_repetitions(result: bs.Result) -> None:
    frame = result.summary(metrics=["rtt.p50_ms", "rtt.max_ms"])
    assert frame.columns == [KEY, "metric", "unit", "n", "mean", "low", "high", "median", "censored"]
    assert frame.height == 4, "two points and two metrics"
    for label in LABELS:
        runs = [each for each in result if each.point[KEY] == label]
        found = bs.metrics.aggregate([each.metrics for each in runs])["rtt.p50_ms"]
        row = frame.row(by_predicate=(pl.col(KEY) == label) & (pl.col("metric") == "rtt.p50_ms"), named=True)
        assert (row["n"], row["unit"], row["mean"], row["low"]) == (2, "ms", found.mean, found.low)
    by_seed = result.summary(["seed"], ["rtt.p50_ms"])
    assert by_seed["seed"].to_list() == ["1", "2"]
    censored = result.summary([], ["rtt.p99_ms"]).row(0, named=True)
    assert censored["censored"]
    assert censored["mean"] is None
    with pytest.raises(bs.InputError, match="no column is called 'nothing'"):
        result.summary(["nothing"])
