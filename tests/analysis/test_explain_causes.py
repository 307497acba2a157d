"""Runs of which a hasty reader of the records would name a wrong cause, or that nothing is wrong."""

from typing import Any

import pytest
from handmade import MS, TCP, HandmadeRun, scenario
from homes import HOME, simulated, told

from bufferscope.analysis.explanation import Cause, Explanation, explain_run
from bufferscope.analysis.explanation.evidence import evidence
from bufferscope.analysis.explanation.port_facts import shaped_bps
from bufferscope.running.stepping import Simulation
from bufferscope.store.memory import MemoryRun

LIGHT = HOME.replace('kind = "tcp"', 'kind = "web"\ninterval = "3s"\nbytes = "20kb"')
BACK = '[[traffic]]\nname = "{}"\nkind = "{}"\nfrom = "h2"\nto = "h1"\n'
FLOOD = 'kind = "udp"\nrate = "{}"\non = "1s"\noff = "3s"'


def explained(text: str, **changes: object) -> Explanation:
    return explain_run(run(text, **changes))


def run(text: str, **changes: object) -> MemoryRun:
    return Simulation(text, {path.replace("__", "."): value for path, value in changes.items()}).finish()


def filtered(kind: str, bandwidth: str | None) -> MemoryRun:
    """A download over 30 Mbit/s beside an upload over 1.5 Mbit/s, whose cake filters acknowledgements."""
    down: dict[str, object] = {"qdisc": "cake", **({"bandwidth": bandwidth} if bandwidth else {})}
    up = {"rate": "1500kbit", "queue": {"qdisc": "cake", "ack_filter": kind}}
    return run(
        HOME + BACK.format("up", "tcp"), link__wan__forward={"rate": "30mbit", "queue": down}, link__wan__reverse=up
    )


@pytest.mark.parametrize("kind", ["ack-filter", "ack-filter-aggressive"])
@pytest.mark.parametrize("bandwidth", [None, "20mbit"])
def test_acknowledgements_that_a_filter_removes_are_no_losses(kind: str, bandwidth: str | None) -> None:
    made = filtered(kind, bandwidth)
    dropped = made.drops["reason"].to_list()
    assert dropped.count("ack_filter") > 500
    found = explain_run(made)
    assert found.cause is Cause.NONE, found.verdict
    assert not [each for each in found.of("losses") if "bulk/1" in each.sentence]
    own = made.drops.filter((made.drops["flow"] == "bulk/1") & (made.drops["port"] == "r1>h2"))
    assert evidence(made).losses["bulk/1"].in_queue <= len(own), "only what CoDel drops of its data"


def test_acknowledgements_that_a_queue_drops_shrink_no_window() -> None:
    """The upload's queue of three packets drops acknowledgements; the download's own queue drops nothing."""
    up = {"rate": "1mbit", "queue": {"qdisc": "pfifo", "limit": "3p"}}
    made = run(HOME + BACK.format("flood", "udp") + 'rate = "950kbit"\npattern = "poisson"\n', link__wan__reverse=up)
    assert len(made.drops.filter(port="h2>r1", flow="bulk/1")) > 20
    losses = evidence(made).losses["bulk/1"]
    assert losses.queue_port != "h2>r1"
    assert losses.in_queue <= len(made.drops.filter(port="r1>h2", flow="bulk/1"))


def test_a_shaper_of_cake_is_full_although_its_wire_is_not() -> None:
    """Cake at 20 of 30 Mbit/s keeps a backlog of less than what it sends between two samples."""
    made = run(HOME, link__wan__forward={"rate": "30mbit", "queue": {"qdisc": "cake", "bandwidth": "20mbit"}})
    queue = evidence(made).queues["r1>h2"]
    assert queue.utilization < 0.7
    assert queue.is_full
    assert "cake in r1>h2 sends at its configured rate, 20 Mbit/s" in told(made, "sender").replace("\xa0", " ")
    assert explain_run(made).cause is Cause.NONE


@pytest.mark.parametrize(
    ("queue", "bps"),
    [
        ({"qdisc": "pfifo"}, None),
        ({"qdisc": "tbf", "rate_bps": 4e6}, 4e6),
        ({"qdisc": "tbf", "rate_bps": 4e6, "inner": {"qdisc": "netem", "rate": {"rate_bps": 2e6}}}, 2e6),
        ({"qdisc": "netem", "rate": None}, None),
        ({"qdisc": "cake", "bandwidth_bps": None}, None),
        ({"qdisc": "cake", "bandwidth_bps": 9e6, "autorate_ingress": True}, None),
        ({"qdisc": "htb", "classes": [{"parent": None, "ceil_bps": 3e6}], "default": 0}, 3e6),
        ({"qdisc": "htb", "classes": [{"parent": None, "ceil_bps": 3e6}], "default": None}, None),
    ],
)
def test_the_rate_that_a_discipline_is_set_to(queue: dict[str, Any], bps: float | None) -> None:
    assert shaped_bps(queue) == bps


