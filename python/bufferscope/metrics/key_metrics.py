"""The metrics that say most about a run, depending on its traffic; tables show them first."""

from collections.abc import Iterator

from bufferscope.metrics.declared import definitions
from bufferscope.model.metric_names import live_phases
from bufferscope.model.network import CARRYING, bulk_flows, groups, probers, traffic_named
from bufferscope.model.scenario import Scenario

LOADED = {"download": ("down",), "upload": ("up",), "both": ("down", "up")}
"""The directions of the load in each phase of a live measurement."""


def key_metrics(scenario: Scenario) -> list[str]:
    """The names of these metrics for a scenario, in the order in which tables show them; a run may lack some."""
    if phases := live_phases(scenario):
        return list(_live(phases))
    return list(
        dict.fromkeys([*_delay(scenario), *_goodput(scenario), *_times(scenario), *_calls(scenario), *_tests(scenario)])
    )


def _live(phases: list[str]) -> Iterator[str]:
    yield "live.idle.rtt.p50_ms"
    for phase in phases:
        yield f"live.{phase}.added.p95_ms"
        yield from (f"live.{phase}.{way}.goodput_mbit" for way in LOADED[phase])
    yield from (f"live.{phase}.rpm" for phase in phases)


def heading(name: str) -> str:
    """A metric's name at the head of a column.

    >>> heading("transfer.web.p95_s"), heading("voip.call.mos"), heading("goodput.bulk_mbit")
    ('web p95 (s)', 'call MOS', 'bulk (Mbit/s)')
    >>> heading("live.upload.added.p95_ms"), heading("live.both.up.goodput_p10_mbit"), heading("live.upload.rpm")
    ('upload added p95 (ms)', 'both up goodput_p10 (Mbit/s)', 'upload rpm')
    """
    known = next((metric for metric in definitions() if metric.fits(name)), None)
    return known.headed(name) if known else name


def _delay(scenario: Scenario) -> Iterator[str]:
    if probers(scenario):
        yield from ("rtt.p50_ms", "rtt.p95_ms", "rtt.max_ms", "rtt.lost")
        return
    # Of captures only; other runs do not have them.
    for entry in traffic_named(scenario, "tcp"):
        yield from (f"round_trip.{entry['name']}.{what}" for what in ("p50_ms", "p95_ms", "max_ms"))


def _goodput(scenario: Scenario) -> Iterator[str]:
    entries = traffic_named(scenario, *CARRYING)
    directions = {part: group for group, parts in groups(scenario, *CARRYING).items() if "." in group for part in parts}
    if entries:
        yield "goodput.total_mbit"
    if len(entries) > 1:
        yield from (f"goodput.{directions.get(entry['name'], entry['name'])}_mbit" for entry in entries)
    if bulk_flows(scenario) > 1:
        yield "goodput.jain"
    if entries and not probers(scenario):
        yield "retransmits.total"


def _times(scenario: Scenario) -> Iterator[str]:
    files = [entry for entry in traffic_named(scenario, "tcp") if entry.get("bytes") is not None]
    for entry in [*traffic_named(scenario, "web", "dns"), *files]:
        yield from (f"transfer.{entry['name']}.{what}" for what in ("mean_s", "p95_s", "unfinished"))


def _calls(scenario: Scenario) -> Iterator[str]:
    for entry in traffic_named(scenario, "voip"):
        yield from (f"voip.{entry['name']}.{what}" for what in ("mos", "delay_ms", "loss_percent"))
    for entry in traffic_named(scenario, "game"):
        yield from (f"game.{entry['name']}.{what}" for what in ("late_percent", "loss_percent"))
    for entry in traffic_named(scenario, "video"):
        yield from (
            f"video.{entry['name']}.{what}" for what in ("startup_s", "rate_mbit", "switches", "stalled_percent")
        )
    for entry in traffic_named(scenario, "udp"):
        yield f"loss.{entry['name']}_percent"


def _tests(scenario: Scenario) -> Iterator[str]:
    for entry in traffic_named(scenario, "netalyzr"):
        for direction in ("up", "down"):
            yield from (f"buffer.{entry['name']}.{direction}_{what}" for what in ("mbit", "added_ms", "inferred_kib"))
