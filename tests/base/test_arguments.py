"""A wrong type in a call of the Python API is one `InputError` that names the argument, never an error from inside."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import SMALL, write

import bufferscope as bs

WRONG: list[Any] = [
    5, -1, 1.5, float("nan"), True, b"x", object(), [1], {"a": 1}, [None], ["a", 2], {1: 2}, "x" * 5000, "\x00",
    "\ud800", 10**30, lambda: None, Path("nowhere"), "nothing", [], {}, (), "", None,
]  # fmt: skip
"""Of these, some are right for some arguments."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("lab"), SMALL.replace('"2s"', '"100ms"'))


@pytest.fixture(scope="module")
def result(lab: Path) -> bs.Result:
    return bs.run(lab, out=lab.parent / "results")


def refuses(call: Callable[[Any], object], value: object) -> str | None:
    """The message of the refusal; None if the call takes the value."""
    try:
        call(value)
    except (bs.InputError, bs.ExperimentError, bs.EngineError) as error:
        return str(error)
    return None


RUN = (
    "overrides",
    "seed",
    "repeat",
    "jobs",
    "out",
    "engine",
    "kernel",
    "reuse",
    "capture",
    "watcher",
    "cluster",
    "layout",
)


@pytest.mark.parametrize("argument", RUN)
def test_run(lab: Path, argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = [refuses(lambda value: bs.run(lab, **{"out": "results", argument: value}), value) for value in WRONG]
    messages = [message for message in refused if message]
    assert len(messages) >= len(WRONG) // 3
    assert any(message.lstrip("-").startswith(argument) for message in messages), messages


def test_what_is_run_loaded_compared_explained_and_sized(
    lab: Path, result: bs.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls: list[Callable[[Any], object]] = [
        bs.run,
        bs.load,
        bs.choose,
        bs.compare,
        bs.explain,
        bs.Simulation,
        lambda value: bs.compare(result, value),
        lambda value: bs.size(value, "40ms", simulate=False),
        lambda value: bs.size("10mbit", value, simulate=False),
    ]
    for call in calls:
        for value in WRONG:
            assert refuses(call, value), (call, value)
    others: list[Callable[[Any], object]] = [
        lambda value: bs.load(lab.parent / "results" / "lab", value),
        lambda value: bs.compare(result, result, labels=value),
        lambda value: bs.compare(result, result, labels=["a", "b"], baseline=value),
        lambda value: bs.Simulation(lab, overrides=value),
        lambda value: bs.Simulation(lab, seed=value),
        *(
            lambda value, name=name: bs.size("10mbit", "40ms", **{"simulate": False, name: value})
            for name in ("flows", "target", "packet", "buffer", "congestion", "out", "reuse", "watcher")
        ),
        *(
            lambda value, name=name: bs.choose(lab, ["sweep.x=[1]"], **{name: value})
            for name in ("link", "point", "engine")
        ),
    ]
    for call in others:
        assert sum(refuses(call, value) is not None for value in WRONG) >= len(WRONG) // 3


def test_a_refusal_names_the_argument_what_was_found_and_what_is_allowed(lab: Path) -> None:
    with pytest.raises(bs.InputError, match=r"^engine: found 5; allowed: a name, or a list of names$"):
        bs.run(lab, engine=5)  # type: ignore[arg-type]
