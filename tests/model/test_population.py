"""Populations: members are drawn by their numbers alone, are run like any other run, and judged by group."""

import json
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from clusters import cluster
from laboratory import Answer, files, start, write

import bufferscope as bs
from bufferscope.base.errors import ExperimentError
from bufferscope.figures.source import points
from bufferscope.model.experiment import load
from bufferscope.results.verdicts import Verdict
from bufferscope.running import layout

Cli = Callable[..., Answer]

HOMES = """
title = "Homes"
duration = "3s"
warmup = "500ms"
record = ["estimates", "probes"]
figures = ["buffers", "rtt_members"]

[[link]]
name = "access"
ends = ["home", "server"]
rate = "1mbit"
delay = "10ms"
queue = { qdisc = "bfifo", limit = "32kb" }

[[traffic]]
name = "test"
kind = "netalyzr"
from = "home"
to = "server"
probes = 5
load = "1s"
pause = "200ms"

[[traffic]]
name = "others"
kind = "irtt"
from = "home"
to = "server"
interval = "100ms"

[sweep]
"link.access.queue" = { "tail drop" = "drawn", fq_codel = { qdisc = "fq_codel" } }

[population]
sessions = 12

[population.group.slow]
[population.group.slow.draw]
"link.access.rate" = { from = "uniform", min = "500kbit", max = "1mbit" }
"link.access.queue.limit" = { from = "choice", values = ["16kb", "32kb"] }

[population.group.fast.draw]
"link.access.rate" = { from = "lognormal", median = "5mbit", sigma = 0.3, min = "2mbit", max = "10mbit" }
"""

EXPECT = """
[[expect]]
metric = "buffer.test.up_mbit"
where = { "link.access.queue" = "tail drop" }
group = "slow"
share_in = [-inf, 1]
says = "slow homes have less than one megabit"
band = [1, 1]

[[expect]]
metric = "buffer.test.up_mbit"
where = { "link.access.queue" = "tail drop" }
group = "fast"
says = "fast homes have more"
band = [1.5, 10]
"""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> bs.Result:
    """Twelve homes at both points, each run in a directory of its own."""
    directory = tmp_path_factory.mktemp("homes")
    return bs.run(write(directory, HOMES + EXPECT, "homes.toml"), out=directory / "results")


def settled(out: Path) -> dict[str, object]:
    """Tables as bytes, and `run.json` without what differs from run to run."""
    return {
        path: {key: value for key, value in json.loads(content).items() if key not in ("started", "wall_s", "cpu_s")}
        if path.endswith(".json")
        else content
        for path, content in files(out).items()
    }


def test_every_point_is_run_once_for_each_member(homes: bs.Result) -> None:
    assert [run.seed for run in homes.runs] == [*range(1, 13)] * 2
    drawn = [run.meta["member"] for run in homes.runs]
    values = [(member["group"], member["values"]) for member in drawn]
    assert values[:12] == values[12:], "the same members at both points"
    assert {group for group, _ in values} == {"slow", "fast"}
    for run, (group, found) in zip(homes.runs[:12], values[:12], strict=True):
        port = run.scenario["links"][0]["forward"]
        assert port["rate"]
        mbit = port["rate"][0]["bits_per_second"] / 1e6
        assert (0.5 <= mbit <= 1) if group == "slow" else (2 <= mbit <= 10)
        assert port["queue"].get("limit_bytes") in ((16 << 10, 32 << 10) if group == "slow" else (32 << 10,))
        assert ("link.access.queue.limit" in found) == (group == "slow")
    assert all(run.scenario["links"][0]["forward"]["queue"]["qdisc"] == "fq_codel" for run in homes.runs[12:])


def test_members_are_repetitions_of_their_point(homes: bs.Result) -> None:
    assert homes.varying == ("link.access.queue",)
    assert [(point.label, len(point.runs)) for point in points(homes)] == [("tail drop", 12), ("fq_codel", 12)]
    members = homes.members
    assert members["seed"].to_list() == [*range(1, 13)] * 2
    assert members.filter(group="fast")["link.access.queue.limit"].null_count() == members.filter(group="fast").height
    assert members["link.access.rate"].null_count() == 0


def test_the_first_members_of_a_larger_population_are_those_of_a_smaller_one(tmp_path: Path) -> None:
    path = write(tmp_path, HOMES)
    few = bs.run(path, out=tmp_path / "few")
    many = bs.run(path, {"population.sessions": 15}, out=tmp_path / "many")
    later = bs.run(path, out=tmp_path / "later", seed=13, repeat=3)
    by_seed = {(run.seed, *run.point.values()): run for run in many.runs}
    for run in (*few.runs, *later.runs):
        same = by_seed[run.seed, *run.point.values()]
        assert run.scenario == same.scenario
        assert run.estimates.drop("run").equals(same.estimates.drop("run"))


def test_the_buffer_is_inferred_in_one_place_and_the_truth_is_beside_it(homes: bs.Result) -> None:
    for run in homes.runs[:12]:
        found = run.metrics
        down, up = run.estimates.iter_rows(named=True)
        assert (down["direction"], up["direction"]) == ("down", "up")
        added_ms = (up["loaded_ns"] - up["idle_ns"]) / 1e6
        assert found["buffer.test.up_added_ms"] == pytest.approx(added_ms)
        kib = up["rate_bps"] / 8 * added_ms / 1e3 / 1024
        assert found["buffer.test.up_inferred_kib"] == pytest.approx(kib)
        queue = run.scenario["links"][0]["forward"]["queue"]
        assert queue["qdisc"] == "bfifo"
        true = queue["limit_bytes"] / 1024
        assert found["buffer.test.up_true_kib"] == true
        assert found["buffer.test.up_inferred_share"] == pytest.approx(kib / true)
    assert not any("true" in name or "share" in name for run in homes.runs[12:] for name in run.metrics), (
        "a discipline that drops earlier has no size"
    )


