"""The capacity of ports: what the links recorded, whatever the scenario asked for."""

import pytest
from handmade import SECOND, HandmadeRun, Rows, scenario

from bufferscope import metrics
from bufferscope.metrics.capacity import capacities

MBIT = 1_000_000


def rates(*steps: tuple[int, int], port: str = "r1>h2") -> Rows:
    """Rows from steps of (seconds, Mbit/s)."""
    return [{"t_ns": t * SECOND, "port": port, "rate_bps": mbit * MBIT} for t, mbit in steps]


def test_a_step_holds_from_its_first_nanosecond_to_the_next() -> None:
    capacity = capacities(HandmadeRun(scenario({}), {"capacity": rates((0, 10), (3, 2), (8, 4))}))["r1>h2"]
    assert [capacity.at(t) for t in (0, 3 * SECOND - 1, 3 * SECOND, 9 * SECOND)] == [10e6, 10e6, 2e6, 4e6]
    # 1 s at 10 Mbit/s, 5 s at 2 Mbit/s, 2 s at 4 Mbit/s.
    assert capacity.bits(2 * SECOND, 10 * SECOND) == 28e6
    assert capacity.bits(4 * SECOND, 5 * SECOND) == 2e6
    assert not capacity.is_constant


def test_metrics_take_the_rate_that_the_link_had_and_not_the_one_that_was_asked_for() -> None:
    # 10 s at 10 Mbit/s were asked for. The link changed to 5 Mbit/s after 6 s: 80 Mbit fit, of which 40 were sent.
    sent = [{"t_ns": t * SECOND, "bytes": 0 if t < 10 else 62_500, "sent_bytes": t * 500_000} for t in (0, 10)]
    changed = rates((0, 10), (6, 5)) + rates((0, 10), port="h2>r1")
    assert metrics.compute(HandmadeRun(scenario({}), {"queues": sent}))["utilization.r1>h2"] == 0.4
    found = metrics.compute(HandmadeRun(scenario({}), {"queues": sent, "capacity": changed}))
    assert found["utilization.r1>h2"] == 0.5


def test_records_from_elsewhere_may_be_out_of_order_and_incomplete() -> None:
    rows = rates((4, 2), (1, 10), (6, -1), (7, 0)) + rates((0, 10), port="nowhere")
    (port, capacity), *others = capacities(HandmadeRun(scenario({}), {"capacity": rows})).items()
    assert (port, others) == ("r1>h2", [])
    assert [capacity.at(t * SECOND) for t in (0, 1, 4, 6, 7)] == [10e6, 10e6, 2e6, 2e6, 0]
    run = HandmadeRun(scenario({}), {"queues": [{"t_ns": 0}, {"t_ns": SECOND}], "capacity": []})
    assert not [name for name in metrics.compute(run) if name.startswith(("utilization", "delay_share"))]
    with pytest.raises(metrics.NotMeasuredError):
        metrics.metric(run, "utilization.r1>h2")
