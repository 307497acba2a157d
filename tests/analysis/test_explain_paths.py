"""Pings that go elsewhere than the data say nothing of a call, a game or a page on the path of the data."""

from typing import Any

import pytest
from handmade import MS, PING, TCP, HandmadeRun, probes, scenario
from homes import HOME

from bufferscope.analysis.explanation import Explanation, explain_run
from bufferscope.analysis.explanation.datapath import along_data
from bufferscope.analysis.explanation.evidence import evidence
from bufferscope.analysis.explanation.statement import StatementKind
from bufferscope.running.stepping import Simulation

EFFECTS: tuple[StatementKind, ...] = ("call", "game", "page")
TO_GATEWAY = HOME.replace('from = "h1"\nto = "h2"\ninterval', 'from = "h1"\nto = "r1"\ninterval')
FURTHER = '[[link]]\nname = "far"\nends = ["h2", "h3"]\ndelay = "{}"\n[[traffic]]'
SECOND = '[[traffic]]\nname = "far"\nkind = "ping"\nfrom = "h1"\nto = "h2"\ninterval = "97ms"\n'


def said(text: str, **changes: object) -> Explanation:
    return explain_run(Simulation(text, {path.replace("__", "."): value for path, value in changes.items()}).finish())


def test_pings_to_the_gateway_say_nothing_of_a_call_beside_a_bloated_queue() -> None:
    found = said(TO_GATEWAY)
    assert found.of(*EFFECTS) == []
    (unknown,) = found.of("unknown")
    assert "the pings go from h1 to r1, and not along all of that path" in unknown.sentence


def test_pings_to_the_gateway_say_nothing_of_a_path_without_a_queue_either() -> None:
    assert said(TO_GATEWAY, link__wan__queue={"qdisc": "fq_codel"}).of(*EFFECTS) == []
    assert said(TO_GATEWAY, link__wan__queue={"qdisc": "fq_codel"}, link__wan__delay="300ms").of(*EFFECTS) == []


def test_of_several_pings_one_along_the_data_is_taken() -> None:
    found = said(TO_GATEWAY + SECOND)
    assert [each.kind for each in found.of(*EFFECTS)] == list(EFFECTS)
    assert "very satisfied" not in found.of("call")[0].sentence


@pytest.mark.parametrize(("delay", "known"), [("1ms", True), ("150ms", False)])
def test_pings_may_lack_little_of_the_path(delay: str, known: bool) -> None:
    """The data goes on behind the end of the pings."""
    text = HOME.replace("[[traffic]]", FURTHER.format(delay), 1)
    text = text.replace('kind = "tcp"\nfrom = "h1"\nto = "h2"', 'kind = "tcp"\nfrom = "h1"\nto = "h3"')
    assert bool(said(text).of("call")) is known


def test_pings_against_the_direction_of_the_data_take_its_path() -> None:
    text = HOME.replace('from = "h1"\nto = "h2"\ninterval', 'from = "h2"\nto = "h1"\ninterval')
    assert said(text).of("call")


def test_a_queue_that_the_pings_do_not_meet_makes_them_say_nothing() -> None:
    """One of two downloads waits elsewhere."""
    text = HOME.replace("[[traffic]]", '[[link]]\nname = "attic"\nends = ["r1", "h4"]\nrate = "5mbit"\n[[traffic]]', 1)
    text += '[[traffic]]\nname = "other"\nkind = "tcp"\nfrom = "h1"\nto = "h4"\n'
    found = said(text, link__wan__queue={"qdisc": "fq_codel"})
    assert found.port == "r1>h4"
    assert found.of(*EFFECTS) == []


def test_without_data_each_ping_speaks_for_its_own_path() -> None:
    text = TO_GATEWAY.replace('kind = "tcp"', 'kind = "voip"')
    run = Simulation(text).finish()
    assert [each.name for each in along_data(evidence(run))] == ["ping"]


def observed(hosts: list[str], ping: tuple[int, int], engine: str = "capture") -> HandmadeRun:
    """A connection from the first host to the second with a ping elsewhere, as a program observed them."""
    rows: dict[str, list[dict[str, Any]]] = {"probes": probes([1.0] * 40), "capacity": []}
    rows["flows"] = [
        {"t_ns": t * 10 * MS, "flow": "bulk/1", "delivered_bytes": t * 12_500, "min_rtt_ns": 20 * MS,
         "srtt_ns": 260 * MS, "inflight_bytes": 300_000, "cwnd_bytes": 300_000, "rwnd_bytes": 10**7}
        for t in range(201)
    ]  # fmt: skip
    made = scenario({"bulk": TCP, "ping": PING}, duration_s=2)
    made["nodes"] = [{"name": name, "tcp": {}} for name in (*hosts, "network")]
    port = {"rate": None, "delay_ns": 0, "overhead_bytes": 0, "queue": {"qdisc": "unknown"}}
    ends = [[n, len(hosts)] for n in range(len(hosts))]
    made["links"] = [
        {"name": f"path-{n}", "ends": pair, "forward": port, "reverse": port} for n, pair in enumerate(ends)
    ]
    made["traffic"][0] |= {"from": 0, "to": 1}
    made["traffic"][1] |= {"from": ping[0], "to": ping[1]}
    return HandmadeRun(made, rows=rows, engine=engine)


HOSTS = ["192.0.2.1", "198.51.100.7", "192.0.2.254"]


@pytest.mark.parametrize("engine", ["capture", "import"])
def test_an_observed_ping_to_another_address_says_nothing(engine: str) -> None:
    found = explain_run(observed(HOSTS, (0, 2), engine))
    assert found.of(*EFFECTS) == []
    assert "the pings go from 192.0.2.1 to 192.0.2.254" in " ".join(each.sentence for each in found.of("unknown"))


@pytest.mark.parametrize("ends", [(0, 1), (1, 0)])
def test_an_observed_ping_between_the_same_addresses_does(ends: tuple[int, int]) -> None:
    assert explain_run(observed(HOSTS, ends)).of("call")


def test_of_a_capture_with_too_many_addresses_it_is_not_known() -> None:
    found = explain_run(observed(["near", "far"], (0, 1)))
    assert found.of(*EFFECTS) == []
    assert "is not known" in " ".join(each.sentence for each in found.of("unknown"))
    assert explain_run(observed(["near", "far"], (0, 1), "import")).of("call"), "a test names its own server"


def test_lost_pings_are_said_of_an_observed_run() -> None:
    rtts: list[float | None] = [20.0, 21.0, 22.0, None]
    made = scenario({"ping": PING}, duration_s=4)
    run = HandmadeRun(made, rows={"probes": probes(rtts * 10), "capacity": []}, engine="import")
    assert "25\xa0% of the pings have no answer" in explain_run(run).verdict


def test_observed_pings_are_held_against_the_fastest_before_the_load() -> None:
    """20 ms before the load begins, 640 ms under it: the fastest under load would hide the queue."""
    made = scenario({"ping": PING}, duration_s=4, warmup_s=2)
    run = HandmadeRun(made, rows={"probes": probes([*[20.0] * 20, *[640.0] * 20]), "capacity": []}, engine="import")
    assert explain_run(run).of("verdict")[0].numbers["delay_ms"] == pytest.approx(620)


def test_a_share_of_an_observed_connection_s_time_says_of_which_time() -> None:
    (since,) = explain_run(observed(HOSTS, (0, 1))).of("since")
    assert "of the 2\xa0s in which it is known" in since.sentence
    assert "from 0\xa0s to 2\xa0s" in since.sentence
