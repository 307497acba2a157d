"""The types of scenarios, expectations and metadata agree with what the native core and the engines write."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, get_args

import pytest
from laboratory import SMALL, SWEEP, write
from structures import declared, hold

import bufferscope as bs
from bufferscope.base.reading import NamedFiles
from bufferscope.model.expectations import ExpectationEntry
from bufferscope.model.experiment import Experiment, ExperimentDocument, catalogue, load
from bufferscope.model.scenario import CongestionControl, Scenario
from bufferscope.store.metadata import Metadata, Summary, checked
from bufferscope.store.reading import read_metadata

EVERY_KEY = Path(__file__).parents[2] / "crates" / "scenario" / "tests" / "it" / "every_key.toml"


def every_key(*overrides: str) -> Experiment:
    """The file of every key. The trace that it names has one opportunity a millisecond."""
    named = NamedFiles(known={"cell.down": b"1\n"})
    return Experiment("every-key", EVERY_KEY.read_bytes(), EVERY_KEY.name, overrides, named)


@pytest.fixture(scope="module")
def experiments() -> list[Experiment]:
    """The catalogue, and all keys with all values that are words; a ping has no payload."""
    own_keys = ("window", "ledbat", "ledbat++")
    """They need keys of their own, which other traffic of the file has."""
    words = [f"traffic.answer.congestion={name}" for name in get_args(CongestionControl) if name not in own_keys]
    words += ["traffic.slow.congestion=ledbat++", "traffic.flood.periods=fixed", "traffic.flood.pattern=constant"]
    words += [
        'record=["flows", "transfers"]',
        "traffic.ping.size=0",
        "sojourns=histogram",
        "link.fifo.reverse.queue={qdisc='bfifo', limit='150kb'}",
        "link.fifo.txqueuelen=20p",
    ]
    return [*map(load, catalogue()), every_key(), *map(every_key, words)]


def missing(values: Iterator[Any], kind: Any) -> set[str]:
    """What is declared and occurs in none of the values; everything in the values is declared."""
    occurred = set()
    for number, value in enumerate(values):
        held = hold(value, kind, f"[{number}]")
        assert not held.differences, "\n".join(held.differences)
        occurred |= held.occurred
    return declared(kind) - occurred


def test_every_key_of_a_scenario_is_written_as_its_type_says(experiments: list[Experiment]) -> None:
    never = missing((point.scenario for each in experiments for point in each.points), Scenario)
    assert {name for name in never if not name.startswith("'")} == {"PingTraffic.port"}, "ICMP has no ports"


def test_the_words_of_a_file(experiments: list[Experiment]) -> None:
    of_observations = experiments[0].document | {"figures": ["round_trips", "live"]}
    """The catalogue has no experiment with these figures: only captures and live measurements have their data."""
    assert missing(iter([*(each.document for each in experiments), of_observations]), ExperimentDocument) == set()


def test_expectations(experiments: list[Experiment]) -> None:
    entries = (entry | {"number": 1} for each in experiments for entry in each.expectations)
    assert missing(entries, ExpectationEntry) == set()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a swept experiment with an expectation."""
    place = tmp_path_factory.mktemp("run")
    expect = '[[expect]]\nmetric = "rtt.max_ms"\nsays = "not long"\nband = [0, 1000]\n'
    runs = bs.run(write(place, SMALL + SWEEP + expect), out=place / "out").runs
    return runs[0].path


def test_metadata(stored: Path) -> None:
    held = hold(json.loads((stored / "run.json").read_text()), Metadata, open_to_more=(Summary,))
    assert not held.differences
    assert {f"Metadata.{key}" for key in Metadata.__required_keys__} <= held.occurred


def test_a_run_of_every_scenario_is_accepted(experiments: list[Experiment], stored: Path) -> None:
    metadata = json.loads((stored / "run.json").read_text())
    for experiment in experiments:
        for point in experiment.points:
            assert checked({**metadata, "scenario": point.scenario})["scenario"] == point.scenario


@pytest.mark.parametrize("key", sorted(Metadata.__required_keys__))
def test_a_key_that_metadata_lack_is_refused_or_filled_in(key: str, stored: Path, tmp_path: Path) -> None:
    found = json.loads((stored / "run.json").read_text())
    del found[key]
    (tmp_path / "run.json").write_text(json.dumps(found))
    try:
        completed = read_metadata(tmp_path)
    except bs.StoreError:
        return
    assert key in completed


class Inner(TypedDict):
    kind: Literal["a", "b"]
    size: NotRequired[int | None]


class Outer(TypedDict):
    rate: float
    inner: list[Inner]
    named: dict[str, bool]


GOOD: dict[str, Any] = {"rate": 1, "inner": [{"kind": "a", "size": None}, {"kind": "a"}], "named": {"x": True}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: found.pop("rate"), "it.rate: missing"),
        (lambda found: found.update(more=1), "it.more: not declared"),
        (lambda found: found.update(rate=True), "it.rate: found True"),
        (lambda found: found["inner"][1].update(kind="c"), "it.inner[1].kind: found 'c'"),
        (lambda found: found["inner"][0].update(size="1"), "it.inner[0].size: found '1'"),
        (lambda found: found["named"].update(y=1), "it.named.y: found 1"),
        (lambda found: found.update(inner={}), "it.inner: found {}"),
        (lambda found: found.update(inner=[None]), "it.inner[0]: found None"),
    ],
)
def test_each_difference_from_the_types_is_found(change: Callable[[dict[str, Any]], None], words: str) -> None:
    assert hold(GOOD, Outer).differences == []
    assert declared(Outer) - hold(GOOD, Outer).occurred == {"'b'"}
    changed = json.loads(json.dumps(GOOD))
    change(changed)
    (difference,) = hold(changed, Outer, "it").differences
    assert difference.startswith(words)