def test_cake_sends_fewer_bits_of_frames_than_it_counts_for_cells() -> None:
    """1500 bytes and 8 more take 32 cells of 53 bytes: 1696, of which the frame of Ethernet is 1514."""
    layer = {"raw": False, "overhead_bytes": 8, "mpu_bytes": 0, "cells": "atm"}
    assert shaped_bps({"qdisc": "cake", "bandwidth_bps": 1e6, "link_layer": layer}) == pytest.approx(1e6 * 1514 / 1696)


@pytest.mark.parametrize(
    ("changes", "port"),
    [
        ({"link.wan.forward.wire": {"loss": 0.08}}, "r1>h2"),
        ({"link.lan.reverse.wire": {"loss": 0.08}}, "r1>h1"),
        ({"link.wan.reverse.wire": {"gemodel": {"p": 0.05, "r": 0.3}}}, "h2>r1"),
    ],
)
def test_lost_pings_on_a_wire_are_not_nothing(changes: Any, port: str) -> None:
    found = explain_run(Simulation(LIGHT, {**changes, "duration": "20s"}).finish())
    assert (found.cause, found.port) == (Cause.LOSS, port), found.verdict
    assert "of the pings of ping are lost" in found.verdict


@pytest.mark.parametrize("limit", ["2p", "5p"])
def test_lost_pings_in_a_short_queue_are_not_nothing_although_the_link_is_full(limit: str) -> None:
    many = HOME.replace('kind = "tcp"', 'kind = "tcp"\nflows = 30')
    found = explained(many, link__wan__queue={"qdisc": "pfifo", "limit": limit}, duration="6s")
    assert (found.cause, found.port) == (Cause.SHALLOW, "r1>h2"), found.verdict


def test_the_goodput_of_many_flows_is_not_more_than_the_link_carries() -> None:
    """Flows that begin late count for the time in which they exist."""
    many = HOME.replace('kind = "tcp"', 'kind = "tcp"\nflows = 30')
    found = explained(many, link__wan__queue={"qdisc": "pfifo", "limit": "5p"}, duration="6s")
    assert all(float(each.numbers["goodput_bps"]) < 10e6 for each in found.of("sender") if "flows" in each.numbers)


def test_a_measured_call_that_loses_packets_is_not_nothing() -> None:
    call = LIGHT.replace('kind = "ping"', 'kind = "voip"').replace('interval = "97ms"', "")
    found = explained(call, link__wan__forward__wire={"loss": 0.12})
    assert (found.cause, found.port) == (Cause.LOSS, "r1>h2")
    assert "the call ping scores" in found.verdict


def test_a_long_path_is_named_where_a_call_is_poor_without_a_queue() -> None:
    found = explained(LIGHT, link__wan__delay="350ms")
    assert found.cause is Cause.NONE
    assert "Nothing is wrong" not in found.verdict
    assert "even the idle RTT is too long" in found.verdict


def test_slow_pings_that_no_queue_explains_are_not_nothing() -> None:
    found = explained(LIGHT, link__wan__forward__wire={"jitter": "90ms"})
    assert found.cause is Cause.UNKNOWN
    assert "do not show why" in found.verdict


@pytest.mark.parametrize("rate", ["12mbit", "30mbit"])
def test_a_queue_that_comes_and_goes_is_not_nothing(rate: str) -> None:
    found = explained(HOME.replace('kind = "tcp"', FLOOD.format(rate)), duration="20s")
    assert (found.cause, found.port) == (Cause.QUEUE, "r1>h2"), found.verdict
    assert "comes and goes" in found.verdict


def test_the_port_with_the_largest_share_is_named_although_its_queue_comes_and_goes() -> None:
    """The larger mean delay is that of bursts; the other queue is short, and always there."""
    burst = f'[[traffic]]\nname = "burst"\n{FLOOD.format("300mbit")}\nfrom = "h1"\nto = "r1"\n'
    made = run(
        HOME + burst,
        duration="20s",
        link__lan__queue={"qdisc": "pfifo", "limit": "3000p"},
        link__wan__queue={"qdisc": "pfifo", "limit": "22p"},
    )
    found = explain_run(made)
    shares = [(float(each.numbers["share"]), each.sentence) for each in found.of("where")]
    assert str(found.port) in max(shares)[1], found.verdict


