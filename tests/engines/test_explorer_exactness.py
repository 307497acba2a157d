"""The explorer's simulator, in WebAssembly, gives the same runs as the native one, and the same numbers."""

import math

import explorers
import pytest
from explorers import Request, exact, in_node, native, request
from laboratory import ROUTED

import bufferscope as bs
from bufferscope.model.experiment import Experiment, load


def _experiment(text: str) -> Experiment:
    return Experiment("lab", text.encode(), "lab.toml")


def test_every_experiment_has_the_same_run_as_natively() -> None:
    runs = list(explorers.every_run())
    answers = in_node(request(experiment, index, seed=7) for experiment, index in runs)
    explorers.check_runs(runs, answers, seed=7)


def test_steps_and_logs_of_packets_change_nothing_and_changes_the_same() -> None:
    experiment = _experiment(ROUTED)
    changes = [(700_000_000, ["link.line.rate=1mbit"]), (1_200_000_000, ["link.line.queue.limit=5p"])]
    base = request(experiment) | {"changes": [{"at_ns": at_ns, "sets": sets} for at_ns, sets in changes]}
    variants: list[Request] = [{"steps": 1}, {"steps": 333}, {"watch": ["r1>h2", "h2>r1", "h1>r1"]}]
    expected = native(experiment.points[0], 1, changes)
    assert expected != native(experiment.points[0], 1)
    for variant, answer in zip(variants, in_node(base | each for each in variants), strict=True):
        assert exact(answer["summary"]) == expected, variant


def test_the_numbers_of_traffic_are_the_metrics() -> None:
    sets = {
        "mininet-mitigations": ["duration=20s"],
        "battling-rrul": ["duration=20s"],
        "dark-web": [],
    }
    experiments = [load(name, overrides) for name, overrides in sets.items()]
    compared = 0
    for experiment, answer in zip(experiments, in_node(map(request, experiments)), strict=True):
        metrics = bs.Simulation(experiment).finish().metrics
        probers = [each["name"] for each in answer["opened"]["traffic"] if each["kind"] in ("ping", "irtt")]
        for numbers in answer["summary"]["traffic"]:
            name, rtt_ms, transfer_ms = numbers["name"], numbers["rtt_ms"], numbers["transfer_ms"]
            found = {f"goodput.{name}_mbit": numbers["goodput_bps"] and numbers["goodput_bps"] / 1e6}
            if probers == [name]:
                # A percentile among lost probes is null: JSON has no infinity.
                found |= {f"rtt.{key}_ms": rtt_ms[key] or math.inf for key in ("p50", "p95", "p99", "max", "mean")}
            if transfer_ms and numbers["unfinished"] == 0:
                found |= {f"transfer.{name}.{key}_s": transfer_ms[key] / 1e3 for key in ("mean", "p95", "max")}
            for metric, value in found.items():
                assert (value is None) == (metric not in metrics), metric
                if value is not None:
                    assert value == pytest.approx(metrics[metric], rel=1e-12), metric
                    compared += 1
    assert compared > 10


def test_what_is_refused_and_why() -> None:
    lab = _experiment(ROUTED)
    broken = request(lab) | {"toml": ROUTED.replace('rate = "100mbit"', 'rate = "fast"')}
    many = request(lab) | {"sets": ["traffic.bulk.flows=10000"]}
    no_point = request(lab) | {"point": 7}
    no_change = request(lab) | {"changes": [{"at_ns": 500_000_000, "sets": ["link.line.rate=1mbit", "sample=20ms"]}]}
    no_toml = request(lab) | {"toml": "= ["}
    by_set = request(lab) | {"sets": ["link.line.rate=0mbit"]}
    refused = [answer["refused"] for answer in in_node([broken, many, no_point, no_change, no_toml, by_set])]
    line = broken["toml"].split('rate = "fast"')[0].count("\n") + 1
    assert (refused[0]["line"], refused[0]["column"]) == (line, 1)
    assert refused[0]["problems"][0]["path"] == "link.access.rate"
    assert "10000 flows" in refused[1]["message"]
    assert "there is no point 7" in refused[2]["message"]
    assert refused[3]["message"].startswith("sample: not possible in a running simulation")
    assert refused[4]["line"] == 1
    assert "line" not in refused[5]
    assert refused[5]["problems"][0]["set"] == "link.line.rate=0mbit"


def test_series_have_bounds_and_logs_say_where_they_end() -> None:
    lab = _experiment(ROUTED)
    long = request(lab) | {"sets": ["duration=60s", "link.line.rate=50mbit"], "watch": ["r1>h2"]}
    (answer,) = in_node([long])
    counts = answer["counts"]
    assert max(count for name, count in counts.items() if name.startswith(("ports", "flows"))) <= 2000
    assert counts["packets r1>h2"] == 1 << 19
    assert answer["opened"]["duration_ns"] == 60_000_000_000
