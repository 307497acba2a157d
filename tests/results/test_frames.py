"""The agent's output is read completely, however it is cut into pieces, and invalid output is rejected."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from agents import HELLO, frame
from hypothesis import given
from hypothesis import strategies as st

from bufferscope import _core
from bufferscope._core import OPTIONAL_TABLES, TABLES
from bufferscope.base.errors import EngineError
from bufferscope.engines.frames import Receiver

SUMMARY = {"sampling": {"achieved_ns": 10_000_001}, "warnings": ["a CPU was saturated"], "kernel": "6.1"}


PROGRESS = frame(1, json.dumps({"now_ns": 5, "duration_ns": 10}).encode())
END = frame(3, json.dumps(SUMMARY).encode())


def go_on(_now_ns: int, _duration_ns: int) -> bool:
    return True


def greeted(directory: Path, progress: Callable[[int, int], bool] = go_on) -> Receiver:
    """A receiver of an agent that has said hello."""
    receiver = Receiver(directory, progress)
    assert receiver.feed(HELLO)
    return receiver


def receive(directory: Path, data: bytes) -> None:
    receiver = greeted(directory)
    receiver.feed(data)
    receiver.finish()


def test_a_summary_ends_a_run_and_every_table_is_there(tmp_path: Path) -> None:
    receiver = greeted(tmp_path)
    assert receiver.feed(PROGRESS + END)
    outcome = receiver.finish()
    assert outcome.sample_interval_ns == 10_000_001
    assert outcome.warnings == ["a CPU was saturated"]
    assert set(outcome.tables.values()) == {0}
    assert {file.stem for file in tmp_path.glob("*.parquet")} == set(TABLES) - set(OPTIONAL_TABLES)


@pytest.mark.parametrize("size", [1, 3, 7])
def test_pieces_of_any_size_are_put_together(tmp_path: Path, size: int) -> None:
    seen = []

    def progress(now_ns: int, duration_ns: int) -> bool:
        seen.append((now_ns, duration_ns))
        return True

    receiver = Receiver(tmp_path, progress)
    data = HELLO + PROGRESS * 3 + END
    assert all(receiver.feed(data[at : at + size]) for at in range(0, len(data), size))
    assert seen == [(5, 10)] * 3
    receiver.finish()


def test_progress_that_says_no_stops_the_run(tmp_path: Path) -> None:
    assert not greeted(tmp_path, lambda *_: False).feed(PROGRESS)


def test_an_agents_error_is_raised_in_its_words(tmp_path: Path) -> None:
    error = {"kind": "lacking", "message": "this kernel (6.18) has no sch_codel; use --engine guest"}
    with pytest.raises(EngineError, match="no sch_codel; use --engine guest"):
        greeted(tmp_path).feed(frame(4, json.dumps(error).encode()))


@pytest.mark.parametrize("data", [b"", PROGRESS, END[:-1], END + b"\0"])
def test_a_run_without_a_whole_end_is_refused(tmp_path: Path, data: bytes) -> None:
    receiver = greeted(tmp_path)
    receiver.feed(data)
    with pytest.raises(EngineError, match="ended before its run was over"):
        receiver.finish()


NO_FRAMES = [
    frame(1, b"{}"),
    frame(2, b""),
    frame(2, b"\x09stream"),
    frame(2, b"\x00stream"),
    frame(3, b"[]"),
    frame(9, b""),
    b"\xff" * 5,
]


@pytest.mark.parametrize("data", NO_FRAMES)
def test_what_is_no_frame_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(EngineError, match="malformed"):
        greeted(tmp_path).feed(data)


def test_an_agent_of_another_build_is_told_from_nonsense_and_how_to_get_the_right_one(tmp_path: Path) -> None:
    batch = pl.DataFrame({"t_ns": [1], "of_tomorrow": [2]})
    stream = batch.write_ipc_stream(None, compat_level=pl.CompatLevel.oldest()).getvalue()
    with pytest.raises(EngineError) as raised:
        greeted(tmp_path).feed(frame(2, b"\x01" + stream))
    message = str(raised.value)
    assert message.startswith(
        "bufferscope-agent and this package are from different builds: a batch of the table `flows`"
    )
    assert "of_tomorrow" in message
    assert "reinstall the package" in message
    assert "`make agent`" in message
    assert "malformed" not in message


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (frame(0, struct.pack("<I", _core.PROTOCOL + 1)), f"version {_core.PROTOCOL + 1} of their protocol"),
        (PROGRESS, "no version of their protocol"),
    ],
)
def test_an_agent_with_another_version_of_the_protocol_is_told_by_its_version(
    tmp_path: Path, first: bytes, told: str
) -> None:
    with pytest.raises(EngineError) as raised:
        Receiver(tmp_path, go_on).feed(first)
    message = str(raised.value)
    assert message.startswith("bufferscope-agent and this package are from different builds: ")
    assert told in message
    assert "`make agent`" in message


@given(kind=st.integers(0, 5), payload=st.binary(max_size=100), cut=st.integers(0, 3))
def test_any_frame_is_taken_or_refused(
    tmp_path_factory: pytest.TempPathFactory, kind: int, payload: bytes, cut: int
) -> None:
    data = frame(kind, payload)
    with pytest.raises(EngineError):
        receive(tmp_path_factory.mktemp("tables"), data[: len(data) - cut])
