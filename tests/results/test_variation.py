"""The settings by which runs differ, and the names that runs get from them."""

import copy
from pathlib import Path
from typing import Any

import pytest
from handmade import PING, TCP, HandmadeResult, HandmadeRun, pfifo, probes, scenario
from hypothesis import given
from hypothesis import strategies as st
from reports import EXPECTATIONS, LABELS, stored
from reports import run as swept_run

from bufferscope.figures import draw
from bufferscope.figures.source import points, sweep_title
from bufferscope.results.variation import Variation
from bufferscope.results.variation.scenario_diff import unlike
from bufferscope.results.variation.settings import short

LIMIT, QUEUE, CONGESTION = "link.bottleneck.queue.limit", "link.bottleneck.queue", "traffic.bulk.congestion"
TRAFFIC = {"bulk": TCP, "ping": PING}


def run(limit: int = 100, seed: int = 1, **changes: Any) -> HandmadeRun:
    """A run with a queue of this many packets, set by `--set` if it isn't the file's 100."""
    overrides = [] if limit == 100 else [f"{LIMIT}={limit}p"]
    defaults = {"id": f"{limit}-{seed}", "overrides": overrides, "rows": {"probes": probes([20.0, 30.0])}}
    return HandmadeRun(scenario(TRAFFIC, queue=pfifo(limit)), seed=seed, **defaults | changes)


def labels(*runs: HandmadeRun) -> list[str]:
    return Variation(runs).labels


def test_runs_with_other_overrides_are_no_repetitions() -> None:
    result = HandmadeResult([run(100), run(20), run(50), run(200)])
    assert [(point.label, len(point.runs)) for point in points(result)] == [
        ("100p", 1), ("20p", 1), ("50p", 1), ("200p", 1),
    ]  # fmt: skip
    assert sweep_title(result) == "queue limit"
    assert "repetition" not in str(draw(result, "rtt").to_dict()["title"])


def test_repetitions_differ_in_their_seed_alone() -> None:
    result = HandmadeResult([run(20, seed) for seed in (1, 2, 3)])
    (point,) = points(result)
    assert len(point.runs) == 3
    assert Variation(result.runs).keys == ()


def test_a_queue_is_called_by_its_discipline() -> None:
    codel = run(overrides=[QUEUE + '={qdisc="codel", limit="1000p"}'])
    codel.scenario = scenario(TRAFFIC, queue={"qdisc": "codel", "limit_packets": 1000})
    assert labels(run(100), codel) == ["pfifo", "codel"]


def test_queues_of_one_discipline_are_called_by_their_parameters() -> None:
    runs = []
    for target in (5, 20):
        runs.append(run(overrides=[f'{QUEUE}={{qdisc="codel", target="{target}ms"}}']))
        runs[-1].scenario = scenario(TRAFFIC, queue={"qdisc": "codel", "target_ns": target * 10**6})
    assert labels(*runs) == ["codel target=5ms", "codel target=20ms"]


def test_several_settings_are_named_where_their_values_do_not_speak() -> None:
    cubic = scenario({"bulk": TCP | {"congestion": "cubic"}, "ping": PING}, queue=pfifo(20))
    both = run(20, overrides=[f"{LIMIT}=20p", f"{CONGESTION}=cubic"])
    both.scenario = cubic
    assert labels(run(100), run(20), both) == ["limit=100p, reno", "limit=20p, reno", "limit=20p, cubic"]


def test_swept_values_come_first_and_stand_alone() -> None:
    sweep = [run(limit, point={LIMIT: f"{limit}p"}, overrides=[]) for limit in (20, 50)]
    cubic = copy.deepcopy(sweep)
    for each in cubic:
        each.overrides = [f"{CONGESTION}=cubic"]
        each.scenario["traffic"][0]["congestion"] = "cubic"
    assert labels(*sweep, *cubic) == ["20p, reno", "50p, reno", "20p, cubic", "50p, cubic"]
    assert Variation([*sweep, *cubic]).keys == (LIMIT, CONGESTION)


def test_engines_and_kernels_tell_runs_apart() -> None:
    old, new = (run(engine="guest", summary={"kernel": release}) for release in ("6.1.0", "6.12.1"))
    assert labels(run(), run(engine="guest")) == ["sim", "guest"]
    assert labels(old, new) == ["6.1.0", "6.12.1"]
    assert Variation([run(), old]).keys == ("engine",), "the simulator has no kernel that could differ"


def test_an_edited_file_is_told_by_what_is_unlike() -> None:
    long = run()
    long.scenario = scenario(TRAFFIC, duration_s=20, queue=pfifo(100))
    found = Variation([run(), long])
    assert (found.keys, found.labels) == (("duration",), ["10s", "20s"]), "its traffic's end follows the duration"


def test_an_entry_that_only_some_have_is_told_as_a_whole() -> None:
    alone = run()
    alone.scenario = scenario({"bulk": TCP}, queue=pfifo(100))
    found = Variation([run(), alone])
    assert (found.keys, found.labels) == (("traffic.ping",), ["ping", "no ping"])


