"""What is tried against a cause: over the run's own time, and only what fits the link."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from homes import HOME, simulated
from laboratory import Answer

import bufferscope as bs
from bufferscope.analysis.explanation.cures import CureResult, _less, cures
from bufferscope.analysis.explanation.diagnosis import diagnose
from bufferscope.analysis.explanation.evidence import evidence
from bufferscope.analysis.explanation.remedies import remedies
from bufferscope.running.stepping import Simulation
from bufferscope.store.memory import MemoryRun

Cli = Callable[..., Answer]
RING = {"size": "256p", "bql": False}
TBF = {"qdisc": "tbf", "rate": "4mbit", "burst": "3kb", "limit": "200kb"}
WIFI = '[[wifi]]\nname = "wlan"\naccess_point = "r1"\nlinks = ["wan"]\nqueueing = {queueing}\n[[link]]'


def names(run: MemoryRun) -> list[str]:
    found = evidence(run)
    return [remedy.name for remedy in remedies(found, diagnose(found))]


def on_air(queueing: str, **changes: object) -> MemoryRun:
    text = HOME.replace("[[link]]", WIFI.replace("{queueing}", queueing), 1)
    text = text.replace(
        'rate = "10mbit"\ndelay = "15ms"\nqueue = { qdisc = "pfifo", limit = "200p" }', 'rate = "13mbit"'
    )
    return Simulation(text, {path.replace("__", "."): value for path, value in changes.items()}).finish()


def test_a_wire_gets_managers_a_limit_and_a_shaper() -> None:
    assert names(simulated()) == [
        "fq_codel in r1>h2",
        "cake in r1>h2",
        "codel in r1>h2",
        "pie in r1>h2",
        "a limit of 35 packets in r1>h2",
        "shaping to 95 % of the wire's rate with cake",
    ]


def test_a_queue_that_is_as_short_as_the_rule_gets_no_limit() -> None:
    assert not [name for name in names(simulated(link__wan__queue__limit="30p")) if "limit" in name]
    short = {"qdisc": "bfifo", "limit": "45kb"}
    assert not [name for name in names(simulated(link__wan__queue=short)) if "limit" in name]


@pytest.mark.parametrize(
    "rate",
    [
        {"link.wan.rate": [["0s", "10mbit"], ["5s", "8mbit"]]},
        {"link.wan.rate": {"preset": "lte-down"}},
    ],
)
def test_a_rate_that_varies_is_not_shaped_to(rate: Any) -> None:
    try:
        run = Simulation(HOME, rate).finish()
    except bs.ExperimentError:
        pytest.fail("the rate is not one")
    assert not [name for name in names(run) if "shaping" in name]


def test_a_ring_gets_byte_queue_limits_only_if_it_has_none() -> None:
    queue = {"qdisc": "fq_codel"}
    found = names(simulated(link__wan__forward__ring=RING, link__wan__queue=queue))
    assert found == ["byte queue limits alone", "shaping to 95 % of the wire's rate with cake"]
    limited = names(simulated(link__wan__forward__ring=RING | {"bql": True}))
    assert not [name for name in limited if "byte queue" in name]


@pytest.mark.parametrize("queueing", ['{ kind = "fifo" }', '{ kind = "fifo", queue = { qdisc = "fq_codel" } }'])
def test_a_radio_channel_gets_neither_byte_queue_limits_nor_a_shaper(queueing: str) -> None:
    found = names(on_air(queueing))
    assert found[0] == "queues for each station in the driver (mac80211)"
    assert not [name for name in found if "byte queue" in name or "shap" in name or "limit" in name]


def test_the_discipline_inside_a_shaper_is_replaced_but_no_ring_is() -> None:
    assert names(simulated(link__wan__forward__queue=TBF)) == [
        "fq_codel in the shaper",
        "codel in the shaper",
        "pie in the shaper",
        "cake at the shaper's rate in r1>h2",
        "no shaper, but fq_codel at the wire",
    ]


def test_a_window_of_linux_own_size_gets_a_larger_one() -> None:
    host = '[[host]]\nname = "h2"\ntcp.rmem_max = "6mb"\n'
    run = Simulation(HOME + host, {"link.wan.rate": "2gbit", "link.lan.rate": "4gbit", "link.wan.delay": "20ms",
                                   "duration": "3s", "warmup": "2s", "traffic.bulk.flows": 1}).finish()  # fmt: skip
    found = evidence(run)
    assert [name for name in names(run) if "as Linux has it" in name] == [], diagnose(found)


def stored(cli: Cli, tmp_path: Path, text: str, *more: str) -> Any:
    (tmp_path / "home.toml").write_text(text)
    assert cli("run", "home.toml", "--quiet", *more).status == 0
    (run,) = bs.load(tmp_path / "results" / "home").runs
    return run


def test_cures_are_measured_over_the_run_s_own_time(cli: Cli, tmp_path: Path) -> None:
    """The queue is deep in the warm-up only; over all of the time, a queue manager would seem to gain."""
    text = HOME.replace('warmup = "2s"', 'warmup = "6s"').replace('limit = "200p"', 'limit = "60p"')
    run = stored(cli, tmp_path, text + '[[traffic]]\nname = "early"\nkind = "udp"\nrate = "20mbit"\nstop = "4s"\n'
                 'from = "h1"\nto = "h2"\n')  # fmt: skip
    found = [each for each in cures(run) if "before_rtt_p95_ms" in each.numbers]
    assert found
    for each in found:
        assert each.numbers["before_rtt_p50_ms"] == pytest.approx(run.metrics["rtt.p50_ms"], rel=0.02)
        assert each.numbers["before_rtt_p95_ms"] == pytest.approx(run.metrics["rtt.p95_ms"], rel=0.02)


def test_what_the_port_has_already_is_not_tried(cli: Cli, tmp_path: Path) -> None:
    """Of 24 flows, pie drops more than 5 % of the packets, pings too; with 16, whether it does is chance."""
    text = HOME.replace('delay = "5ms"', 'delay = "500us"').replace('delay = "15ms"', 'delay = "500us"')
    text = text.replace('{ qdisc = "pfifo", limit = "200p" }', '{ qdisc = "pie" }').replace('"10s"', '"6s"')
    run = stored(cli, tmp_path, text.replace('kind = "tcp"', 'kind = "tcp"\nflows = 24'))
    tried = [str(each.numbers.get("cure")) for each in cures(run)]
    assert "fq_codel in r1>h2" in tried
    assert not [name for name in tried if name.startswith("pie")]


def test_a_run_whose_pings_go_to_the_gateway_is_judged_by_others(cli: Cli, tmp_path: Path) -> None:
    text = HOME.replace('from = "h1"\nto = "h2"\ninterval', 'from = "h1"\nto = "r1"\ninterval').replace('"10s"', '"6s"')
    found = {str(each.numbers.get("cure")): each for each in cures(stored(cli, tmp_path, text))}
    numbers = found["fq_codel in r1>h2"].numbers
    assert float(numbers["before_rtt_p50_ms"]) > 150
    assert float(numbers["after_rtt_p50_ms"]) < 60


def test_traffic_that_gets_much_less_is_named() -> None:
    before = CureResult(40.0, 50.0, 30e6, {"down": 28e6, "up": 2e6}, None)
    after = CureResult(40.0, 50.0, 30e6, {"down": 28.4e6, "up": 1.6e6}, None)
    assert [text.replace("\xa0", " ") for text in _less(before, after)] == [
        "of which up gets 1.6 Mbit/s instead of 2 Mbit/s"
    ]
    assert list(_less(before, before)) == []