def chain(limit: str) -> str:
    """Three ports in a row, each filled by flows of its own; the pings cross all of them."""
    text = 'title = "a chain"\nduration = "10s"\nwarmup = "2s"\n'
    for n in range(3):
        text += f'[[link]]\nname = "l{n}"\nends = ["n{n}", "n{n + 1}"]\ndelay = "1ms"\nrate = "10mbit"\n'
        text += f'queue = {{ qdisc = "pfifo", limit = "{limit}" }}\n'
        text += f'[[link]]\nname = "s{n}"\nends = ["s{n}", "n{n}"]\nrate = "100mbit"\ndelay = "5ms"\n'
        text += f'[[traffic]]\nname = "f{n}"\nkind = "tcp"\nflows = 3\nfrom = "s{n}"\nto = "n{n + 1}"\n'
    return text + '[[traffic]]\nname = "ping"\nkind = "ping"\nfrom = "n0"\nto = "n3"\ninterval = "97ms"\n'


def test_queues_that_are_short_one_by_one_count_together() -> None:
    found = explained(chain("7p"))
    assert found.cause is Cause.QUEUE
    assert "The queues of 3 ports together delay the pings" in found.verdict
    assert str(found.port) in found.of("where")[0].sentence


def test_a_flow_s_own_queue_in_one_direction_is_not_blamed_for_the_delay_of_the_other() -> None:
    """A flood fills its own queue in sfq, longer than the one of the download that the pings wait in."""
    flood = HOME + BACK.format("flood", "udp") + 'rate = "20mbit"\n'
    queues = {"link.wan.reverse.queue": {"qdisc": "sfq", "limit": "127p"}, "link.wan.queue.limit": "80p"}
    found = explain_run(Simulation(flood, queues).finish())
    assert found.port == "r1>h2", found.verdict
    (other,) = [each.sentence for each in found.of("where") if "h2>r1" in each.sentence]
    assert "the pings do not wait for them" in other


def test_since_when_says_of_which_time_a_share_is() -> None:
    (since,) = explain_run(simulated(traffic__bulk__start="6s", duration="10s")).of("since")
    plain = since.sentence.replace("\xa0", " ")
    assert "with load (6 s to 10 s)" in plain
    assert since.numbers["load_s"] == pytest.approx(4, abs=0.1)
    assert "from 6." in plain
    assert "to 10 s" in plain


def test_flows_that_ended_in_the_warm_up_are_not_missing() -> None:
    assert explain_run(simulated(traffic__bulk__stop="1s", warmup="4s")).cause is Cause.NONE


def test_the_driver_of_a_radio_has_no_byte_queue_limits_to_lack() -> None:
    air = HOME.replace('name = "wan"', 'name = "wan"').replace("[[link]]", WIFI + "[[link]]", 1)
    air = air.replace('rate = "10mbit"\ndelay = "15ms"\nqueue = { qdisc = "pfifo", limit = "200p" }', 'rate = "13mbit"')
    found = explained(air)
    assert (found.cause, found.port) == (Cause.RING, "r1>h2"), found.verdict
    assert "byte queue limits" not in found.verdict


WIFI = """\
[[wifi]]
name = "wlan"
access_point = "r1"
links = ["wan"]
queueing = { kind = "fifo", queue = { qdisc = "fq_codel" } }
"""


def test_a_kernel_s_count_of_filtered_acknowledgements_hides_no_losses_elsewhere() -> None:
    """A kernel's rows have no flow: 5 segments sent again, and 50 acknowledgements of others filtered on their way."""
    rows: dict[str, list[dict[str, Any]]] = {
        "drops": [{"t_ns": t * 10 * MS, "reason": "ack_filter"} for t in range(50)]
    }
    rows["flows"] = [
        {
            "t_ns": t * 10 * MS,
            "flow": "bulk/1",
            "retransmits": min(5, t),
            "delivered_bytes": t * 12_500,
            "cwnd_bytes": 9,
        }
        for t in range(201)
    ]
    losses = evidence(HandmadeRun(scenario({"bulk": TCP}, duration_s=2), rows=rows, engine="guest")).losses["bulk/1"]
    assert (losses.on_wire, losses.in_queue, losses.is_derived) == (5, 0, True)
