"""Every experiment of the catalogue on a real kernel, for its first two seconds."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from guests import JOBS, build_guest

import bufferscope as bs
from bufferscope.base.errors import EngineError
from bufferscope.model.network import path, ports, traffic_ends
from bufferscope.model.recorded import unrecorded
from bufferscope.store.run import Run

pytestmark = pytest.mark.guest

DURATION_S = 2
NOT_IN_6_1 = ("dualpi2",)
"""Disciplines that are newer than the guest's kernel."""


def _without_newer(name: str, key: str) -> str:
    """An override that leaves out the points with a discipline newer than the kernel."""
    return _only(name, key, *(label for label, queue in _swept(name, key).items() if queue["qdisc"] not in NOT_IN_6_1))


def _only(name: str, key: str, *labels: str) -> str:
    """An override that leaves out the points of a sweep that are not among these."""
    points = _swept(name, key)
    return f"sweep.{key}={_written({label: points[label] for label in labels})}"


def _swept(name: str, key: str) -> dict[str, Any]:
    """The values of a swept key in an experiment of the catalogue, by their labels."""
    text = (files("bufferscope.model") / "catalogue" / f"{name}.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["sweep"][key]
    return found


def _written(value: object) -> str:
    """A value in TOML, with tables in one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(word)} = {_written(each)}' for word, each in value.items())} }}"
    return json.dumps(value)


QUEUE = "link.bottleneck.queue"
RING = "sweep.link.bottleneck.forward.ring.size"
SINGLE_SEGMENTS = '{ "offload off" = { gso_max_segs = 1 } }'
"""All that the card of a guest takes."""
BATTLED = ("pfifo_fast", "fq_codel", "cake")
"""Of the disciplines that `battling-rrul` runs all, those for its other tests."""
FEWER = {
    "ucas-queue-sizes": ['sweep.link.bottleneck.queue.limit=["50p", "200p"]'],
    "mininet-buffer-size": ['sweep.link.bottleneck.queue.limit=["5p", "100p"]'],
    "mininet-page-times": ['sweep.link.bottleneck.queue.limit=["20p"]'],
    "dark-cubic-trace": [_only("dark-cubic-trace", "link.cable.forward.queue", "500 KB", "fq_codel")],
    "congestion-controls": [
        'sweep.traffic.tested.congestion=["bbr", "westwood"]',
        "traffic.rival.flows=1",
        _only("congestion-controls", "link.bottleneck.forward.queue", "pfifo 20", "codel"),
    ],
    "mininet-rtt-equation": ["link.bottleneck.queue.limit=20p"],
    "ucas-mitigate": [_only("ucas-mitigate", "link.bottleneck.forward.queue", "taildrop", "red-lab")],
    "battling-tcp-bidirectional": ["traffic.test.delay=0s", _only("battling-tcp-bidirectional", QUEUE, *BATTLED)],
    "battling-tcp-asymmetric": ["traffic.test.delay=0s", "link.bottleneck.reverse.rate=10mbit"],
    "battling-rrul": ["traffic.rrul.delay=0s", _without_newer("battling-rrul", QUEUE)],
    "battling-rrul-path": ["traffic.rrul.delay=0s", "link.server.delay=1ms"],
    "disciplines": [
        _only("disciplines", "link.bottleneck.forward.queue", "choke", "prio"),
        _only("disciplines", "traffic", "64 flows", "a household"),
    ],
    "battling-udp-flood": ["traffic.flood.start=0s", _only("battling-udp-flood", QUEUE, *BATTLED)],
    "lncc-ring": [
        f'{RING}=["128p", "256p"]',
        _only("lncc-ring", "link.bottleneck.forward.queue", "nothing above"),
        f"sweep.tcp={SINGLE_SEGMENTS}",
        "sample=1s",
    ],
    "dark-smokeping": ["sample=10ms", 'record=["probes", "flows", "queues"]', "traffic.ping.interval=200ms"],
    "dark-reaction-time": [
        "traffic.newcomer.start=0s",
        "traffic.earlier.stop=1s",
        "traffic.ping.interval=97ms",
        'sweep.traffic.newcomer.flows={ "with a newcomer" = 1 }',
        _only("dark-reaction-time", "link.uplink.forward.queue", "1", "fq_codel"),
    ],
    "dark-starvation": [
        "traffic.photo-far.start=0s",
        'sweep.traffic.upload.flows={ "beside an upload" = 1 }',
        "tcp.initial_window=10",
    ],
    "dark-3g": ["traffic.page.stop=1s", 'sweep.traffic.download.flows={ "a download" = 1 }'],
    "dark-web": ["traffic.dns.stop=1s", "traffic.dns.timeout=400ms", 'sweep.traffic.email.flows={ "an e-mail" = 1 }'],
    "dark-wifi": [
        _only("dark-wifi", "link.radio.forward", "1000 + ring of 256", "fq_codel + ring of 256"),
        'sweep.link.radio.rate=["11mbit"]',
        "traffic.ping.interval=97ms",
    ],
    "dark-shaping": ['sweep.link.ethernet.forward.queue.rate={ "90 %" = "1.8mbit" }'],
    "lncc-window": ["link.bottleneck.forward.ring.size=256p", f"sweep.tcp={SINGLE_SEGMENTS}", "sample=1s"],
}
"""Overrides that leave points out, or begin the load at once. A kernel does not have every control, there are many, the
least and the largest size of a queue are enough, and so is one experiment with every discipline: `battling-rrul`."""
SIMULATED = {
    "l4s": "no released Linux kernel has the congestion control prague",
    "dark-throughput-delay": "no released Linux kernel has the congestion control window",
    "dark-netalyzr": "the kernel engines do not implement netalyzr",
    **dict.fromkeys(
        ["wifi-anomaly", "wifi-anomaly-arrivals", "wifi-anomaly-losses", "wifi-latency", "dark-wifi-shared"],
        "Linux' virtual radios .* take no time to send",
    ),
}
"""Experiments that only the simulator can run, and why."""
LATE_FIGURES = ("reaction_time",)
"""Figures that have nothing to show in the first two seconds."""
STACKED = ("lncc-qdisc", "lncc-surface", "lncc-bql")
"""Experiments with interfaces stacked on others, which only the simulator has."""
TABLES_WITH_ROWS = {"probes", "flows", "queues"}


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    build_guest()


@pytest.mark.parametrize(("name", "reason"), SIMULATED.items())
def test_what_no_kernel_has_is_refused_by_name(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=reason):
        bs.run(name, engine="guest", repeat=1, out=tmp_path)


@pytest.mark.parametrize("name", STACKED)
def test_what_a_card_cannot_be_set_to_is_refused_by_name(name: str, tmp_path: Path) -> None:
    refused = r"the ring of D>E has \d+p, which virtio_net cannot be set to; allowed: 64p, 128p, 256p"
    with pytest.raises(EngineError, match=refused):
        bs.run(name, engine="guest", out=tmp_path)


@pytest.mark.parametrize("name", [name for name in bs.catalogue() if name not in (*SIMULATED, *STACKED)])
def test_an_experiment_of_the_catalogue_runs_on_a_real_kernel(name: str, tmp_path: Path) -> None:
    changes = [f"duration={DURATION_S}s", "warmup=0s", *FEWER.get(name, [])]
    result = bs.run(name, changes, engine="guest", jobs=JOBS, out=tmp_path, repeat=1)
    for run in result.runs:
        assert run.warnings == []
        assert {table for table, rows in run.meta["tables"].items() if rows} >= TABLES_WITH_ROWS
        no_answer_is_faster_than_its_path(run)
        no_queue_exceeds_its_limit(run)
        if "drops" not in unrecorded(run.scenario):
            every_drop_that_was_counted_has_a_row(run)
    for figure in set(result.document["figures"]) - set(LATE_FIGURES):
        bs.figures.draw(result, figure).to_dict()


def no_answer_is_faster_than_its_path(run: Run) -> None:
    pings = [entry for entry in run.scenario["traffic"] if entry["kind"] == "ping"]
    for ping in pings:
        near, far = traffic_ends(run.scenario, ping)
        delay_ns = sum(port.delay_ns for port in (*path(run.scenario, near, far), *path(run.scenario, far, near)))
        rtt_ns = run.probes.filter(probe=ping["name"])["rtt_ns"]
        assert rtt_ns.count() > 0
        assert rtt_ns.drop_nulls().ge(delay_ns).all()


def no_queue_exceeds_its_limit(run: Run) -> None:
    for port in ports(run.scenario).values():
        packets = run.queues.filter(port=port.name, layer="qdisc")["packets"]
        if port.limit_packets is not None:
            assert packets.le(port.limit_packets).all()


def every_drop_that_was_counted_has_a_row(run: Run) -> None:
    counted = run.queues.group_by("port").agg(pl.col("dropped").max())["dropped"].sum()
    assert run.drops.filter(~pl.col("reason").str.ends_with("_mark")).height == counted
