"""The types of scenarios, expectations and metadata agree with what the native core and the engines write."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import pytest
from laboratory import SMALL, SWEEP, write
from structures import declared, hold

import bufferscope as bs
from bufferscope import _core
from bufferscope.base.reading import NamedFiles
from bufferscope.model.expectations import ExpectationEntry
from bufferscope.model.experiment import Experiment, ExperimentDocument, catalogue, load
from bufferscope.model.scenario import Qdisc, Scenario
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
    controls = [each["const"] for each in json.loads(_core.schema())["$defs"]["Congestion"]["oneOf"]]
    own_keys = ("window", "ledbat", "ledbat++")
    """They need keys of their own, which other traffic of the file has."""
    words = [f"traffic.answer.congestion={name}" for name in controls if name not in own_keys]
    words += ["traffic.slow.congestion=ledbat++", "traffic.flood.periods=fixed", "traffic.flood.pattern=constant"]
    words += [
        'record=["flows", "transfers"]',
        "traffic.ping.size=0",
        "sojourns=histogram",
        "link.fifo.reverse.queue={qdisc='bfifo', limit='150kb'}",
    ]
    return [*map(load, catalogue()), every_key(), *map(every_key, words)]


def assert_alike(values: Iterator[Any], kind: Any, open_to_more: tuple[Any, ...] = ()) -> None:
    """Everything in the values is declared, and everything declared occurs in one of them.

    Tables of the types `open_to_more` may have more keys than are declared.
    """
    occurred = set()
    for number, value in enumerate(values):
        held = hold(value, kind, f"[{number}]", open_to_more)
        assert not held.differences, "\n".join(held.differences)
        occurred |= held.occurred
    assert declared(kind) - occurred == set()


def test_scenarios(experiments: list[Experiment]) -> None:
    assert_alike((point.scenario for each in experiments for point in each.points), Scenario, (Qdisc,))


def test_every_word_that_a_key_takes_is_declared() -> None:
    schema = json.loads(_core.schema())
    words = {repr(word) for word in constants(schema)}
    # Parameters of disciplines are not declared. The loader replaces load tests by their parts.
    of_queues = {repr(word) for word in constants(referred(schema["$defs"], "Queue"))}
    # So does it with the presets of rates, and each member of a population has the values that it drew.
    load_tests = {"'rrul'", "'rrul_be'", "'tcp_bidirectional'", "'tcp_ndown'", "'tcp_nup'"}
    presets = {repr(f"{radio}-{way}") for radio in ("evdo", "umts", "lte") for way in ("down", "up")}
    distributions = {"'choice'", "'lognormal'", "'loguniform'"}
    left = words - declared(Scenario) - of_queues
    assert left == load_tests | presets | distributions | {"'exact'"}, "'exact': a ping's timing where none is written"


def referred(definitions: dict[str, object], name: str) -> list[object]:
    """A definition of a schema, and all that it refers to."""
    names = [name]
    for each in names:
        found = re.findall(r'"#/\$defs/(\w+)"', json.dumps(definitions[each]))
        names += [inner for inner in dict.fromkeys(found) if inner not in names]
    return [definitions[each] for each in names]


def constants(node: object) -> Iterator[object]:
    """The values of all `const` of a schema."""
    if isinstance(node, dict):
        if "const" in node:
            yield node["const"]
        for inner in node.values():
            yield from constants(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from constants(inner)


def test_the_words_of_a_file(experiments: list[Experiment]) -> None:
    of_observations = experiments[0].document | {"figures": ["round_trips", "live"]}
    """The catalogue has no experiment with these figures: only captures and live measurements have their data."""
    assert_alike(iter([*(each.document for each in experiments), of_observations]), ExperimentDocument)


def test_expectations(experiments: list[Experiment]) -> None:
    entries = (entry | {"number": 1} for each in experiments for entry in each.expectations)
    assert_alike(entries, ExpectationEntry)


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
