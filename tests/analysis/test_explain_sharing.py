"""Flows that share a flow queue: what the simulator's records show, and what follows from a kernel's."""

from typing import Any

import pytest
from dumbbell import dumbbell
from handmade import MS, SECOND, TCP, UDP, HandmadeRun, scenario

from bufferscope.analysis.explanation import explain_run
from bufferscope.metrics.sharing import Sharing, sharing
from bufferscope.running.stepping import Simulation

FLOOD = '\n[[traffic]]\nname = "flood"\nkind = "udp"\nfrom = "h1"\nto = "h2"\nrate = "20mbit"\n'
CODEL = {"qdisc": "fq_codel", "flows": 1024}
SAMPLES = range(0, 10 * SECOND, 100 * MS)
"""The times of samples."""


def told(run: Any) -> str:
    return " ".join(each.sentence for each in explain_run(run).of("who"))


@pytest.mark.parametrize("inside", [{}, {"qdisc": "tbf", "rate": "9mbit", "burst": "20kb", "limit": "10mb"}])
@pytest.mark.parametrize("flows", [1, 1024])
def test_simulated_flows_share_a_queue_or_have_their_own(flows: int, inside: dict[str, Any]) -> None:
    own = {"qdisc": "fq_codel", "flows": flows}
    queue = {**inside, "inner": own} if inside else own
    text = dumbbell("A flood", "10s", warmup="2s", bottleneck={"queue": queue}, bulk={"flows": None}, ping=None) + FLOOD
    found = told(Simulation(text, {}).finish())
    assert ("bulk/1 shares its flow queue in r1>h2 with flood/1." in found) == (flows == 1)
    assert ("shares its flow queue" in found) == (flows == 1)


def queue_rows(*queues: tuple[int, str | None, int]) -> list[dict[str, Any]]:
    """In every sample, flow queues with a number, a flow and packets of 1,500 bytes."""
    return [
        {"t_ns": t, "port": "r1>h2", "queue": queue, "flow": flow, "packets": packets, "bytes": 1500 * packets}
        for t in SAMPLES
        for queue, flow, packets in queues
    ]


def test_the_flow_with_fewer_packets_is_named_first_with_the_chance() -> None:
    rows = {"flow_queues": queue_rows((5, "bulk/1", 2), (5, "flood/1", 900), (6, "other/1", 3))}
    run = HandmadeRun(scenario({"bulk": TCP, "flood": UDP, "other": TCP}, queue=CODEL), rows)
    assert sharing(run) == [Sharing("r1>h2", "bulk/1", "flood/1", 1.0, 1024, is_derived=False)]
    sentence = "bulk/1 shares its flow queue in r1>h2 with flood/1, which happens to two flows once in 1,024."
    assert sentence in told(run)


def test_a_short_meeting_in_a_queue_is_no_sharing() -> None:
    both = queue_rows((5, "bulk/1", 2), (5, "flood/1", 900))
    mostly = [row for row in both if row["t_ns"] < 4 * SECOND or row["flow"] == "flood/1"]
    later = [row | {"queue": 7} for row in both if row["t_ns"] >= 4 * SECOND and row["flow"] == "bulk/1"]
    run = HandmadeRun(scenario({"bulk": TCP, "flood": UDP}, queue=CODEL), {"flow_queues": mostly + later})
    assert sharing(run) == []


def test_a_run_without_flow_queues_says_nothing() -> None:
    assert sharing(HandmadeRun(scenario({"bulk": TCP, "flood": UDP}, queue=CODEL))) == []


def on_a_kernel(
    srtt_ms: int = 900, queues: tuple[int, ...] = (1000,), elsewhere_packets: int = 0, beside: int = 1_500_000
) -> HandmadeRun:
    """A TCP connection with 10 kB in flight beside a flood, whose 1000 packets take 1.2 s in r1>h2.

    Flows are sampled ten times as often as flow queues, as by default.
    """
    flows = [
        {"t_ns": t, "flow": flow, "inflight_bytes": inflight, "srtt_ns": srtt, "min_rtt_ns": least}
        for t in range(0, 10 * SECOND + 1, 10 * MS)
        for flow, inflight, srtt, least in (
            ("bulk/1", 10_000, srtt_ms * MS, 20 * MS),
            ("flood/1", beside, None, None),
        )
    ]
    rows = {
        "flows": flows,
        "flow_queues": queue_rows(*((5 + number, None, packets) for number, packets in enumerate(queues))),
        "queues": [{"t_ns": t, "port": "h2>r1", "bytes": 1500 * elsewhere_packets} for t in SAMPLES],
    }
    return HandmadeRun(scenario({"bulk": TCP, "flood": UDP}, queue=CODEL), rows, engine="guest")


def test_a_kernel_s_only_queue_is_shared_by_a_connection_that_waits_for_it() -> None:
    run = on_a_kernel()
    assert sharing(run) == [Sharing("r1>h2", "bulk/1", "flood/1", 1.0, 1024, is_derived=True)]
    (statement,) = [each for each in explain_run(run).of("who") if "shares" in each.sentence]
    assert statement.unknown is not None
    assert statement.unknown.startswith("The kernel does not say whose packets a flow queue holds.")


@pytest.mark.parametrize(
    "run",
    [
        on_a_kernel(queues=(1000, 7)),
        on_a_kernel(srtt_ms=50),
        on_a_kernel(elsewhere_packets=1000),
        on_a_kernel(beside=100),
        on_a_kernel(queues=(100,)),
    ],
    ids=["two queues", "own packets explain it", "another port explains it", "nothing beside it", "too short a queue"],
)
def test_nothing_is_derived_where_something_else_explains_it(run: HandmadeRun) -> None:
    assert sharing(run) == []
