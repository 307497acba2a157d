"""`bufferscope list` of the names that a file or an option may use."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import SMALL, Answer, write

import bufferscope as bs
from bufferscope.model.experiment import load
from bufferscope.model.figure_names import NAMES


@pytest.mark.parametrize(
    ("what", "some"),
    [
        ("controls", {"reno", "cubic", "bbr"}),
        ("traffic", {"tcp", "ping", "voip", "rrul"}),
        ("metrics", {"rtt.p<N>_ms", "goodput.total_mbit"}),
        ("figures", set(NAMES)),
        ("formats", {"flent", "ping", "csv", "pcapng"}),
    ],
)
def test_each_list_has_every_name_with_what_it_is(cli: Callable[..., Answer], what: str, some: set[str]) -> None:
    rows = json.loads(cli("list", f"--{what}", "--json").out)[what]
    assert some <= {row["name"] for row in rows}
    assert all(row["about"] for row in rows)
    table = cli("list", f"--{what}")
    assert table.status == 0
    assert next(iter(some)) in table.out


def test_every_control_that_is_listed_is_accepted_by_a_file(cli: Callable[..., Answer], tmp_path: Path) -> None:
    for row in json.loads(cli("list", "--controls", "--json").out)["controls"]:
        more = {"traffic.bulk.window": "10p"} if row["name"] == "window" else {}
        assert load(write(tmp_path, SMALL), {"traffic.bulk.congestion": row["name"], **more}).points


def test_one_list_at_a_time(cli: Callable[..., Answer]) -> None:
    answer = cli("list", "--metrics", "--figures")
    assert answer.status != 0
    assert "found --metrics and --figures" in answer.err


def test_the_catalogue_is_what_is_listed_without_an_option(cli: Callable[..., Answer]) -> None:
    assert [each["name"] for each in json.loads(cli("list", "--json").out)] == bs.catalogue()
