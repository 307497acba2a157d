"""The experiments that come with bufferscope."""

from pathlib import Path

import pytest

import bufferscope as bs
from bufferscope.model.experiment import load, name_of, teaching_position

COURSE = [
    "ucas-reproduce",
    "ucas-queue-sizes",
    "mininet-buffer-size",
    "mininet-page-times",
    "mininet-rtt-equation",
    "ucas-mitigate",
    "mininet-mitigations",
    "battling-tcp-bidirectional",
    "battling-tcp-asymmetric",
    "battling-rrul",
    "battling-rrul-path",
    "battling-udp-flood",
    "lncc-ring",
    "lncc-qdisc",
    "lncc-surface",
    "lncc-window",
    "lncc-bql",
    "dark-throughput-delay",
    "dark-smokeping",
    "dark-cubic-trace",
    "dark-reaction-time",
    "dark-starvation",
    "dark-wifi",
    "dark-wifi-shared",
    "wifi-anomaly",
    "wifi-anomaly-arrivals",
    "wifi-anomaly-losses",
    "wifi-latency",
    "dark-3g",
    "dark-shaping",
    "dark-web",
    "dark-netalyzr",
    "congestion-controls",
]


def test_the_catalogue_begins_with_the_experiments_in_teaching_order() -> None:
    assert bs.catalogue()[: len(COURSE)] == COURSE


def test_an_experiment_without_a_place_in_the_course_comes_after_it_by_name() -> None:
    assert sorted(["zebra", *reversed(COURSE), "apple"], key=teaching_position) == [*COURSE, "apple", "zebra"]


@pytest.mark.parametrize("name", bs.catalogue())
def test_every_experiment_says_what_it_reproduces_and_what_to_expect(name: str) -> None:
    loaded = load(name)
    assert loaded.document["source"]
    assert loaded.document["description"]
    assert loaded.document["figures"]
    assert loaded.expectations


def test_a_sweep_gives_its_points_in_order() -> None:
    labels = [point.values["link.bottleneck.queue.limit"] for point in load("ucas-queue-sizes").points]
    assert labels == ["50p", "50p", "100p", "100p", "200p", "200p"]


@pytest.mark.parametrize("name", ["ucas-reproduce", "ucas-queue-sizes", "mininet-buffer-size", "mininet-mitigations"])
def test_a_lab_is_judged_as_it_was_run_and_shown_without_offload_too(name: str) -> None:
    loaded = load(name)
    segments = {point.values["tcp.gso_max_segs"]: point.scenario["nodes"] for point in loaded.points}
    assert {label: {node["tcp"]["gso_max_segs"] for node in nodes} for label, nodes in segments.items()} == {
        "offload on": {45},
        "offload off": {1},
    }
    assert {entry["where"]["tcp.gso_max_segs"] for entry in loaded.expectations} == {"offload on"}


def test_an_override_changes_the_scenario_and_ends_the_sweep_over_it() -> None:
    (point,) = load("ucas-queue-sizes", ["link.bottleneck.queue.limit=7p", "tcp.gso_max_segs=1"]).points
    assert point.scenario["links"][1]["forward"]["queue"] == {"qdisc": "pfifo", "limit_packets": 7}


def test_a_file_of_a_catalogue_name_needs_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ucas-reproduce").write_text("title = 5")
    assert load("ucas-reproduce").title.startswith("Reproducing")
    with pytest.raises(bs.ExperimentError, match="title"):
        load("./ucas-reproduce")


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/my lab.toml", "my-lab"), ("../../x.toml", "x"), ("...toml", "experiment"), ("实验.toml", "experiment")],
)
def test_results_are_filed_under_a_name_that_suits_file_systems(path: str, name: str) -> None:
    assert name_of(Path(path)) == name


def test_the_repr_tells_name_and_size() -> None:
    assert repr(load("ucas-queue-sizes")) == "Experiment('ucas-queue-sizes', 6 points)"
