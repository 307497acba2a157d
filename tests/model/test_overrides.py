"""Changes to an experiment mean the same as a dict and as texts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laboratory import SMALL, SWEEP, write

import bufferscope as bs
from bufferscope.model.experiment import Experiment, load
from bufferscope.model.overrides import as_texts


def scenario(overrides: Any) -> Any:
    return Experiment("lab", SMALL.encode(), "lab.toml", overrides).points[0].scenario


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("link.line.rate", "2mbit", "link.line.rate=2mbit"),
        ("link.line.delay", "1.5ms", "link.line.delay=1.5ms"),
        ("traffic.bulk.congestion", "ledbat++", "traffic.bulk.congestion=ledbat++"),
        ("traffic.bulk.ecn", True, "traffic.bulk.ecn=true"),
        ("traffic.bulk.flows", 3, "traffic.bulk.flows=3"),
        ("traffic.bulk.flows", np.int64(3), "traffic.bulk.flows=3"),
        ("link.line.queue", {"qdisc": "codel", "ecn": True}, 'link.line.queue={qdisc = "codel", ecn = true}'),
        ("link.line.rate", [["0s", "1mbit"], ["1s", "2mbit"]], 'link.line.rate=[["0s", "1mbit"], ["1s", "2mbit"]]'),
        ("link.line.rate", (("0s", "1mbit"),), 'link.line.rate=[["0s", "1mbit"]]'),
        (
            "link.line.queue",
            {"qdisc": "red", "limit": "1mb", "avpkt": 1000, "probability": 0.02},
            'link.line.queue={qdisc = "red", limit = "1mb", avpkt = 1000, probability = 0.02}',
        ),
    ],
)
def test_a_value_and_its_text_mean_the_same(path: str, value: object, text: str) -> None:
    assert as_texts({path: value}) == [text]
    assert scenario({path: value}) == scenario([text])
    assert scenario({path: value}) != scenario([])


def test_a_number_as_a_text_stays_a_text() -> None:
    assert as_texts({"title": "5"}) == ['title="5"']
    for title in ("5", "true", "inf", "nan", "2026-01-01", "0x10", " a ", 'say "no"', "a\\b", "[1]", "{}", "#", "="):
        assert Experiment("lab", SMALL.encode(), "lab.toml", {"title": title}).title == title


@given(title=st.text(st.characters(exclude_categories=("Cc", "Cs"))).filter(lambda text: 0 < len(text.strip()) < 200))
def test_any_line_arrives_as_it_is(title: str) -> None:
    assert Experiment("lab", SMALL.encode(), "lab.toml", {"title": title}).title == title


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ("link.line.rate=2mbit", ["list of PATH=VALUE", "dict"]),
        ([5], ["found 5", "PATH=VALUE"]),
        ({"title": None}, ["title", "None", "default"]),
        ({"link.line.rate": object()}, ["link.line.rate", "found <object"]),
        ({"link.line.queue": {1: 2}}, ["link.line.queue", "key 1"]),
        ({"title=x": 1}, ["title=x", "path"]),
        ({5: 1}, ["key 5", "path"]),
    ],
)
def test_what_toml_has_not_is_refused(overrides: Any, words: list[str]) -> None:
    with pytest.raises(bs.InputError) as refused:
        as_texts(overrides)
    for word in words:
        assert word in str(refused.value)


def test_runs_are_found_again_by_either(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL)
    changes = {"duration": "1s", "traffic.bulk.ecn": True}
    made = bs.run(path, changes, out=tmp_path / "results")
    assert made.overrides == ["duration=1s", "traffic.bulk.ecn=true"]
    for overrides in (changes, ["duration=1s", "traffic.bulk.ecn=true"]):
        found = bs.load(tmp_path / "results" / "lab", overrides)
        assert [run.id for run in found.runs] == [run.id for run in made.runs]
    with pytest.raises(bs.StoreError):
        bs.load(tmp_path / "results" / "lab", {"duration": "3s"})


def test_a_sweep_is_changed_by_a_list(tmp_path: Path) -> None:
    experiment = load(write(tmp_path, SMALL + SWEEP), {"sweep.link.line.queue.limit": ["5p", "6p"]})
    assert json.loads(json.dumps(experiment.swept)) == {"link.line.queue.limit": ["5p", "6p"]}
