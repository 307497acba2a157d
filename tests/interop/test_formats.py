"""The schema of `run.json` says what the reader does, because it is made from the reader's own checks."""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from handmade import NETALYZR, PING, SCHEMAS, TCP, UDP, VOIP, HandmadeRun, scenario
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from laboratory import MORE, SMALL, Answer, write

import bufferscope as bs
from bufferscope.store import FORMAT, metadata, tables
from bufferscope.store.schema import Mismatch

Cli = Callable[..., Answer]
VALIDATOR = Draft202012Validator(metadata.schema())
KINDS = {"bulk": TCP, "ping": PING, "flood": UDP, "call": VOIP, "buffers": NETALYZR}
WHOLE: dict[str, Any] = json.loads(json.dumps(HandmadeRun(scenario(KINDS)).meta))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def places(value: object, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to every value inside a value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in children:
        yield (*way, key)
        yield from places(inner, (*way, key))


PLACES = list(places(WHOLE))


def test_the_schema_is_one_of_its_draft() -> None:
    Draft202012Validator.check_schema(metadata.schema())
    assert metadata.schema()["properties"]["format"] == {"const": FORMAT}  # type: ignore[index]


def test_a_run_of_an_engine_is_valid(tmp_path: Path) -> None:
    """With traffic of most kinds, a sweep and expectations."""
    lab = write(tmp_path, SMALL + MORE)
    for run in bs.run(lab, out=tmp_path / "results").runs:
        assert not list(VALIDATOR.iter_errors(json.loads((run.path / "run.json").read_bytes())))


@given(place=st.sampled_from(PLACES), value=VALUES)
def test_what_the_reader_takes_the_schema_takes(place: tuple[str | int, ...], value: object) -> None:
    changed = with_value(place, value)
    try:
        metadata.checked(changed)
    except Mismatch:
        return
    assert changed["format"] != FORMAT or VALIDATOR.is_valid(changed)


@given(place=st.sampled_from(PLACES), value=VALUES)
def test_what_the_schema_takes_never_crashes_the_reader(place: tuple[str | int, ...], value: object) -> None:
    changed = with_value(place, value)
    if VALIDATOR.is_valid(changed):
        with suppress(Mismatch):
            metadata.checked(changed)


@pytest.mark.parametrize("key", metadata.schema()["required"])  # type: ignore[arg-type]
def test_every_required_key_is_missed(key: str) -> None:
    left = {name: value for name, value in WHOLE.items() if name != key}
    assert not VALIDATOR.is_valid(left)
    if key != "format":  # which is read first, to choose the reader
        with pytest.raises(Mismatch, match=f"{key}: missing"):
            metadata.checked(left)


@pytest.mark.parametrize(
    "place",
    [
        ("scenario", "traffic", 0, "flows"),
        ("scenario", "links", 1, "forward", "rate", 0, "bits_per_second"),
        ("scenario", "nodes", 0, "name"),
        ("sampling", "asked_ns"),
        ("tables", "probes"),
    ],
)
def test_a_list_in_place_of_a_plain_value_is_refused_by_both(place: tuple[str | int, ...]) -> None:
    changed = with_value(place, [1])
    assert not VALIDATOR.is_valid(changed)
    with pytest.raises(Mismatch):
        metadata.checked(changed)


def with_value(place: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The run with another value at a place."""
    changed = copy.deepcopy(WHOLE)
    holder: Any = changed
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return changed


def test_the_kinds_of_the_columns_are_those_of_the_files() -> None:
    assert {name: list(columns) for name, columns in tables.schema().items()} == bs.TABLES
    words = {"string": "String", "boolean": "Boolean", "integer": "Int64"}
    found = {name: {each: words[kind] for each, kind in kinds.items()} for name, kinds in tables.schema().items()}
    assert found == {name: {each: str(kind()) for each, kind in kinds.items()} for name, kinds in SCHEMAS.items()}


def test_the_command_prints_each_schema(cli: Cli) -> None:
    assert json.loads(cli("schema", "--of", "run").out) == metadata.schema()
    assert json.loads(cli("schema", "--of", "tables").out) == tables.schema()
    assert cli("schema", "--of", "experiment").out == cli("schema").out
    refused = cli("schema", "--of", "runs")
    assert refused.status == 2
    assert "--of: found 'runs'; allowed: experiment, run, tables" in refused.err
