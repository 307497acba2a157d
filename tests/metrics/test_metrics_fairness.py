"""How long a newcomer waits for its share, how often a sender reduces its window, and when the first packet drops."""

import math
from typing import Any

import pytest
from handmade import MS, MSS, SECOND, TCP, HandmadeRun, Rows, scenario

from bufferscope import metrics

STEP = 100 * MS


def delivered(flow: str, mbit: float, start_s: float, end_s: float, before: int = 0) -> Rows:
    """Samples of a connection every 100 ms from `start_s` to `end_s`, at a constant rate."""
    steps = range(round(start_s * 10), round(end_s * 10) + 1)
    per_step = round(mbit * 12_500)
    return [
        {"flow": flow, "t_ns": step * STEP, "delivered_bytes": before + (step - steps[0]) * per_step} for step in steps
    ]


def network(**entries: dict[str, Any]) -> Any:
    return scenario({name: TCP | entry for name, entry in entries.items()}, duration_s=20)


def two(newcomer: Rows, old: Rows, **entry: Any) -> HandmadeRun:
    """An old flow, and a newcomer from 10 s on."""
    return HandmadeRun(
        network(old={}, newcomer={"start_ns": 10 * SECOND} | entry), {"flows": [*old, *newcomer]}
    )  # fmt: skip


def test_a_newcomer_with_half_of_the_goodput_at_once_has_its_share_at_once() -> None:
    run = two(delivered("newcomer/1", 5, 10, 20), delivered("old/1", 5, 0, 20))
    assert metrics.compute(run)["fair_after.newcomer_s"] == pytest.approx(0.2)  # the latter half has a sample then


def test_a_newcomer_has_its_share_when_the_latter_half_of_its_time_was_fair() -> None:
    # Nothing for 2 s, then half of 10 Mbit/s. After 3.7 s, the latter half begins at 1.8 s (whole steps of 100 ms): it
    # has had 1.7 s * 5 = 8.5 Mbit of 1.9 s * 10 = 19, less than 0.45 of it. After 3.8 s it has had 9 of 19.
    slow = [*delivered("newcomer/1", 0, 10, 12), *delivered("newcomer/1", 5, 12, 20)]
    old = [*delivered("old/1", 10, 0, 12), *delivered("old/1", 5, 12, 20, before=15_000_000)]
    assert metrics.compute(two(slow, old))["fair_after.newcomer_s"] == pytest.approx(3.8)


def test_a_fair_share_is_that_of_all_connections_of_the_entry() -> None:
    # Two of three connections: the newcomer should have two thirds, and has half.
    rows = [*delivered("newcomer/1", 2.5, 10, 20), *delivered("newcomer/2", 2.5, 10, 20)]
    assert metrics.compute(two(rows, delivered("old/1", 5, 0, 20), flows=2))["fair_after.newcomer_s"] == math.inf


def test_a_newcomer_that_never_has_its_share_is_censored() -> None:
    run = two(delivered("newcomer/1", 1, 10, 20), delivered("old/1", 9, 0, 20))
    assert metrics.metric(run, "fair_after.newcomer_s").censored


def test_without_another_flow_at_its_start_a_flow_is_no_newcomer() -> None:
    run = two(delivered("newcomer/1", 5, 10, 20), delivered("old/1", 5, 0, 20))
    run.scenario["traffic"][0]["stop_ns"] = 5 * SECOND
    assert not [name for name in metrics.compute(run) if name.startswith("fair_after")]


def states(flow: str, entered_s: list[float], state: str = "recovery") -> Rows:
    """Samples every 100 ms of a connection that enters a state at these times, for 300 ms each."""
    reducing = {round(start * 10) + more for start in entered_s for more in range(3)}
    return [
        {"flow": flow, "t_ns": step * STEP, "state": state if step in reducing else "open"} for step in range(1, 200)
    ]


@pytest.mark.parametrize("state", ["recovery", "loss", "cwr"])
def test_an_epoch_lasts_from_one_reduction_of_the_window_to_the_next(state: str) -> None:
    run = HandmadeRun(network(old={}), {"flows": states("old/1", [2, 5, 11], state)})
    assert metrics.compute(run)["epoch.old_s"] == pytest.approx(4.5)  # 3 s and 6 s


def test_epochs_of_several_connections_count_alike_and_disorder_is_no_reduction() -> None:
    rows = [*states("old/1", [2, 5, 11]), *states("old/2", [1, 13]), *states("old/3", [4, 6], "disorder")]
    assert metrics.compute(HandmadeRun(network(old={}), {"flows": rows}))["epoch.old_s"] == pytest.approx(
        (3 + 6 + 12) / 3
    )


def test_a_single_reduction_makes_no_epoch() -> None:
    run = HandmadeRun(network(old={}), {"flows": states("old/1", [5])})
    assert "epoch.old_s" not in metrics.compute(run)


def test_data_in_flight_is_told_in_packets() -> None:
    rows = [{"flow": f"old/{n}", "t_ns": t * SECOND, "inflight_bytes": n * t * MSS} for n in (1, 2) for t in (1, 2, 3)]
    found = metrics.compute(HandmadeRun(network(old={"flows": 2}), {"flows": rows}))
    assert (found["inflight.old.mean_packets"], found["inflight.old.max_packets"]) == (3, 6)


def test_the_first_drop_is_that_of_a_packet_and_not_a_mark() -> None:
    rows = [
        {"t_ns": 2 * SECOND, "reason": "codel_mark"},
        {"t_ns": 7 * SECOND, "reason": "overlimit"},
        {"t_ns": 3 * SECOND, "reason": "overlimit"},
    ]
    run = HandmadeRun(network(old={}), {"drops": rows})
    assert metrics.compute(run)["first_drop.r1>h2_s"] == 3
    assert "first_drop.h2>r1_s" not in metrics.compute(run)