def test_a_statement_may_be_about_a_group_and_about_a_share(homes: bs.Result) -> None:
    share, mean = homes.expectations
    groups = [run.meta["member"]["group"] for run in homes.runs[:12]]
    assert (share.measured, share.runs, share.verdict) == (1, groups.count("slow"), Verdict.REPRODUCED)
    rates = [run.metrics["buffer.test.up_mbit"] for run in homes.runs[:12] if run.meta["member"]["group"] == "fast"]
    assert mean.measured == pytest.approx(sum(rates) / len(rates))
    assert (mean.runs, mean.verdict) == (len(rates), Verdict.REPRODUCED)
    assert share.expectation.subject == "buffer.test.up_mbit of slow, share up to 1"


def test_the_scatter_shows_each_session_as_inferred_and_as_it_is(homes: bs.Result) -> None:
    chart = homes.figures["buffers"].to_dict()
    assert [panel["title"]["text"] for panel in chart["concat"]] == [
        *("uplink: inferred", "uplink: true", "downlink: inferred", "downlink: true")
    ]
    datasets = max(chart["datasets"].values(), key=len)
    rows = {row["session"]: row for row in datasets}
    for run in homes.runs[:12]:
        expected = run.metrics["buffer.test.up_inferred_kib"]
        assert rows[run.seed]["up_inferred_kib"] == pytest.approx(expected, rel=5e-3)
        assert rows[run.seed]["group"] == run.meta["member"]["group"]
    assert homes.figures["rtt_members"].to_dict()["title"]["text"] == "The delay of the population"


def test_members_are_stored_together_and_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, HOMES)
    alone = bs.run(path, out=tmp_path / "alone", layout="single")
    monkeypatch.setattr(layout, "MOST_RUNS", 10)
    first = bs.run(path, out=tmp_path / "together", layout="sweep")
    assert len({run.partition.path for run in first.runs if run.partition}) == 8
    assert [run.metrics for run in first.runs] == [run.metrics for run in alone.runs]
    before = files(tmp_path / "together")
    again = bs.run(path, out=tmp_path / "together", layout="sweep", reuse=True)
    assert files(tmp_path / "together") == before
    assert [run.id for run in again.runs] == [run.id for run in first.runs]
    more = bs.run(path, {"population.sessions": 14}, out=tmp_path / "together", layout="sweep", reuse=True)
    assert len(more.runs) == 28
    assert set(files(tmp_path / "together")) > set(before)


def test_a_population_on_a_cluster_is_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, HOMES)
    bs.run(path, out=tmp_path / "here", layout="single")
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as there:
        bs.run(path, out=tmp_path / "there", cluster=there.address)
    assert settled(tmp_path / "there") == settled(tmp_path / "here")


def test_ctrl_c_leaves_complete_partitions(tmp_path: Path) -> None:
    path = write(tmp_path, HOMES)
    many = ["run", path.name, "--set", "population.sessions=20000", "--out", "results", "--no-report"]
    with start(many, tmp_path) as process:
        experiment_dir = tmp_path / "results" / "lab"
        while not list(experiment_dir.glob("runs-*")):
            assert process.poll() is None, process.communicate()
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 130, told
    stored = bs.load(experiment_dir)
    assert 0 < len(stored.runs) < 40_000
    assert not [entry for entry in experiment_dir.iterdir() if not entry.name.startswith("runs-")]
    assert all(math.isfinite(value) for value in stored.runs[-1].metrics.values())


def test_json_tells_the_members(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path, HOMES)
    answer = cli("run", str(path), "--set", "population.sessions=2", "--out", str(tmp_path / "results"), "--json")
    runs = json.loads(answer.out)["runs"]
    assert [run["seed"] for run in runs] == [1, 2, 1, 2]
    assert [run["member"] for run in runs[:2]] == [run["member"] for run in runs[2:]]
    drawn = bs.load(tmp_path / "results" / "lab").runs[0].meta["member"]
    assert runs[0]["member"] == {"group": drawn["group"], "values": drawn["values"]}


def test_what_no_member_could_be_is_refused(tmp_path: Path) -> None:
    bad = HOMES.replace('max = "1mbit"', 'max = "999gbit"')
    with pytest.raises(ExperimentError, match=r"link\.access\.rate.*group\.slow"):
        load(write(tmp_path, bad))


def test_a_kernel_engine_refuses_the_test_by_name(tmp_path: Path) -> None:
    from bufferscope import _core

    point = load(write(tmp_path, HOMES)).points[0]
    with pytest.raises(_core.PlanError, match=r"traffic `test`: .* netalyzr; use --engine sim"):
        _core.check_on_linux(point.core)


def test_the_metadata_of_many_partitions_does_not_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bufferscope.store import partition

    monkeypatch.setattr(layout, "MOST_RUNS", 3)
    monkeypatch.setattr(partition._recent, "_most", 2)
    result = bs.run(write(tmp_path, HOMES), out=tmp_path, layout="sweep")
    assert len(partition._recent._kept) == 2
    seeds = [run.seed for run in result.runs]
    assert seeds == [*range(1, 13)] * 2
    assert len(partition._recent._kept) == 2
    assert isinstance(result.metric("rtt.p50_ms"), pl.DataFrame)
