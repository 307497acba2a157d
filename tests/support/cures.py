"""Live measurements with queues at given places, made by hand, for the tests of `fix`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import livestreams
from livestreams import MS

from bufferscope.interop.live.measuring import read_events
from bufferscope.store.run import Run

WAY = {"upload": "up", "download": "down"}


def events(
    places: dict[str, str],
    *,
    added_ms: float = 80.2,
    grade: str = "C",
    probability: float = 0.97,
    variation: float = 0.01,
    more_places: Sequence[str] = (),
    link: str = "ethernet",
    later_s: int = 0,
    client: dict[str, Any] | None = None,
    **goodput: int,
) -> list[dict[str, Any]]:
    """The events of a measurement with these places of queues, by their phases (`upload`, `download`).

    `client` is more that is known of this machine. `goodput` has the mean of a phase in bit/s; the lower decile of
    single seconds is 1 % less. `more_places` are as probable, so that the answer names several.
    """
    phases = [name for name in ("download", "upload") if name in (places | goodput)]
    found = livestreams.end(["idle", *phases, "cool_down"])
    found["observations"]["ends"]["client"] |= {"link": link, **(client or {})}
    for phase in found["verdict"]["phases"]:
        _plant(phase, places.get(phase["kind"]), (added_ms, grade, probability, variation), more_places)
        if rate := goodput.get(phase["kind"]):
            numbers = next(each for each in phase["numbers"]["directions"] if each["loaded"])
            numbers["goodput"] |= {"mean_bps": rate, "p10_bps": round(0.99 * rate)}
    begin = livestreams.start(realtime_ns=livestreams.REALTIME + later_s * livestreams.SECOND)
    return [begin, found]


def _plant(
    phase: dict[str, Any], place: str | None, known: tuple[float, str, float, float], more_places: Sequence[str]
) -> None:
    added_ms, grade, probability, variation = known
    way = WAY[phase["kind"]]
    for numbers in phase["numbers"]["directions"]:
        if numbers["loaded"]:
            numbers["goodput"]["variation"] = variation
        if numbers["direction"] == way:
            numbers["added"]["p95_ns"] = round(added_ms * MS) if place else MS
    if place is None:
        phase |= {"where": [], "grade": "A+", "outcome": {"kind": "clean", "limit": None, "text": "No queue."}}
        return
    phase["numbers"]["added"]["p95_ns"] = round(added_ms * MS)
    if place == "client_send_buffer":
        delay = livestreams.spread(added_ms / 2, added_ms, added_ms, added_ms)
        phase["stages"] = [{"end": "client", "stage": "send_buffer", "delay": delay}]
    phase["grade"] = grade
    phase["outcome"] = {"kind": "queue", "limit": None, "text": "The load makes a queue grow."}
    locations = [{"place": each, "direction": way, "link": 2, "address": None} for each in (place, *more_places)]
    share = probability / len(locations)
    phase["where"] = [
        {
            "direction": way,
            "posterior": [{"location": each, "probability": share} for each in locations],
            "answer": {
                "text": f"{place} ({probability:.0%})",
                "locations": locations,
                "probability": probability,
                "share": 1.0,
            },
            "second": None,
        }
    ]


def measured(directory: Path, places: dict[str, str], **more: Any) -> Run:
    """The same, stored under `directory`/results."""
    lines = livestreams.lines(events(places, **more)).splitlines()
    return read_events(lines, directory / "results")