def test_both_directions_of_a_link_are_told_once() -> None:
    far = run()
    far.scenario = copy.deepcopy(far.scenario)
    for side in ("forward", "reverse"):
        far.scenario["links"][1][side]["delay_ns"] = 50_000_000
    assert Variation([run(), far]).values == [{"link.bottleneck.delay": "5ms"}, {"link.bottleneck.delay": "50ms"}]


def test_a_title_is_no_setting(tmp_path: Path) -> None:
    (stored_run,) = stored([swept_run("50p", overrides=["title=mine", "traffic.bulk.flows=2"])], tmp_path).runs
    assert stored_run.settings == {"traffic.bulk.flows": "2", LIMIT: "50p"}


def test_a_user_s_own_names_lead_the_labels() -> None:
    runs = [run(20), run(100), run(100, seed=2)]
    found = Variation(runs, ["small", "large", "large"])
    assert found.labels == ["small", "large", "large"]
    assert Variation(runs, ["mine", "mine", "mine"]).labels == ["mine, 20p", "mine, 100p", "mine, 100p"]


def test_runs_of_two_experiments_are_called_by_theirs() -> None:
    other = [run(limit, experiment="other", point={LIMIT: f"{limit}p"}, overrides=[]) for limit in (20, 50)]
    found = Variation([run(), *other])
    assert found.labels == ["handmade", "other, 20p", "other, 50p"]
    assert found.keys == (LIMIT, "experiment")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("duration", "10s"),
        ("sample", "10ms"),
        ("sample.flows", "10ms"),
        (
            "record",
            '["probes", "flows", "queues", "drops", "transfers", "sojourns", "capacity", "estimates", '
            '"round_trips", "retransmissions", "one_way"]',
        ),
        (LIMIT, "100p"),
        (QUEUE, "pfifo"),
        ("link.bottleneck.rate", "10mbit"),
        ("link.bottleneck.forward.delay", "5ms"),
        ("host.h1.tcp.initial_window", "10p"),
        ("traffic.bulk.ecn", "false"),
        ("traffic.ping.interval", "100ms"),
        ("link.nowhere.rate", None),
        ("traffic", None),
    ],
)
def test_what_a_run_leaves_to_its_file_is_read_from_its_scenario(path: str, value: str | None) -> None:
    assert short(run(), path, None) == value


def test_what_is_recorded_may_differ() -> None:
    seldom, without = run(), run()
    seldom.scenario["flows_interval_ns"] = 10**9
    without.scenario["record"] = ["probes"]
    assert (short(seldom, "sample", None), short(seldom, "sample.flows", None)) == (None, "1s")
    found = unlike([run().scenario, seldom.scenario, without.scenario])
    assert [each["sample.flows"] for each in found] == ["10ms", "1s", "10ms"]
    assert found[2]["record"] == '["probes"]'
    slow = run().scenario | {"sample_interval_ns": 10**9}
    assert unlike([run().scenario, slow]) == [{"sample": "10ms"}, {"sample": "1s"}]


def test_each_variant_is_held_against_its_own_file(tmp_path: Path) -> None:
    changed = [entry | {"not_applicable": "changed with --set", "comparisons": []} for entry in EXPECTATIONS]
    as_filed = [swept_run(label) for label in LABELS]
    small = swept_run("50p", overrides=["duration=1s"], expectations=changed)
    small.id, small.scenario = "small", scenario(TRAFFIC, duration_s=1)
    result = stored([*as_filed, small], tmp_path)
    judged = [e for e in result.expectations if e.measured is not None]
    alone = [e for e in stored(as_filed, tmp_path / "alone").expectations if e.measured is not None]
    assert [(e.measured, e.runs, e.verdict) for e in judged] == [(e.measured, e.runs, e.verdict) for e in alone]
    assert result.overrides == [], "not every run was changed"


SETTINGS = st.fixed_dictionaries(
    {},
    optional={"limit": st.integers(1, 3), "duration": st.integers(1, 3), "engine": st.sampled_from(["sim", "guest"])},
)


@given(st.lists(st.tuples(SETTINGS, st.booleans()), min_size=1, max_size=8))
def test_labels_are_equal_for_equal_scenarios_and_no_others(drawn: list[tuple[dict[str, Any], bool]]) -> None:
    runs = []
    for chosen, told in drawn:
        network = scenario(TRAFFIC, duration_s=chosen.get("duration", 2), queue=pfifo(chosen.get("limit", 2)))
        overrides = [f"{LIMIT}={chosen['limit']}p"] if told and "limit" in chosen else []
        runs.append(HandmadeRun(network, engine=chosen.get("engine", "sim"), overrides=overrides))
    found = labels(*runs)
    for one, label in zip(runs, found, strict=True):
        for other, other_label in zip(runs, found, strict=True):
            same = one.scenario == other.scenario and one.engine == other.engine
            assert (label == other_label) == same, (label, other_label)
